#!/usr/bin/env python3
"""Runs `prony verify` over ONNX's own test data and holds the verdicts against checked-in lists.

    check_conformance.py PRONY DATA LISTS [--update]

LISTS/conformance_pass.txt names the cases that pass, one a line. LISTS/conformance_exceptions.txt names those that cannot,
each with its reason: "case: reason". There is no third kind. A case that passes without being listed is an error too, so
that the list stays current; --update rewrites it.
"""
import json
import os
import subprocess
import sys


def read_list(path):
    with open(path, encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip() and not line.startswith("#")]


def short_name(path):
    return "/".join(path.rstrip("/").split("/")[-2:])


def judge(case, listed, exceptions):
    """What is wrong with the verdict, or None."""
    name, verdict, reason = short_name(case["case"]), case["verdict"], case["reason"]
    if name in exceptions:
        return "passes now; take it off the exceptions" if verdict == "pass" else None
    if verdict == "pass":
        return None if name in listed else "passes, but is not listed (run with --update)"
    return "%s: %s" % (verdict, reason)


def main():
    arguments = [a for a in sys.argv[1:] if a != "--update"]
    if len(arguments) != 3:
        sys.exit(__doc__)
    prony, data, lists = arguments
    pass_file = os.path.join(lists, "conformance_pass.txt")
    # A sanitizer's finding must not pass for a status of the command's own; its stderr is shown.
    environment = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":exitcode=99"}
    ran = subprocess.run([prony, "verify", data, "-q", "--json", "-"], stdout=subprocess.PIPE, timeout=600, env=environment)
    if ran.returncode not in (0, 3):
        sys.exit("prony verify ended with %d" % ran.returncode)
    cases = json.loads(ran.stdout)["cases"]
    if "--update" in sys.argv:
        names = sorted(short_name(c["case"]) for c in cases if c["verdict"] == "pass")
        with open(pass_file, "w", encoding="utf-8") as file:
            file.write("# Cases of libonnx-testdata that pass; check_conformance.py --update writes this.\n")
            file.write("\n".join(names) + "\n")
    listed = set(read_list(pass_file))
    exceptions = dict(line.split(": ", 1) for line in read_list(os.path.join(lists, "conformance_exceptions.txt")))
    wrong = ["%s %s" % (short_name(c["case"]), text) for c in cases
             for text in [judge(c, listed, exceptions)] if text]
    seen = {short_name(c["case"]) for c in cases}
    wrong += ["%s is listed, but not in %s" % (name, data) for name in sorted((listed | set(exceptions)) - seen)]
    for line in wrong:
        print(line)
    counts = {v: sum(c["verdict"] == v for c in cases) for v in ("pass", "fail", "unsupported")}
    print("%d cases: %d pass, %d fail, %d unsupported; %d wrong" % (len(cases), counts["pass"], counts["fail"],
                                                                   counts["unsupported"], len(wrong)))
    return 1 if wrong or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
