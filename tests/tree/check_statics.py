"""Refuses a function name that two production files define: check_statics.py ROOT

A backtrace and `perf report` show a static function by its name alone, so the name has to say whose it is: lrn_infer, not infer. A file
that is compiled once per instruction set counts once."""
import collections
import pathlib
import re
import sys

FOLDERS = ("api", "base", "bench", "engine", "evaluate", "loaders", "ops", "profiler", "python/src", "quantize")

# Names that several files define for a reason.
ALLOWED = {
    "main": "each program has one",
    **{f"bf16x3_split_{name}": "a compilation has one of three: tiles, vectors, or plain C"
       for name in ("begin", "end", "multiply", "panel", "rows", "rows_around", "store")},
}
COMMENTS = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
MACROS = re.compile(r"^[ \t]*#(?:.*\\\n)*.*$", re.MULTILINE)
# A definition begins at a line's start, and its body's brace stands alone on a line. An attribute's double parentheses are not parameters.
DEFINITION = re.compile(r"^[A-Za-z_][^;{}=]*?\b([a-z]\w*)\((?!\()(?:[^()]|\([^()]*\))*\)\s*\n\{", re.MULTILINE)
PICKED = re.compile(r"^PRN_SIMD_PICK(?:_DOT)?\([^)]*?(\w+)\)", re.MULTILINE)


def functions(text):
    """The names of the functions that this source defines outside of macros."""
    text = MACROS.sub("", COMMENTS.sub(" ", text))
    return set(DEFINITION.findall(text)) | set(PICKED.findall(text))


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    files = collections.defaultdict(list)
    count = 0
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in (".c", ".h")):
        count += 1
        for name in functions(path.read_text(encoding="utf-8")):
            files[name].append(str(path.relative_to(root)))
    problems = 0
    for name, where in sorted(files.items()):
        if len(where) > 1 and name not in ALLOWED:
            print(f"'{name}' is defined in {', '.join(where)}: each needs its file's or operator's prefix")
            problems += 1
    for name in sorted(ALLOWED):
        if len(files[name]) < 2:
            print(f"'{name}' has an exception that it does not need: ALLOWED of check_statics.py")
            problems += 1
    print(f"{count} files, {len(files)} functions, {problems} problems")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
