#!/usr/bin/env python3
"""Measurements of prony-mpi that need a quiet machine, and so are no tests. Each prints its figures and the bound, and ends with status 1
beyond it.

    measure.py --build BUILD network              predicted and measured times of pipelines at 1 Gbit/s and 200 us: within 15 % (needs root)
    measure.py --build BUILD pipeline [MODEL]     throughput of 2 ranks x 1 thread beside one rank's: at least 1.8 times
    measure.py --build BUILD overhead [MODEL]     prony scale beside prony-mpi scale on one rank, in turns: no difference beyond A/A noise

BUILD has prony and, from the target prony_mpi_tests, tests/cluster/prony_mpi_openmpi and delay_line.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from network import Network, NoNetwork
from test_cluster import deep

MPIRUN = ["mpirun.openmpi"]
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


class Measurement:
    def __init__(self, build, folder):
        self.prony = os.path.join(build, "prony")
        self.prony_mpi = os.path.join(build, "tests", "cluster", "prony_mpi_openmpi")
        self.delay_line = os.path.join(build, "tests", "cluster", "delay_line")
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def model(self, given, layers=24, width=512):
        if given:
            return given
        deep(self.path("deep.onnx"), layers, width)
        return self.path("deep.onnx")

    def run(self, *words, code=0):
        path = self.path("report.json")
        if os.path.exists(path):
            os.remove(path)
        ran = subprocess.run([*map(str, words), "--json", path, "-q"], env=ENVIRONMENT, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
        if ran.returncode != code:
            sys.exit(ran.stdout.decode(errors="replace"))
        with open(path, encoding="utf-8") as file:
            return json.load(file)


def network(m, arguments):
    worst = 0
    try:
        line = Network(m.folder, m.delay_line)
    except NoNetwork as why:
        sys.exit("network: %s" % why)
    try:
        print("%s: %d us, %d Mbit/s" % (line.kind, line.delay_us, line.mbit))
        model = m.model(arguments.model)
        for batch, micro_batch, cut in ((1024, 128, []), (4096, 512, ["--shard-cut", "r3"]), (64, 64, []), (2048, 32, [])):
            ratios = []
            for _ in range(arguments.repeats):
                report = m.run(*line.mpirun(MPIRUN[0], 2), m.prony_mpi, "bench", model, "--shard", 2, "--shard-by", "measured",
                               *cut, "-x", 1, "-b", batch, "--micro-batch", micro_batch, "-r", 20)
                pipeline = report["pipeline"]
                ratios.append(pipeline["measured_step_ns"] / pipeline["predicted_step_ns"])
            ratio = statistics.median(ratios)
            worst = max(worst, abs(ratio - 1))
            print("%4d samples by %3d: predicted %8.3f ms, measured %8.3f ms, ratio %.3f (%.3f to %.3f); link %.0f us, %.3f GB/s" % (
                batch, micro_batch, pipeline["predicted_step_ns"] / 1e6, pipeline["measured_step_ns"] / 1e6, ratio,
                min(ratios), max(ratios), pipeline["link_latency_ns"] / 1e3, pipeline["link_bytes_per_second"] / 1e9))
    finally:
        line.close()
    print("largest difference %.1f %%, bound 15 %%" % (100 * worst))
    return worst <= 0.15


def pipeline(m, arguments):
    """A run of one rank takes one micro-batch; the pipeline's takes `--count`. Filling and draining cost 1 part in count + 1."""
    model, micro_batch, count = m.model(arguments.model, 24, 768), arguments.micro_batch, arguments.count
    rows = []
    for _ in range(arguments.repeats):
        one = m.run("taskset", "-c", 0, m.prony, "bench", model, "-x", 1, "-b", micro_batch, "-r", 60, "--processes", 1)
        two = m.run(*MPIRUN, "--map-by", "core", "--bind-to", "core", "-n", 2, m.prony_mpi, "bench", model, "--shard", 2,
                    "--shard-by", "measured", "-x", 1, "-b", micro_batch * count, "--micro-batch", micro_batch, "-r", 10)
        alone = one["latency_ns"]["median"] * count
        line = two["pipeline"]
        compute = sum(rank["time_ns"] for rank in two["ranks"])
        parts = [2 * line.get(key, 0) for key in ("fill_share", "uneven_share", "message_share")]
        rows.append((alone / line["measured_step_ns"], compute / alone, *parts))
        print("%.3f times one rank's; stages compute %.3f times as long; of 2 ranks %.3f fill and drain, %.3f uneven, %.3f messages"
              % rows[-1])
    middle = [statistics.median(row[k] for row in rows) for k in range(5)]
    together = middle[0] * middle[1] + sum(middle[2:])
    print("median: %.3f times (bound 1.8); the stages' time and the parts add up to %.3f of 2" % (middle[0], together))
    return middle[0] >= 1.8


def overhead(m, arguments):
    """Two studies of each kind, in turns. The difference between kinds is compared with that between equals."""
    model, plan = m.model(arguments.model, 8, 256), ["-x", 1, "--processes", 10, "-t", 0.5]
    medians = {"prony": [], "prony-mpi": []}
    for i in range(2 * arguments.repeats):
        for kind in ("prony", "prony-mpi") if i % 2 == 0 else ("prony-mpi", "prony"):
            launcher = [*MPIRUN, "--bind-to", "none", "-n", 1, m.prony_mpi] if kind == "prony-mpi" else [m.prony]
            study = m.run(*launcher, "scale", model, *plan)
            medians[kind].append(study["results"][0]["median_ns"])
    ratios = [b / a for a, b in zip(medians["prony"], medians["prony-mpi"])]
    noise = [abs(values[i + 1] / values[i] - 1) for values in medians.values() for i in range(0, len(values) - 1, 2)]
    difference = statistics.median(ratios) - 1
    print("prony      median ms:", " ".join("%.4f" % (v / 1e6) for v in medians["prony"]))
    print("prony-mpi  median ms:", " ".join("%.4f" % (v / 1e6) for v in medians["prony-mpi"]))
    print("difference %+.2f %%; studies of one kind differ by %.2f %% (median) to %.2f %%" % (
        100 * difference, 100 * statistics.median(noise), 100 * max(noise)))
    return abs(difference) <= max(max(noise), 0.005)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--micro-batch", type=int, default=64, help="of pipeline; 1 for resnet50")
    parser.add_argument("--count", type=int, default=64, help="micro-batches of a pipeline's run")
    parser.add_argument("kind", choices=["network", "pipeline", "overhead"])
    parser.add_argument("model", nargs="?")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kinds = {"network": network, "pipeline": pipeline, "overhead": overhead}
        good = kinds[arguments.kind](Measurement(os.path.abspath(arguments.build), folder), arguments)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
