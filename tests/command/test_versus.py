#!/usr/bin/env python3
"""prony versus, beside a library that the tests build (tests/command/fake_ort.c): what it measures, joins and compares, and what it says
where that cannot be.

    test_versus.py PRONY SOURCE_DIR [unittest options]
"""
import json
import os
import shutil
import subprocess
import sys

import command_case
import onnx_bytes as ob
from command_case import DONE, FAILED, USAGE, CommandTest, fake_library, run

QUICK = ["-r", "5", "-t", "20ms", "--processes", "6", "--ignore-load"]


class Versus(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.save("doubled.onnx", ob.doubled_relu())
        self.scratch = self.path("tmp")
        os.mkdir(self.scratch)

    def versus(self, *arguments, mode="", library=None, **environment):
        environment = {"FAKE_ORT": mode, "TMPDIR": self.scratch, **environment}
        given = ["--ort-lib", fake_library()] if library is None else list(library)
        result = run("versus", self.model, "--dim", "rows=4", *QUICK, *given, *arguments, environment=environment)
        self.assertEqual(os.listdir(self.scratch), [])
        return result

    def document(self, *arguments, **options):
        code, out, err = self.versus(*arguments, "--json", "-", **options)
        self.assertEqual((code, err), (DONE, ""), out)
        document = json.loads(out)
        self.assertEqual(command_case.Schema("versus").problems(document, path="versus"), [])
        return document

    def fail_with(self, *words, code=FAILED, **options):
        got, out, err = self.versus(**options)
        self.assertEqual((got, out), (code, ""), err)
        for word in words:
            self.assertIn(word, err)
        self.assertTrue(err.startswith("prony versus: "), err)

    def test_both_engines_are_measured_in_pairs(self):
        document = self.document("-x", "1,2")
        self.assertEqual(document["peer"]["name"], "onnxruntime 9.9.fake")
        self.assertEqual(document["peer"]["library"], os.path.realpath(fake_library()))
        self.assertEqual([row["intra_op_threads"] for row in document["results"]], [1, 2])
        for row in document["results"]:
            own, peer = row["prony"]["medians_ns"], row["peer"]["medians_ns"]
            self.assertEqual((row["pairs"], row["measured_pairs"], row["busy_pairs"], len(own), len(peer)), (6, 6, 0, 6, 6))
            self.assertEqual(row["prony"]["median_ns"], sum(sorted(own)[2:4]) / 2)
            self.assertEqual(row["peer"]["median_ns"], sum(sorted(peer)[2:4]) / 2)
            ratios = sorted(b / a for a, b in zip(own, peer))
            self.assertAlmostEqual(row["ratio"], sum(ratios[2:4]) / 2, places=12)
            self.assertEqual(row["ratio_ci95"], [ratios[0], ratios[-1]])
            low, high = row["ratio_ci95"]
            wanted = "faster" if low > 1 else "slower" if high < 1 else "as fast" if low > 0.98 and high < 1.02 else "cannot tell"
            self.assertEqual(row["prony_is"], wanted)
            self.assertTrue(row["prony"]["start_ns"] > 0 and row["peer"]["start_ns"] > 0)
            self.assertTrue(row["prony"]["peak_rss_bytes"] > 0 and row["peer"]["peak_rss_bytes"] > 0)
        self.assertTrue(document["manifest"]["system"]["cpu_model"])
        self.assertEqual(document["manifest"]["model"]["nodes"], 2)

    def test_five_pairs_are_not_judged(self):
        row = self.document("-x", "1", "--processes", "5")["results"][0]
        self.assertEqual((row["pairs"], row["ratio_ci95"], row["prony_is"]), (5, None, "not judged"))
        code, text, err = self.versus("-x", "1", "--processes", "3")
        self.assertEqual((code, err), (DONE, ""))
        self.assertRegex(" ".join(text.split()),
                         r"not judged: 3 pairs from [0-9.]+ to [0-9.]+; a 95 % interval needs 6 \(--processes 6\)")

    def test_a_busy_machine_decides_nothing(self):
        """Beside busy processes pairs are measured again, at most twice as many; then the verdict is missing."""
        with command_case.busy_machine():
            code, out, err = run("versus", self.model, "--dim", "rows=4", "-t", "0.2", "--processes", "2", "-x", "1", "--ort-lib",
                                 fake_library(), "--json", self.path("v.json"), environment={"TMPDIR": self.scratch})
        self.assertEqual((code, err), (DONE, ""))
        with open(self.path("v.json"), encoding="utf-8") as file:
            row = json.load(file)["results"][0]
        self.assertEqual((row["prony_is"], row["measured_pairs"]), ("undecided", 4), row)
        self.assertGreater(row["busy_pairs"], 0)
        self.assertEqual((len(row["prony"]["loads"]), len(row["peer"]["loads"])), (4, 4))
        self.assertIn("undecided: %d of 4 pairs ran on a busy machine" % row["busy_pairs"], " ".join(out.split()))
        self.assertTrue(all(len(line) <= 80 for line in out.splitlines()), out)

    def test_operators_are_joined_by_name(self):
        document = self.document("-x", "1")
        self.assertEqual(document["peer"]["profiled_runs"], 22)
        rows = {row["name"]: row for row in document["operators"]}
        joined = [row for row in rows.values() if row["prony_ns"] is not None and row["peer_ns"] is not None]
        self.assertEqual(sum(row["peer_ns"] for row in joined), 12000)
        self.assertEqual(sum(row["peer_nodes"] for row in joined), 2)
        alone = rows["ReorderOutput"]
        self.assertEqual((alone["prony_ns"], alone["peer_ns"], alone["kernel"], alone["peer_nodes"]), (None, 2000, None, 1))
        self.assertEqual(set(rows) - {"ReorderOutput", "/body/act/Relu", "/body/Mul"}, set())
        code, text, err = self.versus("-x", "1")
        self.assertEqual((code, err), (DONE, ""))
        self.assertIn("Peer nodes without a counterpart", text)
        self.assertIn("prony", text.splitlines()[0])
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()), text)

    def test_outputs_are_compared(self):
        self.assertEqual(self.document("-x", "1")["outputs"], [{"name": "y", "agrees": True, "difference": 0}])
        wrong = self.document("-x", "1", mode="wrong")["outputs"][0]
        self.assertEqual((wrong["agrees"], "differ" in wrong["reason"]), (False, True))
        self.assertGreater(wrong["difference"], 0.1)
        shape = self.document("-x", "1", mode="shape")["outputs"][0]
        self.assertEqual((shape["agrees"], shape["difference"]), (False, None))
        self.assertIn("[4, 64, 1]", shape["reason"])
        self.assertIn("1 of 1 outputs differ", self.versus("-x", "1", mode="wrong")[1])

    def test_a_given_input_goes_to_both(self):
        both = self.document("-x", "1", "-i", "x=uniform:1:2")
        self.assertTrue(both["outputs"][0]["agrees"])

    def test_where_the_library_is_looked_for(self):
        package = self.path("work/node_modules/onnxruntime-node/bin/napi-v6/linux/" +
                            ("arm64" if os.uname().machine == "aarch64" else "x64"))
        os.makedirs(package)
        copy = os.path.join(package, "libonnxruntime.so.1")
        shutil.copy(fake_library(), copy)
        found = self.document("-x", "1", library=[], PRONY_ORT_LIB=fake_library())
        self.assertEqual(found["peer"]["library"], os.path.realpath(fake_library()))
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.path("work"))
        found = self.document("-x", "1", library=[], PRONY_ORT_LIB="")
        self.assertEqual(found["peer"]["library"], os.path.realpath(copy))

    def test_what_is_missing_or_refused_is_said(self):
        os.chdir(self.folder)
        self.addCleanup(os.chdir, command_case.SOURCE)
        self.fail_with("--ort-lib", "PRONY_ORT_LIB", "npm install --ignore-scripts onnxruntime-node", library=[], PRONY_ORT_LIB="")
        self.fail_with("/none/such.so", "no ONNX Runtime library there", library=["--ort-lib", "/none/such.so"])
        self.fail_with("doubled.onnx", library=["--ort-lib", self.model])
        self.fail_with("9.9.fake", "interface version 12", mode="old")
        self.fail_with("the peer: the fake knows no operator Relu", mode="refuse")
        self.fail_with("the peer's profile", "no run", mode="silent")
        other = self.save("other.onnx", ob.graph([ob.node("Abs", ["a"], ["y"])], inputs=[ob.value("a", ob.DOUBLE, [3])],
                                                 outputs=[ob.value("y", ob.DOUBLE, [3])]))
        got, out, err = run("versus", other, *QUICK, "--ort-lib", fake_library())
        self.assertEqual((got, out), (FAILED, ""))
        self.assertIn("the fake wants float32", err)

    def test_no_library_is_loaded_that_is_none(self):
        text = self.write("text.so", b"no library")
        self.fail_with("text.so", library=["--ort-lib", text])

    def table(self, page, models, *arguments):
        script = os.path.join(command_case.SOURCE, "scripts", "performance_table.py")
        done = subprocess.run([sys.executable, script, "--prony", command_case.PRONY, "--folder", self.folder, "--list", models,
                               "--ort-lib", fake_library(), "-x", "1", "--processes", "3", "--seconds", "0.01", "--out", page,
                               *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return done.returncode, done.stderr

    def test_the_table_of_the_page(self):
        page = self.write("page.md", b"# Before\n\n<!-- made by scripts/performance_table.py -->\nnot measured\n<!-- end -->\n\nbehind\n")
        models = self.write("models.txt", b"# a comment\ndoubled.onnx --dim rows=2\nnowhere.onnx\n")
        code, err = self.table(page, models)
        self.assertEqual((code, err), (DONE, "not found in any folder: nowhere.onnx\n"))
        text = self.read(page).decode()
        self.assertTrue(text.startswith("# Before\n") and text.endswith("<!-- end -->\n\nbehind\n"), text)
        self.assertNotIn("not measured", text)
        row = [line for line in text.splitlines() if line.startswith("| doubled")][0]
        self.assertTrue(row.startswith("| doubled `--dim rows=2` | 1 | "), row)
        self.assertIn("1 thread: geometric mean", text)
        self.assertIn("onnxruntime 9.9.fake", text)
        self.assertEqual(self.table(page, models, "--only", "none*")[0], FAILED)
        self.assertEqual(self.read(page).decode(), text)
        self.write("models.txt", b"doubled.onnx -x none\n")
        self.assertEqual(self.table(page, models)[0], FAILED)
        self.assertEqual(self.table(self.write("plain.md", b"nothing\n"), models)[0], USAGE)

    def test_usage(self):
        self.refuse(USAGE, ["--intra-op", "'none'"], "versus", self.model, "-x", "none")
        self.refuse(USAGE, ["MODEL"], "versus")
        self.refuse(USAGE, ["'versus' does not take -w"], "versus", self.model, "-w", "3")
        self.refuse(FAILED, ["--ort-lib is missing"], "peer", self.model)


if __name__ == "__main__":
    command_case.main()
