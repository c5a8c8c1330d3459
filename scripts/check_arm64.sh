#!/bin/bash
# AArch64 without its hardware: check_arm64.sh [all|short|package]
#
# Makes a Debian arm64 system by debootstrap in a temporary folder, builds crosswise into build-arm64, and tests under qemu-user:
#
#   all     unit and operator tests at the levels of the Cortex-A57 (neon) and of qemu's `max` (i8mm), some also at PRONY_MAX_ISA=scalar
#           and dotprod, the conformance runner, the command's main tests, the Debian package (the default)
#   short   the same bits as x86-64, inner loops, kernels at both levels, quick unit tests at `max` (a line names those left out), the package
#   package the cross build of the command and the package alone
#
# PRONY_ARM64_ROOT names a system of an earlier run, which is kept: KEEP=1 keeps the one that this run makes. Nothing is claimed of time:
# emulation has none. Exit status 3: this machine cannot do it; one line says why.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
jobs=${JOBS:-$(nproc)}
mode=${1:-all}
# Unit tests that take about half a minute or more each under emulation: `short` leaves them out, `all` runs them.
long_emulated='test_gemm|test_tuned_plan|test_tuned_plan_limits|test_machine'

cannot() {
    echo "check-arm64: left out: $*" >&2
    exit 3
}

say() {
    echo
    echo "== arm64: $* (after $SECONDS s)"
}

# Called by a trap.
# shellcheck disable=SC2317
finish() {
    local status=$?
    trap '' INT TERM HUP
    if [ -n "$registered" ]; then echo -1 >/proc/sys/fs/binfmt_misc/prony-aarch64 2>/dev/null || true; fi
    if [ -n "$made" ] && [ -z "${KEEP-}" ]; then rm -rf --one-file-system "$made"; fi
    exit "$status"
}

# The kernel starts programs of AArch64 by qemu, children of tests too. The package qemu-user-static registers it where an init runs.
register() {
    local folder=/proc/sys/fs/binfmt_misc qemu
    grep -qs '^enabled' $folder/qemu-aarch64 && return
    [ -e $folder/register ] || mount -t binfmt_misc binfmt_misc $folder 2>/dev/null || cannot "the kernel starts no foreign programs (binfmt_misc)"
    grep -qs '^enabled' $folder/qemu-aarch64 && return
    qemu=$(command -v qemu-aarch64-static)
    printf '%s' ":prony-aarch64:M::\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00:\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff:$qemu:F" \
        >$folder/register 2>/dev/null || cannot "qemu cannot be registered for foreign programs (binfmt_misc)"
    registered=1
}

# A system with the libraries, in which links are relative: the compiler reads it from outside.
make_root() {
    local suite mirror link
    suite=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' "Codename: $suite" | sort -u | head -n 1)
    case $mirror in
    http://* | https://* | file:/*) ;;
    *) mirror=http://deb.debian.org/debian ;;
    esac
    made=$(mktemp -d "${TMPDIR:-/tmp}/prony-arm64-XXXXXX")
    root=$made/root
    say "debootstrap $suite for arm64 from $mirror"
    debootstrap --foreign --arch=arm64 --variant=minbase \
        --include=libc6-dev,libcjson-dev,libcmocka-dev,zlib1g-dev,libpng-dev,libjpeg62-turbo-dev,libopenblas-openmp-dev,libgomp1,libsqlite3-dev,libmicrohttpd-dev \
        "$suite" "$root" "$mirror" >"$made/debootstrap.log" 2>&1 || { tail -n 20 "$made/debootstrap.log" >&2; exit 1; }
    chroot "$root" /debootstrap/debootstrap --second-stage >>"$made/debootstrap.log" 2>&1 || { tail -n 20 "$made/debootstrap.log" >&2; exit 1; }
    find "$root/usr/lib" -xdev -type l -lname '/*' | while read -r link; do
        ln -sfn "$(realpath -ms --relative-to="$(dirname "$link")" "$root$(readlink "$link")")" "$link"
    done
}

tests() { # CPU, then ctest's options
    local cpu=$1
    shift
    say "tests as on $cpu: $*"
    QEMU_CPU=$cpu QEMU_LD_PREFIX=$root ctest --test-dir build-arm64 --output-on-failure -j "$jobs" "$@" | tail -n 40
}

package() {
    local file
    say "Debian package"
    (cd build-arm64 && rm -f ./*.deb && cpack -G DEB >cpack.log 2>&1) || { tail -n 20 build-arm64/cpack.log >&2; exit 1; }
    file=$(echo build-arm64/prony_*_arm64.deb)
    dpkg-deb --field "$file" Architecture Depends
    cp "$file" "$source/tests/data/lenet5.onnx" "$root/tmp/"
    chroot "$root" dpkg -i "/tmp/$(basename "$file")" >/dev/null
    chroot "$root" prony version
    [ "$(dpkg-deb --fsys-tarfile "$file" | grep -acF "$root")" = 0 ] || { echo "a file of the package names the build's folder" >&2; exit 1; }
    chroot "$root" prony profile /tmp/lenet5.onnx -r 10 --json /tmp/lenet5.json >/dev/null
    grep -q '"isa_used": *"\(neon\|dotprod\|i8mm\)"' "$root/tmp/lenet5.json" || { echo "the report names no level of AArch64" >&2; exit 1; }
    ! chroot "$root" env PRONY_MAX_ISA=avx2 prony ops 2>"$made_log" || { echo "PRONY_MAX_ISA=avx2 was not refused" >&2; exit 1; }
    grep -q 'scalar, neon, dotprod, i8mm' "$made_log" || { cat "$made_log" >&2; exit 1; }
    chroot "$root" prony capacity /tmp/lenet5.onnx --rate 1 --latency-bound 10s -t 1 | grep '^1 processor'
    if chroot "$root" prony version | grep -q '^libraries.* sqlite '; then package_history; else echo "prony history is left out: $root has no SQLite"; fi
    if chroot "$root" prony version | grep -q '^libraries.* libmicrohttpd '; then package_serve; else echo "prony serve is left out: $root has no libmicrohttpd"; fi
    chroot "$root" dpkg --purge prony >/dev/null
}

# Libraries that the command loads are found on the system that it runs on.
package_history() {
    rm -f "$root/tmp/lenet5.db"
    chroot "$root" prony profile /tmp/lenet5.onnx -r 10 --history /tmp/lenet5.db >/dev/null
    chroot "$root" prony history /tmp/lenet5.db | grep '1 run in 1 group'
}

package_serve() { # the service's time limit ends it where a request fails
    local address
    : >"$root/tmp/serve.txt"
    chroot "$root" prony serve /tmp/lenet5.onnx --port 0 --time-limit 30s >"$root/tmp/serve.txt" 2>&1 &
    for _ in $(seq 100); do
        address=$(sed -n 's/^listening on \([^ ]*\).*/\1/p' "$root/tmp/serve.txt")
        [ -z "$address" ] || break
        sleep 0.1
    done
    [ -n "$address" ] || { cat "$root/tmp/serve.txt" >&2; exit 1; }
    python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1] + "/v2/models/lenet5", timeout=20).read().decode())' "$address"
    kill $!
    wait $! || true
}

main() {
    [[ $mode =~ ^(all|short|package)$ ]] || { echo "usage: check_arm64.sh [all|short|package]" >&2; exit 2; }
    [ "$(id -u)" -eq 0 ] || cannot "it needs root"
    for command in debootstrap qemu-aarch64-static aarch64-linux-gnu-gcc; do
        command -v "$command" >/dev/null || cannot "$command is missing (scripts/install_packages.sh arm64)"
    done
    registered='' made='' root=${PRONY_ARM64_ROOT-}
    trap finish EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    register
    [ -n "$root" ] || make_root
    made_log=$root/tmp/refusal.txt
    export PRONY_ARM64_ROOT=$root QEMU_LD_PREFIX=$root
    cd "$source"
    say "cross build"
    rm -f build-arm64/CMakeCache.txt # it names libraries of an earlier run's system
    cmake --preset arm64 >/dev/null
    if [ "$mode" = package ]; then
        cmake --build build-arm64 -j "$jobs" --target prony_command prony | tail -n 3
        package
        say "done"
        return
    fi
    cmake --build build-arm64 -j "$jobs" | tail -n 3
    if [ "$mode" = short ]; then
        tests cortex-a57 -R '^(strict_bits|check_arm_loops|test_int8_dot|test_conv_depthwise|test_reorder|test_number_loops|test_base)$'
        echo "left out, too long under emulation (check-arm64 runs them): ${long_emulated//|/ }; all tests with the label slow"
        tests max -L unit -LE 'slow|again|long|python' -E "^($long_emulated)\$"
    else
        tests cortex-a57 -L unit -LE 'again|long'
        tests max -L unit -LE 'long'
        tests max -R '^(check_arm_loops|check_conformance|test_command|test_command_reports|test_documents|test_verify|test_quantize_command)$'
    fi
    package
    say "done"
}

main
