#!/bin/bash
# Installs into a folder of its own, moves that, and builds and runs an outside program against it, by pkg-config and by
# find_package: check_install.sh CMAKE BUILD_DIR COMPILER SOURCE_DIR LIBDIR
set -euo pipefail
cmake=$1 build=$2 compiler=$3 root=$4 libdir=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cmake" --install "$build" --prefix "$work/first" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
mv "$work/first" "$work/prefix"
prefix=$work/prefix
model=$root/models/digits.onnx

for file in include/prony.h include/prony_status.h include/prony_tensor.h include/prony_report.h include/prony_operator.h "$libdir/libprony.so" "$libdir/libprony.a" "$libdir/pkgconfig/prony.pc" bin/prony share/prony/schemas/report.schema.json share/prony/valgrind.supp \
            share/prony/schemas/matrix.schema.json share/doc/prony/docs/reference/report.md share/doc/prony/copyright \
            share/bash-completion/completions/prony share/zsh/site-functions/_prony share/fish/vendor_completions.d/prony.fish; do
    [ -e "$prefix/$file" ] || { echo "not installed: $file"; exit 1; }
done
for page in prony prony-profile prony-extract; do
    compgen -G "$prefix/share/man/man1/$page.1*" >/dev/null || { echo "not installed: $page(1)"; exit 1; }
done
soname=$(readelf -d "$prefix/$libdir/libprony.so" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
[[ $soname =~ ^libprony\.so\.[0-9]+$ ]] || { echo "soname '$soname' has no version"; exit 1; }
if ldd "$prefix/$libdir/libprony.so" "$prefix/bin/prony" | grep openblas; then
    echo "OpenBLAS is loaded with Prony, not when it is needed"
    exit 1
fi

export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
flags=$(pkg-config --cflags --libs prony)
# shellcheck disable=SC2086
"$compiler" -std=c17 -Wall -Werror "$root/tests/tree/outside/main.c" -o "$work/by_pkg_config" $flags
by_pkg_config=$(LD_LIBRARY_PATH=$prefix/$libdir "$work/by_pkg_config" "$model")

"$cmake" -S "$root/tests/tree/outside" -B "$work/outside" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$compiler" \
    -DCMAKE_C_FLAGS= >"$work/outside.log" && "$cmake" --build "$work/outside" >>"$work/outside.log" ||
    { cat "$work/outside.log"; exit 1; }
by_shared=$("$work/outside/with_shared" "$model")
by_static=$("$work/outside/with_static" "$model")

printf '%s\n' "pkg-config: $by_pkg_config" "shared:     $by_shared" "static:     $by_static"
[ "$by_pkg_config" = "$by_shared" ] && [ "$by_shared" = "$by_static" ] || { echo "they differ"; exit 1; }
version=$(env -u LD_LIBRARY_PATH "$prefix/bin/prony" --version)
echo "command: $version"
