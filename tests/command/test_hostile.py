#!/usr/bin/env python3
"""Files of a few MB whose nodes, names or inputs once took the square of their number: a time limit and Ctrl-C end all commands on
them within seconds.

    test_hostile.py PRONY SOURCE_DIR [unittest options]
"""
import random
import signal
import subprocess
import time

import command_case
import onnx_bytes as ob
from command_case import DONE, FAILED, run

# Beyond the limit. A second is what users are promised; a loaded machine and the sanitizers take longer to load the file and to
# release what was made. The cases took 8 s (the memory plan) and 16 s or more before something asked whether to stop.
MOST_SECONDS, PLAN_SECONDS = 12, 6


def graph(nodes, output, inputs=None, initializers=()):
    inputs = [ob.value("x", ob.FLOAT, [4])] if inputs is None else inputs
    return ob.model(ob.graph(nodes, inputs, [ob.value(output, ob.FLOAT, None)], initializers))


def summed(nodes):
    """The sum of all nodes' results, so that no node is dead."""
    names = ["v%d" % i for i in range(len(nodes))]
    return graph(nodes + [ob.node("Sum", names, ["y"])], "y")


def chain(op, count, more=(), initializers=()):
    nodes = [ob.node(op, ["v%d" % (i - 1) if i else "x", *more], ["v%d" % i]) for i in range(count)]
    return graph(nodes, "v%d" % (count - 1), initializers=initializers)


def attribute_names(count):
    return summed([ob.node("Relu", ["x"], ["v%d" % i], **{"a%d" % i: 1}) for i in range(count)])


def symbols(count, dims, metadata=0):
    inputs = [ob.value("v%d" % i, ob.FLOAT, dims(i)) for i in range(count)]
    entries = (ob.chunk(14, ob.chunk(1, "k%d" % i) + ob.chunk(2, "v")) for i in range(metadata))
    return graph([ob.node("Sum", ["v%d" % i for i in range(count)], ["y"])], "y", inputs) + b"".join(entries)


def sizes(count):
    """Values of many sizes that live long, for the memory plan of two workers."""
    draw = random.Random(1)
    nodes = [ob.node("Tile", ["x", "r%d" % draw.randrange(997)], ["t%d" % i], **{"a%d" % i: 1}) for i in range(count)]
    order = draw.sample(range(count), count)
    nodes += [ob.node("ReduceMax", ["t%d" % order[i]], ["v%d" % i], keepdims=0) for i in range(count)]
    nodes.append(ob.node("Sum", ["v%d" % i for i in range(count)], ["y"]))
    return graph(nodes, "y", initializers=[ob.int64s("r%d" % i, [1], [i + 1]) for i in range(997)])


class Hostile(command_case.CommandTest):
    def limited(self, name, data, *arguments, seconds=1, most=MOST_SECONDS, words="was reached"):
        path = self.write(name + ".onnx", data)
        started = time.monotonic()
        code, _, error = run("run", path, "-q", "--time-limit", "%ds" % seconds, *arguments)
        self.assertLess(time.monotonic() - started, seconds + most, name)
        if code != DONE:
            self.assertEqual(code, FAILED, error[:300])
            self.assertTrue(words in error or "the time limit of %ds was reached" % seconds in error, error[:300])

    def test_nodes_that_differ_in_attribute_names(self):
        self.limited("attribute_names", attribute_names(40000))

    def test_chains_that_vanish(self):
        self.limited("identities", chain("Identity", 160000))
        self.limited("products", chain("Mul", 160000, ["one"], [ob.floats("one", [], [1.0])]))

    def test_inputs_with_symbols(self):
        self.limited("symbols", symbols(120000, lambda i: ["d%d" % i]), "--dim", "*=2")
        self.limited("images", symbols(10000, lambda i: ["N", 3, "h%d" % i, "w%d" % i], 60000), words="gives no sizes for them")

    def test_memory_plan_of_many_sizes(self):
        self.limited("sizes", sizes(40000), "--inter-op", "2", seconds=2, most=PLAN_SECONDS)

    def test_ctrl_c_while_it_is_planned(self):
        path = self.write("sizes.onnx", sizes(40000))
        process = subprocess.Popen([command_case.PRONY, "run", path, "-q", "--inter-op", "2"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, restore_signals=True)
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        _, error = process.communicate(timeout=120)
        self.assertLess(time.monotonic() - sent, PLAN_SECONDS)
        self.assertEqual(process.returncode, 130, error)
        self.assertIn(b"interrupted", error)


if __name__ == "__main__":
    command_case.main()
