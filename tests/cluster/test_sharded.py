#!/usr/bin/env python3
"""prony-mpi --shard: the bits of one process, one report, and what happens when a rank cannot go on.

    test_sharded.py PRONY_MPI SOURCE_DIR MPIRUN PRONY [unittest options]
"""
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

import test_cluster
from test_cluster import ClusterTest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "command"))
import command_case  # noqa: E402
from command_case import DONE, FAILED, Schema  # noqa: E402
import onnx_bytes as ob  # noqa: E402

FLOAT = 1


def chain(name, layers, width, dims=("N",), seed=3):
    """Alternating MatMul and Relu, with a skip connection over all of them."""
    draw = random.Random(seed)
    nodes, weights, last = [], [], "x"
    for i in range(layers):
        values = [draw.uniform(-0.5, 0.5) for _ in range(width * width)]
        weights.append(ob.floats("w%d" % i, [width, width], values))
        nodes += [ob.node("MatMul", [last, "w%d" % i], ["m%d" % i]), ob.node("Relu", ["m%d" % i], ["r%d" % i])]
        last = "r%d" % i
    nodes += [ob.node("Tanh", [last], ["t"]), ob.node("Add", ["t", "x"], ["y"])]
    graph = ob.graph(nodes, [ob.value("x", FLOAT, [*dims, width])], [ob.value("y", FLOAT, [*dims, width])], weights)
    with open(name, "wb") as file:
        file.write(ob.model(graph))


class ShardTest(ClusterTest):
    def outputs(self, folder):
        return {n: self.read(os.path.join(folder, n)) for n in sorted(os.listdir(folder)) if n.startswith("output_")}

    def one(self, model, *arguments):
        folder = self.path("one")
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([test_cluster.PRONY, "run", model, *map(str, arguments), "-q", "--output-dir", folder], check=True)
        return self.outputs(folder)

    def sharded(self, command, ranks, model, *arguments):
        folder = self.path("sharded")
        shutil.rmtree(folder, ignore_errors=True)
        run = self.launch(ranks, command, model, "--shard", ranks, "-q", "--output-dir", folder, *arguments)
        self.assertEqual(run.wait(), DONE, run.out + run.err)
        return self.outputs(folder)


class Bits(ShardTest):
    def test_models_of_this_repository(self):
        for model, more in ((self.digits, ["-b", "3"]), (self.lenet, [])):
            want = self.one(model, *more)
            for ranks in (1, 2, 3, 4):
                with self.subTest(model=model, ranks=ranks):
                    self.assertEqual(self.sharded("run", ranks, model, *more), want)

    def test_skip_connections_and_given_cuts(self):
        model = self.path("chain.onnx")
        chain(model, 6, 24)
        want = self.one(model, "-b", "5")
        self.assertEqual(self.sharded("run", 4, model, "-b", "5"), want)
        self.assertEqual(self.sharded("run", 3, model, "-b", "5", "--shard-cut", "r1,r3"), want)
        self.assertEqual(self.sharded("run", 3, model, "-b", "5", "--shard-by", "memory"), want)

    def test_shapes_that_a_run_decides(self):
        model = self.path("nonzero.onnx")
        nodes = [ob.node("Relu", ["x"], ["a"]), ob.node("NonZero", ["a"], ["at"]), ob.node("Cast", ["at"], ["f"], to=1),
                 ob.node("Exp", ["f"], ["y"])]
        with open(model, "wb") as file:
            file.write(ob.model(ob.graph(nodes, [ob.value("x", FLOAT, [6, 7])], [ob.value("y", FLOAT, [2, "M"])])))
        self.assertEqual(self.sharded("run", 2, model, "--shard-cut", "f"), self.one(model))

    def test_micro_batches(self):
        values = struct.pack("<384f", *[random.Random(5).uniform(-1, 1) for _ in range(384)])
        whole, parts = self.path("x.npy"), []
        with open(whole, "wb") as file:
            file.write(ob.npy("<f4", [6, 1, 8, 8], values))
        for i in range(3):
            part = self.path("part.npy")
            with open(part, "wb") as file:
                file.write(ob.npy("<f4", [2, 1, 8, 8], values[512 * i:512 * i + 512]))
            parts.append(self.one(self.digits, "-i", "image=" + part)["output_0.npy"][128:])
        got = self.sharded("run", 2, self.digits, "-b", "6", "--micro-batch", "2", "-i", "image=" + whole)
        self.assertEqual(got["output_0.npy"][128:], b"".join(parts))


class Report(ShardTest):
    def test_the_document(self):
        path, one = self.path("report.json"), self.path("one.json")
        run = self.launch(3, "profile", self.digits, "--shard", "3", "-b", "4", "-x", "1", "-r", "6", "--json", path, "--no-color")
        self.assertEqual(run.wait(), DONE, run.out + run.err)
        self.assertIn("3 stages, 1 micro-batch a run", run.out)
        report = json.loads(self.read(path))
        self.assertEqual(Schema("report").problems(report), [])
        subprocess.run([test_cluster.PRONY, "profile", self.digits, "-b", "4", "-x", "1", "-r", "6", "-q", "--json", one], check=True)
        whole = json.loads(self.read(one))
        for key in ("macs", "madds", "flops", "special", "int_ops", "parameters", "layers"):
            self.assertEqual(report["totals"][key], whole["totals"][key], key)
            if key != "layers":
                self.assertEqual(sum(layer[key] for layer in report["layers"]), whole["totals"][key], key)
        self.assertTrue(report["totals"]["conserved"])
        self.assertEqual(report["output_sha256"], whole["output_sha256"])
        self.assertEqual(report["model"]["inputs"], whole["model"]["inputs"])
        self.assertEqual([o["kernel"] for o in report["operators"] if o["op"] != "Reorder"],
                         [o["kernel"] for o in whole["operators"] if o["op"] != "Reorder"])
        self.assertEqual(report["latency_ns"]["runs"], 6)
        ranks, line = report["ranks"], report["pipeline"]
        self.assertEqual([r["stage"] for r in ranks], [0, 1, 2])
        self.assertEqual(sorted(i for r in ranks for i in r["layers"]), list(range(whole["totals"]["layers"])))
        self.assertEqual(sum(r["sent_bytes"] for r in ranks), sum(r["received_bytes"] for r in ranks))
        self.assertGreater(ranks[0]["sent_bytes"], 0)
        self.assertTrue(all(r["time_ns"] > 0 and r["node"] == os.uname().nodename for r in ranks))
        busy, spent = sum(r["time_ns"] for r in ranks), sum(r["time_ns"] + r["waiting_ns"] for r in ranks)
        self.assertAlmostEqual(line["bubble_share"], 1 - busy / spent, places=6)
        self.assertGreater(line["predicted_step_ns"], 0)
        self.assertGreater(line["link_latency_ns"], 0)
        parts = [line.get(key, 0) for key in ("fill_share", "uneven_share", "message_share")]
        self.assertAlmostEqual(sum(parts), line["bubble_share"], places=6)
        self.assertGreater(parts[0], 0)
        self.assertGreaterEqual(parts[1], 0)
        self.assertIn("fill and drain", run.out)
        # The interconnect: every pair once, at every size.
        links = report["links"]
        self.assertEqual(sorted({(link["rank"], link["peer"]) for link in links}), [(1, 0), (2, 0), (2, 1)])
        for pair in ((1, 0), (2, 0), (2, 1)):
            sizes = [link["bytes"] for link in links if (link["rank"], link["peer"]) == pair]
            self.assertEqual(sizes, [8, 64, 512, 4096, 32768, 262144, 1048576])
        self.assertTrue(all(link["time_ns"] > 0 for link in links))

    def test_messages_and_lanes(self):
        """Send and Recv under their stage, a lane a rank in the trace, and the picture of the pipeline."""
        path, trace, page, picture = self.path("r.json"), self.path("t.json"), self.path("p.html"), self.path("p.svg")
        run = self.launch(3, "profile", self.digits, "--shard", "3", "-b", "8", "--micro-batch", "2", "-x", "1", "-r", "6",
                          "--json", path, "--trace", trace, "--html", page, "--svg", "pipeline=" + picture, "--no-color")
        self.assertEqual(run.wait(), DONE, run.out + run.err)
        report = json.loads(self.read(path))
        self.assertEqual(list(Schema("report").problems(report)), [])
        rows, events = report["transfers"], report["pipeline_events"]
        sent = sum(r["bytes"] for r in rows if r["kind"] == "send" and r["tensor"] != "(outputs)")
        got = sum(r["bytes"] for r in rows if r["kind"] == "receive")
        self.assertEqual(sent, got)
        self.assertGreaterEqual(sent, sum(r["sent_bytes"] for r in report["ranks"]))
        self.assertTrue(all(r["messages"] == 4 for r in rows if r["tensor"] != "(outputs)"))
        self.assertIn("Send to rank 1", run.out)
        self.assertIn("Recv from rank 0", run.out)
        for rank in range(3):
            passes = [e for e in events if e["rank"] == rank and e["kind"] == "compute"]
            self.assertEqual([e["micro_batch"] for e in passes], [0, 1, 2, 3])
            self.assertTrue(all(e["start_ns"] <= e["end_ns"] for e in passes))
        # A stage computes what the one before it has computed: on one clock, within the clocks' error.
        error = sum(r["clock_error_ns"] for r in report["ranks"])
        for at in range(4):
            begins = [next(e["start_ns"] for e in events if e["rank"] == rank and e["kind"] == "compute" and e["micro_batch"] == at)
                      for rank in range(3)]
            self.assertLess(begins[0], begins[1] + error)
            self.assertLess(begins[1], begins[2] + error)
        marks = json.loads(self.read(trace))["traceEvents"]
        names = [e["args"]["name"] for e in marks if e["name"] == "process_name"]
        self.assertEqual(len(names), 3)
        self.assertIn("us from rank 0's, within", names[1])
        self.assertEqual({e["pid"] for e in marks if e.get("cat") == "compute"}, {2, 3, 4})
        self.assertEqual({e["pid"] for e in marks if e.get("cat") == "operator"}, {2, 3, 4})
        self.assertIn(b"rank 2", self.read(picture))
        self.assertIn(b'data-chart="pipeline"', self.read(page))

    def test_bench_and_micro_batches(self):
        path = self.path("report.json")
        run = self.launch(2, "bench", self.digits, "--shard", "2", "-b", "8", "--micro-batch", "2", "-r", "5", "--json", path, "-q")
        self.assertEqual(run.wait(), DONE, run.out + run.err)
        report = json.loads(self.read(path))
        self.assertEqual((report["pipeline"]["micro_batches"], report["config"]["batch"]), (4, 8))
        self.assertEqual(report["totals"]["macs"] % 8, 0)
        self.assertEqual(report["latency_ns"]["runs"], 5)

    def test_stages_of_even_measured_time(self):
        """The predicted time of the stages is then the measured one, and the bits stay."""
        model, path = self.path("chain.onnx"), self.path("report.json")
        chain(model, 8, 64)
        for command in ("profile", "run"):
            with self.subTest(command=command):
                got = self.sharded(command, 2, model, "-b", "8", "--micro-batch", "2", "-x", "1", "--shard-by", "measured", "--json", path)
                report = json.loads(self.read(path))
                self.assertEqual(Schema("report").problems(report), [])
                self.assertEqual(report["pipeline"]["basis"], "measured")
                self.assertTrue(all(rank["predicted_ns"] > 0 for rank in report["ranks"]))
        self.assertEqual(got, self.sharded("run", 2, model, "-b", "8", "--micro-batch", "2", "-x", "1"))
        run = self.launch(2, "bench", model, "--shard", "2", "-r", "5", "--shard-by", "measured", "--json", path, "-q")
        self.assertEqual(run.wait(), DONE, run.out + run.err)
        self.assertEqual(json.loads(self.read(path))["pipeline"]["basis"], "measured")
        self.sharded("run", 2, model, "-b", "8", "--shard-by", "measured", "--shard-cut", "r1", "--json", path)
        self.assertEqual(json.loads(self.read(path))["ranks"][0]["layers"], [0, 1, 2, 3])

    def test_memory_of_one_rank_is_bounded(self):
        """20 weights of 1 MiB: more than the limit in one process; two ranks hold half of them each."""
        model = self.path("large.onnx")
        chain(model, 20, 512, seed=1)
        limit = ["-x", "1", "-b", "64", "--memory-limit", "15MB"]
        ran = subprocess.run([test_cluster.PRONY, "run", model, *limit], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(ran.returncode, FAILED)
        self.assertIn(b"memory limit", ran.stderr)
        path = self.path("report.json")
        got = self.sharded("run", 2, model, *limit, "--json", path)
        self.assertEqual(got, self.one(model, "-x", "1", "-b", "64"))
        weights = [r["weight_bytes"] for r in json.loads(self.read(path))["ranks"]]
        self.assertEqual(sum(weights), 20 * 512 * 512 * 4)
        self.assertLess(max(weights), 0.6 * sum(weights))


class Refusals(ShardTest):
    def refused(self, words, ranks, *arguments):
        self.refuse(words, (ranks, [], ["run", *arguments], None))

    def test_numbers_that_do_not_fit(self):
        self.refused(["--shard 3 takes 3 ranks", "and 2 run"], 2, self.digits, "--shard", "3")
        self.refused(["--shard 2 takes 2 ranks", "and 3 run"], 3, self.digits, "--shard", "2")
        self.refused(["9 stages need 8 cuts", "at most"], 9, self.digits, "--shard", "9")
        self.refused(["no operator makes a tensor 'q'"], 2, self.digits, "--shard", "2", "--shard-cut", "q")
        self.refused(["--micro-batch 3 does not divide the batch, 4"], 2, self.digits, "--shard", "2", "-b", "4", "--micro-batch", "3")
        ran = subprocess.run([test_cluster.PRONY, "run", self.digits, "--shard", "2"], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(ran.returncode, 2)
        self.assertIn(b"prony-mpi", ran.stderr)

    def test_models_that_differ(self):
        self.refused(["nothere.onnx"], 2, "nothere.onnx", "--shard", "2")
        os.mkdir(self.path("other"))
        shutil.copyfile(self.digits, self.path("a.onnx"))
        shutil.copyfile(self.lenet, self.path("other/a.onnx"))
        words = ["run", "a.onnx", "--shard", "2"]
        self.refuse(["rank 1", "another model file"], (1, [], words, self.folder), (1, [], words, self.path("other")))


class Faults(ShardTest):
    def begin(self, ranks=3):
        run = self.launch(ranks, "bench", self.digits, "--shard", ranks, "-r", "1000000", "-q", "--timeout", "4")
        for _ in range(600):
            if self.rank(run, ranks - 1) and self.rank(run, 0):
                break
            time.sleep(0.05)
        time.sleep(2)
        return run

    def end(self, run):
        began = time.monotonic()
        self.assertNotEqual(run.wait(60), 0)
        self.assertLess(time.monotonic() - began, 30)

    def test_a_rank_that_hangs_is_named(self):
        for hung in (1, 2):
            with self.subTest(rank=hung):
                run = self.begin()
                os.kill(self.rank(run, hung), signal.SIGSTOP)
                self.end(run)
                self.assertEqual(len(run.said), 1, run.out + run.err)
                self.assertIn("rank %d, which did not answer" % hung, run.said[0])

    def test_a_rank_that_dies_is_named(self):
        run = self.begin()
        os.kill(self.rank(run, 1), signal.SIGKILL)
        self.end(run)
        if test_cluster.is_open_mpi():  # MPICH's launcher then kills every rank with SIGKILL
            self.assertEqual(len(run.said), 1, run.out + run.err)
            self.assertIn("rank 1", run.said[0])

    def test_signals_end_all_ranks(self):
        for who, name in ((0, signal.SIGTERM), (2, signal.SIGTERM)):
            with self.subTest(rank=who):
                run = self.begin()
                os.kill(self.rank(run, who), name)
                self.end(run)
                self.assertEqual(len(run.said), 1, run.out + run.err)


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    test_cluster.PRONY_MPI, test_cluster.MPIRUN = os.path.abspath(sys.argv[1]), sys.argv[3]
    test_cluster.PRONY = os.path.abspath(sys.argv[4])
    command_case.PRONY, command_case.SOURCE = test_cluster.PRONY_MPI, os.path.abspath(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
