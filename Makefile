# The few commands that set everything up by themselves. CMake alone works as well; see README.md.

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
BUILD ?= build

PYTHON ?= /usr/bin/python3
VENV ?= $(BUILD)/venv

# Which tests check-unit runs, as ctest is told: make check-unit SELECT='-LE "again|emulated"'
SELECT ?=

.PHONY: demo build python check check-unit check-asan check-tsan check-plain check-bare check-models install clean
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:

demo: build
	$(BUILD)/prony profile

build:
	@scripts/install_packages.sh build
	cmake -S . -B $(BUILD) -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF
	cmake --build $(BUILD) -j $(JOBS)

# The Python package, in a virtual environment that sees the system's packages; nothing is fetched. The CMake folder is used again.
python:
	@scripts/install_packages.sh build python
	cmake -S . -B $(BUILD) -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DPRONY_PYTHON=ON -DPRONY_PYTHON_EXECUTABLE=$(PYTHON)
	$(PYTHON) -m venv --system-site-packages $(VENV)
	@printf '[build]\nbuild_base=%s\n[egg_info]\negg_base=%s\n' $(abspath $(BUILD))/wheel $(abspath $(BUILD)) >$(BUILD)/wheel.cfg
	DIST_EXTRA_CONFIG=$(abspath $(BUILD))/wheel.cfg PRONY_BUILD_DIR=$(abspath $(BUILD)) CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) \
	    $(VENV)/bin/python -m pip install -q --no-build-isolation --no-index --no-deps --force-reinstall ./python
	$(VENV)/bin/python -c "import prony; print('prony', prony.__version__, 'for', '$(VENV)/bin/python')"

check: check-unit check-plain check-asan check-tsan
	@echo "All checks passed."

# Everything, as it is shipped.
check-unit:
	@scripts/install_packages.sh build test python
	cmake -S . -B build-check -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=ON -DPRONY_WERROR=ON
	cmake --build build-check -j $(JOBS)
	ctest --test-dir build-check --output-on-failure -j $(JOBS) $(SELECT)

# The unit tests on reference and native kernels alone, without vector instructions.
check-plain:
	@scripts/install_packages.sh build test
	cmake --preset plain
	cmake --build --preset plain -j $(JOBS)
	PRONY_MAX_ISA=scalar ctest --preset plain -L unit -j $(JOBS)

# Unit, fault-injection and fuzz tests under AddressSanitizer and UndefinedBehaviorSanitizer.
check-asan:
	@scripts/install_packages.sh build test
	cmake --preset asan-ubsan
	cmake --build --preset asan-ubsan -j $(JOBS)
	ctest --preset asan-ubsan -L "unit|fuzz" -j $(JOBS)

# Sessions that share a model, and the thread layer, under ThreadSanitizer.
check-tsan:
	@scripts/install_packages.sh build test
	cmake --preset tsan
	cmake --build --preset tsan --target prony_threads_tests -j $(JOBS)
	ctest --preset tsan -L threads

# README's commands on a bare Debian 12, made in a temporary folder; needs root.
check-bare:
	scripts/check_bare.sh

# Outputs against ONNX Runtime and counts against published tables, over exported models; large downloads.
check-models: build
	@scripts/install_packages.sh build models
	/usr/bin/python3 tests/peers/check_tables.py --prony $(BUILD)/prony --work $(BUILD)/models
	/usr/bin/python3 tests/peers/check_models.py --prony $(BUILD)/prony --work $(BUILD)/models

install: build
	cmake --install $(BUILD) --prefix $(PREFIX)

clean:
	rm -rf build build-check build-dev build-asan build-tsan build-plain
