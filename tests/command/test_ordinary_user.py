#!/usr/bin/env python3
"""The command as someone whose rights on files end somewhere: what may not be read or written is refused by name, nothing
is left behind, and what needs no such right works. For root no file is forbidden, so root runs this as `nobody`, on a copy
of what it needs, and the other tests of the command with it.

    test_ordinary_user.py PRONY SOURCE_DIR [unittest options]
"""
import contextlib
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

import command_case
import onnx_bytes as ob
from command_case import DONE, FAILED, VERDICT, CommandTest, run

NOBODY = 65534
SKIPPED = 77  # CMakeLists.txt: SKIP_RETURN_CODE
OTHERS = ("test_command", "test_command_reports", "test_documents", "test_verify", "test_judgement", "test_eval")
DENIED = "Permission denied"


@contextlib.contextmanager
def mode(path, bits):
    """`path` with these permissions, for as long as it takes."""
    before = os.stat(path).st_mode & 0o7777
    os.chmod(path, bits)
    try:
        yield path
    finally:
        os.chmod(path, before)


class OrdinaryUser(CommandTest):
    def setUp(self):
        super().setUp()
        self.assertNotEqual(os.geteuid(), 0)
        self.model = self.write("model.onnx", self.read(self.digits))

    def denied(self, name, *arguments, environment=None):
        """Status 1, and a message with the name and the reason."""
        code, out, err = run(*arguments, environment=environment)
        self.assertEqual(code, FAILED, (arguments, out, err))
        self.assertIn(name, err, arguments)
        self.assertIn(DENIED, err, arguments)
        return out

    def make(self, name):
        os.makedirs(self.path(name))
        return self.path(name)

    def test_model_that_may_not_be_read(self):
        with mode(self.model, 0):
            for command in ("inspect", "run", "profile", "bench", "recommend", "metrics"):
                self.denied("model.onnx", command, self.model)
            self.denied("model.onnx", "check", self.model, "--threshold", "latency:1s")
            self.denied("model.onnx", "compare", self.digits, self.model)
            self.denied("model.onnx", "eval", self.model, self.folder)

    def test_folder_that_may_not_be_entered(self):
        folder = self.make("closed")
        shutil.copy(self.model, folder)
        for bits in (0, 0o444):
            with mode(folder, bits):
                self.denied("closed/model.onnx", "inspect", folder + "/model.onnx")
                self.denied("closed/out.json", "inspect", self.model, "--json", folder + "/out.json")

    def test_cases_that_may_not_be_read(self):
        """A case without visible results does not count as a success."""
        self.make("cases/one/test_data_set_0")
        shutil.copy(self.model, self.path("cases/one"))
        pixels = ob.read_npy(os.path.join(command_case.SOURCE, "models", "digits_images.npy"))[2][:64]
        self.write("cases/one/test_data_set_0/input_0.pb", ob.floats("image", [1, 1, 8, 8], [p / 16 for p in pixels]))
        self.make("cases/two")
        for part, bits in (("one", 0), ("one", 0o444), ("one", 0o311), ("two", 0), ("one/model.onnx", 0), ("one/test_data_set_0", 0),
                           ("one/test_data_set_0", 0o444), ("one/test_data_set_0/input_0.pb", 0)):
            with mode(self.path("cases/" + part), bits):
                code, out, err = run("verify", self.path("cases"))
                self.assertEqual((code, err), (VERDICT, ""), (part, out))
                self.assertIn("1 failed", out)
                self.assertIn(DENIED, out, part)
        self.succeed("verify", self.path("cases"))

    def test_external_data_that_may_not_be_read(self):
        data = self.write("weights.bin", bytes(16))
        model = self.save("outside.onnx", ob.graph(
            [ob.node("Add", ["x", "w"], ["y"])], [ob.value("x", ob.FLOAT, [4])], [ob.value("y", ob.FLOAT, [4])],
            [ob.external("w", ob.FLOAT, [4], "weights.bin")]))
        self.succeed("run", model, "-q")
        with mode(data, 0):
            self.denied("weights.bin", "run", model)

    def test_inputs_that_may_not_be_read(self):
        array = self.write("x.npy", self.read(os.path.join(command_case.SOURCE, "models", "digits_images.npy")))
        labels = self.write("labels.txt", b"a\nb\n")
        report = self.path("report.json")
        self.succeed("inspect", self.model, "-q", "--json", report)
        with mode(array, 0), mode(labels, 0), mode(report, 0):
            self.denied("x.npy", "run", self.model, "-i", "image=" + array)
            self.denied("labels.txt", "run", self.model, "--topk", "1", "--labels", labels)
            self.denied("report.json", "compare", report, report)
            self.denied("report.json", "inspect", report)

    def test_folder_that_may_not_be_written(self):
        folder = self.make("fixed")
        old = self.write("fixed/old", b"old")
        with mode(folder, 0o555):
            for option in ("--json", "--csv", "--html", "--latex", "--trace", "--folded", "--dot"):
                for name in ("new", "old"):
                    self.denied("fixed/" + name, "profile", "-r", "2", "-q", option, "%s/%s" % (folder, name))
            for name in ("new", "old"):
                self.denied("fixed/" + name, "profile", "-r", "2", "-q", "--svg", "layers=%s/%s" % (folder, name))
                self.denied("fixed/" + name, "bench", self.model, "-q", "-b", "1,2", "-r", "2", "--json", "%s/%s" % (folder, name))
                self.denied("fixed/" + name, "verify", self.folder, "-q", "--json", "%s/%s" % (folder, name))
            for command in ("run", "profile"):
                self.denied("fixed", command, self.model, "-q", "--output-dir", folder)
                self.denied("fixed/within", command, self.model, "-q", "--output-dir", folder + "/within")
            self.assertEqual(os.listdir(folder), ["old"])
        self.assertEqual(self.read(old), b"old")

    def test_labelled_data_that_may_not_be_read(self):
        images = os.path.join(command_case.SOURCE, "models", "digits_images.npy")
        _, _, pixels = ob.read_npy(images)
        for label in ("0", "1"):
            self.make("data/" + label)
            self.write("data/%s/a.npy" % label, ob.npy("<f4", (1, 8, 8), struct.pack("<64f", *(p / 16 for p in pixels[:64]))))
        data = self.path("data")
        self.succeed("eval", self.model, data, "-q")
        for part in ("data", "data/1", "data/1/a.npy"):
            with mode(self.path(part), 0):
                self.denied(part, "eval", self.model, data)
        listed = self.write("data/labels.csv", b"0/a.npy,0\n1/a.npy,1\n")
        with mode(listed, 0):
            self.denied("labels.csv", "eval", self.model, listed)

    def test_cache_folder_that_may_not_be_written(self):
        cache = self.make("cache")
        with mode(cache, 0o555):
            out = self.denied("cache/prony", "machine", "-t", "0.05", "-x", "1", environment={"XDG_CACHE_HOME": cache})
            self.assertIn("GFLOP/s", out)  # the measured results are shown all the same
            self.assertEqual(os.listdir(cache), [])

    def test_peaks_that_may_not_be_read(self):
        cache = {"XDG_CACHE_HOME": self.make("kept")}
        code, _, err = run("machine", "-q", "-t", "0.05", "-x", "1", environment=cache)
        self.assertEqual((code, err), (DONE, ""))
        kept, = os.listdir(self.path("kept/prony"))
        with mode(self.path("kept/prony/" + kept), 0):
            report = json.loads(self.succeed("profile", "-r", "2", "--json", "-", environment=cache))
            self.assertNotIn("roof", report)

    def test_what_needs_no_right_works(self):
        with mode(self.folder, 0o555):
            self.succeed("profile", self.model, "-r", "2", "-q")
            self.succeed("run", self.model, "-q")


def as_nobody(folder):
    """Copies the files that the tests read to `folder` and runs the tests there; returns the sum of their statuses."""
    source, work = os.path.join(folder, "source"), os.path.join(folder, "work")
    prony = os.path.join(folder, "prony")
    os.chmod(folder, 0o755)
    shutil.copy(sys.argv[1], prony)
    for part in ("tests", "docs", "models", "include"):
        shutil.copytree(os.path.join(sys.argv[2], part), os.path.join(source, part), ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(os.path.join(sys.argv[2], "README.md"), source)  # a test runs its threshold lines
    fake = os.path.join(os.path.dirname(sys.argv[1]), "tests", "libfake_ort.so")  # command_case.py looks for it there
    os.mkdir(os.path.join(folder, "tests"))
    shutil.copy(fake, os.path.join(folder, "tests"))
    subprocess.run(["chmod", "-R", "a+rX", source, prony, os.path.join(folder, "tests")], check=True)
    os.mkdir(work, 0o700)
    os.chown(work, NOBODY, NOBODY)
    person = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": work,
              "env": dict(os.environ, TMPDIR=work, HOME=work, PYTHONDONTWRITEBYTECODE="1")}
    try:
        python = sys.executable
        if subprocess.run(["test", "-x", python], check=False, **person).returncode != 0:
            python = "/usr/bin/python3"  # root's own Python is in a folder that others may not read
        subprocess.run([python, "-c", ""], check=True, **person)
        subprocess.run([prony, "--version"], check=True, stdout=subprocess.DEVNULL, **person)
    except (OSError, subprocess.SubprocessError) as problem:
        print("root cannot act as an ordinary user here (%s): the rights on files are NOT tested" % problem)
        return SKIPPED
    failed = 0
    for name in ("test_ordinary_user", *OTHERS) if len(sys.argv) == 3 else ("test_ordinary_user",):
        print("---- %s as nobody" % name, flush=True)
        failed |= subprocess.run([python, os.path.join(source, "tests", "command", name + ".py"), prony, source, *sys.argv[3:]],
                                 check=False, stderr=subprocess.STDOUT, **person).returncode
    return 1 if failed else 0


if __name__ == "__main__":
    if os.geteuid() == 0 and len(sys.argv) > 2:
        with tempfile.TemporaryDirectory() as place:
            sys.exit(as_nobody(place))
    command_case.main()
