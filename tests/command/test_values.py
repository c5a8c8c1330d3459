"""Values of every kind that enter and leave by the command: text, types that NumPy lacks, sequences, names with '='.

    test_values.py PRONY SOURCE_DIR"""
import os
import struct

import command_case
import onnx_bytes as ob
from command_case import DONE, FAILED, USAGE, CommandTest, run

STRING, INT4, BFLOAT16, FLOAT8 = 8, 22, 16, 17


def wrapped(kind, name, dtype):
    """An output that is a sequence (4) or an optional (9) of tensors of the type."""
    tensor = ob.chunk(1, ob.integer(1, dtype))
    return ob.chunk(1, name) + ob.chunk(2, ob.chunk(kind, ob.chunk(1, tensor)))


def texts(path):
    """The strings of an .npy file of <U, as NumPy reads them."""
    dtype, shape, data = ob.read_npy(path)
    width = 4 * int(dtype[2:])
    if dtype[:2] != "<U" or len(data) % width:
        raise ValueError("%s: %s of %d bytes" % (path, dtype, len(data)))
    return shape, [data[i:i + width].decode("utf-32-le", "surrogatepass").rstrip("\0") for i in range(0, len(data), width)]


def text_npy(strings, dims=None):
    width = max(map(len, strings))
    data = b"".join(s.ljust(width, "\0").encode("utf-32-le", "surrogatepass") for s in strings)
    return ob.npy("<U%d" % width, dims or [len(strings)], data)


class Values(CommandTest):
    def setUp(self):
        super().setUp()
        self.echo = self.save("echo.onnx", ob.graph([ob.node("Identity", ["a"], ["y"])], [ob.value("a", STRING, ["k"])],
                                                    [ob.value("y", STRING, ["k"])]))

    def outputs(self, model, *arguments):
        """The folder with the outputs of a run."""
        folder = self.path("out%d" % len(os.listdir(self.folder)))
        self.succeed("run", model, "--output-dir", folder, *arguments)
        return folder

    def echoed(self, given):
        return texts(self.outputs(self.echo, "-i", "a=" + given) + "/output_0.npy")

    def test_text_on_the_command_line(self):
        self.assertEqual(self.echoed('["x", "y"]'), ((2,), ["x", "y"]))
        self.assertEqual(self.echoed("['it', \"it's\"]"), ((2,), ["it", "it's"]))
        self.assertEqual(self.echoed('["é", "", "\U0001f600"]'), ((3,), ["é", "", "\U0001f600"]))
        self.assertEqual(self.echoed(r'["a\n\t\"\\\/", "\u00e9\u20ac\ud83d\ude00"]'), ((2,), ["a\n\t\"\\/", "é€\U0001f600"]))
        self.assertEqual(self.echoed("[]"), ((0,), []))
        self.assertEqual(texts(self.outputs(self.echo, "--dim", "k=3", "-i", 'a="all"') + "/output_0.npy"), ((3,), ["all"] * 3))
        for wrong in ('["x"', '["x]', r'["\q"]', r'["\u12"]', r'["\ud800"]', '["x", 1]', "[x]", '["x"] y', '[["x"], "y"]'):
            self.refuse(FAILED, ["input 'a'", "is not a string value", '["x", "y"]'], "run", self.echo, "-i", "a=" + wrong)
        self.refuse(FAILED, ["'ones' is not a string value"], "run", self.echo, "--dim", "k=1", "-i", "a=ones")
        self.refuse(FAILED, ["input 'a'", "'hello' is neither a file", '["x", "y"]'], "run", self.echo, "-i", "a=hello")

    def test_text_in_files(self):
        given = ["x", "", "日本", "\U0001f600y", "\udcff\udcc3z"]  # the last one: the bytes ff c3 7a, which are no UTF-8
        self.assertEqual(self.echoed(self.write("u.npy", text_npy(given))), ((5,), given))
        self.assertEqual(self.echoed(self.write("s.npy", ob.npy("|S3", [3], b"ab\0\0\0\0a\xffc"))), ((3,), ["ab", "", "a\udcffc"]))
        self.assertEqual(self.echoed(self.write("e.npy", ob.npy("<U1", [0], b""))), ((0,), []))
        for name, data, words in (("O", ob.npy("|O", [1], b"\x80\x04"), ["'|O'", "astype(str)"]),
                                  ("big", ob.npy(">U1", [1], b"\0\0\0x"), ["'>U1' is not supported"]),
                                  ("long", ob.npy("<U2", [1], b"x\0\0\0"), ["4 bytes of data do not fit"]),
                                  ("code", ob.npy("<U1", [1], b"\0\0\x11\0"), ["element 0", "invalid code point"]),
                                  ("many", ob.npy("<U0", [1 << 40], b""), ["do not fit"]),
                                  ("width", ob.npy("<U9223372036854775807", [1], b""), ["NumPy type"])):
            self.refuse(FAILED, [name + ".npy"] + words, "run", self.echo, "-i", "a=" + self.write(name + ".npy", data))

    def test_columns_of_text(self):
        model = self.save("echo2.onnx", ob.graph([ob.node("Identity", ["a"], ["y"])], [ob.value("a", STRING, [2, 3])],
                                                 [ob.value("y", STRING, [2, 3])]))
        data = text_npy(["a", "d", "b", "e", "c", "f"], [2, 3]).replace(b"'fortran_order': False", b"'fortran_order': True ")
        folder = self.outputs(model, "-i", "a=" + self.write("columns.npy", data))
        self.assertEqual(texts(folder + "/output_0.npy"), ((2, 3), ["a", "b", "c", "d", "e", "f"]))
        folder = self.outputs(model, "-i", 'a=[["a", "b", "c"], ["d", "e", "f"]]')
        self.assertEqual(texts(folder + "/output_0.npy"), ((2, 3), ["a", "b", "c", "d", "e", "f"]))

    def test_every_kind_of_output(self):
        nodes = [ob.node("Identity", ["a"], ["text"]), ob.node("Cast", ["x"], ["bf"], to=BFLOAT16), ob.node("Cast", ["x"],
                ["f8"], to=FLOAT8),
                 ob.node("Cast", ["x"], ["i4"], to=INT4), ob.node("SplitToSequence", ["x", "one"], ["parts"]),
                         ob.node("Optional", ["x"], ["some"]),
                 ob.node("SequenceConstruct", ["a", "text"], ["words"]), ob.node("Relu", ["x"], ["last"])]
        outputs = [ob.value("text", STRING, ["k"]), ob.value("bf", BFLOAT16, ["n"]), ob.value("f8", FLOAT8, ["n"]),
                ob.value("i4", INT4, ["n"]),
                   wrapped(4, "parts", ob.FLOAT), wrapped(9, "some", ob.FLOAT), wrapped(4, "words", STRING),
                           ob.value("last", ob.FLOAT, ["n"])]
        model = self.save("kinds.onnx", ob.graph(nodes, [ob.value("a", STRING, ["k"]), ob.value("x", ob.FLOAT, ["n"])], outputs,
                                                 [ob.int64s("one", [], [1])]), opset=21)
        folder = self.outputs(model, "-i", 'a=["p", "q"]', "-i", "x=[1.5, -2, 0.3]")
        files = ["output_%s.npy" % k for k in ("0", "1", "2", "3", "4_0", "4_1", "4_2", "5", "6_0", "6_1", "7")]
        self.assertEqual(sorted(os.listdir(folder)), files)

        def numbers(name, form):
            dtype, shape, data = ob.read_npy("%s/output_%s.npy" % (folder, name))
            return dtype, shape, list(struct.unpack("<%d%s" % (len(data) // struct.calcsize(form), form), data))
        for name in ("0", "6_0", "6_1"):
            self.assertEqual(texts("%s/output_%s.npy" % (folder, name)), ((2,), ["p", "q"]))
        self.assertEqual(numbers("1", "f"), ("<f4", (3,), [1.5, -2.0, 0.30078125]))
        self.assertEqual(numbers("2", "f"), ("<f4", (3,), [1.5, -2.0, 0.3125]))
        self.assertEqual(numbers("3", "b"), ("|i1", (3,), [1, -2, 0]))
        self.assertEqual([numbers("4_%d" % i, "f")[2] for i in range(2)], [[1.5], [-2.0]])
        self.assertEqual(numbers("7", "f")[2][0:2], [1.5, 0.0])
        self.assertEqual(ob.read_npy(folder + "/output_5.npy")[1], (3,))
        self.assertIn("sequence of 3 float32", self.succeed("run", model, "-i", 'a=["p", "q"]', "-i", "x=[1.5, -2, 0.3]"))

    def test_an_output_that_cannot_be_written_keeps_no_other_from_it(self):
        model = self.save("two.onnx", ob.graph([ob.node("Identity", ["a"], ["y"]), ob.node("Relu", ["x"], ["z"])],
                                               [ob.value("a", STRING, ["k"]), ob.value("x", ob.FLOAT, [1])],
                                               [ob.value("y", STRING, ["k"]), ob.value("z", ob.FLOAT, [1])]))
        code, _, err = run("run", model, "-i", r'a=["b", "x\u0000"]', "--output-dir", self.path("out"))
        self.assertEqual((code, os.listdir(self.path("out"))), (FAILED, ["output_1.npy"]), err)
        self.assertIn("output 'y': ", err)
        self.assertIn("element 1 ends with a NUL character", err)

    def test_names_with_an_equals_sign(self):
        model = self.save("equals.onnx", ob.graph([ob.node("Sub", ["a", "a=b"], ["y=z"])], [ob.value("a", ob.FLOAT,
                ["m=n"]), ob.value("a=b", ob.FLOAT, ["m=n"])],
                                                  [ob.value("y=z", ob.FLOAT, ["m=n"])]))
        file = self.write("w=3.npy", ob.npy("<f4", [2], struct.pack("<2f", 3, 4)))
        expected = self.write("e=1.npy", ob.npy("<f4", [2], struct.pack("<2f", 2, 1)))
        folder = self.outputs(model, "-i", "a=[5, 5]", "-i", "a=b=" + file)
        self.assertEqual(ob.read_npy(folder + "/output_0.npy")[2], struct.pack("<2f", 2, 1))
        for option in (["--shape", "a=b=2"], ["--dim", "m=n=2"]):
            self.assertIn("float32[2]", self.succeed("run", model, "-i", "a=[5, 5]", *option))
        report = self.report("profile", model, "-r", "1", "-i", "a=[5, 5]", "-i", "a=b=" + file, "--against", "y=z=" + expected)
        [row] = report["accuracy"]["outputs"]
        self.assertEqual((row["name"], row["against"], row["error"]["max_abs"]), ("y=z", expected, 0))
        self.assertIn("samples/s", self.succeed("bench", model, "-r", "2", "-i", "a=[5, 5]", "-i", "a=b=" + file))
        self.refuse(USAGE, ["--input needs NAME=VALUE, got 'a'"], "run", model, "-i", "a")
        self.refuse(FAILED, ["unknown input 'b'", "'a=b'"], "run", model, "-i", "b=c")

    def test_samples_of_text(self):
        """Text is copied from an array; a batch would point into the values of files, which are released by then."""
        model = self.save("scores.onnx", ob.graph([ob.node("Cast", ["a"], ["y"], to=ob.FLOAT)], [ob.value("a", STRING, ["N", 2])],
                                                  [ob.value("y", ob.FLOAT, ["N", 2])]))
        os.mkdir(self.path("arrays"))
        self.write("arrays/a.npy", text_npy(["1", "2.5", "7", "-1"], [2, 2]))
        self.write("arrays/labels.npy", ob.npy("<i8", [2], struct.pack("<2q", 1, 0)))
        self.assertIn("100.00 % on 2 labelled samples", self.succeed("eval", model, self.path("arrays")))
        self.write("one.npy", text_npy(["1", "2.5"]))
        samples = self.write("list.txt", b"one.npy 1\none.npy 0\n")
        self.refuse(FAILED, ["one.npy", "text samples must be in one array"], "eval", model, samples)

    def test_versus_says_what_it_does_not_compare(self):
        for name, nodes, given, words in (("text", [ob.node("Identity", ["a"], ["y"])], ob.value("a", STRING, [1]),
                ["input 'a'", "string"]),
                                          ("told", [ob.node("Cast", ["a"], ["y"], to=STRING)], ob.value("a", ob.FLOAT,
                                                  [1]), ["output 'y' is text"])):
            model = self.save(name + ".onnx", ob.graph(nodes, [given], [ob.value("y", STRING, [1])]))
            arguments = ["-i", 'a=["x"]'] if name == "text" else []
            self.refuse(FAILED, words, "versus", model, *arguments, "--ort-lib", command_case.fake_library())

    def test_versus_hands_over_names_with_an_equals_sign(self):
        nodes = [ob.node("Relu", ["x=1"], ["h"], name="/body/act/Relu"), ob.node("Mul", ["h", "two"], ["y"], name="/body/Mul")]
        model = self.save("x=y.onnx", ob.graph(nodes, [ob.value("x=1", ob.FLOAT, [4, 64])], [ob.value("y", ob.FLOAT, [4,
                64])], [ob.floats("two", [], [2.0])]))
        code, out, err = run("versus", model, "--ort-lib", command_case.fake_library(), "-x", "1", "-t", "10ms",
                "--processes", "2", environment={"TMPDIR": self.folder})
        self.assertEqual(code, DONE, out + err)


if __name__ == "__main__":
    command_case.main()
