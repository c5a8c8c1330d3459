#!/bin/bash
# Checks of the sources alone, in seconds: includes, paths in documents, shell scripts, white space. What is not installed is left out
# with a line. Exit status: 0 nothing was found.
set -u
cd "$(dirname "$0")/.." || exit 1
status=0

run() { # PROGRAM ARGUMENTS...
    command -v "$1" >/dev/null || { echo "lint.sh: $1 is not installed: left out"; return; }
    "$@" || status=1
}

run /usr/bin/python3 tests/tree/check_layering.py .
run /usr/bin/python3 tests/tree/check_doc_paths.py .
run shellcheck --severity=warning scripts/*.sh tests/tree/*.sh tests/fuzz/*.sh .ci/run
run git diff --check HEAD
exit "$status"
