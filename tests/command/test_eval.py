#!/usr/bin/env python3
"""Labelled data, archives and images from the command line: every form of data that `prony eval` takes, on the digits whose
accuracy is known; images as inputs of `run` and `profile`, with the best classes behind them.

    test_eval.py PRONY SOURCE_DIR [unittest options]
"""
import io
import json
import os
import re
import struct
import subprocess
import zipfile
import zlib

import command_case
import onnx_bytes as ob
from command_case import DONE, FAILED, USAGE, VERDICT, run

KNOWN = 358 / 360  # models/README.md: 99.44 %
PIXELS = "std=0.9411764705882353"  # pixels are stored as 15 times 0..16, and the network wants 1/16 of those


def png(rows):
    """Grey, 8 bits."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    packed = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def npz(arrays, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in arrays.items():
            with archive.open(name + ".npy", "w", force_zip64=True) as member:  # as NumPy does
                member.write(data)
    return out.getvalue()


class Data(command_case.CommandTest):
    def setUp(self):
        super().setUp()
        models = os.path.join(command_case.SOURCE, "models")
        _, shape, self.pixels = ob.read_npy(os.path.join(models, "digits_images.npy"))
        _, _, self.labels = ob.read_npy(os.path.join(models, "digits_labels.npy"))
        self.assertEqual((shape, len(self.labels)), ((360, 1, 8, 8), 360))
        self.floats = struct.pack("<%df" % len(self.pixels), *(p / 16 for p in self.pixels))

    def skip_without(self, option, name, data):
        """true: the build lacks the library that reads `data`."""
        if option in run("run", self.digits, "-q", "-i", "image=" + self.write(name, data))[2]:
            self.skipTest("built without " + option)

    def image(self, i):
        return [[15 * p for p in self.pixels[64 * i + 8 * y:64 * i + 8 * y + 8]] for y in range(8)]

    def sample(self, i):
        return ob.npy("<f4", [1, 8, 8], self.floats[256 * i:256 * i + 256])

    def folder_of(self, name, count, place, content):
        """`place` returns a file's name by index and label, `content` its contents."""
        for i in range(count):
            path = self.path(os.path.join(name, place(i, self.labels[i])))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content(i))
        return self.path(name)

    def accuracy(self, data, *options, samples=360):
        report = self.report("eval", self.digits, data, "-x", "1", *options)
        evaluation = report["evaluation"]
        self.assertEqual((evaluation["metric"], evaluation["samples"]), ("top1_accuracy", samples))
        self.assertEqual([f["metric"] for f in evaluation["further"]], ["top5_accuracy"])
        self.assertGreaterEqual(evaluation["further"][0]["value"], evaluation["value"])
        return evaluation["value"]

    def right(self, count):
        """The results of the first samples as arrays, for comparison with other data formats."""
        data = self.write("first.npz", npz({"image": ob.npy("<f4", [count, 1, 8, 8], self.floats[:256 * count]),
                                            "labels": ob.npy("|u1", [count], self.labels[:count])}))
        return self.accuracy(data, samples=count)


class Archives(Data):
    def arrays(self, x="image", y="labels"):
        return {x: ob.npy("<f4", [360, 1, 8, 8], self.floats), y: ob.npy("|u1", [360], self.labels)}

    def test_the_known_accuracy(self):
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            if method == zipfile.ZIP_DEFLATED:
                self.skip_without("PRONY_ZLIB", "probe.npz", npz(self.arrays(), method))
            data = self.write("digits.npz", npz(self.arrays(), method))
            for batch in ([], ["-b", "7"], ["-b", "360"], ["-b", "500"]):
                self.assertAlmostEqual(self.accuracy(data, *batch), KNOWN, places=12)

    def test_names_of_arrays(self):
        for names in (("x", "y"), ("arr_0", "arr_1"), ("x_test", "y_test"), ("image", "target"), ("anything", "label")):
            data = self.write("digits.npz", npz(self.arrays(*names)))
            self.assertAlmostEqual(self.accuracy(data), KNOWN, places=12)
        data = self.write("digits.npz", npz({**self.arrays("pictures"), "more": ob.npy("|u1", [1], b"0")}))
        self.refuse(FAILED, ["'image'", "'pictures'", "'more'"], "eval", self.digits, data)
        data = self.write("digits.npz", npz(self.arrays("image", "truth")))
        self.refuse(FAILED, ["labels", "'truth'", "digits.npz"], "eval", self.digits, data)

    def test_a_folder_of_arrays(self):
        os.mkdir(self.path("arrays"))
        for name, data in self.arrays("pixels").items():
            self.write(os.path.join("arrays", name + ".npy"), data)
        self.assertAlmostEqual(self.accuracy(self.path("arrays")), KNOWN, places=12)

    def test_bytes_are_images_if_it_is_said_how(self):
        pixels = bytes(15 * p for p in self.pixels)
        for dims in ([360, 8, 8], [360, 8, 8, 1], [360, 1, 8, 8]):
            data = self.write("digits.npz", npz({"x": ob.npy("|u1", dims, pixels), "y": ob.npy("|u1", [360], self.labels)}))
            self.assertAlmostEqual(self.accuracy(data, "--preprocess", PIXELS, "-b", "32"), KNOWN, places=12)
            self.refuse(FAILED, ["uint8", "float32", "normalize="], "eval", self.digits, data)

    def test_the_report(self):
        data = self.write("digits.npz", npz(self.arrays()))
        schema = command_case.Schema("report")
        report = self.report("eval", self.digits, data, "-b", "100", "-w", "2")
        self.assertEqual(schema.problems(report), [])
        self.assertEqual((report["latency_ns"]["runs"], report["config"]["warmup_runs"], report["config"]["batch"]), (4, 2, 100))
        self.assertGreater(report["phases_ns"]["preprocess"], 0)
        self.assertGreaterEqual(report["end_to_end_ns"]["min"], report["latency_ns"]["min"])
        text = self.succeed("eval", self.digits, data)
        if ": times are too high" in text.split("\n", 1)[0]:  # on a busy machine a warning comes first
            text = text.split("\n", 1)[1]
        self.assertTrue(text.startswith("top1_accuracy 99.44 %, top5_accuracy 100.00 % on 360 labelled samples"), text[:200])
        self.assertIn("Latency", text)
        self.assertNotIn("Layers ", text)
        self.assertIn("conv", self.succeed("eval", self.digits, data, "--level", "layer").lower())
        saved = self.path("report.json")
        self.assertEqual(self.succeed("eval", self.digits, data, "-q", "--json", saved), "")
        self.succeed("check", saved, "--threshold", "accuracy:99%", "top1:99%", "top5:99.9%")
        self.assertEqual(run("check", saved, "--threshold", "top1:99.5%")[0], VERDICT)
        compared = json.loads(self.succeed("compare", saved, saved, "--json", "-"))
        verdicts = {row["key"]: row["verdict"] for row in compared["metrics"]}
        self.assertEqual({verdicts[k] for k in ("evaluation", "top1_accuracy", "top5_accuracy")}, {"same"})

    def test_accuracy_of_the_last_batch(self):
        data = self.write("digits.npz", npz(self.arrays()))
        report = self.report("eval", self.digits, data, "-b", "90", "--accuracy")
        self.assertEqual(command_case.Schema("report").problems(report), [])
        last = [row["error"]["own"] for row in report["operators"] if "own" in row["error"]][-1]
        self.assertEqual(last["elements"], 90 * 10)
        self.assertLess(last["max_rel"], 1e-5)

    def test_progress_is_cleared(self):
        data = self.write("digits.npz", npz(self.arrays()))
        leader, follower = command_case.open_pty()
        ran = subprocess.run([command_case.PRONY, "eval", self.digits, data], stdout=subprocess.PIPE, stderr=follower, timeout=60)
        said = os.read(leader, 65536)
        for end in (leader, follower):
            os.close(end)
        self.assertEqual(ran.returncode, DONE)
        shown = b"360 of 360 samples"
        self.assertIn(shown, said)
        self.assertTrue(said.endswith(b"\r" + b" " * len(shown) + b"\r"), said)
        self.assertNotIn(b"\x1b", said)

    def test_thresholds(self):
        data = self.write("digits.npz", npz(self.arrays()))
        self.succeed("eval", self.digits, data, "-q", "--threshold", "accuracy:99.4%")
        code, _, err = run("eval", self.digits, data, "-q", "--threshold", "accuracy:99.5%")
        self.assertEqual(code, VERDICT)
        self.assertIn("evaluation", err)

    def test_inputs_from_an_archive(self):
        data = self.write("digits.npz", npz(self.arrays()))
        for file in (data, self.write("only.npz", npz({"arr_0": self.arrays()["image"]}))):
            self.succeed("run", self.digits, "-i", "image=" + file, "--output-dir", self.path("out"))
            _, shape, logits = ob.read_npy(self.path("out/output_0.npy"))
            self.assertEqual(shape, (360, 10))
            rows = [struct.unpack_from("<10f", logits, 40 * i) for i in range(360)]
            self.assertEqual(sum(row.index(max(row)) == label for row, label in zip(rows, self.labels)), 358)
        data = self.write("others.npz", npz({"a": b"", "b": b""}))
        self.refuse(FAILED, ["'image'", "'a', 'b'"], "run", self.digits, "-i", "image=" + data)


class Folders(Data):
    def setUp(self):
        super().setUp()
        self.skip_without("PRONY_PNG", "probe.png", png(self.image(0)))

    def test_a_folder_per_class(self):
        images = self.folder_of("images", 360, lambda i, label: "%d/%04d.png" % (label, i), lambda i: png(self.image(i)))
        arrays = self.folder_of("arrays", 360, lambda i, label: "%d/%04d.npy" % (label, i), self.sample)
        self.write("images/3/Thumbs.db", b"no sample")
        self.write("images/.hidden", b"")
        self.assertAlmostEqual(self.accuracy(images, "--preprocess", PIXELS, "-b", "16"), KNOWN, places=12)
        self.assertAlmostEqual(self.accuracy(arrays, "-b", "16"), KNOWN, places=12)

    def test_names_of_classes(self):
        words = ["nil", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
        images = self.folder_of("images", 60, lambda i, label: "%s/%04d.png" % (words[label], i), lambda i: png(self.image(i)))
        names = self.write("names.txt", "".join("%s the number %d\r\n" % (w, i) for i, w in enumerate(words)).encode())
        self.assertEqual(self.accuracy(images, "--labels", names, "--preprocess", PIXELS, samples=60), self.right(60))
        # Without names folders are numbered in the order of their names, which here is not numeric.
        self.assertLess(self.accuracy(images, "--preprocess", PIXELS, samples=60), 0.5)
        few = self.write("few.txt", b"nil\none\ntwo\n")
        self.refuse(FAILED, ["unknown class 'eight'; 3 classes"], "eval", self.digits, images, "--labels", few)
        # Numbers are classes, whatever their order as text.
        numbers = self.folder_of("numbers", 60, lambda i, label: "%02d/%d.png" % (label, i), lambda i: png(self.image(i)))
        self.assertEqual(self.accuracy(numbers, "--preprocess", PIXELS, samples=60), self.right(60))
        os.mkdir(self.path("images/zero"))
        self.refuse(FAILED, ["zero", "no samples"], "eval", self.digits, images)

    def test_lists(self):
        count, want = 40, self.right(40)
        folder = self.folder_of("flat", count, lambda i, label: "digit %04d.png" % i, lambda i: png(self.image(i)))
        names = ["digit %04d.png" % i for i in range(count)]
        labels = [str(self.labels[i]) for i in range(count)]
        # In another order than that of the names, so that lines must find their files.
        rows = sorted(zip(names, labels), reverse=True)
        lists = {
            "labels.txt": "".join("%s  %s\n" % row for row in rows),
            "labels.csv": "id,Label,File\r\n" + "".join('7,%s,"%s"\r\n' % (label, name) for name, label in rows),
        }
        for name, text in lists.items():
            self.write("flat/" + name, text.encode())
            self.assertEqual(self.accuracy(folder, "--preprocess", PIXELS, samples=count), want, name)
            os.remove(self.path("flat/" + name))
        self.write("flat/labels.csv", "".join("%s,%s\n" % row for row in rows).encode())
        self.assertEqual(self.accuracy(folder, "--preprocess", PIXELS, samples=count), want)
        self.write("flat/labels.csv", "\n".join(labels).encode())  # in the order of the files
        self.assertEqual(self.accuracy(folder, "--preprocess", PIXELS, samples=count), want)
        self.write("flat/labels.csv", "\n".join(labels[1:]).encode())
        self.refuse(FAILED, ["39 labels for 40 files"], "eval", self.digits, folder)
        os.remove(self.path("flat/labels.csv"))
        self.refuse(FAILED, ["no labels"], "eval", self.digits, folder)
        # A separate list in another folder.
        val = self.write("val.txt", "".join("flat/%s %s\n" % row for row in rows).encode())
        self.assertEqual(self.accuracy(val, "--preprocess", PIXELS, samples=count), want)

    def test_what_is_wrong_in_a_list(self):
        folder = self.folder_of("flat", 3, lambda i, label: "%d.png" % i, lambda i: png(self.image(i)))
        for text, words in ((b"0.png 1\n1.png eleven\n", ["line 2", "eleven"]), (b"0.png 1\n2\n", ["line 2"]),
                            (b"", ["empty"]), (b"0.png 1\nnone.png 2\n", ["none.png"]), (b"0.png 12\n", ["label 12", "0.png"]),
                            (b"a\0b", ["not a text"])):
            self.write("flat/labels.txt", text)
            self.refuse(FAILED, words, "eval", self.digits, folder)

    def test_samples_that_do_not_fit(self):
        folder = self.folder_of("flat", 3, lambda i, label: "%d/%d.png" % (label, i), lambda i: png(self.image(i)))
        self.refuse(FAILED, ["8 high", "resize="], "eval", self.digits, folder, "--preprocess", "resize=none,crop=8x7")
        with open(os.path.join(folder, str(self.labels[1]), "1.png"), "wb") as file:
            file.write(png(self.image(1))[:60])
        self.refuse(FAILED, ["1.png", "damaged PNG"], "eval", self.digits, folder)
        arrays = self.folder_of("arrays", 3, lambda i, label: "%d/%d.npy" % (label, i), self.sample)
        last = max(range(3), key=lambda i: self.labels[i])
        with open(os.path.join(arrays, str(self.labels[last]), "%d.npy" % last), "wb") as file:
            file.write(ob.npy("<f4", [1, 8, 4], self.floats[:128]))
        self.refuse(FAILED, ["%d.npy" % last, "float32[1, 8, 4]"], "eval", self.digits, arrays)

    def test_usage(self):
        self.refuse(USAGE, ["MODEL DATA"], "eval", self.digits)
        self.refuse(USAGE, ["--runs"], "eval", self.digits, "x", "--runs", "3")
        self.refuse(USAGE, ["colour=red", "channels"], "eval", self.digits, "x", "--preprocess", "colour=red")
        self.refuse(FAILED, ["nowhere"], "eval", self.digits, self.path("nowhere"))
        self.refuse(FAILED, ["nowhere.npz"], "eval", self.digits, self.path("nowhere.npz"))
        data = self.write("d.npz", npz({"x": ob.npy("<f4", [1, 1, 8, 8], self.floats[:256]), "y": ob.npy("|u1", [1], b"\0")}))
        self.refuse(FAILED, ["nothing.txt"], "eval", self.digits, data, "--labels", self.path("nothing.txt"))
        self.assertIn("--preprocess", self.succeed("eval", "--help"))
        self.refuse(FAILED, ["2 inputs", ".npz"], "eval", self.two_inputs(), self.folder)

    def two_inputs(self):
        ports = [ob.value(n, ob.FLOAT, ["N", 4]) for n in ("a", "b")]
        return self.save("two.onnx", ob.graph([ob.node("Add", ["a", "b"], ["y"])], ports, [ob.value("y", ob.FLOAT, ["N", 4])]))

    def test_several_inputs(self):
        def column(values):
            return ob.npy("<f8", [3, 4], struct.pack("<12d", *values))
        arrays = {"b": column([0, 9, 0, 0] * 3), "a": column([1, 0, 0, 0, 0, 0, 1, 0, 30, 0, 0, 0]),
                  "labels": ob.npy("<i8", [3], struct.pack("<3q", 1, 1, 1))}
        report = self.report("eval", self.two_inputs(), self.write("two.npz", npz(arrays)), "-b", "2")
        self.assertEqual(report["evaluation"], {"metric": "top1_accuracy", "value": 2 / 3, "samples": 3})


class Images(Data):
    def setUp(self):
        super().setUp()
        self.skip_without("PRONY_PNG", "probe.png", png(self.image(0)))

    def test_one_image(self):
        file = self.write("digit.png", png(self.image(0)))
        names = self.write("names.txt", b"".join(b"digit %d\n" % i for i in range(10)))
        for options in ([], ["-b", "2"]):
            text = self.succeed("run", self.digits, "-i", "image=" + file, "--preprocess", PIXELS, "--topk", "3",
                                "--labels", names, *options)
            rows = re.findall(r"^ +(\d)\. +([\d.]+) % +score (\S+) +class (\d)  digit (\d)$", text, re.M)
            self.assertEqual(len(rows), 6 if options else 3, text)
            self.assertEqual([int(r[0]) for r in rows[:3]], [1, 2, 3])
            self.assertEqual([r[3] for r in rows], [r[4] for r in rows])
            self.assertEqual(int(rows[0][3]), self.labels[0])
            self.assertEqual(rows[:3], rows[-3:])
            self.assertEqual([float(r[2]) for r in rows[:3]], sorted((float(r[2]) for r in rows[:3]), reverse=True))
        # The same as the pixels given as an array.
        self.succeed("run", self.digits, "-i", "image=" + file, "--preprocess", PIXELS, "--output-dir", self.path("a"))
        array = self.write("x.npy", ob.npy("<f4", [1, 1, 8, 8], self.floats[:256]))
        self.succeed("run", self.digits, "-i", "image=" + array, "--output-dir", self.path("b"))
        both = [struct.unpack("<10f", ob.read_npy(self.path(d + "/output_0.npy"))[2]) for d in "ab"]
        for a, b in zip(*both):
            self.assertAlmostEqual(a, b, places=4)

    def test_phases_are_measured(self):
        file = self.write("digit.png", png(self.image(0)))
        report = self.report("profile", self.digits, "-i", "image=" + file, "-r", "5", "-w", "1", "--topk", "2")
        self.assertGreater(report["phases_ns"]["preprocess"], 0)
        self.assertGreaterEqual(report["phases_ns"]["postprocess"], 0)
        self.assertGreater(report["end_to_end_ns"]["median"], report["phases_ns"]["preprocess"])
        array = self.write("x.npy", ob.npy("<f4", [1, 1, 8, 8], self.floats[:256]))
        self.assertNotIn("end_to_end_ns", self.report("profile", self.digits, "-i", "image=" + array, "-r", "5", "-w", "1"))
        text = self.succeed("profile", self.digits, "-i", "image=" + file, "-r", "5", "--topk", "2")
        self.assertIn("  2. ", text)
        self.assertIn("preprocess", text)
        self.succeed("bench", self.digits, "-i", "image=" + file, "-r", "5", "-q", "-b", "1,2")

    def test_what_is_refused(self):
        file = self.write("digit.png", png(self.image(0)))
        self.refuse(FAILED, ["damaged PNG"], "run", self.digits, "-i", "image=" + self.write("cut.png", png(self.image(0))[:50]))
        self.refuse(FAILED, ["not a PNG or JPEG"], "run", self.digits, "-i", "image=" + self.write("a.jpg", b"GIF89a"))
        self.refuse(FAILED, ["no-names"], "run", self.digits, "-i", "image=" + file, "--topk", "1",
                    "--labels", self.path("no-names"))
        self.refuse(FAILED, ["unknown input 'picture'"], "run", self.digits, "-i", "picture=" + file)
        self.refuse(USAGE, ["--topk"], "run", self.digits, "-i", "image=" + file, "--labels", file)
        self.refuse(USAGE, ["--topk", "'0'", "1 to 1000"], "run", self.digits, "--topk", "0")
        self.refuse(FAILED, ["cannot take an image"], "run", self.save("flat.onnx", ob.graph(
            [ob.node("Relu", ["image"], ["y"])], [ob.value("image", ob.FLOAT, [1, 64])], [ob.value("y", ob.FLOAT, [1, 64])])),
            "-i", "image=" + file)


if __name__ == "__main__":
    command_case.main()
