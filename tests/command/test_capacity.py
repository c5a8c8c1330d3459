#!/usr/bin/env python3
"""prony capacity: usage, the document, what its parts say of one another.

    test_capacity.py PRONY SOURCE_DIR [unittest options]
"""
import json

import command_case
import onnx_bytes as ob
from command_case import DONE, FAILED, USAGE, VERDICT, CommandTest, Schema, run


class Capacity(CommandTest):
    def capacity(self, *arguments, wanted=DONE):
        code, out, error = run("capacity", *arguments, "-t", "0.5", "--json", "-")
        self.assertEqual(code, wanted, error)
        document = json.loads(out)
        self.assertEqual(Schema("capacity").problems(document), [])
        return document

    def test_wrong_usage(self):
        for arguments, why in ((["--latency-bound", "5ms"], "needs --rate"), (["--rate", "10"], "needs --latency-bound"),
                               (["--rate", "0", "--latency-bound", "5ms"], "--rate needs"), (["--rate", "1", "--latency-bound", "5ms",
                                                                                              "--processors", "0"], "--processors"),
                               (["--rate", "1", "--latency-bound", "5ms", "-x", "2"], "-x")):
            code, out, error = run("capacity", self.digits, *arguments)
            self.assertEqual((code, out), (USAGE, ""), arguments)
            self.assertIn(why, error)

    def test_the_answer_is_the_first_row_that_keeps_the_bound(self):
        document = self.capacity(self.digits, "--rate", 20, "--latency-bound", "2s", "--processors", 4)
        rows = document["frontier"]
        self.assertEqual([row["cores"] for row in rows], [1, 2, 3, 4])
        self.assertEqual(document["answer"], rows[0])
        self.assertEqual(document["saturation"], rows[-1])
        for row in rows:
            self.assertLessEqual(row["sessions"] * row["intra_op_threads"], row["cores"])
            self.assertTrue(row["keeps_bound"])
            self.assertLessEqual(row["percentile_ns"], 2e9)
            self.assertAlmostEqual(row["headroom"] / (row["largest_rate"] / 20 - 1), 1, places=6)
            self.assertEqual(row["estimated"], row["cores"] > document["config"]["machine_cores"])
        self.assertEqual({cell["batch"] for cell in document["measured"]}, {1, 2, 4, 8})
        self.assertRegex(self.succeed("capacity", "--help"), r"--max-batch N [^-]*\(default: 8; 1 if")
        for cell in document["measured"]:
            self.assertGreaterEqual(len(cell["samples_ns"]), 8)
            self.assertEqual(len(cell["samples_ns"]), cell["samples"])
            self.assertIn(cell["median_ns"], cell["samples_ns"])
        fewest = min(cell["samples"] for cell in document["measured"])
        self.assertTrue(all(row["fewest_samples"] >= fewest for row in rows))
        self.assertIsNotNone(document["doubling"])
        rates = [row["largest_rate"] for row in rows]
        self.assertEqual(rates, sorted(rates))

    def test_a_bound_that_nothing_keeps_is_a_verdict(self):
        document = self.capacity(self.digits, "--rate", 1000, "--latency-bound", "1us", "--processors", 2, wanted=VERDICT)
        self.assertEqual((document["answer"], document["doubling"]), (None, None))
        self.assertEqual([row["largest_rate"] for row in document["frontier"]], [0, 0])

    def test_models_whose_requests_cannot_be_combined(self):
        graph = ob.graph([ob.node("Relu", ["x"], ["y"])], inputs=[ob.value("x", ob.FLOAT, [3])], outputs=[ob.value("y", ob.FLOAT, [3])])
        self.save("fixed.onnx", graph)
        document = self.capacity(self.path("fixed.onnx"), "--rate", 5, "--latency-bound", "2s", "--processors", 1)
        self.assertFalse(document["config"]["combines"])
        self.assertEqual({cell["batch"] for cell in document["measured"]}, {1})
        code, _, error = run("capacity", self.path("fixed.onnx"), "--rate", 5, "--latency-bound", "2s", "--max-batch", 4)
        self.assertEqual(code, FAILED)
        self.assertIn("input 'x'", error)

    def test_requests_of_several_samples_are_not_combined(self):
        graph = ob.graph([ob.node("Relu", ["x"], ["y"])], inputs=[ob.value("x", ob.FLOAT, ["N", 3])],
                         outputs=[ob.value("y", ob.FLOAT, ["N", 3])])
        self.save("free.onnx", graph)
        arguments = [self.path("free.onnx"), "--dim", "N=4", "--rate", 5, "--latency-bound", "2s", "--processors", 1]
        document = self.capacity(*arguments)
        self.assertFalse(document["config"]["combines"])
        self.assertEqual({cell["batch"] for cell in document["measured"]}, {1})
        code, _, error = run("capacity", *arguments, "--max-batch", 4)
        self.assertEqual(code, FAILED)
        self.assertIn("input 'x' has 4 samples", error)

    def test_combined_runs_that_fall_back_end(self):
        """The number of samples is an index into a table of two: a run of two fails, and its requests run one by one."""
        graph = ob.graph([ob.node("Shape", ["x"], ["n"]), ob.node("Gather", ["table", "n"], ["g"]), ob.node("Add", ["x", "g"], ["y"])],
                         inputs=[ob.value("x", ob.FLOAT, ["N"])], outputs=[ob.value("y", ob.FLOAT, ["N"])],
                         initializers=[ob.floats("table", [2], [1.0, 2.0])])
        self.save("one.onnx", graph)
        arguments = [self.path("one.onnx"), "--rate", 5, "--latency-bound", "2s", "--processors", 1]
        self.assertFalse(self.capacity(*arguments)["config"]["combines"])
        code, _, error = run("capacity", *arguments, "--max-batch", 2, "-t", "0.2")
        self.assertEqual(code, FAILED)
        self.assertIn("took 1 requests instead of 2", error)

    def test_few_runs_are_told_of(self):
        out = self.succeed("capacity", self.digits, "--rate", 20, "--latency-bound", "2s", "-t", "0.001", "--processors", 1, "--percentile",
                           99.9)
        self.assertIn("p99.9 needs 1000", out)
        self.assertRegex(out, r"median +p99 +runs")

    def test_text_has_80_columns(self):
        """Rows of more processors than this machine's, and fast runs, made lines of 97 columns and columns that did not stand below
        their titles."""
        for rate, percentile in ((20, 99), (1e9, 99.9)):
            code, out, error = run("capacity", self.digits, "--rate", rate, "--latency-bound", "2s", "-t", "0.2", "--processors", 300,
                                   "--percentile", percentile)
            self.assertEqual((code, error), (DONE if rate < 1e9 else VERDICT, ""))
            lines = out.replace(self.digits, "").splitlines()
            self.assertEqual([line for line in lines if len(line) > 80], [])
            for title, last in (("  cores", "busy"), ("measured", "runs")):
                first = next(i for i, line in enumerate(lines) if line.startswith(title))
                for line in lines[first + 1:first + 3]:
                    self.assertEqual(len(line), lines[first].index(last) + len(last), line)

    def test_page_and_table(self):
        out = self.succeed("capacity", self.digits, "--rate", 20, "--latency-bound", "2s", "-t", "0.5", "--html", self.path("c.html"),
                           "--csv", self.path("c.csv"))
        self.assertIn("keeps p99 within 2000 ms at 20 requests/s", out)
        page = self.read(self.path("c.html")).decode()
        self.assertIn("largest rate", page)
        self.assertEqual(page.count("<circle"), page.count(" processors: "))
        self.assertIn("wanted 20/s", page)
        self.assertIn("headroom", self.read(self.path("c.csv")).decode().split("\r\n")[0])


if __name__ == "__main__":
    command_case.main()
