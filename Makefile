# The few commands that set everything up by themselves. CMake alone works as well; see docs/guides/install.md.

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
BUILD ?= build

VERSION := $(shell sed -n 's/^\#define PRONY_VERSION "\(.*\)"/\1/p' include/prony.h)

PYTHON ?= /usr/bin/python3
VENV ?= $(BUILD)/venv

# Passed on to CMake: make demo CMAKE_FLAGS="-DPRONY_ONEDNN=OFF"
CMAKE_FLAGS ?=
export CMAKE_FLAGS

# More of ctest's options for check and quick: make check SELECT="-R test_op"
SELECT ?=

PARTS := trixie bookworm required arm64 mpi asan-avx2 asan-scalar again tidy tsan asan fuzz plain

.PHONY: demo build mpi python docs check quick check-all $(addprefix check-,$(PARTS) arm64-short) check-models dist deb install clean
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:

demo: build
	$(BUILD)/prony profile
	@echo
	@echo "Next: $(BUILD)/prony profile YOUR_MODEL.onnx --html report.html    (README.md has more)"

build:
	@scripts/install_packages.sh build
	cmake -S . -B $(BUILD) -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF $(CMAKE_FLAGS)
	cmake --build $(BUILD) -j $(JOBS)

# The C API reference, from the public headers by Doxygen; left out with a line where that is missing.
docs:
	@scripts/make_api_docs.sh $(BUILD)/api || [ $$? = 77 ]

# prony-mpi beside prony, for studies over the nodes of a cluster.
mpi:
	@scripts/install_packages.sh build
	@command -v mpicc >/dev/null || scripts/install_packages.sh mpi
	cmake -S . -B $(BUILD) -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DPRONY_MPI=ON $(CMAKE_FLAGS)
	cmake --build $(BUILD) -j $(JOBS) --target prony_mpi prony_command

# The Python package, in a virtual environment that sees the system's packages; nothing is fetched. The CMake folder is used again.
python:
	@scripts/install_packages.sh build python
	cmake -S . -B $(BUILD) -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DPRONY_PYTHON=ON -DPRONY_PYTHON_EXECUTABLE=$(PYTHON) $(CMAKE_FLAGS)
	cmake --build $(BUILD) --target prony_python -j $(JOBS)
	$(PYTHON) -m venv --system-site-packages $(VENV)
	@printf '[build]\nbuild_base=%s\n[egg_info]\negg_base=%s\n' $(abspath $(BUILD))/wheel $(abspath $(BUILD)) >$(BUILD)/wheel.cfg
	DIST_EXTRA_CONFIG=$(abspath $(BUILD))/wheel.cfg PRONY_BUILD_DIR=$(abspath $(BUILD)) CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) \
	    $(VENV)/bin/python -m pip install --no-build-isolation --no-index --no-deps --force-reinstall ./python
	$(VENV)/bin/python -c "import prony; print('prony', prony.__version__, 'for', '$(VENV)/bin/python')"

# Release build; unit, operator, command and tree tests. `quick`: those below two seconds.
check quick:
	@JOBS=$(JOBS) SELECT="$(SELECT)" scripts/check.sh $@
	@echo "make $@: all passed."

# Everything else as well, part by part; `make check-asan` runs one part, scripts/check.sh lists them.
check-all:
	@JOBS=$(JOBS) scripts/check.sh check $(PARTS)

$(addprefix check-,$(PARTS) arm64-short):
	@JOBS=$(JOBS) scripts/check.sh $(@:check-%=%)

# Outputs against ONNX Runtime and counts against published tables, over exported models; large downloads.
check-models: build
	@scripts/install_packages.sh build models
	/usr/bin/python3 tests/peers/check_tables.py --prony $(BUILD)/prony --work $(BUILD)/models
	/usr/bin/python3 tests/peers/check_models.py --prony $(BUILD)/prony --work $(BUILD)/models

# The sources of the last commit as an archive; it builds without git.
dist:
	@mkdir -p $(BUILD)
	git archive --format=tar.gz --prefix=prony-$(VERSION)/ -o $(BUILD)/prony-$(VERSION).tar.gz HEAD
	@echo "$(BUILD)/prony-$(VERSION).tar.gz"

# A Debian package of this release of Debian: build/prony_VERSION_ARCHITECTURE.deb.
deb:
	@scripts/install_packages.sh build package
	@$(MAKE) build
	cd $(BUILD) && cpack -G DEB

install: build
	cmake --install $(BUILD) --prefix $(PREFIX)

clean:
	rm -rf build build-check build-dev build-asan build-tsan build-plain build-tidy build-arm64
