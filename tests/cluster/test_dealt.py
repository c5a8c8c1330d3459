#!/usr/bin/env python3
"""prony-mpi eval and bench --scenario offline: work that is dealt to ranks, and labelled data through a model that is cut.

    test_dealt.py PRONY_MPI SOURCE_DIR MPIRUN PRONY [unittest options]
"""
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

import test_cluster
from test_cluster import ClusterTest, Launch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "command"))
import command_case  # noqa: E402
from command_case import DONE, USAGE, Schema  # noqa: E402
import onnx_bytes as ob  # noqa: E402

KNOWN = 358 / 360  # models/README.md: 99.44 %


class DataTest(ClusterTest):
    def setUp(self):
        super().setUp()
        models = os.path.join(command_case.SOURCE, "models")
        _, shape, pixels = ob.read_npy(os.path.join(models, "digits_images.npy"))
        self.pixels = [p / 16 for p in pixels]
        self.data = self.path("data")
        os.mkdir(self.data)
        shutil.copyfile(os.path.join(models, "digits_labels.npy"), os.path.join(self.data, "labels.npy"))
        self.save_images(self.data, list(shape), self.pixels)

    def save_images(self, folder, shape, pixels):
        with open(os.path.join(folder, "image.npy"), "wb") as file:
            file.write(ob.npy("<f4", shape, struct.pack("<%df" % len(pixels), *pixels)))

    def evaluate(self, ranks, *arguments):
        path = self.path("eval.json")
        run = self.launch(ranks, "eval", self.digits, self.data, *arguments, "-x", "1", "--json", path, "--no-color")
        self.assertEqual(run.wait(), DONE, run.out + run.err)
        report = json.loads(self.read(path))
        self.assertEqual(list(Schema("report").problems(report)), [])
        return report, run.out

    def one(self, *arguments):
        path = self.path("one.json")
        subprocess.run([test_cluster.PRONY, "eval", self.digits, self.data, *arguments, "-x", "1", "-q", "--json", path], check=True)
        return json.loads(self.read(path))


class Dealt(DataTest):
    def test_accuracy_is_that_of_one_process(self):
        want = self.one("-b", "7")["evaluation"]
        self.assertEqual(want["value"], KNOWN)
        for ranks in (1, 3, 4):
            with self.subTest(ranks=ranks):
                report, out = self.evaluate(ranks, "-b", "7")
                self.assertEqual(report["evaluation"], want)
                self.assertIn("99.44 %", out)
                self.assertEqual(report["latency_ns"]["runs"], 52)

    def test_parts_are_whole_batches(self):
        """360 samples in batches of 100: 4 batches, the last of 60."""
        report, out = self.evaluate(3, "-b", "100")
        self.assertEqual(report["evaluation"], self.one("-b", "100")["evaluation"])
        rows = [line.split() for line in out.splitlines() if line.strip() and line.split()[0] in "012" and len(line.split()) == 4]
        self.assertEqual([int(row[2]) for row in rows], [200, 100, 60])

    def test_what_the_ranks_cannot_do_is_said_once(self):
        self.refuse(["too few for 4 parts"], (4, [], ["eval", self.digits, self.data, "-b", "180"], None))
        self.refuse(["eval needs MODEL and DATA"], (2, [], ["eval", self.digits], None), code=USAGE)
        self.refuse(["goes without --accuracy"], (2, [], ["eval", self.digits, self.data, "--accuracy"], None), code=USAGE)

    def test_ranks_with_other_data_are_named(self):
        other = self.path("other")
        os.mkdir(other)
        os.mkdir(os.path.join(other, "data"))
        self.save_images(os.path.join(other, "data"), [100, 1, 8, 8], self.pixels[:6400])
        with open(os.path.join(other, "data", "labels.npy"), "wb") as file:
            file.write(ob.npy("<i8", [100], struct.pack("<100q", *[0] * 100)))
        words = ["eval", self.digits, "data"]
        self.refuse(["rank 1", "100 samples", "rank 0 has 360"], (1, [], words, self.folder), (1, [], words, other))
        self.refuse(["rank 1", "labels"], (1, [], words, self.folder), (1, [], words, self.bare()))

    def bare(self):
        folder = self.path("bare")
        os.makedirs(os.path.join(folder, "data"))
        self.save_images(os.path.join(folder, "data"), [360, 1, 8, 8], self.pixels)
        return folder

    def test_a_rank_that_dies_ends_the_run(self):
        """Batches of one sample, with the data repeated, so that the ranks are still at work."""
        images = self.pixels * 40
        self.save_images(self.data, [14400, 1, 8, 8], images)
        with open(os.path.join(self.data, "labels.npy"), "wb") as file:
            file.write(ob.npy("<i8", [14400], struct.pack("<14400q", *[0] * 14400)))
        for hung in (signal.SIGSTOP, signal.SIGKILL):
            with self.subTest(signal=hung):
                run = Launch(self, (3, [], ["eval", self.digits, self.data, "--timeout", "3", "-q", "-x", "1", "-w", "2000000"], None))
                pid = None
                for _ in range(600):
                    pid = self.rank(run, 2)
                    if pid and self.rank(run, 0):
                        break
                    time.sleep(0.05)
                time.sleep(1)
                os.kill(pid, hung)
                self.assertNotEqual(run.wait(60), DONE)
                if test_cluster.is_open_mpi() or hung == signal.SIGSTOP:
                    self.assertEqual(len(run.said), 1, run.out + run.err)
                    self.assertIn("rank", run.said[0])


class Cut(DataTest):
    def test_accuracy_of_stages_is_that_of_one_process(self):
        want = self.one("-b", "8")["evaluation"]
        for ranks, more in ((1, []), (3, []), (2, ["--micro-batch", "4"])):
            with self.subTest(ranks=ranks, more=more):
                report, out = self.evaluate(ranks, "-b", "8", "--shard", ranks, *more)
                self.assertEqual(report["evaluation"], want)
                self.assertEqual(report["latency_ns"]["runs"], 45)
                self.assertEqual(len(report["ranks"]), ranks)
                self.assertIn("99.44 %", out)


class Offline(ClusterTest):
    def load(self, ranks, *arguments):
        path = self.path("load.json")
        run = self.launch(ranks, "bench", self.digits, "--scenario", "offline", "-x", "1", *arguments, "--json", path)
        self.assertEqual(run.wait(), DONE, run.out + run.err)
        document = json.loads(self.read(path))
        self.assertEqual(list(Schema("load").problems(document)), [])
        return document, run.out

    def test_queries_of_all_ranks_count(self):
        document, out = self.load(3, "-r", "40", "-b", "2")
        rows, result = document["ranks"], document["result"]
        self.assertEqual([row["queries"] for row in rows], [40, 40, 40])
        self.assertEqual((result["queries"], result["samples"], result["failed"]), (120, 240, 0))
        self.assertEqual(len(result["samples_ns"]), 120)
        self.assertEqual([row["node"] for row in rows], [os.uname().nodename] * 3)
        self.assertIn("on each of 3 ranks", out)
        # The common time ends with the last rank's last query, and begins with the first query behind the barrier.
        spans = [80 / row["samples_per_second"] for row in rows]
        self.assertLessEqual(result["seconds"], 1.000001 * max(spans))
        self.assertAlmostEqual(result["samples_per_second"], 240 / result["seconds"], places=3)

    def test_a_rank_that_hangs_or_gets_a_signal_ends_the_load(self):
        """An older file stays whole."""
        path = self.write("load.json", b"{}")
        for name, who in ((signal.SIGSTOP, 2), (signal.SIGTERM, 0), (signal.SIGTERM, 1)):
            with self.subTest(signal=name, rank=who):
                run = self.launch(3, "bench", self.digits, "--scenario", "offline", "-x", "1", "-t", "4", "--timeout", "3", "-q",
                                  "--json", path)
                pid = None
                for _ in range(600):
                    pid = self.rank(run, who)
                    if pid and self.rank(run, 0):
                        break
                    time.sleep(0.05)
                time.sleep(1.5)
                os.kill(pid, name)
                self.assertNotEqual(run.wait(60), DONE)
                self.assertEqual(len(run.said), 1, run.out + run.err)
                self.assertEqual(self.read(path), b"{}")
                self.assertEqual([n for n in os.listdir(self.folder) if "tmp" in n], [])

    def test_usage(self):
        self.refuse(["offline alone"], (2, [], ["bench", self.digits, "--scenario", "single"], None), code=USAGE)

    def test_a_model_that_fails_is_said_once(self):
        self.refuse(["nothere.onnx"], (3, [], ["bench", "nothere.onnx", "--scenario", "offline"], None))
        self.refuse(["nothere.npy"], (3, [], ["bench", self.digits, "--scenario", "offline", "-i", "image=nothere.npy"], None))


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    test_cluster.PRONY_MPI, test_cluster.MPIRUN = os.path.abspath(sys.argv[1]), sys.argv[3]
    test_cluster.PRONY = os.path.abspath(sys.argv[4])
    command_case.PRONY, command_case.SOURCE = test_cluster.PRONY_MPI, os.path.abspath(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
