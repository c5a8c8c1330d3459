#!/bin/bash
# Checks of the sources alone, in seconds: format and includes of C, Python's style and types, paths in documents, shell scripts, white
# space. The script names each program that is not installed, and leaves it out. Exit status: 0 nothing was found.
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
run /usr/bin/python3 tests/tree/check_statics.py .
run /usr/bin/python3 tests/tree/check_doc_paths.py .
list() { # ENDING: files of this name
    git ls-files "*.$1" 2>/dev/null || find models python scripts tests -name "*.$1"
}
mapfile -t python_files < <(list py)
run flake8 "${python_files[@]}"
# The package itself has strict types, which python/tests/test_types.py checks in the build folder.
mapfile -t untyped < <(printf '%s\n' "${python_files[@]}" | grep -v '^python/')
run mypy --no-error-summary --cache-dir=/dev/null --ignore-missing-imports --namespace-packages --explicit-package-bases "${untyped[@]}"
mapfile -t shell_files < <(list sh)
run shellcheck --severity=warning "${shell_files[@]}" .ci/run
if git rev-parse HEAD >/dev/null 2>&1; then run git diff --check HEAD; fi
exit "$status"
