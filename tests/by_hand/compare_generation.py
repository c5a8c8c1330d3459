"""Compares greedy ids with ONNX Runtime's, on decoders with random weights, in fp32 and with
int4 weights: compare_generation.py PRONY PACKAGES [--new 200] [--size 4]

PACKAGES is the folder that holds node_modules with onnxruntime-node. Needs node and numpy. Exit status: 0 all ids are equal."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
PROMPT = "1,2,3,4,5,6,7,8"
KINDS = ("gpt2", "llama", "llama-gqa", "gpt2-packed", "gpt2-no-cache")


def lines(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip().split(",")


def compare(given, kind, model, precision):
    """True: greedy ids of the model, or of its quantized form, are those of ONNX Runtime."""
    if precision != "fp32":
        quantized = model + "." + precision
        done = subprocess.run([given.prony, "quantize", model, "-p", precision, "-o", quantized, "-q"], stderr=subprocess.DEVNULL)
        if done.returncode:
            return True
        model = quantized
    ours = lines(given.prony, "run", model, "--generate", "new=%d" % given.new, "--prompt-ids", PROMPT)
    theirs = lines("node", str(MODELS / "ort_generate.mjs"), given.packages, model, str(given.new), PROMPT)
    first = next((k for k, (a, b) in enumerate(zip(ours, theirs)) if a != b), None)
    same = first is None and len(ours) == len(theirs)
    print("%-14s %-12s %s" % (kind, precision, "%d ids are equal" % len(ours) if same else "id %s differs" % first))
    return same


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("prony")
    parser.add_argument("packages")
    parser.add_argument("--new", type=int, default=200)
    parser.add_argument("--size", default="4")
    given = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            model = os.path.join(folder, kind + ".onnx")
            subprocess.run([sys.executable, str(MODELS / "export_decoders.py"), "--kind", kind, "--size", given.size, "--out", model],
                           check=True)
            for precision in ("fp32", "int4-weights"):
                wrong += not compare(given, kind, model, precision)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
