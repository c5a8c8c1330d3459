#!/usr/bin/env python3
"""Writes the table of docs/performance.md: `prony versus` on every model of a list, one after the other.

    scripts/performance_table.py --prony BUILD/prony --folder MODELS [--folder MORE ...] [--list scripts/performance_models.txt]
                                 [--ort-lib F] [-x 1,2] [--processes 7] [--seconds 0.5] [--only GLOB] [--out docs/performance.md]

A line of the list is a model's file, looked for in the folders, and further arguments of `prony versus` for it. Models
that are in no folder are left out and named. Replaces the text between the two marks of the page; the machine should be
quiet meanwhile. Exit status: 0 done, 1 a model failed (the table then lacks it), 2 wrong usage.
"""
import argparse
import fnmatch
import json
import math
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- made by scripts/performance_table.py -->", "<!-- end -->"


def entries(path):
    """(file name, further words) of every line that is not a comment."""
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words[0], words[1:]


def find(name, folders):
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    return None


def measured(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        print("%s: %s" % (shlex.join(command), done.stderr.strip()), file=sys.stderr)
        return None
    return json.loads(done.stdout)


def time_text(ns):
    if ns is None:
        return "-"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return "%.3g %s" % (ns / size, unit)
    return "%.0f ns" % ns


def bytes_text(count):
    return "-" if count is None else "%.0f MiB" % (count / 2**20)


def row(name, words, result, document):
    interval = result["ratio_ci95"]
    shown = " `%s`" % " ".join(words) if words else ""
    agree = "" if all(output["agrees"] for output in document["outputs"]) else " *"
    return "| %s%s%s | %d | %s | %s | %.2f | %s | %s, %s | %s, %s |" % (
        name.removesuffix(".onnx"), shown, agree, result["intra_op_threads"], time_text(result["prony"]["median_ns"]),
        time_text(result["peer"]["median_ns"]), result["ratio"],
        "%.2f to %.2f" % tuple(interval) if interval else "-",
        time_text(result["prony"]["start_ns"]), time_text(result["peer"]["start_ns"]),
        bytes_text(result["prony"]["peak_rss_bytes"]), bytes_text(result["peer"]["peak_rss_bytes"]))


def summary(documents):
    by_threads = {}
    for name, _, document in documents:
        for result in document["results"]:
            by_threads.setdefault(result["intra_op_threads"], []).append((result["ratio"], name))
    for threads, ratios in sorted(by_threads.items()):
        mean = math.exp(sum(math.log(ratio) for ratio, _ in ratios) / len(ratios))
        least, name = min(ratios)
        yield "%d thread%s: geometric mean of the ratio %.2f over %d models, least %.2f (%s)." % (
            threads, "" if threads == 1 else "s", mean, len(ratios), least, name.removesuffix(".onnx"))


def cores(system):
    """The physical cores that a run may use. Only /sys lists them: without it, the processors that the system counts."""
    return system.get("physical_cores") or system.get("cpu_count", "unknown")


def section(documents, options):
    system, peer = documents[0][2]["manifest"]["system"], documents[0][2]["peer"]["name"]
    lines = ["%s, %s cores usable, %s; prony %s (commit %s), %s." % (
                 system.get("cpu_model", "unknown processor"), cores(system), system.get("isa_used") or ", ".join(system.get("isa", [])),
                 system.get("prony_version", "of an unknown version"), (system.get("git_commit") or "unknown")[:12], peer), "",
             "    scripts/performance_table.py --prony build/prony --folder MODELS -x %s --processes %d --seconds %g" % (
                 options.threads, options.processes, options.seconds), ""]
    lines += [line + "\n" for line in summary(documents)]
    lines += ["| model | threads | prony | ONNX Runtime | ratio | 95 % | from file to session | peak memory |",
              "|---|---|---|---|---|---|---|---|"]
    for name, words, document in documents:
        lines += [row(name, words, result, document) for result in document["results"]]
    if any(not output["agrees"] for _, _, document in documents for output in document["outputs"]):
        lines += ["", "\\* an output differs by more than 0.001 of its range"]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prony", required=True)
    parser.add_argument("--folder", action="append", required=True)
    parser.add_argument("--list", default=ROOT / "scripts" / "performance_models.txt")
    parser.add_argument("--ort-lib")
    parser.add_argument("-x", "--threads", default="1,2")
    parser.add_argument("--processes", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--only", default="*")
    parser.add_argument("--out", default=ROOT / "docs" / "performance.md")
    options = parser.parse_args()
    page = pathlib.Path(options.out).read_text(encoding="utf-8")
    if BEGIN not in page or END not in page.split(BEGIN, 1)[1]:
        parser.error("%s has no place for the table" % options.out)
    documents, missing, failed = [], [], []
    for name, words in entries(options.list):
        path = find(name, options.folder)
        if not fnmatch.fnmatch(name, options.only):
            continue
        if not path:
            missing.append(name)
            continue
        command = [options.prony, "versus", path, *words, "-x", options.threads, "--processes", str(options.processes), "-t",
                   "%gs" % options.seconds, "--json", "-", "--no-progress"]
        document = measured(command + (["--ort-lib", options.ort_lib] if options.ort_lib else []))
        if document:
            documents.append((name, words, document))
            print("%s: %s" % (name, ", ".join("%.2f" % result["ratio"] for result in document["results"])), flush=True)
        else:
            failed.append(name)
    if missing:
        print("not found in any folder: " + ", ".join(missing), file=sys.stderr)
    if not documents:
        print("nothing was measured", file=sys.stderr)
        return 1
    before, rest = page.split(BEGIN, 1)
    text = before + BEGIN + "\n\n" + section(documents, options) + "\n\n" + END + rest.split(END, 1)[1]
    temporary = pathlib.Path(str(options.out) + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(options.out)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
