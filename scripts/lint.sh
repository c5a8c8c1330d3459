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

# Versions differ in what they make of the same options; one version alone is asked.
c_sources() { git ls-files '*.c' '*.h' 2>/dev/null || find api base bench engine include loaders ops profiler python tests -name '*.[ch]'; }
mapfile -t sources < <(c_sources)
run clang-format-19 --dry-run --Werror "${sources[@]}"
run /usr/bin/python3 tests/tree/check_layering.py .
run /usr/bin/python3 tests/tree/check_words.py .
run /usr/bin/python3 tests/tree/check_doc_paths.py .
run shellcheck --severity=warning scripts/*.sh tests/tree/*.sh tests/fuzz/*.sh .ci/run
if git rev-parse HEAD >/dev/null 2>&1; then run git diff --check HEAD; fi
exit "$status"
