"""Compares what the shared library exports with what the headers declare: check_exports.py NM LIBRARY INCLUDE_DIR

The core functions at the head of prony.h are declared functions too, and few: 30 to 40."""
import pathlib
import re
import subprocess
import sys


def main():
    nm, library, folder = sys.argv[1:4]
    listing = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in listing.splitlines() if line.strip()]
    exported = {words[-1].split("@")[0] for words in lines if words[-2] != "A"}  # A: the version itself
    for words in lines:
        if words[-2] != "A" and "@@PRONY_" not in words[-1]:
            print(f"exported without a version: {words[-1]}")
            return 1
    text = "".join(header.read_text(encoding="utf-8") for header in sorted(pathlib.Path(folder).glob("*.h")))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)
    declared = set(re.findall(r"PRONY_API[^;{]*?\b(prony_\w+)\s*\(", text))
    for name in sorted(exported - declared):
        print(f"exported, but in no header: {name}")
    for name in sorted(declared - exported):
        print(f"in a header, but not exported: {name}")
    main_header = (pathlib.Path(folder) / "prony.h").read_text(encoding="utf-8")
    head = re.search(r"\* Core functions\.(.*?)\n \*\n \* One call per question", main_header, re.S)
    core = set(re.findall(r"\bprony_\w+", head.group(1))) if head else set()
    for name in sorted(core - declared):
        print(f"a core function in prony.h, but declared nowhere: {name}")
    print(f"{len(declared)} declared, {len(core)} of them core, {len(exported)} exported")
    return 0 if declared and declared == exported and core <= declared and 30 <= len(core) <= 40 else 1


if __name__ == "__main__":
    sys.exit(main())
