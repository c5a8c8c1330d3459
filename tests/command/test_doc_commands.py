#!/usr/bin/env python3
"""Runs every command line of the tutorials and guides, and holds the options that pages name against the help.

    test_doc_commands.py PRONY SOURCE_DIR [unittest options]

A command stands on a line of its own in a code block and begins with `prony` or `build/prony`. The commands of one page run in
order in one folder, with the files that `Page.provide` makes. Long measurements are shortened; nothing else is changed."""
import glob
import io
import json
import os
import re
import shlex
import shutil
import struct
import zipfile

import command_case
import decoders
import onnx_bytes as ob
from command_case import DONE, FAILED, VERDICT, run

COMMAND = re.compile(r"^ {4,}((?:[A-Z_]+=\S+ )*(?:build/)?prony(?: .*)?)$", re.M)
INLINE = re.compile(r"`(?:build/)?prony ([a-z]+)( [^`]*)?`")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
# A command that needs more than the build and the fixtures, with the reason.
LEFT_OUT = {"LD_PRELOAD": "needs a processor with CPUID faulting"}
MISSING = "built without|this build has no OpenCL|OpenCL finds no driver|libOpenCL.so.1 cannot be loaded"
SHORT = {"-r": "20", "-t": "0.1", "--processes": "3", "--budget": "3s", "--latency-bound": "500ms"}
MEASURES = {"profile", "bench", "compare", "check", "recommend", "metrics"}


def pages():
    names = glob.glob(os.path.join(command_case.SOURCE, "docs", "**", "*.md"), recursive=True)
    return sorted(os.path.relpath(name, command_case.SOURCE) for name in names)


def text_of(page):
    with open(os.path.join(command_case.SOURCE, page), encoding="utf-8") as file:
        return file.read()


def npz(arrays):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in arrays.items():
            archive.writestr(name + ".npy", data)
    return out.getvalue()


def shortened(words):
    """The words of a command, with less to measure."""
    words = [SHORT.get(before, word) for before, word in zip([""] + words, words)]
    command = words[0] if words else ""
    if command in MEASURES and "-t" not in words and "-r" not in words and "--scenario" not in words and "--streams" not in words:
        words += ["-t", "0.1"] if not any(word.endswith(".json") for word in words[1:3]) else []
    if command == "bench" and ("--scenario" in words or "--streams" in words):
        words += ["-t", "0.2"]
    if command == "scale" and "--repeat" not in words:
        words += [word for option, value in (("--processes", "3"), ("-r", "5"), ("-w", "1"))
                  if option not in words and not (option == "-r" and "--replicas" in words)
                  for word in (option, value)]
    if command == "versus":
        words += [word for option, value in (("--processes", "3"), ("-t", "10ms")) if option not in words for word in (option, value)]
    if command == "serve":  # it runs until it is ended
        words += ["--port", "0", "--time-limit", "1s"]
    if command == "capacity" and "-t" not in words:
        words += ["-t", "0.5"]
    if command == "machine" and "-t" not in words:
        words += ["-x", "1", "-t", "0.1"]
    return words


class Page(command_case.CommandTest):
    def setUp(self):
        super().setUp()
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.folder)
        self.environment = {"XDG_CACHE_HOME": self.path("cache"), "PRONY_ORT_LIB": command_case.fake_library()}
        for folder in ("models", "ci", "val/0", "val/1"):
            os.makedirs(folder)

    def digits_arrays(self, count):
        models = os.path.join(command_case.SOURCE, "models")
        _, _, pixels = ob.read_npy(os.path.join(models, "digits_images.npy"))
        _, _, labels = ob.read_npy(os.path.join(models, "digits_labels.npy"))
        floats = struct.pack("<%df" % (64 * count), *(p / 16 for p in pixels[:64 * count]))
        return ob.npy("<f4", [count, 1, 8, 8], floats), ob.npy("|u1", [count], bytes(labels[:count]))

    def image_model(self):
        """Mean colour of an image as the scores of three classes."""
        nodes = [ob.node("GlobalAveragePool", ["input"], ["p"]), ob.node("Flatten", ["p"], ["scores"])]
        return ob.graph(nodes, [ob.value("input", ob.FLOAT, ["batch", 3, 32, 32])], [ob.value("scores", ob.FLOAT, None)])

    def model_with_default(self):
        nodes = [ob.node("Add", ["x", "k"], ["y"])]
        return ob.graph(nodes, [ob.value("x", ob.FLOAT, [2]), ob.value("k", ob.FLOAT, [1])], [ob.value("y", ob.FLOAT, [2])],
                        [ob.floats("k", [1], [1.0])])

    def decoder(self):
        """Old keys and new ones, joined along a dimension that grows."""
        nodes = [ob.node("Concat", ["old", "new"], ["all"], axis=1), ob.node("Relu", ["all"], ["y"])]
        return ob.graph(nodes, [ob.value("old", ob.FLOAT, [1, "past", 4]), ob.value("new", ob.FLOAT, [1, 1, 4])],
                        [ob.value("y", ob.FLOAT, None)])

    def provide(self, name):
        """Makes the file `name` that a page assumes."""
        images = os.path.join(command_case.SOURCE, "tests", "data", "images")
        arrays = self.digits_arrays(40)
        if name == "net.onnx":
            self.save(name, self.image_model())
        elif name == "default.onnx":
            self.save(name, self.model_with_default())
        elif name == "text.onnx":
            self.save(name, ob.graph([ob.node("Identity", ["words"], ["y"])], [ob.value("words", ob.STRING, ["n"])],
                                     [ob.value("y", ob.STRING, None)]))
        elif name in ("gpt2.onnx", "llama.onnx"):
            decoders.export(self.path(name), name[:-len(".onnx")], "4")
        elif name == "decoder.onnx":
            self.save(name, self.decoder())
        elif name.endswith("_int8.onnx"):
            self.provide("samples.npz")
            shutil.copy(self.digits, "float.onnx")  # the calibration is kept beside the model
            self.succeed("quantize", "float.onnx", "--calibrate", "samples.npz", "-q", "-o", name)
        elif name == "models/net.onnx" or name == "base.onnx":
            shutil.copy(self.lenet, name)
        elif name.endswith(".onnx"):
            shutil.copy(self.digits, name)
        elif name == "samples.npz":
            self.write(name, npz({"image": arrays[0]}))
        elif name == "digits.npz":
            self.write(name, npz({"image": arrays[0], "labels": arrays[1]}))
        elif name == "ids.npy":
            self.write(name, ob.npy("<i8", [40], struct.pack("<40q", *(7 * k % 1000 for k in range(40)))))
        elif name == "cat.npy":
            self.write(name, ob.npy("<f4", [1, 1, 8, 8], bytes(256)))
        elif name == "other.npy":
            self.write(name, ob.npy("<f4", [1, 10], bytes(40)))
        elif name == "cat.jpg":
            shutil.copy(os.path.join(images, "cmyk.jpg"), name)
        elif name == "classes.txt":
            self.write(name, b"0\n1\n2\n")
        elif name == "val/":
            for folder in "01":
                shutil.copy(os.path.join(images, "palette.png"), "val/%s/a.png" % folder)
        elif name.endswith(".json"):
            self.succeed("profile", self.lenet if name.startswith("ci/") else self.digits, "-r", "20", "--processes", "3",
                    "-q", "--json", name)

    def inputs(self, words):
        """The files that a command reads: words that name a file and are not the value of an option that writes one."""
        writes = {"--json", "--html", "-o", "--output-dir", "--csv", "--svg", "--plot", "--ort-lib"}
        for before, word in zip([""] + words, words):
            name = word.split("=", 1)[-1]
            if (re.search(r"\.(onnx|npz|npy|jpg|json|txt)$", name) or name == "val/") and before not in writes:
                yield name

    def run_page(self, page):
        commands = COMMAND.findall(text_of(page))
        if page.endswith("compare_in_ci.md"):  # the last command makes the baseline that the workflow reads
            commands.insert(0, commands[-1])
        for line in commands:
            if any(word in line for word in LEFT_OUT):
                continue
            environment = dict(self.environment)
            words = shlex.split(line, comments=True)
            while "=" in words[0]:
                name, value = words.pop(0).split("=", 1)
                environment[name] = value
            words = shortened(words[1:])
            if words[:1] == ["versus"] and "--generate" in words:
                continue  # a decoder needs ONNX Runtime itself: test_generate_command
            if words[:1] == ["versus"]:  # the replacement of ONNX Runtime computes one model
                words[1:2] = [self.save("doubled.onnx", ob.doubled_relu()), "--dim", "rows=2"]
            for name in self.inputs(words):
                if not os.path.isfile(name) and not (os.path.isdir(name) and glob.glob(name + "*/*")):
                    self.provide(name)
            with self.subTest(page=page, command=line):
                code, out, err = run(*words, environment=environment)
                if code == FAILED and re.search(MISSING, err):
                    continue
                self.assertIn(code, (DONE, VERDICT), "%s: %s%s" % (line, out, err))


class Commands(Page):
    """One test for each page, made below."""


def page_test(page):
    def test(self):
        self.run_page(page)
    return test


class Names(command_case.CommandTest):
    def help_of(self, command):
        code, out, _ = run(command, "--help-all")
        return set(OPTION.findall(out)) if code == DONE else None

    def test_options_named_by_pages_exist(self):
        known = {}
        for page in pages():
            text = re.sub(r"\s+", " ", re.sub(r"^```.*?^```", "", text_of(page), flags=re.M | re.S))
            lines = [shlex.split(line, comments=True) for line in COMMAND.findall(text_of(page))]
            found = [(m[1], m[2] or "") for m in INLINE.finditer(text)]
            found += [(words[1], " ".join(words[2:])) for words in lines if len(words) > 2 and words[0].endswith("prony")]
            for command, rest in found:
                if command not in known:
                    known[command] = self.help_of(command)
                if known[command] is not None:
                    self.assertLessEqual(set(OPTION.findall(rest)), known[command], "%s: prony %s%s" % (page, command, rest))

    def test_the_command_page_names_every_command(self):
        page = text_of("docs/reference/command.md")
        code, out, _ = run("--help")
        self.assertEqual(code, DONE)
        for command in re.findall(r"^  ([a-z]+) ", out, re.M):
            self.assertRegex(page, r"`%s[ `]" % command, "docs/reference/command.md lacks a command")

    def test_the_options_page_is_the_table(self):
        code, out, _ = run("manual", "markdown")
        self.assertEqual((code, out), (DONE, text_of("docs/reference/options.md")))
        options = set(OPTION.findall(run("--help-all")[1]))
        self.assertGreater(len(options), 80)
        for option in options - {"--help-all"}:
            self.assertRegex(out, r"`(-\w, )?%s[ `]" % option, "docs/reference/options.md lacks an option")

    def test_session_options_of_python_are_options_of_the_command(self):
        with open(os.path.join(command_case.SOURCE, "python", "src", "py_options.c"), encoding="utf-8") as file:
            keywords = set(re.findall(r'\(dict, "([a-z_]+)"', file.read()))
        self.assertGreater(len(keywords), 10)
        others = {"threads": "intra-op", "helped": "no-work-stealing"}
        options = {name[2:] for name in OPTION.findall(text_of("docs/reference/options.md"))}
        for keyword in keywords - {"ask", "profiled"}:  # a session has these; the command decides them itself
            name = others.get(keyword, keyword.replace("_", "-"))
            self.assertTrue({name, name[:-1], "no-" + name} & options, keyword)

    def test_the_study_page_explains_every_key(self):
        page = text_of("docs/reference/study.md")
        with open(os.path.join(command_case.SOURCE, "docs", "schemas", "study.schema.json"), encoding="utf-8") as file:
            schema = json.load(file)

        def check(rule):
            for key, value in rule.get("properties", {}).items():
                self.assertRegex(page, r"[`.]%s(\[\d?\])?`" % key, "docs/reference/study.md lacks a key")
                if key != "manifest":  # its parts are a report's
                    check(value)
                    check(value.get("items", {}))
        check(schema)

    def test_commands_are_found(self):
        self.assertGreater(sum(len(COMMAND.findall(text_of(page))) for page in pages()), 90)


if __name__ == "__main__":
    import sys
    command_case.SOURCE = sys.argv[2]
    for page in pages():
        if COMMAND.search(text_of(page)):
            setattr(Commands, "test_" + re.sub(r"\W", "_", page[5:-3]), page_test(page))
    command_case.main()
