#!/bin/bash
# Runs checks by name: check.sh [--within MINUTES] [--first N] PART...
#
# Each part builds in a folder of its own and can run alone. A part says at its start which packages, how much disk and about how
# many minutes it takes, and ends with its time. `--within` starts a part only while its expected time fits into what is left,
# and names the parts that it left out; `--first N` begins with the N-th PART, and goes on with the first behind the last one.
# Exit status: 0 all parts that ran passed, 1 a part failed, 2 wrong usage.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}
read -ra cmake_flags <<<"${CMAKE_FLAGS-}"
read -ra select <<<"${SELECT-}" # more of ctest's options

# Minutes on two cores from a clean clone with the packages installed, and MB of disk.
# `?` in front of a group: without its packages the part is left out, with one line.
#      part     minutes  MB  package groups       what it runs
parts="
       check       10   950  build,test,python,python-test    Release build; unit, operator, command and tree tests
       quick        1   950  build,test,python,python-test    Release build; tests of the tree and unit tests below two seconds
       again        6   950  build,test,python,python-test    tests that run once more: deferred constants, single instruction sets, AVX-512 emulated
       plain        7   800  build,test           no vector instructions, no optional library
       asan        22  3400  build,test           AddressSanitizer and UndefinedBehaviorSanitizer, unit tests
       fuzz        10  3400  build,test           the same build; fuzz targets
       asan-avx2   18  3400  build,test           the same build; unit tests with instruction sets up to AVX2
       asan-scalar 18  3400  build,test           the same build; operator tests without vector instructions
       tsan         4   110  build,test           ThreadSanitizer, tests of threads
       mpi          8   700  build,test           Release build; prony-mpi with Open MPI and MPICH, 1 to 4 ranks, and under a Slurm of its own
       tidy         5    60  build,test           clang-tidy 19: every source; its static analyzer: api, base and loaders, which read files
       bookworm    22  6000  bare                 README's commands and the package on a bare Debian 12, made by debootstrap (needs root)
       trixie      22  6000  bare                 the same on Debian 13
       arm64       70   1500  build,test,?arm64    cross build for AArch64 in a Debian arm64 made by debootstrap; its tests under qemu-user (needs root)
       arm64-short 15   1500  build,test,?arm64    the same bits as x86-64, inner loops, kernels, quick unit tests and the package on it
       required     9  2500  bare                 the required packages alone on a bare Debian 13: build, unit tests
"

fail() {
    echo "check.sh: $*" >&2
    exit 2
}

field() { # PART NUMBER
    awk -v part="$1" -v n="$2" '$1 == part { if (n < 5) print $n; else { $1 = $2 = $3 = $4 = ""; sub(/^ +/, ""); print } }' <<<"$parts"
}

cores_minutes() { # of a part here: the table's are for two cores
    awk -v m="$1" -v j="$jobs" 'BEGIN { m = m * 2 / (j < 2 ? 1 : j > 8 ? 8 : j); print (m < 1 ? 1 : int(m + 0.5)) }'
}

announce() { # PART; 3: packages of a `?` group cannot be installed
    local groups=() group missing
    IFS=, read -ra groups <<<"$(field "$1" 4)"
    missing=$(scripts/install_packages.sh --missing "${groups[@]#\?}" | wc -w)
    echo "== $1: $(field "$1" 5)"
    echo "   $missing packages to install, up to $(field "$1" 3) MB of disk, about $(cores_minutes "$(field "$1" 2)") minutes with $jobs jobs"
    local needed=()
    for group in "${groups[@]}"; do [[ $group == \?* ]] || needed+=("$group"); done
    scripts/install_packages.sh "${needed[@]}" || return 1 # in one call: without root, one line names them all
    for group in "${groups[@]}"; do
        if [[ $group == \?* ]] && ! scripts/install_packages.sh "${group#\?}"; then
            echo "$1: left out: packages of the group ${group#\?} cannot be installed here"
            return 3
        fi
    done
}

# ---- builds ----

release() {
    cmake -S . -B build-check -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=ON -DPRONY_WERROR=ON "${cmake_flags[@]}"
    cmake --build build-check -j "$jobs" "$@"
}

preset() { # NAME [TARGET]
    cmake --preset "$1" "${cmake_flags[@]}"
    cmake --build --preset "$1" -j "$jobs" ${2:+--target "$2"}
}

# ctest's own lines say how many tests are left; the slowest ones follow them. A folder, then ctest's options. One test more than
# there are jobs: several wait for a service or a clock.
run_tests() {
    local folder=$1 log status=0
    shift
    log=$(mktemp)
    ctest --test-dir "$folder" --output-on-failure -j $((jobs + 1)) "$@" | tee "$log" || status=$?
    echo "The slowest tests, in seconds:"
    sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \([^ ]*\) [. ]*.* \([0-9.]*\) sec.*/\2 \1/p' "$log" | sort -rn | head -n 20 |
        awk '{ printf "%8.1f  %s\n", $1, $2 }'
    rm -f "$log"
    return "$status"
}

# ---- parts ----

part_check() {
    release && run_tests build-check -LE "again|emulated|long" "${select[@]}"
}

part_quick() {
    release && run_tests build-check -L "tree|unit" -LE "slow|again|emulated|long" "${select[@]}"
}

part_again() {
    release --target all --target prony_emulated_tests && run_tests build-check -L "again|emulated|long"
}

part_plain() {
    preset plain && PRONY_MAX_ISA=scalar run_tests build-plain -L unit
}

part_asan() {
    preset asan-ubsan && run_tests build-asan -L unit
}

part_fuzz() {
    preset asan-ubsan && run_tests build-asan -L fuzz
}

# A machine with wide vectors sees here what a narrow one does.
part_asan-avx2() { # every unit test asks what the processor has
    preset asan-ubsan && PRONY_MAX_ISA=avx2 run_tests build-asan -L unit -LE again
}

part_asan-scalar() {
    preset asan-ubsan && PRONY_MAX_ISA=scalar run_tests build-asan -L operators
}

part_tsan() {
    preset tsan prony_threads_tests && run_tests build-tsan -L threads
}

# Packages of MPI that cannot be installed here leave their tests out; the build says which.
part_mpi() {
    scripts/install_packages.sh mpi || echo "mpi: its packages cannot be installed here"
    if ! command -v mpicc >/dev/null; then
        echo "mpi: MPI is not installed: left out"
        return
    fi
    cmake -S . -B build-check -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=ON -DPRONY_WERROR=ON "${cmake_flags[@]}"
    cmake --build build-check -j "$jobs" --target prony_mpi_tests && run_tests build-check -C mpi -L mpi
}

# Compile commands are gcc's, which has options that clang does not know and a header of OpenMP.
part_tidy() {
    command -v run-clang-tidy-19 >/dev/null || { echo "check.sh: run-clang-tidy-19 is not installed (Debian: clang-tidy-19): left out"; return; }
    cmake -S . -B build-tidy -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DPRONY_PYTHON=OFF "${cmake_flags[@]}"
    cmake --build build-tidy --target prony_build_info
    mkdir -p build-tidy/openmp
    sed 's/__malloc__ (omp_free)/__malloc__/' "$(gcc -print-file-name=include/omp.h)" >build-tidy/openmp/omp.h
    local tidy=(run-clang-tidy-19 -p build-tidy -quiet -j "$jobs" -warnings-as-errors '*' "-extra-arg=-isystem$PWD/build-tidy/openmp"
        -extra-arg=-Wno-unused-command-line-argument -extra-arg=-Wno-ignored-optimization-argument -extra-arg=-Wno-enum-float-conversion)
    # The analyzer takes most of the time, so it reads only what reads files.
    "${tidy[@]}" '-checks=-clang-analyzer-*' '/(bench|engine|ops|profiler)/.*\.c$' && "${tidy[@]}" '/(api|base|loaders)/.*\.c$'
}

bare() { # SUITE [MODE]; 3: this machine cannot, and has said why
    scripts/check_bare.sh "$@" </dev/null || [ $? -eq 3 ]
}

part_bookworm() {
    bare bookworm
}

part_trixie() {
    bare trixie
}

arm64() { # MODE; 3: this machine cannot, and has said why
    scripts/check_arm64.sh "$@" </dev/null || [ $? -eq 3 ]
}

part_arm64() {
    arm64 all
}

part_arm64-short() {
    arm64 short
}

part_required() {
    bare trixie required
}

# ---- main ----

# The end of a long log is often all that is read, so it repeats the failures of every part.
print_failures() { # PART...
    local name
    for name in "$@"; do
        echo "== $name failed; its failures and last lines:"
        grep -E '\*\*\*(Failed|Timeout|Exception|Not Run)|\*\*\* \[|: error: |undefined reference|^FAIL|^[^ ]*\.(sh|py): ' "$logs/$name" | tail -n 20 || true
        echo "   ..."
        tail -n 15 "$logs/$name"
    done
}

main() {
    local within='' first=1 list=() left=() failed=() began=$SECONDS name start status at
    while [ $# -gt 0 ]; do
        case $1 in
        --within)
            within=${2-}
            [[ $within =~ ^[0-9]+$ ]] || fail "--within needs minutes, got '$within'"
            shift 2
            ;;
        --first)
            first=${2-}
            [[ $first =~ ^[1-9][0-9]*$ ]] || fail "--first needs a number from 1 on, got '$first'"
            shift 2
            ;;
        *) [ -n "$(field "$1" 2)" ] || fail "unknown part '$1'; known: $(awk 'NF { printf "%s ", $1 }' <<<"$parts")"
            list+=("$1"); shift ;;
        esac
    done
    logs=$(mktemp -d) # of print_failures
    trap 'rm -rf "$logs"' EXIT
    [ ${#list[@]} -gt 0 ] || fail "name a part: $(awk 'NF { printf "%s ", $1 }' <<<"$parts")"
    for ((at = 0; at < ${#list[@]}; at++)); do
        name=${list[(at + first - 1) % ${#list[@]}]}
        if [ -n "$within" ] && [ $(((SECONDS - began) / 60 + $(cores_minutes "$(field "$name" 2)"))) -gt "$within" ]; then
            left+=("$name")
            continue
        fi
        start=$SECONDS
        status=0
        announce "$name" || status=$?
        [ "$status" -ne 3 ] || continue
        [ "$status" -eq 0 ] || exit 1
        if (set -eo pipefail; "part_$name" 2>&1 | tee "$logs/$name"); then
            echo "== $name: passed in $((SECONDS - start)) s"
        else
            echo "== $name: FAILED after $((SECONDS - start)) s"
            failed+=("$name")
            [ -n "$within" ] || break
        fi
    done
    [ ${#left[@]} -eq 0 ] || echo "Left out because they need more than $within minutes: ${left[*]}"
    [ ${#failed[@]} -eq 0 ] || { print_failures "${failed[@]}"; echo "Failed: ${failed[*]}"; exit 1; }
}

main "$@"
