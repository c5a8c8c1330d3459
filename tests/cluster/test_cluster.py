#!/usr/bin/env python3
"""prony-mpi with up to 4 ranks on this machine, each of which stands for a node. No test looks at how long a run took, but for a
node that is made many times as slow.

    test_cluster.py PRONY_MPI SOURCE_DIR MPIRUN PRONY [unittest options]
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
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "command"))
import command_case  # noqa: E402
from command_case import DONE, FAILED, CommandTest, Schema  # noqa: E402

import onnx_bytes as ob  # noqa: E402

MPIRUN, PRONY_MPI, PRONY = "", "", ""
QUICK = ["--processes", "3", "-r", "20", "-w", "2"]
LONG = ["--processes", "300", "-r", "20", "-w", "2"]


def deep(name, layers, width=512):
    """MatMul and Relu in turn, with weights that are shifted copies of one matrix. A row of its output is one number."""
    draw = random.Random(7)
    base = struct.pack("<%df" % (width * width), *[draw.uniform(-1, 1) * (3 / width) ** 0.5 for _ in range(width * width)])
    nodes, weights, last = [], [], "x"
    for i in range(layers):
        weights.append(ob.tensor("w%d" % i, 1, [width, width], base[4 * width * i:] + base[:4 * width * i]))
        nodes += [ob.node("MatMul", [last, "w%d" % i], ["m%d" % i]), ob.node("Relu", ["m%d" % i], ["r%d" % i])]
        last = "r%d" % i
    nodes.append(ob.node("ReduceMean", [last], ["y"], axes=[1], keepdims=1))
    graph = ob.graph(nodes, [ob.value("x", 1, ["N", width])], [ob.value("y", 1, ["N", 1])], weights)
    with open(name, "wb") as file:
        file.write(ob.model(graph))


def is_open_mpi():
    return "openmpi" in MPIRUN


def launcher():
    return [MPIRUN, "--oversubscribe", "--bind-to", "none"] if is_open_mpi() else [MPIRUN]


class Launch:
    """A run of the launcher. `segments`: (ranks, program, arguments, folder) that share one MPI world; program []: prony-mpi."""

    def __init__(self, test, *segments):
        self.mark = uuid.uuid4().hex
        self.words = launcher()
        for i, (ranks, program, arguments, folder) in enumerate(segments):
            self.words += [":"] if i else []
            self.words += ["-n", str(ranks)]
            self.words += ["-wdir", folder] if folder else []
            self.words += [*(program or [PRONY_MPI]), *map(str, arguments)]
        environment = dict(os.environ, XDG_CACHE_HOME=command_case.CACHE.name, CLUSTER_TEST_RUN=self.mark,
                           OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_btl_base_warn_component_unused="0")
        self.out, self.err = "", ""
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                        env=environment)
        test.addCleanup(self.end)

    def end(self):
        for pid in self.pids():
            os.kill(pid, signal.SIGKILL)
        if self.process.poll() is None:
            self.process.kill()
        self.process.stdout.close()
        self.process.stderr.close()

    def pids(self):
        """The children of this run: their environment has its mark."""
        found = []
        for name in os.listdir("/proc"):
            try:
                with open("/proc/%s/environ" % name, "rb") as file:
                    if name.isdigit() and ("CLUSTER_TEST_RUN=" + self.mark).encode() in file.read() and int(name) != self.process.pid:
                        found.append(int(name))
            except OSError:
                pass
        return found

    def rank(self, wanted, worker=False):
        """The process of a rank, or of its measurement."""
        for pid in self.pids():
            try:
                with open("/proc/%d/environ" % pid, "rb") as file:
                    environment = file.read().split(b"\0")
                with open("/proc/%d/cmdline" % pid, "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            ranks = [e.split(b"=")[1] for e in environment if e.split(b"=")[0] in (b"OMPI_COMM_WORLD_RANK", b"PMI_RANK")]
            if ranks and int(ranks[0]) == wanted and (b"worker" in words) == worker and (worker or b"scale" in words):
                return pid
        return None

    def wait(self, seconds=240):
        out, err = self.process.communicate(timeout=seconds)
        self.out, self.err = out.decode(errors="replace"), err.decode(errors="replace")
        # A launcher may merge the ranks' streams.
        self.said = [line for line in (self.out + "\n" + self.err).splitlines() if line.startswith("prony ")]
        return self.process.returncode


class ClusterTest(CommandTest):
    def launch(self, ranks, *arguments):
        return Launch(self, (ranks, [], arguments, None))

    def rank(self, run, wanted):
        """The process of a rank; None: it has not started."""
        for pid in run.pids():
            try:
                with open("/proc/%d/environ" % pid, "rb") as file:
                    environment = file.read().split(b"\0")
            except OSError:
                continue
            ranks = [e.split(b"=")[1] for e in environment if e.split(b"=")[0] in (b"OMPI_COMM_WORLD_RANK", b"PMI_RANK")]
            if ranks and int(ranks[0]) == wanted:
                return pid
        return None

    def study(self, ranks, *arguments, code=DONE):
        path = self.path("study.json")
        run = self.launch(ranks, "scale", self.digits, *arguments, "--json", path, "-q",
                          *([] if "--resume" in arguments else ["--overwrite"]))
        self.assertEqual(run.wait(), code, run.out + run.err)
        return self.load(path)

    def load(self, path):
        study = json.loads(self.read(path))
        self.assertEqual(Schema("study").problems(study), [])
        return study

    def wait_for_blocks(self, run, path, count):
        for _ in range(6000):
            if os.path.exists(path) and len(json.loads(self.read(path))["blocks"]) >= count:
                return
            if run.process.poll() is not None:
                break
            time.sleep(0.01)
        run.wait()
        self.fail("no block was written: " + run.out + run.err)

    def refuse(self, words, *segments, code=None):
        """The run fails; each of `words` is in one line that Prony says once."""
        run = Launch(self, *segments)
        got = run.wait()
        self.assertNotEqual(got, 0, run.out + run.err)
        if code is not None and is_open_mpi():
            self.assertEqual(got, code, run.out + run.err)
        self.assertEqual(len(run.said), 1, run.out + run.err)
        for word in words:
            self.assertIn(word, run.said[0])


class Study(ClusterTest):
    def test_the_document(self):
        study = self.study(4, "-x", "1-2", *QUICK)
        plan, blocks = study["plan"], study["blocks"]
        self.assertEqual(len(study["nodes"]), 4)
        for node in study["nodes"]:
            self.assertEqual(node["manifest"]["model"]["sha256"], study["manifest"]["model"]["sha256"])
            self.assertEqual(node["host_name"], os.uname().nodename)
            self.assertGreaterEqual(node["usable_processors"], 1)
            self.assertIn("total_memory_bytes", node["manifest"]["system"])
        pairs = list(zip(plan["order_nodes"], plan["order"]))
        everything = sorted((node, c) for node in range(4) for c in range(3))
        self.assertEqual(len(pairs), 3 * 12)
        for round_ in range(3):
            self.assertEqual(sorted(pairs[12 * round_:12 * round_ + 12]), everything)
        # Ranks of one host take turns, so the blocks come in the plan's order, and none overlaps another.
        planned = [b for b in blocks if not b["again"]]
        self.assertEqual([(b["node"], b["configuration"]) for b in planned], pairs)
        for earlier, later in zip(blocks, blocks[1:]):
            self.assertLessEqual(earlier["after"]["time_ns"], later["before"]["time_ns"] + 50_000_000)
        self.assertEqual([(r["node"], r["configuration"]) for r in study["node_results"]], everything)
        self.assertTrue(all(r["processes"] >= 3 and r["median_ns"] > 0 for r in study["node_results"]))
        for c, result in enumerate(study["results"]):
            medians = sorted(r["median_ns"] for r in study["node_results"] if r["configuration"] == c)
            self.assertAlmostEqual(result["median_ns"], (medians[1] + medians[2]) / 2, delta=1)
            self.assertLessEqual(result["ci95"][0], result["median_ns"])
            self.assertGreaterEqual(result["ci95"][1], result["median_ns"])
        self.assertEqual([d["node"] for d in study["node_differences"]], [0, 1, 2, 3])
        self.assertIn("resample nodes, then processes", study["statement"])

    def test_forms(self):
        table, page, text = (self.path(n) for n in ("study.csv", "study.html", "study.txt"))
        run = self.launch(2, "scale", self.digits, "-x", "1", *QUICK, "--csv", table, "--html", page, "--no-color")
        self.assertEqual(run.wait(), DONE, run.out + run.err)
        self.assertIn("beside the others", run.out)
        self.assertIn("rank 1", run.out)
        lines = self.read(table).decode().splitlines()
        self.assertTrue(lines[0].endswith(",node,host"))
        self.assertEqual({line.split(",")[-2] for line in lines[1:]}, {"0", "1"})
        self.assertIn(b"<html", self.read(page))

    def test_one_rank_and_few_nodes(self):
        study = self.study(1, "-x", "1", *QUICK)
        self.assertEqual(len(study["nodes"]), 1)
        study = self.study(2, "-x", "1", *QUICK)
        self.assertIn("fewer than 3 nodes", study["statement"])

    def test_a_slow_node_is_named(self):
        path = self.path("slow.json")
        words = ["scale", self.digits, "-x", "1-2", "--processes", "4", "-r", "20", "-w", "2", "--json", path, "--no-color"]
        run = Launch(self, (3, [], words, None), (1, ["env", "PRONY_MAX_ISA=scalar", PRONY_MPI], words, None))
        self.assertEqual(run.wait(), DONE, run.out + run.err)
        study = self.load(path)
        verdicts = [d["verdict"] for d in study["node_differences"]]
        self.assertEqual(verdicts[3], "slower")
        self.assertNotIn("slower", verdicts[:3])
        worst = study["node_differences"][3]
        self.assertGreater(worst["interval"][0], 2)
        self.assertTrue(any(m.startswith("instructions used: scalar") for m in worst["manifest"]), worst["manifest"])
        named = [n for n in study["quality"]["notes"] if "is slower" in n]
        self.assertEqual(len(named), 1)
        self.assertIn("rank 3", named[0])
        self.assertIn("%.2f times as long" % worst["ratio"], named[0])
        self.assertIn("is slower", run.out)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2 or not shutil.which("taskset"), "needs two processors and taskset")
    def test_a_node_beside_busy_loops_is_named(self):
        """Rank 3 shares its processor with 3 busy loops of a higher priority, so its runs, longer than a time slice, take many
        times as long. Beside much other work no node is told from the others, so the test is then left out."""
        if os.getloadavg()[0] > len(os.sched_getaffinity(0)) + 1:
            self.skipTest("other work slows every node: the load is %.1f" % os.getloadavg()[0])
        path, model = self.path("busy.json"), self.path("deep.onnx")
        deep(model, 8)
        quiet, shared = sorted(os.sched_getaffinity(0))[:2]
        loops = [subprocess.Popen(["taskset", "-c", str(shared), sys.executable, "-c", "while True: pass"]) for _ in range(3)]
        for loop in loops:
            self.addCleanup(loop.wait)
            self.addCleanup(loop.kill)
        words = ["scale", model, "-b", "384", "-x", "1", "--processes", "5", "-r", "3", "-w", "1", "--json", path, "--no-color"]
        run = Launch(self, (3, ["taskset", "-c", str(quiet), PRONY_MPI], words, None),
                     (1, ["nice", "-n", "5", "taskset", "-c", str(shared), PRONY_MPI], words, None))
        self.assertEqual(run.wait(), DONE, run.out + run.err)
        study = self.load(path)
        differences = study["node_differences"]
        self.assertEqual(differences[3]["verdict"], "slower", differences)
        self.assertGreater(differences[3]["ratio"], 1.5)
        named = [n for n in study["quality"]["notes"] if "is slower" in n and "rank 3" in n]
        self.assertEqual(len(named), 1, study["quality"]["notes"])
        self.assertIn("%.2f times as long" % differences[3]["ratio"], named[0])
        self.assertIn(named[0].split(":")[0], run.out)

    def test_budget_and_repeat(self):
        path = self.path("first.json")
        self.study(2, "-x", "1", "--budget", "4s")
        os.rename(self.path("study.json"), path)
        self.assertEqual(self.load(path)["plan"]["budget_seconds"], 4)
        again = self.study(2, "--repeat", path)
        first = self.load(path)
        for key in ("order", "order_nodes", "seed", "budget_seconds"):
            self.assertEqual(again["plan"][key], first["plan"][key])
        self.assertEqual(len(again["comparison"]), len(first["plan"]["configurations"]))
        self.assertEqual(again["manifest_differences"], [])

    def test_replicas_on_each_node(self):
        study = self.study(2, "-x", "1", "--replicas", "2", "--processes", "3", "-t", "0.1", "-w", "2")
        self.assertEqual([(r["configuration"], r["replicas"]) for r in study["replicas"]], [(1, 2)])
        self.assertGreaterEqual(study["replicas"][0]["rounds"], 6)
        rounds = [(b["node"], b.get("replica", 0)) for b in study["blocks"] if b["configuration"] == 1]
        self.assertEqual(rounds[1::2], [(node, 1) for node, _ in rounds[::2]])
        self.assertEqual({node for node, _ in rounds}, {0, 1})

    def test_libraries_of_prony_hold_no_mpi(self):
        self.assertNotIn("libmpi", subprocess.run(["ldd", PRONY], stdout=subprocess.PIPE, check=True).stdout.decode())


class Refusals(ClusterTest):
    def test_wrong_usage_is_said_once(self):
        run = self.launch(4, "scale", self.digits, "--jsn", "x")
        self.assertNotEqual(run.wait(), 0)
        self.assertEqual((run.out + run.err).count("unknown option"), 1, run.out + run.err)
        run = self.launch(2, "run", self.digits)
        self.assertNotEqual(run.wait(), 0)
        self.assertEqual((run.out + run.err).count("no command 'run'"), 1, run.out + run.err)
        run = self.launch(2, "--help")
        self.assertEqual(run.wait(), 0)
        self.assertEqual(run.out.count("usage:"), 1)

    def test_no_model(self):
        self.refuse(["rank 0", "nothere.onnx"], (4, [], ["scale", "nothere.onnx"], None), code=FAILED)

    def test_one_rank_without_the_model(self):
        os.mkdir(self.path("other"))
        shutil.copyfile(self.digits, self.path("a.onnx"))
        words = ["scale", "a.onnx", "-x", "1"]
        self.refuse(["rank 2", os.uname().nodename, "cannot open"], (2, [], words, self.folder), (1, [], words, self.path("other")))

    def test_the_model_is_sent_where_it_is_missing(self):
        os.mkdir(self.path("other"))
        os.mkdir(self.path("third"))
        shutil.copyfile(self.digits, self.path("a.onnx"))
        study, other = self.path("sent.json"), self.path("other")
        words = ["scale", "a.onnx", "-x", "1", *QUICK, "--send-model", "--json", study, "--overwrite", "-q"]
        run = Launch(self, (2, [], words, self.folder), (2, [], words, other), (1, [], words, self.path("third")))
        self.assertEqual(run.wait(), DONE, run.out + run.err)
        self.assertEqual(len(self.load(study)["nodes"]), 5)
        for folder in ("other", "third"):
            self.assertEqual(os.listdir(self.path(folder)), ["a.onnx"])
            self.assertEqual(self.read(self.path(folder + "/a.onnx")), self.read(self.digits))
        # A node with another file keeps it, and is refused.
        shutil.copyfile(self.lenet, self.path("other/a.onnx"))
        self.refuse(["rank 1", "another model file"], (1, [], words, self.folder), (1, [], words, other))
        self.assertEqual(self.read(self.path("other/a.onnx")), self.read(self.lenet))
        os.remove(self.path("other/a.onnx"))
        shard = ["run", "a.onnx", "--shard", "2", "--send-model", "-q"]
        run = Launch(self, (1, [], shard, self.folder), (1, [], shard, other))
        self.assertEqual(run.wait(), DONE, run.out + run.err)
        self.assertEqual(self.read(self.path("other/a.onnx")), self.read(self.digits))

    def test_a_node_that_cannot_keep_the_sent_model_is_named(self):
        shutil.copyfile(self.digits, self.path("a.onnx"))
        os.mkdir(self.path("folder"))
        os.mkdir(self.path("other"))
        shutil.copyfile(self.digits, self.path("folder/a.onnx"))
        words = ["run", "folder/a.onnx", "--shard", "2", "--send-model"]
        self.refuse(["rank 1", "cannot write the sent model"], (1, [], words, self.folder), (1, [], words, self.path("other")))

    def test_one_rank_with_another_model(self):
        os.mkdir(self.path("other"))
        shutil.copyfile(self.digits, self.path("a.onnx"))
        shutil.copyfile(self.lenet, self.path("other/a.onnx"))
        words = ["scale", "a.onnx", "-x", "1"]
        self.refuse(["rank 1", "another model file"], (1, [], words, self.folder), (1, [], words, self.path("other")))

    def test_one_rank_with_another_build(self):
        other = self.path("other-build")
        shutil.copyfile(PRONY_MPI, other)
        os.chmod(other, 0o755)
        with open(other, "ab") as file:
            file.write(b"x")
        words = ["scale", self.digits, "-x", "1"]
        self.refuse(["rank 2", "another build"], (2, [], words, None), (1, [other], words, None))

    def test_studies_of_one_machine_and_of_nodes_are_told_apart(self):
        path = self.path("study.json")
        self.study(2, "-x", "1", *QUICK)
        ran = subprocess.run([PRONY, "scale", self.digits, "--json", path, "--resume"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(ran.returncode, FAILED)
        self.assertIn(b"prony-mpi scale --resume", ran.stderr)
        self.refuse(["node 1", "no rank runs there"], (1, [], ["scale", self.digits, "--json", path, "--resume"], None))
        self.refuse(["rank 2", "without it"], (3, [], ["scale", self.digits, "--json", path, "--resume"], None))
        one = self.path("one.json")
        subprocess.run([PRONY, "scale", self.digits, "-x", "1", *QUICK, "--json", one, "-q"], check=True)
        self.refuse(["study of one machine"], (1, [], ["scale", self.digits, "--json", one, "--resume"], None))


class Faults(ClusterTest):
    def begin(self, *more):
        path = self.path("study.json")
        run = self.launch(4, "scale", self.digits, "-x", "1-2", *LONG, "--json", path, "-q", *more)
        self.wait_for_blocks(run, path, 5)
        return run, path

    def whole(self, path, least=5):
        study = self.load(path)
        self.assertGreaterEqual(len(study["blocks"]), least)
        self.assertLess(len(study["blocks"]), 300 * 12)
        return study

    def test_a_rank_that_dies_is_named(self):
        run, path = self.begin("--timeout", "5")
        os.kill(run.rank(2), signal.SIGKILL)
        self.assertNotEqual(run.wait(), 0)
        study = self.whole(path)
        if is_open_mpi():  # MPICH's launcher then kills every rank with SIGKILL: the file is complete, and no rank prints a message
            said = [line for line in run.said if "rank 2" in line]
            self.assertEqual(len(said), 1, run.out + run.err)
            self.assertIn(os.uname().nodename, said[0])
            self.assertIn(" while it ", said[0])
            self.assertIn("continue with --resume", said[0])
        # The next run continues where this one ended; a limit ends it early.
        blocks = len(study["blocks"])
        again = self.launch(4, "scale", self.digits, "--json", path, "--resume", "-q")
        self.wait_for_blocks(again, path, blocks + 3)
        again.process.send_signal(signal.SIGINT)
        again.wait()
        self.assertEqual(self.whole(path)["blocks"][:blocks], study["blocks"])

    def test_signals_leave_a_whole_file(self):
        for name, wanted in ((None, signal.SIGTERM), (None, signal.SIGINT), (0, signal.SIGTERM), (3, signal.SIGTERM), (0, signal.SIGUSR1)):
            if name is None and not is_open_mpi() and wanted == signal.SIGTERM:
                continue  # Hydra passes SIGINT on, and ends on SIGTERM itself
            with self.subTest(rank=name, signal=wanted):
                run, path = self.begin("--overwrite")
                if name is None:
                    run.process.send_signal(wanted)
                else:
                    os.kill(run.rank(name), wanted)
                self.assertNotEqual(run.wait(), 0)
                self.whole(path)
                said = [line for line in run.said if "continue with --resume" in line]
                self.assertEqual(len(said), 1, run.out + run.err)
                if wanted == signal.SIGUSR1:
                    self.assertIn("received SIGUSR1", said[0])
                os.remove(path)

    def test_a_rank_that_hangs_is_named(self):
        run, path = self.begin("--timeout", "3")
        os.kill(run.rank(1), signal.SIGSTOP)
        self.assertNotEqual(run.wait(), 0)
        self.whole(path)
        self.assertEqual(len([line for line in run.said if "rank 1" in line and "answer" in line]), 1, run.out + run.err)

    def test_a_process_that_dies_is_recorded(self):
        path = self.path("study.json")
        run = self.launch(2, "scale", self.digits, "-x", "1", "--processes", "4", "-t", "0.7", "--json", path, "-q")
        killed = None
        while killed is None and run.process.poll() is None:
            killed = run.rank(1, worker=True)
            time.sleep(0.005)
        os.kill(killed, signal.SIGKILL)
        self.assertEqual(run.wait(), DONE, run.out + run.err)
        failed = [b for b in self.load(path)["blocks"] if "failure" in b]
        self.assertEqual([(b["node"], "signal 9" in b["failure"]) for b in failed], [(1, True)])


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    PRONY_MPI, MPIRUN = os.path.abspath(sys.argv[1]), sys.argv[3]
    PRONY = os.path.abspath(sys.argv[4])
    command_case.PRONY, command_case.SOURCE = PRONY_MPI, os.path.abspath(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
