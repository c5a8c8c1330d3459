#!/usr/bin/env python3
"""A copy of a shared library that asks narrow_cpu.c for its processor where there is no CPUID faulting.

    tests/by_hand/narrow_library.py LIBRARY COPY

Every CPUID instruction of its code becomes UD2, which is as long and raises SIGILL; the copy runs under
libnarrow_cpu.so alone. Needs objdump (binutils). Exit status: 0 written, 1 the library has none, 2 wrong usage.
"""
import pathlib
import subprocess
import sys

CPUID, UD2 = b"\x0f\xa2", b"\x0f\x0b"


def objdump(*arguments):
    return subprocess.run(["objdump", *arguments], check=True, capture_output=True, text=True).stdout.splitlines()


def code_sections(library):
    """(address, offset in the file, bytes) of each section with instructions."""
    lines = objdump("-h", library)
    for line, flags in zip(lines, lines[1:]):
        words = line.split()
        if len(words) > 5 and words[0].isdigit() and "CODE" in flags:
            yield int(words[3], 16), int(words[5], 16), int(words[2], 16)


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    library, copy = sys.argv[1:]
    data = bytearray(pathlib.Path(library).read_bytes())
    sections, count = list(code_sections(library)), 0
    for line in objdump("-d", "--no-show-raw-insn", library):
        if line.split()[1:] != ["cpuid"]:
            continue
        address = int(line.split()[0].rstrip(":"), 16)
        place = next(start + address - first for first, start, size in sections if first <= address < first + size)
        if data[place:place + len(CPUID)] != CPUID:
            sys.exit("%s: no CPUID instruction at %#x" % (library, address))
        data[place:place + len(UD2)] = UD2
        count += 1
    if not count:
        print("%s: has no CPUID instruction" % library, file=sys.stderr)
        return 1
    pathlib.Path(copy).write_bytes(data)
    print("%s: %d instructions replaced" % (copy, count))
    return 0


if __name__ == "__main__":
    sys.exit(main())
