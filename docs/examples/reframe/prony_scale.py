"""A ReFrame test: a scaling study of Prony over nodes, with performance variables from its JSON.

    reframe -C site.py -c prony_scale.py -r -S model=/models/resnet50.onnx

References of a system go into `reference`; ReFrame then reports a run that is slower.
"""
import json
import os

import reframe as rfm
import reframe.utility.sanity as sn


# ReFrame gives a test's class these names.
# flake8: noqa: F821
# mypy: ignore-errors


@rfm.simple_test
class PronyScale(rfm.RunOnlyRegressionTest):
    model = variable(str, value="model.onnx")
    threads = variable(str, value="1-8")
    nodes = parameter([1, 2])

    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "prony-mpi"
    num_tasks_per_node = 1
    keep_files = ["study.json"]

    @run_before("run")
    def set_command(self):
        self.num_tasks = self.nodes
        self.executable_opts = ["scale", self.model, "-x", self.threads, "--budget", "10m", "--json", "study.json", "-q"]

    @deferrable
    def study(self):
        with open(os.path.join(self.stagedir, "study.json"), encoding="utf-8") as file:
            return json.load(file)

    @sanity_function
    def data_are_good(self):
        return sn.assert_ne(self.study().evaluate()["quality"]["verdict"], "poor", "the data of the study are poor")

    def results(self):
        """Results within the quota, without the baseline's second time."""
        study = self.study().evaluate()
        plan = study["plan"]["configurations"]
        pairs = [(plan[row["configuration"]], row) for row in study["results"] if row.get("processes")]
        return [(c, row) for c, row in pairs if not c["again"] and not c["beyond_quota"]]

    @performance_function("ms")
    def serial_latency(self):
        return min(row["median_ns"] for c, row in self.results() if c["baseline"]) / 1e6

    @performance_function("samples/s")
    def best_throughput(self):
        return max(row["samples_per_second"] for _, row in self.results())

    @performance_function("1")
    def best_speedup(self):
        return max(row["speedup"] for _, row in self.results() if row.get("speedup"))
