"""A Ramble application: a scaling study of Prony, with figures of merit from its JSON.

Put this folder into a Ramble repository as applications/prony, then name the workload in ramble.yaml.
"""
from ramble.appkit import *

# flake8: noqa: F403, F405
# mypy: ignore-errors


class Prony(ExecutableApplication):
    """Prony measures how the latency of an ONNX model changes with threads, nodes and replicas."""

    name = "prony"
    tags("machine-learning", "inference", "scaling")

    executable(
        "scale",
        "prony-mpi scale {model} -x {threads} --budget {budget} --json {experiment_run_dir}/study.json -q",
        use_mpi=True,
    )
    # One line a figure, which the expressions below read.
    executable(
        "figures",
        template=[
            "python3 -c '",
            "import json",
            'study = json.load(open("{experiment_run_dir}/study.json"))',
            'rows = [r for r in study["results"] if r.get("processes")]',
            'print("data quality:", study["quality"]["verdict"])',
            'print("lowest latency ms:", min(r["median_ns"] for r in rows) / 1e6)',
            'print("best throughput samples/s:", max(r["samples_per_second"] for r in rows))',
            "'",
        ],
        use_mpi=False,
        redirect="{experiment_run_dir}/figures.txt",
    )
    workload("study", executables=["scale", "figures"])

    workload_variable("model", default="model.onnx", description="Path of the ONNX model", workloads=["study"])
    workload_variable("threads", default="1-8", description="Numbers of threads", workloads=["study"])
    workload_variable("budget", default="10m", description="Time for the study", workloads=["study"])

    figures = "{experiment_run_dir}/figures.txt"
    figure_of_merit("Lowest latency", fom_regex=r"lowest latency ms: (?P<latency>[0-9.e+-]+)", group_name="latency",
                    log_file=figures, units="ms")
    figure_of_merit("Best throughput", fom_regex=r"best throughput samples/s: (?P<rate>[0-9.e+-]+)", group_name="rate",
                    log_file=figures, units="samples/s")
    success_criteria("data", mode="string", match=r"data quality: (good|fair)", file=figures)
