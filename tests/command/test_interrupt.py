#!/usr/bin/env python3
"""Time limits, Ctrl-C, loops without end, and model files that change: what the command says, writes and ends with.

    test_interrupt.py PRONY SOURCE_DIR [unittest options]
"""
import json
import os
import signal
import struct
import subprocess

import time

import command_case
import onnx_bytes as ob
from command_case import DONE, FAILED, USAGE, run

INTERRUPTED, TERMINATED = 130, 143


def loop_model(trips):
    """y = x + 1, `trips` times."""
    body = ob.graph([ob.node("Add", ["v", "x"], ["w"], name="inner"), ob.node("Identity", ["go"], ["on"])],
                    [ob.value("i", ob.INT64, []), ob.value("go", ob.BOOL, []), ob.value("v", ob.FLOAT, [2])],
                    [ob.value("on", ob.BOOL, []), ob.value("w", ob.FLOAT, [2])])
    return ob.model(ob.graph([ob.node("Loop", ["n", "", "x"], ["y"], name="outer", body=("graph", body))],
                             [ob.value("x", ob.FLOAT, [2])], [ob.value("y", ob.FLOAT, [2])],
                             [ob.int64s("n", [], [trips])]))


class Interrupts(command_case.CommandTest):
    def endless(self, name="endless.onnx"):
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(loop_model(2 ** 40))
        return path

    def interrupt(self, *arguments, sent=signal.SIGINT):
        """Starts it, lets it run for a moment, sends the signal."""
        environment = dict(os.environ, XDG_CACHE_HOME=command_case.CACHE.name)
        process = subprocess.Popen([command_case.PRONY, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=environment, stdin=subprocess.DEVNULL, restore_signals=True)
        time.sleep(1)
        process.send_signal(sent)
        out, error = process.communicate(timeout=120)
        return process.returncode, out.decode(), error.decode()

    def test_time_limit_names_where_it_was(self):
        status, out, error = run("run", self.endless(), "--time-limit", "300ms")
        self.assertEqual((status, out), (FAILED, ""))
        self.assertIn("the time limit of 300ms was reached: ", error)
        self.assertIn("node 'outer' (Loop)", error)

    def test_trips_are_bounded(self):
        status, out, error = run("run", self.endless(), "--max-loop-trips", "1000")
        self.assertEqual((status, out), (FAILED, ""))
        self.assertIn("node 'outer' (Loop): did not stop after 1000 trips", error)

    def test_limits_are_checked(self):
        for wrong in (["--time-limit", "5"], ["--time-limit", "-1s"], ["--time-limit", "0s"], ["--max-loop-trips", "0"]):
            self.assertEqual(run("run", self.endless(), *wrong)[0], USAGE, wrong)

    def test_a_limit_that_is_not_reached_changes_nothing(self):
        status, _, error = run("run", self.lenet, "--time-limit", "3000s", "--copy-model")
        self.assertEqual((status, error), (DONE, ""))

    def test_ctrl_c_writes_what_was_measured(self):
        for sent, code in ((signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)):
            path = self.path("bench%d.json" % code)
            status, out, error = self.interrupt("bench", self.lenet, "-r", 100000000, "-t", 3600, "-w", 1, "--json", path,
                                                sent=sent)
            self.assertEqual(status, code, error)
            self.assertIn("the results cover the runs until then", error)
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
            self.assertEqual(command_case.Schema("report").problems(report), [])
            self.assertEqual(report["latency_ns"]["stop_reason"], "cancelled")
            self.assertGreater(report["latency_ns"]["runs"], 0)
            self.assertIn("stopped: cancelled", out)
        self.assertEqual([n for n in os.listdir(self.folder) if n.endswith(".tmp")], [])

    def test_profiles_and_parts_write_what_was_measured(self):
        for part in ([], ["--from", "/1/Tanh_output_0"]):
            status, out, error = run("profile", self.lenet, "-r", 100000000, "-t", 5, "-w", 1, "--time-limit", "3s", *part)
            self.assertEqual(status, FAILED, error)
            self.assertIn("the time limit of 3s was reached; the results cover the runs until then", error)
            self.assertIn("stopped: cancelled", out)

    def test_ctrl_c_before_anything_is_measured_leaves_no_file(self):
        path = self.path("none.json")
        for command in ("run", "profile", "bench", "metrics"):
            status, out, error = self.interrupt(command, self.endless(), "--json", path)
            self.assertEqual((status, out), (INTERRUPTED, ""), error)
            self.assertIn("interrupted: ", error)
            self.assertIn("node 'outer' (Loop)", error)
            self.assertFalse(os.path.exists(path))

    def test_ctrl_c_drops_waiting_requests(self):
        """Thousands of requests of one query wait when the signal comes. None of them is served."""
        path = self.path("query.onnx")
        with open(path, "wb") as file:
            file.write(loop_model(20000))
        begin = time.monotonic()
        status, _, error = self.interrupt("bench", path, "--scenario", "multi", "--samples-per-query", 65536, "-w", 0)
        self.assertEqual(status, INTERRUPTED, error)
        self.assertIn("interrupted", error)
        self.assertLess(time.monotonic() - begin, 60)

    def test_a_matrix_keeps_its_turns(self):
        path = self.path("matrix.json")
        status, out, error = self.interrupt("bench", self.lenet, "-b", "1,2", "-r", 100000000, "-t", 3600, "-w", 1, "--json",
                                            path)
        self.assertEqual(status, INTERRUPTED, error)
        self.assertIn("2 configurations", out)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(len(json.load(file)["reports"]), 2)

    def test_a_second_signal_ends_it_at_once(self):
        """The reader of the report's other format never comes, so the first signal alone would wait forever."""
        whole, never = self.path("second.json"), self.path("never.html")
        os.mkfifo(never)
        for first, second in ((signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGINT)):
            process = subprocess.Popen([command_case.PRONY, "profile", self.lenet, "-r", "100000000", "-t", "3600", "-w", "1",
                                        "--html", never, "--json", whole], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env=dict(os.environ, XDG_CACHE_HOME=command_case.CACHE.name))
            time.sleep(1)
            process.send_signal(first)
            time.sleep(1)
            self.assertIsNone(process.poll())
            process.send_signal(second)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, -second)
            if os.path.exists(whole):  # written before, then whole
                with open(whole, encoding="utf-8") as file:
                    self.assertEqual(json.load(file)["latency_ns"]["stop_reason"], "cancelled")
                os.unlink(whole)
            for name in os.listdir(self.folder):
                self.assertFalse(name.endswith(".tmp") and os.path.getsize(self.path(name)), name)

    def test_a_second_signal_ends_what_does_not_answer(self):
        """A stopped process receives both signals when it continues: it writes its report completely, or not at all."""
        path = self.path("stopped.json")
        process = subprocess.Popen([command_case.PRONY, "bench", self.lenet, "-r", "100000000", "-t", "3600", "-w", "1", "--json",
                                    path], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=dict(os.environ, XDG_CACHE_HOME=command_case.CACHE.name))
        time.sleep(1)
        for sent in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
            process.send_signal(sent)
        process.communicate(timeout=60)
        self.assertIn(process.returncode, (-signal.SIGINT, -signal.SIGTERM, INTERRUPTED, TERMINATED))
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.assertEqual(command_case.Schema("report").problems(json.load(file)), [])

    def test_copied_models_have_the_external_data_of_their_subgraphs(self):
        path = self.path("nested.onnx")
        with open(self.path("nested.bin"), "wb") as file:
            file.write(struct.pack("<4f", 1, 2, 3, 4))
        inner = ob.graph([ob.node("Add", ["x", "w"], ["a"])], [], [ob.value("a", ob.FLOAT, [4])],
                         [ob.external("w", ob.FLOAT, [4], "nested.bin")])
        outer = ob.graph([ob.node("If", ["c"], ["b"], name="inner", then_branch=("graph", inner), else_branch=("graph", inner))],
                         [], [ob.value("b", ob.FLOAT, [4])])
        other = ob.graph([ob.node("Neg", ["x"], ["n"])], [], [ob.value("n", ob.FLOAT, [4])])
        with open(path, "wb") as file:
            file.write(ob.model(ob.graph([ob.node("If", ["c"], ["y"], then_branch=("graph", outer), else_branch=("graph", other))],
                                         [ob.value("x", ob.FLOAT, [4]), ob.value("c", ob.BOOL, [])],
                                         [ob.value("y", ob.FLOAT, [4])])))
        for extra in ([], ["--copy-model"]):
            folder = self.path("outputs%d" % len(extra))
            status, _, error = run("run", path, "-i", "c=true", "-i", "x=[10,20,30,40]", "--output-dir", folder, *extra)
            self.assertEqual(status, DONE, error)
            (written,) = [n for n in os.listdir(folder) if n.endswith(".npy")]
            _, _, data = ob.read_npy(os.path.join(folder, written))
            self.assertEqual(struct.unpack("<4f", data), (11, 22, 33, 44))
        os.unlink(self.path("nested.bin"))
        status, _, error = run("run", path, "-i", "c=true", "-i", "x=ones", "--copy-model")
        self.assertEqual(status, FAILED)
        self.assertIn("nested.bin", error)

    def test_a_file_that_changes_is_noticed(self):
        path = self.path("changing.onnx")
        with open(self.lenet, "rb") as file:
            content = file.read()
        with open(path, "wb") as file:
            file.write(content)
        for extra, expected in (([], FAILED), (["--copy-model"], INTERRUPTED)):
            environment = dict(os.environ, XDG_CACHE_HOME=command_case.CACHE.name)
            process = subprocess.Popen([command_case.PRONY, "bench", path, "-r", "100000000", "-t", "3600", "-w", "1", *extra],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
            time.sleep(1)
            os.utime(path)
            if expected == INTERRUPTED:
                time.sleep(1)
                process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=120)
            self.assertEqual(process.returncode, expected, error)
            self.assertEqual(b"changing.onnx': it has changed since it was loaded" in error, expected == FAILED, error)


if __name__ == "__main__":
    command_case.main()
