"""Shared by the tests of formats: running the command, and models with names or sizes that are hard for a format.

A test file calls main(), which takes PRONY SOURCE_DIR [unittest options] from the command line."""
import os
import resource
import signal
import subprocess
import sys
import unittest

import onnx_bytes as ob

PRONY, SOURCE = "", ""
DONE, FAILED, USAGE = 0, 1, 2
CHARTS = ["layers", "types", "roofline", "memory", "latency", "runs", "modules", "graph"]
HOSTILE = 'a/</svg></script><script>throw 1</script>,"\'&\\{}$%#_^~\n;\xe9\u2028 -->'
FORMULA = '=HYPERLINK("x");\x1b[2J\x7f\x9b'


def run(*arguments, limit_bytes=0):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # as a shell leaves it
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
    ran = subprocess.run([PRONY, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300,
                         stdin=subprocess.DEVNULL, preexec_fn=limit if limit_bytes else None,
                         env=dict(os.environ, XDG_CACHE_HOME="/nonexistent",  # reports would contain measured roofs
                                  ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":exitcode=99"))
    return ran.returncode, ran.stdout.decode(errors="replace"), ran.stderr.decode(errors="replace")


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def hostile_model(path):
    """Three layers, one with a name that is markup, quotes, a separator or an escape in every format."""
    nodes = [ob.node("Relu", ["x"], ["a"], name=HOSTILE), ob.node("Exp", ["a"], ["b"], name="m/n/Exp"),
             ob.node("Add", ["b", "a"], ["y"], name=FORMULA)]
    graph = ob.graph(nodes, [ob.value("x", ob.FLOAT, [4, 8])], [ob.value("y", ob.FLOAT, [4, 8])])
    with open(path, "wb") as file:
        file.write(ob.model(graph))


def long_model(path, count):
    ops = ["Exp", "Sigmoid", "Tanh", "Softsign"]
    nodes = [ob.node(ops[i % 4], ["v%d" % i], ["v%d" % (i + 1)], name="/block%d/stage%d/%s_%d" % (i // 500, i // 50, ops[i % 4], i))
             for i in range(count)]
    graph = ob.graph(nodes, [ob.value("v0", ob.FLOAT, [2, 8])], [ob.value("v%d" % count, ob.FLOAT, [2, 8])])
    with open(path, "wb") as file:
        file.write(ob.model(graph))


def main():
    global PRONY, SOURCE
    PRONY, SOURCE = sys.argv[1:3]
    unittest.main(module="__main__", argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
