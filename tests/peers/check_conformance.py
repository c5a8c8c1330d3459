#!/usr/bin/env python3
"""Runs `prony verify` over ONNX's own test data and holds the verdicts against checked-in lists.

    check_conformance.py PRONY DATA LISTS [--update]

LISTS/conformance_pass.txt names the cases that pass, one a line. LISTS/conformance_exceptions.txt names those that cannot,
each with its reason: "case: reason". The list is of one release of ONNX. In its data a case that passes without being listed is
an error too, so that the list stays current; --update rewrites it. The data of another release lack some listed cases and have
others: every case has to pass or to be an exception there, too.
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


def judge(case, listed, exceptions, same_release):
    """The fault of the verdict, or None."""
    name, verdict, reason = short_name(case["case"]), case["verdict"], case["reason"]
    if name in exceptions:
        of_other = exceptions[name].endswith("(later releases)")
        return "passes now; take it off the exceptions" if verdict == "pass" and same_release and not of_other else None
    if verdict == "pass":
        return None if name in listed or not same_release else "passes, but is not listed (run with --update)"
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
    seen = {short_name(c["case"]) for c in cases}
    absent = sorted(listed - seen)
    same_release = not absent
    # A folder of other data, or half of one, is not ONNX's.
    if len(absent) > len(listed) // 20:
        sys.exit("%d of %d listed cases are not in %s" % (len(absent), len(listed), data))
    wrong = ["%s %s" % (short_name(c["case"]), text) for c in cases
             for text in [judge(c, listed, exceptions, same_release)] if text]
    if absent:
        print("%s is of another release of ONNX: %d of %d listed cases are not in it" % (data, len(absent), len(listed)))
    for line in wrong:
        print(line)
    counts = {v: sum(c["verdict"] == v for c in cases) for v in ("pass", "fail", "unsupported")}
    print("%d cases: %d pass, %d fail, %d unsupported; %d wrong" % (len(cases), counts["pass"], counts["fail"],
                                                                   counts["unsupported"], len(wrong)))
    return 1 if wrong or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
