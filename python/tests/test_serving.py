"""Serving: batchers, monitors and runs in the background."""

import asyncio
import gc
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from concurrent.futures import CancelledError

import numpy as np
import onnx_bytes as ob
import prony
import pytest
from conftest import mlp_expected, one_node


def rows_of(count):
    return np.random.default_rng(count).standard_normal((count, 8)).astype(np.float32)


def expect(outputs, x):
    np.testing.assert_allclose(outputs["y"], mlp_expected(x), rtol=1e-4, atol=1e-5)


# ---- batcher


def test_a_batcher_combines_requests_of_many_threads(mlp):
    samples = rows_of(40)
    with prony.Batcher(mlp, max_batch=4, max_wait_ms=5, threads=1) as batcher:
        assert batcher.trial["sizes"][0] == 1 and batcher.trial["sizes"][-1] == 4
        futures = [batcher.submit({"x": sample[None]}) for sample in samples]
        for sample, future in zip(samples, futures):
            expect(future.result(timeout=60), sample[None])
        results = [None] * len(samples)

        def ask(index):
            results[index] = batcher.run({"x": samples[index][None]})

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(samples))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for sample, result in zip(samples, results):
            expect(result, sample[None])
    assert batcher.closed


def test_a_batcher_serves_coroutines(mlp):
    x = rows_of(3)

    async def ask(batcher):
        return await asyncio.gather(*(batcher.run_async({"x": row[None]}) for row in x))

    with prony.Batcher(mlp, max_batch=2, threads=1) as batcher:
        for row, outputs in zip(x, asyncio.run(ask(batcher))):
            expect(outputs, row[None])


def test_a_batcher_refuses(mlp):
    with prony.Batcher(mlp, threads=1) as batcher:
        with pytest.raises(prony.InvalidArgument, match="input 'x' is missing"):
            batcher.submit({})
        with pytest.raises(prony.InvalidArgument, match=r"unknown input 'q'; the model's inputs are \['x'\]"):
            batcher.submit({"x": rows_of(1), "q": rows_of(1)})
        with pytest.raises(prony.Error, match="'x'"):
            batcher.run({"x": np.zeros((1, 9), np.float32)})
        expect(batcher.run({"x": rows_of(1)}), rows_of(1))
    with pytest.raises(prony.ClosedError):
        batcher.run({"x": rows_of(1)})
    with pytest.raises(prony.ClosedError):
        batcher.trial
    batcher.close()
    with pytest.raises(prony.Error):
        prony.Batcher(mlp, max_batch=100000)


def test_a_dropped_request_is_cancelled(mlp):
    batcher = prony.Batcher(mlp, max_batch=8, max_wait_ms=3600000.0, threads=1)
    waiting = batcher.submit({"x": rows_of(1)})
    assert not waiting.done()
    batcher.close(drop=True)
    with pytest.raises(prony.Cancelled):
        waiting.result(timeout=60)


def test_a_failing_request_fails_alone():
    model = one_node("Gather", [("x", ob.FLOAT, ["N", 4]), ("i", ob.INT64, ["N"])], [("y", ob.FLOAT, ["N", 4])], axis=0)
    with prony.Batcher(model, threads=1) as batcher:
        x = np.ones((1, 4), np.float32)
        good, bad = batcher.submit({"x": x, "i": np.array([0])}), batcher.submit({"x": x, "i": np.array([7])})
        np.testing.assert_array_equal(good.result(timeout=60)["y"], x)
        with pytest.raises(prony.OutOfRange):
            bad.result(timeout=60)


def test_a_batcher_holds_arrays_only_until_the_answer(mlp):
    class Array(np.ndarray):
        pass

    batcher = prony.Batcher(mlp, threads=1)
    x = rows_of(1).view(Array)
    gone = weakref.ref(x)
    batcher.run({"x": x})
    del x
    for _ in range(1000):
        gc.collect()
        if gone() is None:
            break
        time.sleep(0.01)  # the answer comes a moment before the request is released
    assert gone() is None
    gone = weakref.ref(batcher)
    del batcher
    gc.collect()
    assert gone() is None


def test_the_last_reference_may_go_in_an_answer(mlp):
    ended = threading.Event()
    holder = [prony.Batcher(mlp, max_batch=4, max_wait_ms=50, threads=1)]
    future = holder[0].submit({"x": rows_of(1)})

    def drop(_):
        with pytest.raises(prony.Busy):
            holder[0].close()
        holder.clear()
        ended.set()

    future.add_done_callback(drop)
    assert ended.wait(60)


def test_a_program_may_end_with_an_open_batcher(digits):
    program = textwrap.dedent("""
        import sys
        import numpy as np
        import prony
        session = prony.Session(sys.argv[1])
        info = session.inputs[0]
        shape = [1 if extent is None else extent for extent in info.shape]
        batcher = prony.Batcher(sys.argv[1], threads=1)
        for _ in range(100):
            batcher.submit({info.name: np.zeros(shape, info.dtype)})
        session.submit({info.name: np.zeros(shape, info.dtype)})
        print("done")
    """)
    ran = subprocess.run([sys.executable, "-c", program, digits], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "done\n", "")


# ---- runs in the background


def test_a_session_runs_in_the_background(mlp):
    with prony.Session(mlp, threads=1) as session:
        futures = [session.submit({"x": rows_of(n)}) for n in (1, 2, 3)]
        for n, future in zip((1, 2, 3), futures):
            expect(future.result(timeout=60), rows_of(n))
        with pytest.raises(prony.InvalidArgument, match="unknown input 'q'"):
            session.submit({"q": rows_of(1)}).result(timeout=60)

        async def ask():
            return await asyncio.gather(*(session.run_async({"x": rows_of(n)}, ["y"]) for n in (4, 5)))

        for n, outputs in zip((4, 5), asyncio.run(ask())):
            expect(outputs, rows_of(n))
    with pytest.raises(prony.ClosedError):
        session.submit({"x": rows_of(1)})


def test_closing_cancels_runs_that_have_not_begun():
    began, go = threading.Event(), threading.Event()
    registry = prony.Registry()

    @registry.operator("Wait", domain="mine", infer=lambda node, x: (x.dtype, x.shape), cost=lambda node, x: {})
    def wait(node, x):
        began.set()
        go.wait(60)
        return x

    model = one_node("Wait", [("x", ob.FLOAT, [1])], [("y", ob.FLOAT, [1])], domain="mine")
    session = prony.Session(model, operators=registry, threads=1)
    x = np.ones(1, np.float32)
    first, second = session.submit({"x": x}), session.submit({"x": x})
    assert began.wait(60)
    closing = threading.Thread(target=session.close)
    closing.start()
    while not second.done():
        time.sleep(0.01)
    go.set()
    closing.join(60)
    np.testing.assert_array_equal(first.result(timeout=60)["y"], x)
    with pytest.raises(CancelledError):
        second.result()
    assert session.closed


# ---- monitor


def test_a_monitor_samples_one_run_in_so_many(mlp):
    session = prony.Session(mlp, threads=1)
    with session.monitor(every=5, latency_above_ms=1e-6) as monitor:
        for _ in range(20):
            session.run({"x": rows_of(2)})
    assert len(monitor.samples) == 4 and [b["run"] - a["run"] for a, b in zip(monitor.samples, list(monitor.samples)[1:])] == [5, 5, 5]
    sample = monitor.samples[-1]
    assert sample["latency_ns"] > 0 and sample["latency"]["count"] > 0 and sample["latency"]["median_ns"] > 0
    assert sample["operators"] and {"index", "name", "op", "kernel", "time_ns"} == set(sample["operators"][0])
    assert sample["overhead"] >= 0 and sample["resident_bytes"] > 0
    assert len(monitor.alerts) == 20 and monitor.alerts[0]["kind"] == "latency"
    assert monitor.alerts[0]["value"] > monitor.alerts[0]["threshold"]
    for _ in range(10):
        session.run({"x": rows_of(2)})
    assert len(monitor.samples) == 4 and len(monitor.alerts) == 20


def test_callbacks_of_a_monitor(mlp, monkeypatch):
    session = prony.Session(mlp, threads=1)
    seen = []
    session.monitor(every=1, on_sample=lambda sample: seen.append(sample["run"]))
    session.run({"x": rows_of(1)})
    assert len(seen) == 1

    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: ignored.append(str(what.exc_value)))

    def broken(sample):
        raise ValueError("broken callback")

    session.monitor(every=1, on_sample=broken)  # replaces the first
    expect(session.run({"x": rows_of(1)}), rows_of(1))
    assert (len(seen), ignored) == (1, ["broken callback"])
    with pytest.raises(ValueError):
        session.monitor(every=0)
    with pytest.raises(prony.InvalidArgument):
        session.profile(runs=1)  # the monitor is on
    monitor = session.monitor()
    session.close()
    monitor.stop()


def test_a_session_that_its_callback_holds_is_collected(mlp):
    session = prony.Session(mlp, threads=1)
    session.monitor(every=1, on_sample=lambda sample, session=session: None)
    session.run({"x": rows_of(1)})
    gone = weakref.ref(session)
    del session
    gc.collect()
    assert gone() is None
