#!/bin/bash
# Leaks by Valgrind: check_valgrind.sh VALGRIND COMPILER SOURCE_DIR LIBRARY
#
# A program that calls prony_threads_shut_down loses nothing; without the call the installed suppressions cover the rest.
# Exit status 77: Valgrind cannot run the library on this machine.
set -euo pipefail
valgrind=$1 compiler=$2 root=$3 library=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$compiler" -std=c17 -Wall -Werror -I"$root/include" "$root/tests/tree/outside/shut_down.c" -o "$work/program" "$library" \
    -Wl,-rpath,"$(dirname "$library")"
model=$root/models/digits.onnx
kinds='definite,possible'
check=(env PRONY_MAX_ISA=scalar "$valgrind" -q --leak-check=full "--show-leak-kinds=$kinds" "--errors-for-leak-kinds=$kinds"
       --error-exitcode=9)
"${check[@]}" --leak-check=no "$work/program" "$model" >"$work/log" 2>&1 || { cat "$work/log"; echo "Valgrind cannot run it"; exit 77; }
"${check[@]}" "$work/program" "$model" shut_down || { echo "leaks in spite of prony_threads_shut_down"; exit 1; }
"${check[@]}" --suppressions="$root/cmake/valgrind.supp" "$work/program" "$model" ||
    { echo "leaks that cmake/valgrind.supp does not cover"; exit 1; }
echo "nothing is lost, with prony_threads_shut_down and with cmake/valgrind.supp"
