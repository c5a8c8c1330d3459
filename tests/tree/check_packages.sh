#!/bin/bash
# check_packages.sh SOURCE_DIR: scripts/install_packages.sh on machines that are made up: programs of the same names stand
# before the real ones and write down how they are called.
set -u
script=$1/scripts/install_packages.sh
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
failures=0

# machine USER_ID PACKAGES_INSTALLED PROGRAM...: PROGRAMs beside the ones that every Debian has
machine() {
    rm -rf "${place:?}/bin" "$place/calls"
    mkdir "$place/bin"
    : >"$place/calls"
    for tool in bash env cat; do ln -s "$(command -v $tool)" "$place/bin/$tool"; done
    printf '#!/bin/bash\necho %s\n' "$1" >"$place/bin/id"
    printf '#!/bin/bash\ncase " %s " in *" ${!#} "*) printf installed ;; *) exit 1 ;; esac\n' "$2" >"$place/bin/dpkg-query"
    printf '#!/bin/bash\necho "apt-get $*" >>%s\n' "$place/calls" >"$place/bin/apt-get"
    shift 2
    while [ $# -gt 0 ]; do
        printf '%s\n' '#!/bin/bash' "$2" >"$place/bin/$1"
        shift 2
    done
    chmod +x "$place"/bin/*
}

# expect WHAT STATUS CALLS TEXT: the script's exit status, apt-get's calls, and a part of what is said
expect() {
    local said status
    said=$(PATH=$place/bin bash "$script" build 2>&1 </dev/null)
    status=$?
    if [ $status -ne "$2" ] || [ "$(cut -d' ' -f1-2 "$place/calls" | tr '\n' ' ')" != "$3" ] || [[ $said != *$4* ]]; then
        echo "$1: status $status, calls '$(cat "$place/calls")', said '$said'"
        failures=1
    fi
}

# ? marks what is optional.
all=$(sed -n '/^build=(/,/)$/p' "$script" | tr -d "?" | tr -s '\n() ' ' ')
all=${all#build= }
machine 0 "${all/ cmake / }"
expect "root, one missing" 0 "apt-get update apt-get install " "Missing (1): cmake"
grep -q 'install -y --no-install-recommends cmake$' "$place/calls" || { echo "more than cmake: $(cat "$place/calls")"; failures=1; }
machine 0 "$all"
expect "nothing missing" 0 "" ""
machine 1000 "$all"
expect "nothing missing, no root" 0 "" ""
machine 1000 "${all/ cmake / }"
expect "no root, no sudo" 1 "" "    apt-get install -y --no-install-recommends cmake"
machine 1000 "${all/ cmake / }" sudo 'exit 1'
expect "sudo refuses" 1 "" "    apt-get install -y --no-install-recommends cmake"
machine 1000 "${all/ cmake / }" sudo '[ "$1" = -n ] && shift; "$@"' true :
expect "sudo" 0 "apt-get update apt-get install " "Missing (1): cmake"
machine 0 "" apt-get 'exit 100'
expect "apt-get fails" 100 "" "Missing ("
# The packages known to apt decide: no oneDNN, which is optional.
machine 0 "${all/ libdnnl-dev / }" apt-cache 'case $* in *libdnnl-dev*) ;; *) echo Package: known ;; esac'
for tool in head sed; do ln -s "$(command -v $tool)" "$place/bin/$tool"; done
expect "optional and unknown" 0 "" "left out: libdnnl-dev"
machine 0 ""
rm "$place/bin/apt-get"
expect "no Debian" 0 "" "    pacman -S gcc"
exit $failures
