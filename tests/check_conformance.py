#!/usr/bin/env python3
"""Runs `prony verify` over ONNX's own test data and holds the verdicts against checked-in lists.

    check_conformance.py PRONY DATA LISTS [--update]

LISTS/conformance_pass.txt names the cases that pass, one a line. LISTS/conformance_exceptions.txt names those that cannot,
although their operators are there: "case: reason". Every other case must be `unsupported`, because of an operator that
has no row in `prony ops` for its opset. A case that passes without being listed is an error too, so that the list stays
current; --update rewrites it.
"""
import json
import os
import re
import subprocess
import sys

def read_list(path):
    with open(path, encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip() and not line.startswith("#")]


def missing_operators(reason):
    """(domain, name, opset) of every operator that a session refused, or [] if it refused for another reason."""
    found = re.search(r"operators? (?:is|are) not supported: (.*)$", reason, re.DOTALL)
    if not found:
        return []
    return [m.groups() for m in re.finditer(r"([\w.]+)::(\w+)-(\d+) \(", found.group(1))]


def short_name(path):
    return "/".join(path.rstrip("/").split("/")[-2:])


def judge(case, listed, exceptions, table):
    """What is wrong with the verdict, or None."""
    name, verdict, reason = short_name(case["case"]), case["verdict"], case["reason"]
    if name in exceptions:
        return "passes now; take it off the exceptions" if verdict == "pass" else None
    if name in listed:
        return None if verdict == "pass" else "%s: %s" % (verdict, reason)
    if verdict == "pass":
        return "passes, but is not listed (run with --update)"
    if verdict == "fail":
        return "fails and is not among the exceptions: %s" % reason
    missing = missing_operators(reason)
    for domain, operator, opset in missing:
        since = table.get(("" if domain == "ai.onnx" else domain, operator))
        if since is not None and since <= int(opset):
            return "%s is said to be missing, but `prony ops` has it" % operator
    return None if missing else "unsupported, though no operator is missing: %s" % reason


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
    operators = json.loads(subprocess.run([prony, "ops", "--json", "-"], stdout=subprocess.PIPE, check=True).stdout)
    table = {}
    for op in operators:
        key = (op["domain"], op["name"])
        table[key] = min(op["since_opset"], table.get(key, op["since_opset"]))
    wrong = ["%s %s" % (short_name(c["case"]), text) for c in cases
             for text in [judge(c, listed, exceptions, table)] if text]
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
