"""Sessions: arrays in and out, without copies, from many threads, and whatever is wrong with an array."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import weakref

import numpy as np
import onnx_bytes as ob
import prony
import pytest
from conftest import mlp_bytes, mlp_expected, one_node, resident_bytes


def address(array):
    return array.__array_interface__["data"][0]


# ---- arrays


def test_runs(mlp, x):
    session = prony.Session(mlp, threads=1)
    outputs = session.run({"x": x})
    assert list(outputs) == ["y"] and outputs["y"].dtype == np.float32
    np.testing.assert_allclose(outputs["y"], mlp_expected(x), rtol=1e-5, atol=1e-6)


def test_nothing_is_copied(mlp, x):
    session = prony.Session(mlp, threads=1)
    for _ in range(3):
        y = session.run({"x": x})["y"]
        assert session._addresses() == {"x": address(x), "y": address(y)}
    into = np.empty((3, 32), np.float32)
    assert session.run({"x": x}, into={"y": into})["y"] is into
    assert session._addresses()["y"] == address(into)
    np.testing.assert_array_equal(into, y)


def test_results_stay_when_the_session_runs_again_or_is_gone(mlp, x):
    session = prony.Session(mlp)
    first = session.run({"x": x})["y"]
    kept = first.copy()
    session.run({"x": -x})
    np.testing.assert_array_equal(first, kept)
    session.close()
    del session
    gc.collect()
    np.testing.assert_array_equal(first, kept)


def test_other_shapes(mlp):
    session = prony.Session(mlp)
    for rows in (1, 5, 2, 5, 7, 9, 11, 1):
        x = np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)
        np.testing.assert_allclose(session.run({"x": x})["y"], mlp_expected(x), rtol=1e-5, atol=1e-6)


def test_one_plan_for_many_rows(mlp):
    session = prony.Session(mlp, threads=1, max_dims={"N": 60})
    for rows in (1, 60, 7, 41):
        x = np.arange(rows * 8, dtype=np.float32).reshape(rows, 8) / 100
        np.testing.assert_array_equal(session.run({"x": x})["y"], prony.Session(mlp, threads=1).run({"x": x})["y"])
    with pytest.raises(prony.Error, match="dimension 'N' .axis 0. is 61, but its maximum is 60"):
        session.run({"x": np.zeros((61, 8), np.float32)})
    with pytest.raises(prony.Error, match="no input has a free dimension 'M'"):
        prony.Session(mlp, max_dims={"M": 4})


def test_not_contiguous_and_read_only(mlp, x):
    session = prony.Session(mlp)
    expected = session.run({"x": x})["y"]
    wide = np.zeros((6, 16), np.float32)
    wide[::2, ::2] = x
    for other in (wide[::2, ::2], np.asfortranarray(x), x.T.copy().T):
        np.testing.assert_array_equal(session.run({"x": other})["y"], expected)
    x.flags.writeable = False
    np.testing.assert_array_equal(session.run({"x": x})["y"], expected)
    assert session._addresses()["x"] == address(x)


def test_not_aligned(mlp, x):
    session = prony.Session(mlp)
    expected = session.run({"x": x})["y"]
    odd = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape)
    np.testing.assert_array_equal(session.run({"x": odd})["y"], expected)


def test_empty(mlp):
    y = prony.Session(mlp).run({"x": np.zeros((0, 8), np.float32)})["y"]
    assert y.shape == (0, 32) and y.dtype == np.float32


def test_buffers_lists_and_scalars(mlp, x):
    session = prony.Session(mlp)
    expected = session.run({"x": x})["y"]
    np.testing.assert_array_equal(session.run({"x": memoryview(x)})["y"], expected)
    np.testing.assert_array_equal(session.run({"x": x.tolist()})["y"], expected)
    double = prony.Session(one_node("Add", [("a", ob.FLOAT, []), ("b", ob.FLOAT, [2])], [("c", ob.FLOAT, [2])]))
    np.testing.assert_array_equal(double.run({"a": 1.5, "b": (1, 2)})["c"], np.float32([2.5, 3.5]))


def test_dlpack(mlp, x):
    class Foreign:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, stream=None):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    session = prony.Session(mlp)
    expected = session.run({"x": x})["y"]
    np.testing.assert_array_equal(session.run({"x": Foreign(x)})["y"], expected)
    assert session._addresses()["x"] == address(x)


@pytest.mark.parametrize("number,dtype", [(1, "float32"), (2, "uint8"), (3, "int8"), (4, "uint16"), (5, "int16"),
                                          (6, "int32"), (7, "int64"), (9, "bool"),
                                          (10, "float16"), (11, "float64"), (12, "uint32"), (13, "uint64"), (16, "uint16")])
def test_every_type(number, dtype):
    session = prony.Session(one_node("Identity", [("x", number, [2, "N"])], [("y", number, [2, "N"])]))
    x = np.array([[0, 1, 2], [3, 0, 1]]).astype(dtype)
    y = session.run({"x": x})["y"]
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x)


def test_text():
    session = prony.Session(one_node("Identity", [("x", 8, ["N"])], [("y", 8, ["N"])]))
    for given in (np.array(["a", "grün", ""], object), np.array(["a", "grün", ""]), ["a", "grün", ""]):
        y = session.run({"x": given})["y"]
        assert y.dtype == object and y.tolist() == ["a", "grün", ""]
    assert session.run({"x": np.array([b"a"], object)})["y"].tolist() == ["a"]
    with pytest.raises(prony.InvalidArgument, match="input 'x': an element is int; expected str or bytes"):
        session.run({"x": np.array(["a", 1], object)})


def test_output_whose_shape_the_run_tells():
    session = prony.Session(one_node("NonZero", [("x", ob.FLOAT, ["N"])], [("y", ob.INT64, [1, "M"])]))
    for values in ([0, 1, 0, 2], [0, 0, 0, 0], [1, 1, 1, 1]):
        y = session.run({"x": np.float32(values)})["y"]
        assert y.dtype == np.int64 and y.tolist() == [np.flatnonzero(values).tolist()]
    into = np.empty((1, 2), np.int64)
    assert session.run({"x": np.float32([3, 0, 3])}, into={"y": into})["y"].tolist() == [[0, 2]]
    with pytest.raises(prony.OutOfRange, match="output 'y' has 24 bytes, but 16 are bound"):
        session.run({"x": np.float32([3, 3, 3])}, into={"y": into})


def test_some_outputs():
    session = prony.Session(one_node("Split", [("x", ob.FLOAT, [4])], [("a", ob.FLOAT, [2]), ("b", ob.FLOAT, [2])]))
    x = np.float32([1, 2, 3, 4])
    assert list(session.run({"x": x}, ["b"])) == ["b"]
    assert session.run({"x": x}, outputs=["b", "a"])["a"].tolist() == [1, 2]
    with pytest.raises(prony.InvalidArgument, match="unknown output 'z'"):
        session.run({"x": x}, ["z"])
    with pytest.raises(prony.InvalidArgument, match="into: unknown output 'z'"):
        session.run({"x": x}, into={"z": x})


# ---- bad input

BAD = [
    ("another type", lambda x: x.astype(np.float64), prony.ShapeMismatch, r"'x' is float32\[\?, 8\], but float64\[3, 8\]"),
    ("whole numbers", lambda x: x.astype(np.int32), prony.ShapeMismatch, "'x' is float32.* but int32"),
    ("another shape", lambda x: x[:, :4].copy(), prony.ShapeMismatch, r"'x' is float32\[\?, 8\], but float32\[3, 4\]"),
    ("another rank", lambda x: x[0], prony.ShapeMismatch, r"'x' is float32\[\?, 8\], but float32\[8\]"),
    ("big-endian", lambda x: x.astype(">f4"), prony.InvalidArgument,
     "'x' is float32 of the other byte order .>f4.; expected native float32"),
    ("objects", lambda x: x.astype(object), prony.InvalidArgument, "'x' is an array of objects; expected float32"),
    ("text", lambda x: x.astype(str), prony.InvalidArgument, "'x' is an array of text; expected float32"),
    ("a record", lambda x: np.zeros(3, [("a", "f4")]), prony.InvalidArgument, "'x' is an array of .*; expected float32"),
    ("dates", lambda x: np.zeros(3, "M8[s]"), prony.InvalidArgument, "'x' is an array of datetime64.*; expected float32"),
    ("extended", lambda x: x.astype(np.longdouble), prony.InvalidArgument, "'x' is float128; expected float32"),
    ("nothing", lambda x: None, prony.InvalidArgument, "'x' is None; expected an array of float32"),
    ("a dict", lambda x: {}, prony.InvalidArgument, "'x': dict is not an array; expected an array of float32"),
    ("a ragged list", lambda x: [[1, 2], [3]], prony.InvalidArgument, "'x': .*; expected an array of float32"),
    ("too many dimensions", lambda x: np.zeros((1,) * 20, np.float32), prony.InvalidArgument, "'x' has 20 dimensions; at most 16"),
]


@pytest.mark.parametrize("what,make,kind,message", BAD, ids=[row[0] for row in BAD])
def test_bad_arrays(mlp, x, what, make, kind, message):
    session = prony.Session(mlp)
    with pytest.raises(kind, match=message):
        session.run({"x": make(x)})
    np.testing.assert_allclose(session.run({"x": x})["y"], mlp_expected(x), rtol=1e-5, atol=1e-6)


def test_bad_names(mlp, x):
    session = prony.Session(mlp)
    for given, message in [({}, r"input 'x' is missing; the model's inputs are \['x'\]"),
                           ({"z": x}, r"unknown input 'z'; the model's inputs are \['x'\]"),
                           ({"x": x, "z": x}, r"unknown input 'z'; the model's inputs are \['x'\]")]:
        with pytest.raises(prony.InvalidArgument, match=message):
            session.run(given)
    for wrong in (None, [x], 5):
        with pytest.raises(TypeError, match="dict"):
            session.run(wrong)
    for arguments in [(None, {"x": x}), (["y"], {"x": x})]:  # ONNX Runtime's order
        with pytest.raises(TypeError, match="prony.onnxruntime.InferenceSession"):
            session.run(*arguments)
    for call in [lambda: session.run(x), lambda: session.run({"x": x}, into=x), lambda: prony.Session(mlp, dims={"N": x}),
                 lambda: session.profile({"x": x}, runs=x)]:
        with pytest.raises(TypeError) as caught:
            call()
        assert len(str(caught.value)) < 100, caught.value  # the type, not the elements
    with pytest.raises(TypeError, match="^inputs: wanted a dict {name: array}, got ndarray$"):
        session.run(x)
    with pytest.raises(TypeError, match="run..: unknown argument 'feed'"):
        session.run({"x": x}, feed=1)


def test_optional_inputs():
    """y = x k, where k is an initializer and an input: 2 unless it is given."""
    model = ob.model(ob.graph([ob.node("Mul", ["x", "k"], ["y"])], [ob.value("x", ob.FLOAT, [3]), ob.value("k", ob.FLOAT, [1])],
                              [ob.value("y", ob.FLOAT, [3])], [ob.floats("k", [1], [2.0])]))
    session = prony.Session(model)
    ones, five = np.ones(3, np.float32), np.float32([5])
    assert [port.name for port in session.inputs] == ["x"] and [port.name for port in session.optional_inputs] == ["k"]
    assert session.run({"x": ones})["y"].tolist() == [2, 2, 2]
    assert session.run({"x": ones, "k": five})["y"].tolist() == [5, 5, 5]
    assert session.run({"x": ones})["y"].tolist() == [2, 2, 2]
    with pytest.raises(prony.InvalidArgument, match="unknown input 'q'"):
        session.run({"x": ones, "q": five})
    with pytest.raises(prony.InvalidArgument, match="input 'x' is missing"):
        session.run({"k": five})
    drop_in = prony.onnxruntime.InferenceSession(model)
    assert [arg.name for arg in drop_in.get_inputs()] == ["x"] and [arg.name for arg in drop_in.get_overridable_initializers()] == ["k"]
    assert drop_in.run(None, {"x": ones})[0].tolist() == [2, 2, 2] and drop_in.run(None, {"x": ones, "k": five})[0].tolist() == [5, 5, 5]


def test_bad_arrays_for_outputs(mlp, x):
    session = prony.Session(mlp)
    good = np.empty((3, 32), np.float32)
    frozen = good.copy()
    frozen.flags.writeable = False
    for array, kind, message in [(good[:2], prony.ShapeMismatch, r"output 'y': float32\(2, 32\); expected float32\(3, 32\)"),
                                 (good.astype(np.float64), prony.ShapeMismatch, "output 'y': float64"),
                                 (frozen, prony.InvalidArgument, "output 'y': a writable, contiguous array of float32"),
                                 (np.empty((6, 32), np.float32)[::2], prony.InvalidArgument, "output 'y': a writable, contiguous"),
                                 ([1], prony.InvalidArgument, "output 'y': a writable, contiguous")]:
        with pytest.raises(kind, match=message):
            session.run({"x": x}, into={"y": array})


def test_bad_models(tmp_path):
    with pytest.raises(prony.FileError, match="nowhere.onnx") as caught:
        prony.Session(tmp_path / "nowhere.onnx")
    assert isinstance(caught.value, OSError) and caught.value.status == 3
    with pytest.raises(prony.InvalidModel):
        prony.Session(b"not a model")
    with pytest.raises(prony.Unsupported, match="Nothing"):
        prony.Session(one_node("Nothing", [("x", 1, [1])], [("y", 1, [1])], domain="nowhere"))
    with pytest.raises(TypeError):
        prony.Session(5)


def test_bad_options(mlp):
    for options, kind, message in [({"precision": "fp8"}, prony.Unsupported, "fp8"),
                                   ({"threads": -1}, prony.InvalidArgument, "-1 intra-op"),
                                   ({"threads": "many"}, ValueError, "many"),
                                   ({"dims": {"Z": 3}}, prony.InvalidArgument, "Z"), ({"dims": {5: 3}}, TypeError, "name"),
                                   ({"affinity": "x"}, prony.InvalidArgument, "x"), ({"memory_limit": -1}, prony.InvalidArgument, "-1"),
                                   ({"threads": 2 ** 80}, TypeError, "64 bits"),
                                   ({"precision": 5}, TypeError, "precision: wanted a str, got int")]:
        with pytest.raises(kind, match=message):
            session = prony.Session(mlp, **options)
            session.run({"x": np.zeros((2, 8), np.float32)})


def test_limits(mlp):
    for limit in (-1, 2 ** 63, -2 ** 80):
        with pytest.raises(prony.InvalidArgument, match="memory limit"):
            prony.set_memory_limit(limit)
    with pytest.raises(TypeError):
        prony.set_memory_limit("1GiB")
    with pytest.raises(prony.LimitExceeded):
        prony.Session(mlp, memory_limit=100).run({"x": np.zeros((1, 8), np.float32)})


def test_limits_of_a_device(mlp, x):
    for split in ("some", ""):
        with pytest.raises(prony.InvalidArgument, match=f"device_split: unknown '{split}'; wanted auto, memory or none"):
            prony.Session(mlp, device_split=split)
    with pytest.raises(TypeError, match="device_split"):
        prony.Session(mlp, device_split=1)
    with pytest.raises(prony.InvalidArgument, match="device_memory_limit: -1 bytes"):
        prony.Session(mlp, device_memory_limit=-1)
    try:
        session = prony.Session(mlp, device="opencl", device_split="none", device_memory_limit=16)
    except prony.Unsupported:
        pytest.skip("no OpenCL device")
    with session, pytest.raises(prony.LimitExceeded, match="device"):
        session.run({"x": x})


def test_closed(mlp, x):
    with prony.Session(mlp) as session:
        session.run({"x": x})
    assert session.closed and repr(session) == "<prony.Session, closed>"
    session.close()
    for call in (lambda: session.run({"x": x}), session.prepare, session.profile, session.cancel, lambda: session.threads):
        with pytest.raises(prony.ClosedError, match="closed"):
            call()


def test_another_version(tmp_path):
    """The package beside an extension of another version."""
    import shutil

    source = os.path.dirname(prony.__file__)
    shutil.copytree(source, tmp_path / "prony", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "prony" / "_version.py").write_text('VERSION = "9.9.9"\n')
    ran = subprocess.run([sys.executable, "-c", "import prony"], env={**os.environ, "PYTHONPATH": str(tmp_path)},
                         capture_output=True, text=True,
                         cwd=tmp_path)
    assert ran.returncode == 1
    assert "VersionError: the package is version 9.9.9, the library in" in ran.stderr


def test_declared(mlp):
    session = prony.Session(mlp)
    assert session.inputs == [prony.ValueInfo("x", "tensor", "float32", (None, 8), ("N", None))]
    assert session.output_names == ["y"] and session.model.outputs[0].shape == (None, 32)
    assert session.model.free_dims()[0].name == "N"


# ---- life


def test_nothing_grows(mlp, x):
    """10,000 times: make, run, drop."""
    import prony._prony as extension

    model = prony.Model(mlp)

    def cycle(count):
        for _ in range(count):
            prony.Session(model, threads=1).run({"x": x})

    cycle(1000)
    before, held = resident_bytes(), extension.memory_in_use()
    references = sys.getrefcount(x)
    cycle(10000)
    assert extension.memory_in_use() == held
    assert sys.getrefcount(x) == references
    assert resident_bytes() - before < 4 << 20


def test_failures_do_not_grow(mlp, x):
    session = prony.Session(mlp)
    bad = [make(x) for _, make, _, _ in BAD]

    def cycle(count):
        for _ in range(count):
            for array in bad:
                with pytest.raises(prony.Error):
                    session.run({"x": array})

    cycle(20)
    before, references = resident_bytes(), [sys.getrefcount(array) for array in bad[:6]]
    cycle(300)
    assert [sys.getrefcount(array) for array in bad[:6]] == references
    assert resident_bytes() - before < 4 << 20


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2), (2, 0, 3, 1)])
def test_order_of_deletion(mlp, x, order):
    registry = prony.Registry()
    registry.add("Relu", lambda node, a: np.maximum(a, 0), infer=lambda node, a: (a.dtype, a.shape), cost=lambda node, a: a.size)
    held = [registry, prony.Model(mlp, operators=registry)]
    held.append(prony.Session(held[1]))
    held.append(held[2].run({"x": x})["y"])
    report = held[2].profile({"x": x}, runs=2)
    del registry
    expected = held[3].copy()
    for i in order:
        if held[2] is not None:
            np.testing.assert_array_equal(held[2].run({"x": x})["y"], expected)
        if held[3] is not None:
            np.testing.assert_array_equal(held[3], expected)
        held[i] = None
        gc.collect()
    assert report.rows("layers")[0]["op"] == "Gemm"


def test_cycles_are_collected(mlp):
    class Mine(prony.Session):
        pass

    session = Mine(mlp)
    session.me = session
    gone = weakref.ref(session)
    del session
    gc.collect()
    assert gone() is None
    registry = prony.Registry()
    registry.add("Relu", lambda node, a, mine=registry: a, infer=lambda node, a: (a.dtype, a.shape), cost=lambda node, a: 0)


# ---- threads, processes, signals


def test_one_session_from_eight_threads(mlp):
    session = prony.Session(mlp, threads=2)
    failures = []

    def work(seed):
        random = np.random.default_rng(seed)
        for i in range(200):
            x = random.standard_normal((1 + (seed + i) % 3, 8)).astype(np.float32)
            y = session.run({"x": x})["y"]
            if y.shape != (len(x), 32) or not np.allclose(y, mlp_expected(x), rtol=1e-5, atol=1e-5):
                failures.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_the_gil_is_released(digits):
    """Another thread goes on while one is in the library: it sees the run's end neither at the start nor never."""
    with prony.Session(digits, threads=1) as session:
        steps, done = [0], threading.Event()

        def count():
            while not done.is_set():
                steps[0] += 1

        thread = threading.Thread(target=count)
        thread.start()
        session.profile(seconds=0.3, trace_threads=False, measure_cost=False)
        done.set()
        thread.join()
    assert steps[0] > 1000


def test_cancel_from_another_thread(digits):
    session = prony.Session(digits, threads=1)
    started = threading.Event()

    def show(runs, seconds, error):
        started.set()

    def cancel():
        started.wait()
        session.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(prony.Cancelled):
        session.profile(seconds=60, runs=10 ** 9, progress=show)
    thread.join()
    assert len(session.run({session.input_names[0]: np.zeros((1, 1, 8, 8), np.float32)})) == len(session.output_names)


def script(text, *arguments):
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(text), *arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(prony.__file__))})


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_profile(digits, threads):
    process = script("""
        import sys, prony
        def show(runs, seconds, error):
            print("under way", flush=True)
        try:
            prony.profile(sys.argv[1], threads=int(sys.argv[2]), seconds=600, runs=10 ** 9, progress=show)
        except KeyboardInterrupt:
            print("stopped", flush=True)
            session = prony.Session(sys.argv[1])
            session.prepare()
            print("goes on", flush=True)
        """, digits, str(threads))
    assert process.stdout.readline() == "under way\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.splitlines()[-2:] == ["stopped", "goes on"]


def test_ctrl_c_ends_a_run():
    """A loop of more trips than anybody waits for."""
    body = ob.graph([ob.node("Identity", ["c"], ["d"]), ob.node("Add", ["v", "one"], ["w"])],
                    [ob.value("i", ob.INT64, []), ob.value("c", ob.BOOL, []), ob.value("v", ob.FLOAT, [])],
                    [ob.value("d", ob.BOOL, []), ob.value("w", ob.FLOAT, [])], [ob.floats("one", [], [1.0])], name="body")
    model = ob.model(ob.graph([ob.node("Loop", ["n", "go", "x"], ["y"], name="loop", body=("graph", body))],
                              [ob.value("n", ob.INT64, []), ob.value("go", ob.BOOL, []), ob.value("x", ob.FLOAT, [])],
                              [ob.value("y", ob.FLOAT, [])]))
    process = script("""
        import sys, prony, threading, os, signal, numpy as np
        session = prony.Session(bytes.fromhex(sys.argv[1]))
        given = {"n": np.int64(3), "go": np.bool_(True), "x": np.float32(0)}
        assert session.run(given)["y"] == 3
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            session.run({**given, "n": np.int64(2 ** 30)})
        except KeyboardInterrupt:
            print("stopped", session.run(given)["y"])
        """, model.hex())
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert out == "stopped 3.0\n"


def test_fork_before_and_after(mlp):
    """A child that was forked before the first session runs; one that was forked after it is told why it cannot."""
    process = script("""
        import os, sys, prony, numpy as np
        model, given = bytes.fromhex(sys.argv[1]), {"x": np.ones((2, 8), np.float32)}
        def child(work):
            pid = os.fork()
            if pid == 0:
                try:
                    os._exit(work())
                except BaseException as error:
                    print(type(error).__name__, error, flush=True)
                    os._exit(99)
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        def run():
            return 0 if prony.Session(model, threads=2).run(given)["y"].shape == (2, 32) else 1
        assert child(run) == 0
        session = prony.Session(model, threads=2)
        session.run(given)
        def refused():
            for call in (lambda: session.run(given), lambda: prony.Session(model), lambda: prony.inspect(model)):
                try:
                    call()
                    return 1
                except prony.ForkError as error:
                    assert "spawn" in str(error)
            return 0
        assert child(refused) == 0
        def dropped():
            global session
            del session
            return 0
        assert child(dropped) == 0
        session.run(given)
        print("all three")
        """, mlp.hex())
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err + out
    assert out == "all three\n"


def test_spawned_processes(mlp, x, tmp_path):
    (tmp_path / "work.py").write_text(textwrap.dedent("""
        import multiprocessing, sys, prony, numpy as np
        def run(rows):
            return prony.Session(bytes.fromhex(sys.argv[1])).run({"x": np.ones((rows, 8), np.float32)})["y"].shape[0]
        if __name__ == "__main__":
            prony.Session(bytes.fromhex(sys.argv[1])).run({"x": np.ones((1, 8), np.float32)})
            with multiprocessing.get_context("spawn").Pool(2) as pool:
                print(pool.map(run, [1, 2, 3]))
        """))
    ran = subprocess.run([sys.executable, str(tmp_path / "work.py"), mlp.hex()], capture_output=True, text=True, timeout=120,
                         env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(prony.__file__))})
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "[1, 2, 3]\n"


def test_a_session_that_is_called_by_its_own_operator(mlp, x):
    registry = prony.Registry()
    held = {}

    def run(node, a):
        held["session"].run({"x": x})

    registry.add("Relu", run, infer=lambda node, a: (a.dtype, a.shape), cost=lambda node, a: 0)
    held["session"] = prony.Session(mlp, operators=registry)
    with pytest.raises(prony.InternalError, match="the session is running") as caught:
        held["session"].run({"x": x})
    assert isinstance(caught.value.__cause__, prony.Busy)


def test_import_needs_neither_numpy_nor_pandas():
    process = script("import sys, prony; print([m for m in ('numpy', 'pandas', 'matplotlib', 'onnx', 'torch') if m in sys.modules])")
    out, err = process.communicate(timeout=60)
    assert out == "[]\n", err


def test_mlp_with_fixed_rows():
    x = np.ones((4, 8), np.float32)
    np.testing.assert_allclose(prony.Session(mlp_bytes(4)).run({"x": x})["y"], mlp_expected(x), rtol=1e-5, atol=1e-6)
