#!/usr/bin/env python3
"""The examples for ReFrame and Ramble (docs/examples): their commands run, and their figures are those of the study's JSON.

    test_examples.py PRONY SOURCE_DIR [unittest options]

With ReFrame installed, ReFrame itself runs its test. Without it, and always for Ramble, whose package is in no registry, stand-ins of
this file take the place of the framework: they have the names that the examples use, and no others. prony stands in for prony-mpi.
"""
import importlib.util
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

PRONY, SOURCE = "", ""


def stand_in(name, **members):
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module
    return module


def load(path):
    spec = importlib.util.spec_from_file_location("example", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Deferred:
    def __init__(self, function):
        self.function = function

    def evaluate(self):
        return self.function()


class Namespace(dict):
    """Names that ReFrame gives the body of a test's class."""

    def __init__(self):
        super().__init__()
        self.update(variable=lambda *types, value: value, parameter=lambda values: values,
                    run_before=lambda phase: self.mark("run_before", phase), sanity_function=self.mark("sanity", None),
                    performance_function=lambda unit: self.mark("performance", unit),
                    deferrable=lambda function: lambda test: Deferred(lambda: function(test)))

    @staticmethod
    def mark(kind, value):
        def put(function):
            function.mark = (kind, value)
            return function
        return put


class Kind(type):
    @classmethod
    def __prepare__(mcs, name, bases):
        return Namespace()

    def __new__(mcs, name, bases, body):
        given = set(Namespace())
        return super().__new__(mcs, name, bases, {k: v for k, v in body.items() if k not in given})


class ExampleTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.digits = os.path.join(SOURCE, "models", "digits.onnx")

    def run_words(self, words):
        ran = subprocess.run(words, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(ran.returncode, 0, ran.stdout.decode(errors="replace"))

    def study(self):
        with open(os.path.join(self.folder, "study.json"), encoding="utf-8") as file:
            return json.load(file)


class ReFrame(ExampleTest):
    path = "docs/examples/reframe/prony_scale.py"

    @unittest.skipIf(shutil.which("reframe"), "ReFrame is here")
    def test_with_a_stand_in(self):
        sanity = stand_in("reframe.utility.sanity", assert_ne=lambda a, b, text: self.assertNotEqual(a, b, text) or True)
        stand_in("reframe.utility", sanity=sanity)
        stand_in("reframe", simple_test=lambda cls: cls, RunOnlyRegressionTest=Kind("RunOnlyRegressionTest", (), {}))
        self.addCleanup(lambda: [sys.modules.pop(n) for n in ("reframe", "reframe.utility", "reframe.utility.sanity")])
        kind = load(os.path.join(SOURCE, self.path)).PronyScale
        for nodes in kind.nodes:
            test = kind()
            test.nodes, test.model, test.threads, test.stagedir = nodes, self.digits, "1", self.folder
            members = [getattr(test, name) for name in dir(kind) if hasattr(getattr(kind, name), "mark")]
            for member in members:
                if member.mark == ("run_before", "run"):
                    member()
            self.assertEqual((test.num_tasks, test.num_tasks_per_node, test.executable), (nodes, 1, "prony-mpi"))
            options = [option if option != "10m" else "5s" for option in test.executable_opts]
            self.assertEqual(options[0], "scale")
            self.run_words([PRONY, *options, "--processes", "5", "--overwrite"])
            self.assertEqual(test.keep_files, ["study.json"])
            verdict = self.study()["quality"]["verdict"]
            for member in members:
                if member.mark[0] == "sanity" and verdict != "poor":
                    self.assertTrue(member())
            figures = {member.__name__: (member.mark[1], member()) for member in members if member.mark[0] == "performance"}
            baseline = min(r["median_ns"] for r in self.study()["results"])
            self.assertEqual(sorted(figures), ["best_speedup", "best_throughput", "serial_latency"])
            self.assertEqual(figures["serial_latency"][0], "ms")
            self.assertLess(figures["serial_latency"][1], 1.5 * baseline / 1e6)
            self.assertTrue(all(math.isfinite(value) and value > 0 for _, value in figures.values()), figures)

    @unittest.skipUnless(shutil.which("reframe"), "ReFrame is not installed")
    def test_with_reframe(self):
        os.symlink(PRONY, os.path.join(self.folder, "prony-mpi"))
        os.environ["PATH"] = self.folder + os.pathsep + os.environ["PATH"]
        self.run_words(["reframe", "-c", os.path.join(SOURCE, self.path), "-r", "-S", "model=" + self.digits, "-S", "threads=1"])


class Ramble(ExampleTest):
    """Ramble expands {names} of a template by the workload's variables."""

    path = "docs/examples/ramble/application.py"

    def test_with_a_stand_in(self):
        commands, variables, figures, workloads, criteria = {}, {}, {}, {}, []

        def executable(name, template, use_mpi, redirect="{log_file}"):
            commands[name] = ("\n".join([template] if isinstance(template, str) else template), use_mpi, redirect)

        def workload_variable(name, default, description, workloads):
            variables[name] = default

        def figure_of_merit(name, fom_regex, group_name, log_file, units):
            figures[name] = (fom_regex, group_name, log_file, units)

        def success_criteria(name, mode, match, file):
            criteria.append((mode, match, file))

        stand_in("ramble.appkit", ExecutableApplication=object, tags=lambda *words: None, executable=executable,
                 workload=lambda name, executables: workloads.update({name: executables}), workload_variable=workload_variable,
                 figure_of_merit=figure_of_merit, success_criteria=success_criteria)
        stand_in("ramble")
        self.addCleanup(lambda: [sys.modules.pop(n) for n in ("ramble", "ramble.appkit")])
        self.assertEqual(load(os.path.join(SOURCE, self.path)).Prony.name, "prony")
        variables.update(experiment_run_dir=self.folder, log_file=os.path.join(self.folder, "log"), model=self.digits, threads="1",
                         budget="5s")

        def expand(text):
            return re.sub(r"\{(\w+)\}", lambda m: variables[m.group(1)], text)

        self.assertEqual(workloads, {"study": ["scale", "figures"]})
        for name in workloads["study"]:
            template, use_mpi, redirect = commands[name]
            self.assertEqual(use_mpi, name == "scale")
            command = expand(template).replace("prony-mpi scale", PRONY + " scale --processes 5")
            with open(expand(redirect), "wb") as file:
                self.assertEqual(subprocess.run(["bash", "-c", command], cwd=self.folder, stdout=file).returncode, 0, command)
        rows = [r for r in self.study()["results"] if r.get("processes")]
        wanted = {"Lowest latency": min(r["median_ns"] for r in rows) / 1e6, "Best throughput": max(r["samples_per_second"] for r in rows)}
        self.assertEqual(sorted(figures), sorted(wanted))
        for name, (expression, group, log_file, units) in figures.items():
            with open(expand(log_file), encoding="utf-8") as file:
                found = re.search(expression, file.read())
            self.assertIsNotNone(found, name)
            self.assertAlmostEqual(float(found.group(group)), wanted[name], delta=1e-6 * wanted[name])
        (mode, match, file), = criteria
        self.assertEqual(mode, "string")
        with open(expand(file), encoding="utf-8") as text:
            self.assertEqual(bool(re.search(match, text.read())), self.study()["quality"]["verdict"] != "poor")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    PRONY, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
