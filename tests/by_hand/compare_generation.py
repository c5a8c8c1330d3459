"""Compares greedy ids with ONNX Runtime's, on decoders with random weights: compare_generation.py PRONY PACKAGES [--new 200] [--size 4]

PACKAGES is the folder that holds node_modules with onnxruntime-node. Needs node and numpy. Exit status: 0 all ids are equal."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
KINDS = ("gpt2", "llama", "llama-gqa", "gpt2-packed", "gpt2-no-cache")


def lines(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip().split(",")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("prony")
    parser.add_argument("packages")
    parser.add_argument("--new", type=int, default=200)
    parser.add_argument("--size", default="4")
    given = parser.parse_args()
    prompt, wrong = "1,2,3,4,5,6,7,8", 0
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            model = os.path.join(folder, kind + ".onnx")
            subprocess.run([sys.executable, str(MODELS / "export_decoders.py"), "--kind", kind, "--size", given.size, "--out", model],
                           check=True)
            ours = lines(given.prony, "run", model, "--generate", "new=%d" % given.new, "--prompt-ids", prompt)
            theirs = lines("node", str(MODELS / "ort_generate.mjs"), given.packages, model, str(given.new), prompt)
            first = next((k for k, (a, b) in enumerate(zip(ours, theirs)) if a != b), None)
            same = first is None and len(ours) == len(theirs)
            wrong += not same
            print("%-14s %s" % (kind, "%d ids are equal" % len(ours) if same else "id %s differs" % first))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
