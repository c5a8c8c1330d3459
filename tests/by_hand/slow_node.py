#!/usr/bin/env python3
"""A study over 4 ranks, one of which shares its processor with a busy loop: the report names that node. Runs take
longer than a slice of the scheduler: the median of shorter ones does not notice the loop.

    slow_node.py PRONY_MPI MPIRUN MODEL [LOOPS]      several loops, for a machine that is busy anyway
"""
import json
import os
import subprocess
import sys
import tempfile


def main():
    prony_mpi, mpirun, model = sys.argv[1:4]
    loops = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) < 2:
        print("left out: this takes two processors")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        study = os.path.join(folder, "study.json")
        words = ["scale", os.path.abspath(model), "-x", "1", "-b", "2048", "--processes", "6", "-t", "0.3", "--json", study, "-q"]
        more = ["--oversubscribe", "--bind-to", "none"] if "openmpi" in mpirun else []
        command = [mpirun, *more, "-n", "3", "taskset", "-c", str(processors[0]), prony_mpi, *words,
                   ":", "-n", "1", "taskset", "-c", str(processors[1]), prony_mpi, *words]
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        spin = ["taskset", "-c", str(processors[1]), sys.executable, "-c", "while True: pass"]
        busy = [subprocess.Popen(spin) for _ in range(loops)]  # pylint: disable=consider-using-with
        try:
            subprocess.run(command, check=True, env=environment)
        finally:
            for loop in busy:
                loop.kill()
                loop.wait()
        with open(study, encoding="utf-8") as file:
            document = json.load(file)
    for node, row in enumerate(document["node_differences"]):
        print("node %d: %s, ratio %.3f (95 %%: %s)" % (node, row["verdict"], row["ratio"], row["interval"]))
    for note in document["quality"]["notes"]:
        print("-", note)
    return 0 if document["node_differences"][3]["verdict"] == "slower" else 1


if __name__ == "__main__":
    sys.exit(main())
