#!/usr/bin/env python3
"""prony-mpi --shard over a network of known delay and rate: 4 hosts in network namespaces, 200 us and 1 Gbit/s. Bounds that physics
sets are asserted; measure.py compares predicted with measured times on a quiet machine. Exit status 77: no such network here.

    test_network.py PRONY_MPI SOURCE_DIR MPIRUN PRONY DELAY_LINE [unittest options]
"""
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

import test_cluster
from network import Network, NoNetwork
from test_sharded import chain

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "command"))
import command_case  # noqa: E402
from command_case import DONE, Schema  # noqa: E402

NETWORK = None
NS = 1e-9
WIDTH = 512


class OverANetwork(test_cluster.ClusterTest):
    def launch(self, ranks, *arguments):
        kept, test_cluster.launcher = test_cluster.launcher, lambda: NETWORK.mpirun(test_cluster.MPIRUN, ranks)[:-2]
        try:
            return super().launch(ranks, *arguments)
        finally:
            test_cluster.launcher = kept

    def report(self, ranks, *arguments, model="chain.onnx"):
        path = self.path("report.json")
        run = self.launch(ranks, "profile", self.path(model), "--shard", ranks, "-x", "1", *arguments, "--json", path, "-q")
        self.assertEqual(run.wait(), DONE, run.out + run.err)
        report = json.loads(self.read(path))
        self.assertEqual(list(Schema("report").problems(report)), [])
        return report

    def setUp(self):
        super().setUp()
        chain(self.path("chain.onnx"), 8, 256)

    def slow_links(self, report):
        """Links whose messages took many times as long as the network needs, as on a machine that does other work."""
        line = report["pipeline"]
        slow = [link for link in report["links"] if link["time_ns"] * NS >= 5 * self.least(link) + 0.005]
        return slow + ([line["link_bytes_per_second"]] if line["link_bytes_per_second"] <= 0.2 * NETWORK.mbit * 1e6 / 8 else [])

    @staticmethod
    def least(link):
        return NETWORK.delay_us * 1e-6 + link["bytes"] * 8 / (NETWORK.mbit * 1e6)

    def test_every_link_is_measured(self):
        """A message takes the delay and its bytes at the rate, and not many times that in each of five measurements."""
        slow = []
        for _ in range(5):
            report = self.report(4, "-b", "64", "--micro-batch", "16", "-r", "5")
            self.assertEqual([rank["node"] for rank in report["ranks"]], ["node1", "node2", "node3", "node4"])
            pairs = {(link["rank"], link["peer"]) for link in report["links"]}
            self.assertEqual(len(pairs), 6)
            for link in report["links"]:
                with self.subTest(link=link):
                    self.assertGreater(link["time_ns"] * NS, 0.99 * self.least(link))
            line = report["pipeline"]
            self.assertGreater(line["link_latency_ns"] * NS, NETWORK.delay_us * 1e-6)
            self.assertLess(line["link_bytes_per_second"], 1.05 * NETWORK.mbit * 1e6 / 8)
            slow = self.slow_links(report)
            if not slow:
                break
        self.assertEqual(slow, [])

    def test_messages_move_while_ranks_compute(self):
        """Messages of 512 KiB, beyond what MPI sends at once, to a stage that computes for longer: most arrive inside of a
        computation of the rank that gets them."""
        test_cluster.deep(self.path("deep.onnx"), 24, WIDTH)
        report = self.report(2, "-b", "2048", "--micro-batch", "256", "-r", "5", "--shard-cut", "r5", model="deep.onnx")
        passes = [e for e in report["pipeline_events"] if e["kind"] == "compute" and e["rank"] == 1]
        arrived = [e for e in report["pipeline_events"] if e["kind"] == "receive" and e["rank"] == 1]
        self.assertEqual((len(passes), len(arrived)), (8, 8))
        inside = [e for e in arrived if any(p["start_ns"] < e["end_ns"] < p["end_ns"] for p in passes)]
        self.assertGreaterEqual(len(inside), 4)
        # The tensors at the cut leave rank 0 in turn: no run is shorter, and none is predicted to be.
        least = 8 * 256 * WIDTH * 4 * 8 / (NETWORK.mbit * 1e6)
        self.assertGreater(report["pipeline"]["measured_step_ns"] * NS, 0.99 * least)
        self.assertGreater(report["pipeline"]["predicted_step_ns"] * NS, 0.95 * least)

    def test_bits_over_the_network(self):
        path = self.path("one.json")
        words = ["profile", self.path("chain.onnx"), "-b", "16", "-x", "1", "-r", "5", "-q", "--json", path]
        subprocess.run([test_cluster.PRONY, *words], check=True)
        self.assertEqual(self.report(4, "-b", "16", "-r", "5")["output_sha256"], json.loads(self.read(path))["output_sha256"])

    def test_a_cut_off_host_is_named(self):
        """A host whose network is gone is as silent as one that hangs. Open MPI's launcher waits for its daemon there; the ranks end."""
        device = "%s1" % NETWORK.prefix
        before = self.received(device)
        run = self.launch(3, "bench", self.path("chain.onnx"), "--shard", 3, "-b", "512", "-r", "1000000", "-q", "--timeout", "4")
        # Measuring the links moves about 30 MB; the rest is of runs. No program can end MPI_Init, in which a rank may wait before.
        self.until(lambda: self.received(device) > before + 60e6, 300)
        subprocess.run(["ip", "-n", NETWORK.name(1), "link", "set", device, "down"], check=True)
        try:
            self.until(lambda: not any(self.rank(run, rank) for rank in range(3)))
        finally:
            subprocess.run(["ip", "-n", NETWORK.name(1), "link", "set", device, "up"], check=True)
        self.assertNotEqual(run.wait(120), DONE)
        self.assertEqual(len(run.said), 1, run.out + run.err)
        self.assertIn("rank 1, which did not answer", run.said[0])
        self.assertIn("rank 1 runs on node2", run.said[0])

    def test_replicas_begin_together_on_all_hosts(self):
        """Each round of 2 replicas runs on both hosts at the same time; the file has the throughput of all."""
        path = self.path("study.json")
        words = ["-x", "1", "--replicas", "2", "--processes", "3", "-t", "0.2", "-w", "2", "--json", path, "--no-color"]
        run = self.launch(2, "scale", self.digits, *words)
        self.assertEqual(run.wait(), DONE, run.out + run.err)
        study = json.loads(self.read(path))
        self.assertEqual(list(Schema("study").problems(study)), [])
        self.assertEqual([node["host_name"] for node in study["nodes"]], ["node1", "node2"])
        rounds = [b for b in study["blocks"] if b["configuration"] == 1 and not b["again"] and "replica" not in b]
        for process in range(3):
            together = [b for b in rounds if b["process"] == process]
            self.assertEqual(sorted(b["node"] for b in together), [0, 1])
            # The later one has begun before the first one ended: they waited for each other.
            self.assertLess(max(b["before"]["time_ns"] for b in together), min(b["after"]["time_ns"] for b in together))
        replicas = study["replicas"][0]
        self.assertEqual(replicas["all_nodes_rounds"], 3)
        self.assertGreater(replicas["all_nodes_samples_per_second"], 0)
        self.assertGreater(replicas["all_nodes_efficiency"], 0)
        self.assertIn("All 2 nodes at once", run.out)

    def received(self, device):
        ran = subprocess.run(["ip", "-n", NETWORK.name(1), "-s", "-j", "link", "show", device], stdout=subprocess.PIPE, check=True)
        return json.loads(ran.stdout)[0]["stats64"]["rx"]["bytes"]

    def until(self, holds, seconds=150):
        end = time.monotonic() + seconds
        while not holds():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)


def main():
    global NETWORK
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    test_cluster.PRONY_MPI, test_cluster.MPIRUN = os.path.abspath(sys.argv[1]), sys.argv[3]
    test_cluster.PRONY = os.path.abspath(sys.argv[4])
    command_case.PRONY, command_case.SOURCE = test_cluster.PRONY_MPI, os.path.abspath(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        try:
            NETWORK = Network(folder, os.path.abspath(sys.argv[5]))
        except NoNetwork as why:
            print("test_network: %s: left out" % why)
            return 77
        print("test_network: %s, %d us, %d Mbit/s" % (NETWORK.kind, NETWORK.delay_us, NETWORK.mbit))
        try:
            return 0 if unittest.main(argv=[sys.argv[0], *sys.argv[6:]], exit=False).result.wasSuccessful() else 1
        finally:
            NETWORK.close()


if __name__ == "__main__":
    sys.exit(main())
