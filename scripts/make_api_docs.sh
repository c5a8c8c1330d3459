#!/bin/bash
# Makes the C API reference from the public headers with Doxygen: make_api_docs.sh OUTPUT_DIR
#
# Warnings are errors, and every function that a header exports (PRONY_API) must be in the result. Exit status: 0 done,
# 1 a warning or a missing function, 77 Doxygen is not installed.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:?OUTPUT_DIR is missing}
if ! command -v doxygen >/dev/null; then
    echo "make_api_docs.sh: doxygen is not installed (Debian: doxygen): the C API reference is left out"
    exit 77
fi
mkdir -p "$out"
# The headers have plain comments. The filter marks them for Doxygen: those above a declaration and those behind a member.
cat >"$out/filter.sh" <<'FILTER'
#!/bin/sh
sed -e '/^#/b' -e 's,^\( *\)/\*\([^*]\),\1/**\2,' -e 's,\([^ ]\) \+/\*\([^*]\),\1 /**<\2,' "$1"
FILTER
chmod +x "$out/filter.sh"
version=$(sed -n 's/^#define PRONY_VERSION "\(.*\)"/\1/p' "$root/include/prony.h")
cat >"$out/Doxyfile" <<END
PROJECT_NAME = Prony
PROJECT_NUMBER = $version
PROJECT_BRIEF = "C API"
INPUT = "$root/include"
FILE_PATTERNS = *.h
STRIP_FROM_PATH = "$root/include"
OUTPUT_DIRECTORY = "$out"
INPUT_FILTER = "$out/filter.sh"
OPTIMIZE_OUTPUT_FOR_C = YES
JAVADOC_AUTOBRIEF = YES
EXTRACT_ALL = YES
MARKDOWN_SUPPORT = NO
AUTOLINK_SUPPORT = YES
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = PRONY_API= PRONY_MUST_USE= PRONY_PRINTF(x,y)=
GENERATE_LATEX = NO
GENERATE_XML = YES
HAVE_DOT = NO
QUIET = YES
WARN_AS_ERROR = FAIL_ON_WARNINGS
WARN_LOGFILE = "$out/warnings.txt"
END
if ! doxygen "$out/Doxyfile" >/dev/null; then
    cat "$out/warnings.txt" >&2
    exit 1
fi
missing=0 count=0
for name in $(cat "$root"/include/*.h | tr '\n' ' ' | grep -o 'PRONY_API [^;]*' | grep -o '\bprony_[a-z0-9_]* *(' | tr -d ' (' | sort -u); do
    count=$((count + 1))
    grep -qrs "<name>$name</name>" "$out/xml" || { echo "make_api_docs.sh: $name is not in the reference" >&2; missing=1; }
done
[ "$count" -gt 100 ] || { echo "make_api_docs.sh: only $count functions were found in the headers" >&2; exit 1; }
[ "$missing" = 0 ] || exit 1
echo "$count functions: $out/html/index.html"
