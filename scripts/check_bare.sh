#!/bin/bash
# README's commands on a Debian that has nothing but what README asks for: check_bare.sh SUITE [MODE]
#
# SUITE is bookworm (Debian 12), trixie (13), forky or sid. The script makes such systems in a temporary folder, out of the sources that
# this machine's apt uses (their suite replaced), with a clone of HEAD where one is needed. MODE chooses the checks:
#
#   all       demo, `make check` by the user, then package (the default)
#   demo      in one system a user who has neither root nor sudo types `make demo`, and root types the lines that the user is told
#             to ask for; in another one root types `make demo` alone
#   package   the user's `make demo` and `make deb`; a third system installs the package with its dependencies alone, profiles a model,
#             compiles README's program against the package, and removes the package
#   required  a system with the required packages alone builds, runs the unit tests, and names every library that is left out
#   clang     a system with the optional packages too builds with the newest clang that the suite has, and runs the unit tests
#
# Exit status 3: this machine cannot do it; one line says why.
#
# Everything mounted and everything started lives in namespaces of its own, and is gone with the process that made
# them, however it ends; the folder is removed by the process outside.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)

cannot() {
    echo "check-bare: left out: $*" >&2
    exit 3
}

say() {
    echo
    echo "== bare $suite: $* (after $SECONDS s)"
}

# ---- outside: what is needed, the folder, the namespaces ----

outside() {
    [[ $suite =~ ^[a-z]+$ && $1 =~ ^(all|demo|package|required|clang)$ ]] || {
        echo "usage: check_bare.sh SUITE [all|demo|package|required|clang], with SUITE bookworm, trixie, forky or sid" >&2
        exit 2
    }
    [ "$(id -u)" -eq 0 ] || cannot "it needs root"
    command -v apt-get >/dev/null || cannot "this is no Debian system"
    "$source/scripts/install_packages.sh" bare </dev/null || cannot "debootstrap cannot be had"
    command -v debootstrap >/dev/null || cannot "debootstrap cannot be had"
    unshare --mount --pid --fork --kill-child true 2>/dev/null || cannot "no mounts and process numbers of its own here"
    git -C "$source" rev-parse -q --verify HEAD >/dev/null || cannot "$source is no clone"
    [ -z "$(git -C "$source" status --porcelain)" ] || echo "check-bare: uncommitted changes are not included" >&2

    place=$(mktemp -d "${TMPDIR:-/tmp}/prony-bare-XXXXXX")
    child=
    trap remove EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    unshare --mount --propagation private --pid --fork --kill-child "$source/scripts/check_bare.sh" --inside "$suite" "$place" \
        "$1" </dev/null &
    child=$!
    wait "$child"
}

# shellcheck disable=SC2317 # called by a trap
remove() {
    local status=$?
    trap '' INT TERM HUP
    if [ -n "$child" ]; then
        kill -KILL "$child" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    fi
    for _ in 1 2 3 4 5; do # the last processes of the namespace may still be going
        rm -rf --one-file-system "$place" 2>/dev/null && break
        sleep 1
    done
    [ ! -e "$place" ] || echo "check-bare: $place could not be removed" >&2
    exit "$status"
}

# ---- inside ----

# From apt's own list of targets: where this machine's own suite's `main` comes from, and the files that say so. The suite that is
# asked for takes its place in them; a mirror has all suites.
read_sources() {
    own=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
    [ -n "$own" ] || cannot "/etc/os-release names no suite"
    # The release file has the suite's name where the list says "stable"; neither is known before the first update.
    target() { apt-get indextargets --format "\$($1)" 'Created-By: Packages' "$2: $own" 'Component: main' | sort -u; }
    by=Codename
    [ -n "$(target REPO_URI $by)" ] || by=Release
    mirror=$(target REPO_URI $by | head -n 1)
    case $mirror in
    http://* | https://* | file:/*) ;;
    '') cannot "apt has no source of Debian's $own" ;;
    *) cannot "debootstrap cannot read ${mirror%%:*}: sources" ;;
    esac
    entries=()
    while read -r file; do
        [ ! -f "$file" ] || entries+=("$file")
    done < <(apt-get indextargets --format '$(SOURCESENTRY)' 'Created-By: Packages' | grep -o '^[^:]*' | sort -u)
    # Third parties' files stay outside; of Debian's, those with the updates and security fixes come too.
    local kept=() file
    for file in "${entries[@]}"; do
        ! grep -q "\b$own-updates\|\b$own-security\|[ :]$own\( \|$\)\|\bstable\b" "$file" || kept+=("$file")
    done
    entries=("${kept[@]}")
    keys=()
    while read -r file; do
        [ ! -f "$file" ] || keys+=("$file")
    done < <(grep -ohE '/[^] ,=]+\.(gpg|pgp|asc)' "${entries[@]}" | sort -u)
    recipe=/usr/share/debootstrap/scripts/$suite
    [ -e "$recipe" ] || [ "$suite" != forky ] || recipe=/usr/share/debootstrap/scripts/sid # a debootstrap older than the suite
    [ -e "$recipe" ] || cannot "this debootstrap knows no suite '$suite'"
}

# debootstrap fetches by wget, which is told of a proxy by the environment alone.
read_proxy() {
    local proxy
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    [ -n "${proxy-}" ] || proxy=$(/usr/lib/apt/apt-helper auto-detect-proxy "$mirror" 2>/dev/null |
        sed -n "s/^Using proxy '\(.*\)' for URL.*/\1/p") || true
    case ${proxy-} in
    '' | DIRECT) ;;
    *) export http_proxy=$proxy https_proxy=${https_proxy:-$proxy} ;;
    esac
}

make_system() {
    local options=(--variant=minbase) file certificates
    for file in "${keys[@]}"; do
        case $file in *.gpg | *.pgp) options+=("--keyring=$file") && break ;; esac
    done
    case $mirror in https://*) options+=(--include=ca-certificates) ;; esac
    debootstrap "${options[@]}" "$suite" "$system" "$mirror" "$recipe" >"$place/debootstrap.log" 2>&1 || {
        tail -n 20 "$place/debootstrap.log" "$system/debootstrap/debootstrap.log" >&2 2>/dev/null || true
        exit 1
    }
    rm -f "$system/etc/apt/sources.list"
    cp "${entries[@]}" "$system/etc/apt/sources.list.d/"
    case $suite in # a suite before its release has no updates and no security fixes of its own
    forky | sid)
        rm "$system"/etc/apt/sources.list.d/*
        echo "deb $mirror $suite main" >"$system/etc/apt/sources.list"
        ;;
    *) sed -i "s/\b\($own\|stable\)\b/$suite/g" "$system"/etc/apt/sources.list.d/* ;;
    esac
    if [ -e "$system/etc/apt/sources.list.d/sources.list" ]; then # has the plain name, which is read elsewhere
        mv "$system/etc/apt/sources.list.d/sources.list" "$system/etc/apt/sources.list"
    fi
    cp -r /etc/apt/trusted.gpg.d /etc/apt/keyrings "$system/etc/apt/" 2>/dev/null || true
    [ ! -f /etc/apt/trusted.gpg ] || cp /etc/apt/trusted.gpg "$system/etc/apt/"
    eval "$(apt-config shell certificates Acquire::https::CAInfo)"
    for file in "${keys[@]}" /etc/hosts /etc/resolv.conf ${certificates:+"$certificates"}; do
        [ ! -f "$file" ] || install -D -m 644 "$file" "$system$file"
    done
    apt-config dump | grep -E '^Acquire::' |
        grep -vE '^Acquire::(IndexTargets|CompressionTypes|Changelogs|[a-z]+::Proxy-Auto-Detect)' >"$system/etc/apt/apt.conf.d/90machine"
    echo force-unsafe-io >"$system/etc/dpkg/dpkg.cfg.d/unsafe-io" # the system lives for minutes
    at / root apt-get update -q
}

# at FOLDER PERSON COMMAND...: in the system, with nothing of this shell's environment but the proxies
at() {
    local folder=$1 person=$2 home=/root variable
    shift 2
    [ "$person" = root ] || home=/home/$person
    local environment=("HOME=$home" "USER=$person" "LOGNAME=$person" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
    for variable in http_proxy https_proxy no_proxy; do
        [ -z "${!variable-}" ] || environment+=("$variable=${!variable}")
    done
    chroot --userspec="$person:$person" "$system" env -i "${environment[@]}" \
        sh -c 'cd "$1" && shift && exec "$@"' sh "$folder" "$@"
}

mount_system() {
    mount -t proc proc "$system/proc"
    mount -t sysfs -o ro sys "$system/sys"
    mount -t tmpfs -o mode=1777 shm "$system/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$system/dev/pts"
    ln -sf pts/ptmx "$system/dev/ptmx"
    mount --bind "$place/archives" "$system/var/cache/apt/archives"
}

# The line that README names, and a clone of what is committed, owned by PERSON.
prepare() {
    local person=$1 home=/root
    if [ "$person" != root ]; then
        home=/home/$person
        at / root useradd --create-home --shell /bin/bash "$person"
    fi
    at / root env DEBIAN_FRONTEND=noninteractive sh -c "$prerequisite"
    git clone -q --bare "$source" "$system$home/prony.git"
    chroot "$system" chown -R "$person:$person" "$home/prony.git"
    at "$home" "$person" git clone -q prony.git prony
    folder=$home/prony
}

# `make` with what is given, as someone without root's rights: the first try ends with the line to run, root runs it, the second does the work.
refused_then_done() {
    local line
    say "$person, without sudo: make $*, packages missing"
    if at "$folder" "$person" make "$@" >"$place/refusal" 2>&1; then
        echo "make $1 did not stop, although packages are missing and the user may not install them" >&2
        exit 1
    fi
    cat "$place/refusal"
    line=$(sed -n 's/^    \(apt-get install .*\)/\1/p' "$place/refusal")
    [ -n "$line" ] || {
        echo "make $1 does not print the line to run" >&2
        exit 1
    }
    say "root: $line"
    as_root "$line"
    say "$person: make $*"
    at "$folder" "$person" make "$@"
}

# Installs the built package in a separate system: its dependencies must suffice for the command and for README's
# program (the compiler is installed after the command has run).
check_package() {
    local built="$system$folder/build" line version installed package
    version=$(at "$folder" "$person" build/prony version)
    package=$(basename "$built"/prony_*.deb)
    mount_copy installed
    say "root: apt-get install ./$package, where no other package was installed"
    cp "$built/$package" "$system/tmp/"
    as_root "apt-get install -y --no-install-recommends /tmp/$package"
    person=reader folder=/home/reader
    at / root useradd --create-home --shell /bin/bash "$person"
    say "$person: prony version, prony profile"
    installed=$(at "$folder" "$person" prony version)
    echo "$installed"
    [ "$installed" = "$version" ] || {
        printf 'The package says another version than the build folder:\n%s\n' "$version" >&2
        exit 1
    }
    cp "$source/tests/data/lenet5.onnx" "$system$folder/model.onnx"
    at "$folder" "$person" prony profile model.onnx --json profile.json
    ! at / root ldd /usr/bin/prony | grep 'not found' || exit 1

    say "$person: README's program"
    as_root "apt-get install -y --no-install-recommends gcc libc6-dev pkg-config"
    line=$(sed -n 's/^    \(cc program\.c .*\)/\1/p' "$source/README.md")
    [ -n "$line" ] || { echo "README.md has no line that compiles program.c" >&2; exit 1; }
    sed -n '/^```c$/,/^```$/{/^```/!p}' "$source/README.md" >"$system$folder/program.c"
    at "$folder" "$person" sh -c "$line"
    if [ "$(output_hash profile.json)" != "$(output_hash report.json)" ]; then
        echo "The program and the command computed other outputs" >&2
        exit 1
    fi
    say "root: apt-get purge prony"
    as_root "apt-get purge -y prony"
    ! find "$system"/usr "$system"/etc "$system"/var/lib/dpkg/info -iname '*prony*' | grep . || exit 1
}

# Outputs at fp32-strict have the same bits with this release's compiler, C library and oneDNN as with this machine's, wherever
# `make check` has built the same commit here.
compare_bits() { # BUILD FOLDER
    local here=$source/build-check commit models=(tests/data/lenet5.onnx models/digits.onnx)
    commit=$(git -C "$source" rev-parse HEAD)
    if ! "$here/prony" version 2>/dev/null | grep -qx "commit *$commit" || [ ! -x "$here/tests/strict_bits" ]; then
        echo "check-bare: left out: a comparison of fp32-strict outputs, since build-check has no build of $commit" >&2
        return
    fi
    say "$person: fp32-strict outputs beside those of $(. /etc/os-release && echo "$PRETTY_NAME")"
    (cd "$source" && "$here/tests/strict_bits" "${models[@]}") >"$system$folder/strict_bits.txt"
    at "$folder" "$person" "$1/tests/strict_bits" --expect strict_bits.txt "${models[@]}"
}

output_hash() { # REPORT
    grep -o '"output_sha256": *"[0-9a-f]*"' "$system$folder/$1"
}

# Required packages alone: README's list, then those of the tests.
check_required() {
    local libraries=(oneDNN OpenBLAS libpng libjpeg zlib SQLite libmicrohttpd OpenCL) library version
    person=root
    mount_copy required
    prepare root
    say "root: a build with the required packages alone"
    as_root "apt-get install -y --no-install-recommends gcc libc6-dev make cmake pkg-config libcjson-dev"
    at "$folder" root sh -c 'cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DPRONY_WERROR=ON && cmake --build build -j "$(nproc)"'
    version=$(at "$folder" root build/prony version)
    echo "$version"
    for library in "${libraries[@]}"; do
        grep -q "$library.* is missing" <<<"$version" || { echo "prony version does not say that $library is missing" >&2; exit 1; }
    done
    at "$folder" root build/prony profile
    say "root: the unit tests, with the packages that they need"
    as_root "apt-get install -y --no-install-recommends libcmocka-dev python3"
    at "$folder" root sh -c 'cmake -S . -B build -DBUILD_TESTING=ON && cmake --build build -j "$(nproc)" &&
        ctest --test-dir build --output-on-failure -j "$(nproc)" -L unit -LE "again|long"'
    compare_bits build
}

check_clang() {
    local newest
    person=root
    mount_copy clang
    prepare root
    newest=$(at / root apt-cache search --names-only '^clang-[0-9]+$' | sed -n 's/^clang-\([0-9]*\) .*/\1/p' | sort -n | tail -n 1)
    say "root: a build by clang $newest"
    at "$folder" root env DEBIAN_FRONTEND=noninteractive scripts/install_packages.sh build test >"$place/install.log" 2>&1
    as_root "apt-get install -y --no-install-recommends clang-$newest libomp-$newest-dev"
    at "$folder" root sh -c 'cmake -S . -B build -DCMAKE_C_COMPILER="$1" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=ON -DPRONY_WERROR=ON &&
        cmake --build build -j "$(nproc)" && build/prony version && ctest --test-dir build --output-on-failure -j "$(nproc)" -L unit -LE "again|long"' \
        sh "clang-$newest"
    compare_bits build
}

as_root() { # COMMAND LINE of packages; its words only where it fails
    at / root env DEBIAN_FRONTEND=noninteractive sh -c "$1" >"$place/install.log" 2>&1 || {
        tail -n 20 "$place/install.log" >&2
        exit 1
    }
}

mount_copy() { # NAME: from here on, commands run in a copy of the system as it was made
    system=$place/$1
    cp -a "$place/base" "$system"
    mount_system
}

inside() {
    local person folder system mode=$2
    place=$1
    prerequisite=$(sed -n 's/^    sudo \(apt-get install [^#]*[^# ]\) *#.*/\1/p' "$source/README.md")
    if [ -z "$prerequisite" ] || ! grep -q '^    make demo ' "$source/README.md" ||
        ! grep -q '^    make check ' "$source/README.md"; then
        echo "README.md does not list its needs, or lists other commands than those tested here" >&2
        exit 1
    fi
    read_sources
    read_proxy
    mkdir "$place/archives" "$place/archives/partial"

    system=$place/base
    say "debootstrap $suite from $mirror"
    make_system

    if [ "$mode" = required ]; then
        check_required
        say "done"
        return
    fi
    if [ "$mode" = clang ]; then
        check_clang
        say "done"
        return
    fi
    person=someone
    mount_copy user
    prepare "$person"
    refused_then_done demo
    if [ "$mode" = all ]; then
        refused_then_done check
        compare_bits build-check
    fi
    if [ "$mode" != demo ]; then
        refused_then_done deb
        check_package
    fi
    if [ "$mode" != package ]; then
        person=root
        mount_copy root
        prepare root
        say "root: make demo"
        at "$folder" root make demo
    fi
    say "done"
}

main() {
    if [ "${1-}" = --inside ]; then
        suite=$2
        shift 2
        inside "$@"
    else
        suite=${1-}
        outside "${2:-all}"
    fi
}

main "$@"; exit # read whole before it runs, so that nobody's editing of this file gets in between
