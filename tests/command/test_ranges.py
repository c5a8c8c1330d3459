#!/usr/bin/env python3
"""PRONY_RANGES: what the libraries of other profilers are told, beside one that the tests build (fake_ranges.c).

    test_ranges.py PRONY SOURCE_DIR [unittest options]
"""
import collections
import os
import struct

import command_case
import onnx_bytes as ob
from command_case import DONE, USAGE, run


def two_nodes():
    return ob.graph([ob.node("Relu", ["x"], ["r"], name="first"), ob.node("CumSum", ["r", "axis"], ["y"], name="second")],
                    [ob.value("x", ob.FLOAT, [2])], [ob.value("y", ob.FLOAT, [2])], [ob.int64s("axis", [], [0])])


def gather():
    """The index is an input, so only the run sees that it is out of range."""
    return ob.graph([ob.node("Relu", ["x"], ["r"], name="fine"), ob.node("Gather", ["r", "i"], ["y"], name="bad")],
                    [ob.value("x", ob.FLOAT, [2]), ob.value("i", ob.INT64, [1])], [ob.value("y", ob.FLOAT, [1])])


class Ranges(command_case.CommandTest):
    def setUp(self):
        super().setUp()
        self.library = os.path.join(os.path.dirname(command_case.PRONY), "tests", "libfake_ranges.so")
        self.log = self.path("log")
        self.model = self.save("two.onnx", two_nodes())

    def run_with(self, tool, *arguments, **environment):
        environment.update(PRONY_RANGES=tool, FAKE_RANGES_LOG=self.log)
        return run(*(arguments or ("run", self.model)), environment=environment)

    def calls(self, tool):
        """The texts of the pushes, each with those around it: [("a", "b")]. Every push has its pop on its thread."""
        seen, open_ranges = [], collections.defaultdict(list)
        with open(self.log, encoding="utf-8") as file:
            for line in file:
                thread, what, of, text = line.rstrip("\n").split(" ", 3)
                self.assertEqual(of, tool)
                if what == "push":
                    open_ranges[thread].append(text)
                    seen.append(tuple(open_ranges[thread]))
                else:
                    open_ranges[thread].pop()
        self.assertEqual([stack for stack in open_ranges.values() if stack], [])
        return seen

    def expect_one_run(self, tool):
        around = "%s (run)" % self.model
        self.assertEqual(self.calls(tool), [(around,), (around, "first (Relu)"), (around, "second (CumSum)")])

    def tool_folder(self):
        folder = self.path("lib")
        os.makedirs(folder, exist_ok=True)
        os.symlink(self.library, os.path.join(folder, "libnvToolsExt.so.1"))
        return folder

    def test_nvtx_by_its_name(self):
        status, _, error = self.run_with("nvtx", LD_LIBRARY_PATH=self.tool_folder())
        self.assertEqual((status, error), (DONE, ""))
        self.expect_one_run("nvtx")

    def test_nvtx_by_injection(self):
        status, _, error = self.run_with("nvtx", NVTX_INJECTION64_PATH=self.library, LD_LIBRARY_PATH=self.tool_folder())
        self.assertEqual((status, error), (DONE, ""))
        self.expect_one_run("injection")

    def test_itt(self):
        status, _, error = self.run_with("itt", INTEL_LIBITTNOTIFY64=self.library)
        self.assertEqual((status, error), (DONE, ""))
        self.expect_one_run("itt")

    def test_itt_by_a_table(self):
        table = self.library.replace(".so", "_table.so")
        status, _, error = self.run_with("itt", "bench", self.model, "-r", "3", "-w", "1", "-q", INTEL_LIBITTNOTIFY64=table)
        self.assertEqual((status, error), (DONE, ""))
        self.assertEqual(self.calls("itt")[:3], [(self.model + " (run)",), (self.model + " (run)", "first (Relu)"),
                                                 (self.model + " (run)", "second (CumSum)")])

    def test_a_profile_has_a_range_per_run(self):
        status, _, error = self.run_with("itt", "profile", self.model, "-r", "3", "-w", "1", INTEL_LIBITTNOTIFY64=self.library)
        self.assertEqual((status, error), (DONE, ""))
        depths = collections.Counter(len(stack) for stack in self.calls("itt"))
        self.assertEqual(depths[2], 2 * depths[1])
        self.assertGreaterEqual(depths[1], 4)

    def test_a_failing_run_is_balanced(self):
        index = self.write("i.npy", ob.npy("<i8", [1], struct.pack("<q", 7)))
        status, _, error = self.run_with("itt", "run", self.save("bad.onnx", gather()), "-i", "i=" + index,
                                         INTEL_LIBITTNOTIFY64=self.library)
        self.assertEqual(status, command_case.FAILED)
        self.assertIn("bad", error)
        self.assertIn("bad (Gather)", self.calls("itt")[-1])

    def test_a_tool_that_is_missing_is_a_line(self):
        refusing = {"NVTX_INJECTION64_PATH": self.library, "FAKE_RANGES_REFUSE": "1"}
        for tool, environment, reason in (
                ("nvtx", {"NVTX_INJECTION64_PATH": "/nowhere.so"}, "'/nowhere.so' cannot be loaded"),
                ("nvtx", refusing, "refuses to start"),
                ("itt", {}, "INTEL_LIBITTNOTIFY64 does not name"),
                ("itt", {"INTEL_LIBITTNOTIFY64": "libm.so.6"}, "lacks the function __itt_domain_create")):
            with self.subTest(tool=tool, environment=environment):
                status, out, error = self.run_with(tool, **environment)
                self.assertEqual(status, DONE)
                self.assertIn("y", out)
                self.assertEqual(len(error.splitlines()), 1, error)
                self.assertIn(reason, error)
        self.assertFalse(os.path.exists(self.log))

    def test_an_unknown_tool_is_refused(self):
        status, out, error = self.run_with("gprof")
        self.assertEqual((status, out), (USAGE, ""))
        self.assertIn("PRONY_RANGES: ranges for 'gprof' are unknown: use nvtx or itt", error)


if __name__ == "__main__":
    command_case.main()
