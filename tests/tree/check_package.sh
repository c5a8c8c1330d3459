#!/bin/bash
# Makes the Debian package, and runs the command that is in it: check_package.sh CPACK BUILD_DIR SOURCE_DIR
set -euo pipefail
cpack=$1 build=$2 root=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cpack" -G DEB -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip --config "$build/CPackConfig.cmake" -B "$work" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
package=$(echo "$work"/*.deb)
dpkg-deb -x "$package" "$work/root"
for field in Depends Maintainer Description; do
    [ -n "$(dpkg-deb -f "$package" $field)" ] || { echo "the package has no $field"; exit 1; }
done
command=$work/root/usr/bin/prony
[ -x "$command" ] || { echo "no /usr/bin/prony"; exit 1; }
case $(dpkg-deb -f "$package" Depends) in *libc6*) ;; *) echo "dependencies were not found"; exit 1 ;; esac
for file in share/doc/prony/copyright share/man/man1/prony.1.gz share/bash-completion/completions/prony include/prony.h; do
    [ -e "$work/root/usr/$file" ] || { echo "not in the package: $file"; exit 1; }
done
if find "$work/root" \( -perm -0002 -o -perm -0020 \) ! -type l | grep .; then
    echo "writable for others"
    exit 1
fi
"$command" run "$root/models/digits.onnx" -q
"$command" version | head -1
