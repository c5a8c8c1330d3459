#!/usr/bin/env python3
"""A model of 1.26 GB under a limit of 800 MB a rank: one process refuses it, two ranks run it with the bits of one process.

    large_sharded.py PRONY_MPI MPIRUN PRONY
"""
import array
import filecmp
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "command"))
import onnx_bytes as ob  # noqa: E402

WIDTH, LAYERS, FLOAT = 2048, 75, 1


def write_model(folder):
    """MatMul and Relu by turns; each weight is an external file, a rotation of the same random numbers."""
    draw = random.Random(1)
    base = array.array("f", [draw.uniform(-0.03, 0.03) for _ in range(WIDTH * WIDTH // 4)])
    nodes, weights, last = [], [], "x"
    for i in range(LAYERS):
        with open(os.path.join(folder, "w%d.bin" % i), "wb") as file:
            for k in range(4):
                at = (7919 * i + 104729 * k) % len(base)
                file.write((base[at:] + base[:at]).tobytes())
        weights.append(ob.external("w%d" % i, FLOAT, [WIDTH, WIDTH], "w%d.bin" % i))
        nodes += [ob.node("MatMul", [last, "w%d" % i], ["m%d" % i]), ob.node("Relu", ["m%d" % i], ["r%d" % i])]
        last = "r%d" % i
    nodes.append(ob.node("Add", [last, "x"], ["y"]))
    path = os.path.join(folder, "large.onnx")
    with open(path, "wb") as file:
        file.write(ob.model(ob.graph(nodes, [ob.value("x", FLOAT, ["N", WIDTH])], [ob.value("y", FLOAT, ["N", WIDTH])], weights)))
    return path


def main():
    prony_mpi, mpirun, prony = sys.argv[1:4]
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    with tempfile.TemporaryDirectory() as folder:
        model = write_model(folder)
        words, limit = ["run", model, "-x", "1", "-b", "4", "-q"], ["--memory-limit", "800MB"]
        one, two, report = (os.path.join(folder, name) for name in ("one", "two", "report.json"))
        refused = subprocess.run([prony, *words, *limit], stderr=subprocess.PIPE, check=False)
        subprocess.run([prony, *words, "--output-dir", one], check=True)
        more = ["--oversubscribe", "--bind-to", "none"] if "openmpi" in mpirun else []
        subprocess.run([mpirun, *more, "-n", "2", prony_mpi, *words, *limit, "--shard", "2", "--output-dir", two, "--json", report],
                       check=True, env=environment)
        same = filecmp.cmp(os.path.join(one, "output_0.npy"), os.path.join(two, "output_0.npy"), shallow=False)
        with open(report, encoding="utf-8") as file:
            ranks = json.load(file)["ranks"]
    print("one process under the limit:", refused.stderr.decode().strip())
    for row in ranks:
        print("rank %d: weights %.1f MB, peak RSS %.1f MB" % (row["rank"], row["weight_bytes"] / 1e6, row["peak_rss_bytes"] / 1e6))
    print("outputs:", "the same bits" if same else "DIFFERENT")
    return 0 if same and refused.returncode and all(row["peak_rss_bytes"] < 800e6 for row in ranks) else 1


if __name__ == "__main__":
    sys.exit(main())
