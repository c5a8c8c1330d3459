#!/bin/bash
# Installs the Debian packages of the named groups that are missing: install_packages.sh [--missing] GROUP...
# Groups: build, test, python, python-test, package, models, bare, arm64, mpi. Says what it installs; does nothing when all are there. Without root or sudo it prints
# the line to run and fails. `--missing` only prints the names of the missing ones, a line each.
set -euo pipefail

knows() { # whether apt has heard of a package
    [ -n "$(apt-cache show --no-all-versions "$1" 2>/dev/null | head -n 1)" ]
}

# The sanitizers of the clang that `clang` stands for.
clang_runtime() {
    local version=''
    if command -v apt-cache >/dev/null; then
        version=$(apt-cache depends clang 2>/dev/null | sed -n 's/^ *Depends: clang-\([0-9]*\)$/\1/p' | head -n 1)
    fi
    echo "libclang-rt-${version:-14}-dev"
}

# `?` in front: optional, left out where apt does not know it. Names differ between releases, so apt is asked and no release
# is named here.
build=(gcc libc6-dev cmake pkg-config libcjson-dev ?libdnnl-dev ?libopenblas-openmp-dev ?libpng-dev
    ?libjpeg-dev ?zlib1g-dev ?libsqlite3-dev ?libmicrohttpd-dev ?opencl-c-headers)
test=(libcmocka-dev ?clang-format-19 ?clang-tidy-19 ?flake8 ?mypy ?shellcheck ?chromium ?python3-pandas ?python3-jsonschema ?libonnx-testdata ?pocl-opencl-icd ?ocl-icd-libopencl1 python3 g++
    binutils clang llvm libomp-dev ?CLANG_RUNTIME)
# The package's build. Its tests, which also cover frames, plots, ONNX's backend suite and the walkthroughs.
python=(python3 python3-dev python3-venv python3-pip python3-setuptools python3-wheel python3-numpy)
python_test=(?python3-pandas ?python3-matplotlib ?python3-onnx ?python3-pytest ?mypy)
package=(dpkg-dev file) # cpack reads dependencies with them
bare=(debootstrap)
arm64=(debootstrap qemu-user-static gcc-aarch64-linux-gnu libc6-dev-arm64-cross dpkg-dev file ?llvm-19)
mpi=(libopenmpi-dev openmpi-bin libmpich-dev mpich iproute2 ?slurm-wlm ?munge)
models=(python3-numpy python3-onnx python3-torch python3-torchvision nodejs npm)

only_print=false
if [ "${1-}" = --missing ]; then
    only_print=true
    shift
fi
packages=()
for group in "$@"; do
    case $group in
    build) packages+=("${build[@]}") ;;
    test) packages+=("${test[@]}") ;;
    python) packages+=("${python[@]}") ;;
    python-test) packages+=("${python_test[@]}") ;;
    package) packages+=("${package[@]}") ;;
    models) packages+=("${models[@]}") ;;
    bare) packages+=("${bare[@]}") ;;
    arm64) packages+=("${arm64[@]}") ;;
    mpi) packages+=("${mpi[@]}") ;;
    *)
        echo "install_packages.sh: unknown group '$group'; known: build, test, python, python-test, package, models, bare, arm64 and mpi" >&2
        exit 2
        ;;
    esac
done

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    if $only_print; then exit 0; fi
    {
        echo "This script installs packages on Debian and its relatives only. The build needs a C compiler, CMake, pkg-config and"
        echo "cJSON; it uses oneDNN, OpenBLAS (OpenMP), libpng, libjpeg, zlib, SQLite, libmicrohttpd and OpenCL if they are installed:"
        echo "    dnf install gcc make cmake pkgconf cjson-devel onednn-devel openblas-devel libpng-devel libjpeg-turbo-devel zlib-devel sqlite-devel libmicrohttpd-devel opencl-headers"
        echo "    pacman -S gcc make cmake pkgconf cjson onednn openblas libpng libjpeg-turbo zlib sqlite libmicrohttpd opencl-headers"
        echo "    zypper install gcc make cmake pkg-config cJSON-devel onednn-devel openblas-devel libpng16-devel libjpeg8-devel zlib-devel sqlite3-devel libmicrohttpd-devel opencl-headers"
        echo "    apk add gcc musl-dev linux-headers make cmake pkgconf cjson-dev onednn-dev openblas-dev libpng-dev libjpeg-turbo-dev zlib-dev sqlite-dev libmicrohttpd-dev opencl-headers"
    } >&2
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

as_root=(env DEBIAN_FRONTEND=noninteractive)
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo "${as_root[@]}"); fi

# apt knows no package at all before its first update.
informed=true updated=false
if ! command -v apt-cache >/dev/null || ! knows dpkg; then informed=false; fi
if ! $informed && ! $only_print && [ "$(id -u)" -eq 0 ] && command -v apt-cache >/dev/null; then
    apt-get update -q
    updated=true
    if knows dpkg; then informed=true; fi
fi

missing=() unknown=()
for entry in "${packages[@]}"; do
    if [ "$entry" = '?CLANG_RUNTIME' ]; then entry="?$(clang_runtime)"; fi
    name=${entry#\?}
    if is_there "$name" || [[ " ${missing[*]-} " == *" $name "* ]]; then continue; fi
    if [ "$entry" != "$name" ] && $informed && ! knows "$name"; then
        unknown+=("$name")
    else
        missing+=("$name")
    fi
done
if [ ${#unknown[@]} -gt 0 ] && ! $only_print; then echo "Optional packages that apt does not know here, left out: ${unknown[*]}"; fi
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

echo "Missing (${#missing[@]}): ${missing[*]}"
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || give_up
    if [ -t 0 ]; then sudo -v; else sudo -n true; fi 2>/dev/null || give_up
fi
echo "Installing them."
if ! $updated; then "${as_root[@]}" apt-get update -q; fi
"${as_root[@]}" "${install[@]}"
