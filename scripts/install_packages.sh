#!/bin/bash
# Installs the Debian packages of the named groups that are missing: install_packages.sh [--missing] GROUP...
# Groups: build, test, python, models, bare. Says what it installs; does nothing when all are there. Without root or sudo it prints
# the line to run and fails. `--missing` only prints the names of the missing ones, a line each.
set -euo pipefail

build=(gcc libc6-dev cmake pkg-config libdnnl-dev libopenblas-openmp-dev libcjson-dev libjs-chart.js libpng-dev libjpeg-dev
    zlib1g-dev)
test=(libcmocka-dev chromium python3-pandas libonnx-testdata python3 g++ binutils clang llvm libomp-dev libclang-rt-14-dev)
# Its build, and what of it is optional: frames, plots, ONNX's backend suite, the walkthroughs.
python=(python3 python3-dev python3-venv python3-pip python3-setuptools python3-wheel python3-numpy python3-pandas python3-matplotlib
    python3-onnx python3-pytest mypy)
bare=(debootstrap)
models=(python3-numpy python3-onnx python3-torch python3-torchvision nodejs npm)

only_print=false
if [ "${1-}" = --missing ]; then only_print=true; shift; fi
packages=()
for group in "$@"; do
    case $group in
    build) packages+=("${build[@]}") ;;
    test) packages+=("${test[@]}") ;;
    python) packages+=("${python[@]}") ;;
    models) packages+=("${models[@]}") ;;
    bare) packages+=("${bare[@]}") ;;
    *)
        echo "install_packages.sh: no group '$group'; there are build, test, python, models and bare" >&2
        exit 2
        ;;
    esac
done

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    if $only_print; then exit 0; fi
    echo "This is no Debian system; the counterparts of these packages are needed: ${packages[*]}" >&2
    exit 0
fi

# Node.js from elsewhere conflicts with Debian's packages, and serves as well.
is_there() {
    case $1 in
    nodejs) command -v node >/dev/null && return ;;
    npm) command -v npm >/dev/null && return ;;
    esac
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing=()
for package in "${packages[@]}"; do
    is_there "$package" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
if $only_print; then
    printf '%s\n' "${missing[@]}"
    exit 0
fi

install=(apt-get install -y --no-install-recommends "${missing[@]}")
give_up() {
    echo "Installing packages needs root. Run this as root, then try again:" >&2
    echo "    ${install[*]}" >&2
    exit 1
}

echo "Missing: ${missing[*]}"
as_root=(env DEBIAN_FRONTEND=noninteractive)
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || give_up
    if [ -t 0 ]; then sudo -v; else sudo -n true; fi 2>/dev/null || give_up
    as_root=(sudo "${as_root[@]}")
fi
echo "Installing them."
"${as_root[@]}" apt-get update -q
"${as_root[@]}" "${install[@]}"
