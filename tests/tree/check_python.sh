#!/bin/bash
# Builds the wheel from the build folder, installs it into a virtual environment of its own without a package index, and uses it from
# elsewhere: check_python.sh PYTHON BUILD_DIR SOURCE_DIR. 77: a package that this takes is missing.
set -euo pipefail
python=$1 build=$2 root=$3
for module in setuptools wheel venv ensurepip numpy; do
    "$python" -c "import $module" 2>/dev/null || {
        echo "NOT CHECKED: $python has no $module (Debian: python3-setuptools, python3-wheel, python3-venv, python3-pip, python3-numpy)"
        exit 77
    }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PRONY_BUILD_DIR=$build DIST_EXTRA_CONFIG=$work/wheel.cfg PIP_DISABLE_PIP_VERSION_CHECK=1
printf '[build]\nbuild_base=%s\n[egg_info]\negg_base=%s\n' "$work/base" "$work" >"$DIST_EXTRA_CONFIG"
"$python" -m venv --system-site-packages "$work/venv"
"$work/venv/bin/python" -m pip wheel -q --no-build-isolation --no-index --no-deps -w "$work/wheels" "$root/python" >"$work/log" 2>&1 ||
    { cat "$work/log"; exit 1; }
wheels=("$work"/wheels/*.whl)
version=$(sed -n 's/^#define PRONY_VERSION "\(.*\)"/\1/p' "$root/include/prony.h")
[[ ${wheels[0]} == "$work/wheels/prony-$version-"*linux*.whl ]] || { echo "the wheel is ${wheels[0]}, not of version $version"; exit 1; }
"$work/venv/bin/python" -m pip install -q --no-index --no-deps "${wheels[0]}"

names=$("$python" -m zipfile -l "${wheels[0]}")
for file in prony/_prony prony/py.typed prony/_prony.pyi prony/_version.py dist-info/.*LICENSE dist-info/.*THIRD_PARTY_NOTICES.txt; do
    grep -q "$file" <<<"$names" || { echo "not in the wheel: $file"; exit 1; }
done
[ -z "$(cd "$root" && git status --porcelain --ignored python 2>/dev/null | grep -v -e __pycache__ -e '^ M' -e '^??')" ] ||
    echo "note: python/ holds what earlier builds left"

extension=$(echo "$work"/venv/lib/python3*/site-packages/prony/_prony*.so)
if ldd "$extension" | grep -e libprony -e openblas; then
    echo "the extension does not carry the library, or loads OpenBLAS before it is needed"
    exit 1
fi
exported=$(nm -D --defined-only "$extension" | awk '{print $3}')
[ "$exported" = PyInit__prony ] || { echo "the extension exports $exported"; exit 1; }
cd "$work"
env -u PYTHONPATH "$work/venv/bin/python" - "$root/models/digits.onnx" "$version" <<'END'
import sys
import prony
assert prony.__version__ == prony.build()["version"] == sys.argv[2]
assert "venv" in prony.__file__
report = prony.profile(sys.argv[1], runs=3)
assert report.latency_ns["runs"] == 3
print(f"prony {prony.__version__} in a virtual environment: {report!r}")
END
