#!/bin/bash
# Compiles each public header by itself, as C and as C++: check_header.sh COMPILER SOURCE_DIR
set -euo pipefail
compiler=$1 root=$2
hostile=(-Werror -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-align -Wcast-qual
         -Wredundant-decls -Wmissing-declarations -Wpointer-arith -Wwrite-strings -Wformat=2)
c_only=(-Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition)
cpp_only=(-Wold-style-cast -Wnon-virtual-dtor)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for header in "$root"/include/*.h; do
    name=$(basename "$header")
    printf '#include "%s"\n#include "%s"\nextern int header_alone;\n' "$name" "$name" >"$work/${name%.h}.c"
done
for source in "$work"/*.c "$root/tests/tree/header/use_header.c"; do
    for standard in c99 c17; do
        "$compiler" -x c -std=$standard -fsyntax-only "${hostile[@]}" "${c_only[@]}" -I"$root/include" "$source"
    done
    for standard in c++11 c++17; do
        "$compiler" -x c++ -std=$standard -fsyntax-only "${hostile[@]}" "${cpp_only[@]}" -I"$root/include" "$source"
    done
done
echo "$(ls "$root/include" | wc -l) headers: C99, C17, C++11 and C++17 without a warning"
