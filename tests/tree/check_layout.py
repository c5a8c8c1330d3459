"""Holds the binary layout of the public structs against the one that programs were compiled with.

    check_layout.py COMPILER INCLUDE_DIR LAYOUT          compares; exit status 1 if a program would break
    check_layout.py COMPILER INCLUDE_DIR LAYOUT --write  keeps the layout of now, for a release

LAYOUT has a line per field: struct, field, offset, size; and one per struct: its name, "-", 0, its size. A field that is kept
must stay where it is, and a new one lie behind all that the struct had, so that a shorter struct means what it meant.
Elements of arrays may not grow at all: a longer row is another struct, behind another function or a new version of its
symbol (cmake/prony.map)."""
import pathlib
import re
import subprocess
import sys
import tempfile


def fields_of(body):
    """Names of the fields of a struct's body without comments; what stands in braces inside of it is one field."""
    flat = re.sub(r"\{[^{}]*\}", "", body)
    for declaration in flat.split(";"):
        if match := re.search(r"\(\s*\*\s*(?:const\s+)?(\w+)\s*(?:\[[^\]]*\])?\)\s*\(", declaration):
            yield match.group(1)
            continue
        for part in declaration.split(","):
            if match := re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$", part.strip()):
                yield match.group(1)


def structs_of(folder):
    for header in sorted(folder.glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.S)
        for match in re.finditer(r"typedef struct (prony_\w+) \{((?:[^{}]|\{[^{}]*\})*)\} \1;", text):
            yield match.group(1), list(fields_of(match.group(2)))


def rows_of(folder):
    """Structs that stand in arrays: those that a function hands out or takes with a count, or a struct points at beside one."""
    for header in sorted(folder.glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.S)
        yield from re.findall(r"const (prony_\w+) \*prony_\w+\([^;]*size_t \*", text)
        yield from re.findall(r"(prony_\w+) \*\w+,\s*size_t \w*count\b", text)
        yield from re.findall(r"(prony_\w+) \*\w+;\s*size_t \w*count;", text)


def layout_of(compiler, folder):
    lines = [f'#include "{header.name}"' for header in sorted(folder.glob("*.h"))]
    lines += ["#include <stdio.h>", "int main(void)", "{"]
    for name, fields in structs_of(folder):
        lines.append(f'    printf("{name} - 0 %zu\\n", sizeof({name}));')
        for field in fields:
            lines.append(f'    printf("{name} {field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));')
    lines += ["    return 0;", "}", ""]
    with tempfile.TemporaryDirectory() as work:
        source = pathlib.Path(work, "layout.c")
        source.write_text("\n".join(lines), encoding="utf-8")
        subprocess.run([compiler, "-std=c17", f"-I{folder}", "-o", f"{work}/layout", source], check=True)
        return subprocess.run([f"{work}/layout"], check=True, capture_output=True, text=True).stdout


def parse(text):
    rows = (line.split() for line in text.splitlines())
    return {(struct, field): (int(offset), int(size)) for struct, field, offset, size in rows}


def main():
    compiler, folder, kept_path = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    text = layout_of(compiler, folder)
    if "--write" in sys.argv[4:]:
        kept_path.write_text(text, encoding="utf-8")
        return 0
    now, kept, problems = parse(text), parse(kept_path.read_text(encoding="utf-8")), []
    rows = set(rows_of(folder)) & {struct for struct, _ in kept}
    for (struct, field), place in kept.items():
        found = now.get((struct, field))
        if field == "-" and struct in rows and found and found[1] > place[1]:
            problems.append(f"{struct}: stands in arrays, had {place[1]} bytes and has {found[1]}")
        if field == "-":
            if found is None or found[1] < place[1]:
                problems.append(f"{struct}: had {place[1]} bytes, {'is gone' if found is None else f'has {found[1]}'}")
        elif found != place:
            state = f"is at {found[0]} with {found[1]}" if found else "is gone"
            problems.append(f"{struct}.{field}: was at {place[0]} with {place[1]} bytes, {state}")
    for (struct, field), (offset, _) in now.items():
        if field != "-" and (struct, field) not in kept and offset < kept.get((struct, "-"), (0, 0))[1]:
            problems.append(f"{struct}.{field}: new, but lies within the {kept[(struct, '-')][1]} bytes that older programs have")
    for problem in problems:
        print(problem)
    print(f"{sum(field == '-' for _, field in now)} structs, {len(rows)} of them rows of arrays, {len(problems)} problems")
    return 1 if problems or not kept or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
