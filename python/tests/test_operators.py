"""Operators written in Python."""

import gc
import subprocess
import sys

import numpy as np
import onnx_bytes as ob
import prony
import pytest
from conftest import one_node


def same(node, x):
    return x.dtype, x.shape


def size(node, x):
    return x.size


def model(**attributes):
    return one_node("Twice", [("x", ob.FLOAT, ["N"])], [("y", ob.FLOAT, ["N"])], domain="mine", **attributes)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_comes_out_as_itself(kind):
    """Ctrl-C in an operator is a KeyboardInterrupt of the run, and of a profile; the session goes on afterwards."""
    registry, ends = prony.Registry(), [True]

    @registry.operator("Twice", domain="mine", infer=same, cost=size)
    def twice(node, x):
        if ends[0]:
            raise kind("over")
        return x * 2

    session = prony.Session(model(), operators=registry)
    x = np.float32([1, 2, 3])
    for call in (lambda: session.run({"x": x}), lambda: session.profile({"x": x}, runs=2)):
        ends[0] = True
        with pytest.raises(kind, match="over"):
            call()
        ends[0] = False
        np.testing.assert_array_equal(session.run({"x": x})["y"], x * 2)


def test_runs_and_counts():
    registry = prony.Registry()
    seen = {}

    @registry.operator("Twice", domain="mine", infer=same, cost=lambda node, x: {"flops": 3 * x.size, "special": 1})
    def twice(node, x):
        seen.update(name=node.name, op=node.op_type, domain=node.domain, opset=node.opset, factor=node.get("factor"),
                    other=node.get("no", 7),
                    axes=node.get("axes"), text=node.get("text"), writeable=x.flags.writeable, node=node)
        return x * np.float32(node.get("factor"))

    session = prony.Session(model(factor=2.5, axes=[1, 2], text="hello"), operators=registry)
    x = np.float32([1, 2, 3])
    np.testing.assert_array_equal(session.run({"x": x})["y"], x * 2.5)
    node = seen.pop("node")
    assert seen == dict(name="node", op="Twice", domain="mine", opset=1, factor=2.5, other=7, axes=[1, 2], text="hello", writeable=True)
    with pytest.raises(RuntimeError, match="its call has ended"):
        node.name
    report = session.profile({"x": x}, runs=2)
    assert report.totals["flops"] == 9 and report.totals["special"] == 1
    assert prony.inspect(model(factor=2.5), operators=registry, dims={"N": 4}).totals["flops"] == 12


def test_goes_before_the_built_in_one():
    registry = prony.Registry()
    registry.add("Relu", lambda node, x: x + 100, infer=same, cost=size, since=13)
    session = prony.Session(one_node("Relu", [("x", ob.FLOAT, [2])], [("y", ob.FLOAT, [2])]), operators=registry)
    assert session.run({"x": np.float32([1, 2])})["y"].tolist() == [101, 102]


def test_several_outputs_and_optional_inputs():
    registry = prony.Registry()
    registry.add("Both", lambda node, a, b: (a + 1, a.astype(np.int64)), domain="mine", cost=lambda node, a, b: 0,
                 infer=lambda node, a, b: [prony.TensorInfo("float32", a.shape), (np.int64, a.shape)])
    graph = ob.graph([ob.node("Both", ["x", ""], ["y", "z"], domain="mine")], [ob.value("x", ob.FLOAT, [2])],
                     [ob.value("y", ob.FLOAT, [2]), ob.value("z", ob.INT64, [2])])
    registry2 = prony.Registry()
    registry2.add("Both", lambda node, a, b=None: [a + 1, a.astype(np.int64)], domain="mine", cost=lambda node, a, b=None: 0,
                  infer=lambda node, a, b=None: [(a.dtype, a.shape), ("int64", a.shape)])
    made = prony.Session(ob.model(graph, domains=[("mine", 1)]), operators=registry2).run({"x": np.float32([1, 2])})
    assert made["y"].tolist() == [2, 3] and made["z"].tolist() == [1, 2]


def test_shape_that_depends_on_data():
    registry = prony.Registry()
    registry.add("Positive", lambda node, x: x[x > 0], domain="mine", cost=size,
                 infer=lambda node, x: ("float32", None if x.value is None else (int((x.value > 0).sum()),)))
    session = prony.Session(one_node("Positive", [("x", ob.FLOAT, [4])], [("y", ob.FLOAT, ["M"])], domain="mine"), operators=registry)
    for values in ([1, -1, 2, -2], [-1, -1, -1, -1], [1, 2, 3, 4]):
        assert session.run({"x": np.float32(values)})["y"].tolist() == [v for v in values if v > 0]


@pytest.mark.parametrize("where", ["infer", "cost", "run"])
def test_exceptions(where):
    def fail(node, x):
        raise LookupError(f"no {where} today")

    functions = {"infer": same, "cost": size, "run": lambda node, x: x, where: fail}
    registry = prony.Registry()
    registry.add("Twice", functions["run"], infer=functions["infer"], cost=functions["cost"], domain="mine")
    session = prony.Session(model(), operators=registry)
    for _ in range(2):
        with pytest.raises(prony.InternalError, match=rf"node 'node' .*LookupError: .*no {where} today") as caught:
            session.run({"x": np.float32([1, 2])})
        assert isinstance(caught.value.__cause__, LookupError)


@pytest.mark.parametrize("made,message", [
    (lambda x: x[:1], r"run returned output 0 as float32\(1,\); infer said float32\(2,\)"), (lambda x: x.astype(np.float64), "float64"),
    (lambda x: None, "None"), (lambda x: [x, x], "run returned 2 outputs; the node has 1"),
    (lambda x: "text", "an array of objects; expected float32")])
def test_wrong_results(made, message):
    registry = prony.Registry()
    registry.add("Twice", lambda node, x: made(x), infer=same, cost=size, domain="mine")
    with pytest.raises(prony.InternalError, match=message):
        prony.Session(model(), operators=registry).run({"x": np.float32([1, 2])})


@pytest.mark.parametrize("inferred", [("nothing", (2,)), ("float32",), 5, ("float32", (-1, "a"))])
def test_wrong_inference(inferred):
    registry = prony.Registry()
    registry.add("Twice", lambda node, x: x, infer=lambda node, x: inferred, cost=size, domain="mine")
    with pytest.raises(prony.Error):
        prony.Session(model(), operators=registry).run({"x": np.float32([1, 2])})


# The script of a child process: a traceback keeps the operator's argument, and the session is released first.
KEEPS_A_TRACEBACK = """
import gc, sys
import numpy as np
import prony
registry = prony.Registry()
@registry.operator("Fails", domain="mine", infer=lambda node, x: (x.dtype, x.shape), cost=lambda node, x: x.size)
def fails(node, x):
    raise ValueError("no")
session = prony.Session(sys.argv[1], operators=registry)
try:
    session.run({"x": np.full(1 << 18, 7, np.float32)})
except prony.InternalError as error:
    trace = error.__cause__.__traceback__
while trace.tb_next:
    trace = trace.tb_next
x = trace.tb_frame.f_locals["x"]
del session
gc.collect()
other = [np.full(1 << 18, 3, np.float32) for _ in range(4)]
assert x.shape == (1 << 18,) and (x == 7).all(), x
"""


def test_a_traceback_keeps_an_argument(tmp_path):
    """A debugger reads the arguments of a failed operator after the session, its plans and its arena are gone."""
    graph = ob.graph([ob.node("Relu", ["x"], ["r"]), ob.node("Fails", ["r"], ["y"], domain="mine")], [ob.value("x", ob.FLOAT, ["N"])],
                     [ob.value("y", ob.FLOAT, ["N"])])
    (tmp_path / "model.onnx").write_bytes(ob.model(graph, domains=[("mine", 1)]))
    done = subprocess.run([sys.executable, "-c", KEEPS_A_TRACEBACK, tmp_path / "model.onnx"], capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_arrays_that_are_kept():
    """An array, a view of one, and the value that infer saw outlive the call, the next run, and the session."""
    kept, values = [], []
    registry = prony.Registry()

    def infer(node, x, weight):
        values.append(weight.value)
        return x.dtype, x.shape

    def run(node, x, weight):
        kept.extend((x, x[1:], x.reshape(-1)[::2], weight))
        return x + weight

    registry.add("Plus", run, infer=infer, cost=lambda node, x, weight: x.size, domain="mine")
    graph = ob.graph([ob.node("Neg", ["x"], ["r"]), ob.node("Plus", ["r", "w"], ["y"], domain="mine")], [ob.value("x", ob.FLOAT, [4])],
                     [ob.value("y", ob.FLOAT, [4])], initializers=[ob.floats("w", [4], [1, 2, 3, 4])])
    session = prony.Session(ob.model(graph, domains=[("mine", 1)]), operators=registry)
    for first in (0, 10):
        x = np.arange(first, first + 4, dtype=np.float32)
        np.testing.assert_array_equal(session.run({"x": x})["y"], np.float32([1, 2, 3, 4]) - x)
    del session, registry, infer, run
    gc.collect()
    for first, (whole, rest, even, weight) in zip((0, 10), (kept[:4], kept[4:])):
        np.testing.assert_array_equal(whole, -np.arange(first, first + 4, dtype=np.float32))
        assert rest.tolist() == whole.tolist()[1:] and even.tolist() == whole.tolist()[::2] and weight.tolist() == [1, 2, 3, 4]
    assert values[0].tolist() == [1, 2, 3, 4]


def test_an_operator_writes_to_its_argument():
    registry = prony.Registry()

    @registry.operator("Clear", domain="mine", infer=lambda node, w: (w.dtype, w.shape), cost=lambda node, w: 0)
    def clear(node, w):
        w[:] += 1
        return w

    graph = ob.graph([ob.node("Clear", ["x"], ["y"], domain="mine"), ob.node("Identity", ["x"], ["z"])], [ob.value("x", ob.FLOAT, [2])],
                     [ob.value("y", ob.FLOAT, [2]), ob.value("z", ob.FLOAT, [2])])
    session, x = prony.Session(ob.model(graph, domains=[("mine", 1)]), operators=registry), np.float32([1, 2])
    for _ in range(2):
        made = session.run({"x": x})
        assert made["y"].tolist() == [2, 3] and made["z"].tolist() == x.tolist() == [1, 2]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_session_inside_an_operator(workers):
    """The operator hands its argument to another session, which keeps it bound."""
    registry = prony.Registry()
    inner = prony.Session(one_node("Neg", [("x", ob.FLOAT, ["N"])], [("y", ob.FLOAT, ["N"])]))
    registry.add("Inner", lambda node, x: inner.run({"x": x})["y"], infer=same, cost=size, domain="mine")
    nodes = [ob.node("Inner", ["x"], [f"a{i}"], domain="mine") for i in range(3)] + [ob.node("Sum", ["a0", "a1", "a2"], ["y"])]
    graph = ob.graph(nodes, [ob.value("x", ob.FLOAT, ["N"])], [ob.value("y", ob.FLOAT, ["N"])])
    session = prony.Session(ob.model(graph, domains=[("mine", 1)]), operators=registry, inter_op=workers, threads=1)
    for count in (2, 1000, 3):
        x = np.arange(count, dtype=np.float32)
        np.testing.assert_array_equal(session.run({"x": x})["y"], -3 * x)


COUNTS = "macs, madds, flops, special, int_ops, bytes_read, bytes_written, parameters"


@pytest.mark.parametrize("cost,message", [
    ({"flop": 3}, "unknown key 'flop'; allowed: " + COUNTS), ({1: 3}, "unknown key 1; allowed: " + COUNTS),
    ({"flops": 3, "int_ops": -1}, r"'int_ops' is -1; wanted a number from 0 below 2\*\*63"), (-5, "'flops' is -5; wanted a number from 0"),
    ({"macs": float("nan")}, "'macs' is nan; wanted"), ({"macs": None}, "'macs' is None; wanted"), ({"macs": 1 << 63},
            "'macs' is 9223372036854775808; wanted")])
def test_costs_that_are_wrong(cost, message):
    registry = prony.Registry()
    registry.add("Twice", lambda node, x: x, infer=same, cost=lambda node, x: cost, domain="mine")
    with pytest.raises(prony.InternalError, match=rf"node 'node' \(.*Twice.*ValueError: cost: {message}"):
        prony.Session(model(), operators=registry).run({"x": np.float32([1, 2])})
    with pytest.raises(prony.InternalError, match=message):
        prony.inspect(model(), operators=registry, dims={"N": 4})


def test_an_input_as_the_result():
    registry = prony.Registry()
    registry.add("Twice", lambda node, x: x, infer=same, cost=size, domain="mine")
    assert prony.Session(model(), operators=registry).run({"x": np.float32([1, 2])})["y"].tolist() == [1, 2]


def test_definitions_that_are_wrong():
    registry = prony.Registry()
    registry.add("Twice", lambda node, x: x, infer=same, cost=size, domain="mine")
    with pytest.raises(prony.InvalidArgument, match="Twice"):
        registry.add("Twice", lambda node, x: x, infer=same, cost=size, domain="mine")
    with pytest.raises(TypeError, match="prony.Registry"):
        prony.Model(model(), operators={})
    with pytest.raises(ValueError, match="takes no operators"):
        prony.Session(prony.Model(model(), operators=registry), operators=registry)


def test_lives_as_long_as_its_model():
    registry = prony.Registry()
    registry.add("Twice", lambda node, x: x * 2, infer=same, cost=size, domain="mine")
    session = prony.Session(model(), operators=registry)
    del registry
    gc.collect()
    assert session.run({"x": np.float32([1])})["y"].tolist() == [2]


def test_with_threads_and_workers():
    registry = prony.Registry()
    registry.add("Twice", lambda node, x: x * 2, infer=same, cost=size, domain="mine")
    nodes = [ob.node("Twice", ["x"], [f"a{i}"], domain="mine", name=f"n{i}") for i in range(6)]
    nodes.append(ob.node("Sum", [f"a{i}" for i in range(6)], ["y"]))
    graph = ob.graph(nodes, [ob.value("x", ob.FLOAT, ["N"])], [ob.value("y", ob.FLOAT, ["N"])])
    session = prony.Session(ob.model(graph, domains=[("mine", 1)]), operators=registry, inter_op=2, threads=1)
    for _ in range(50):
        assert session.run({"x": np.float32([1, 2])})["y"].tolist() == [12, 24]
