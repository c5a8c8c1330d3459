"""Profiles, reports and what is made of them."""

import json
import math
import pickle
import subprocess
import sys

import numpy as np
import onnx_bytes as ob
import prony
import pytest

LEVELS = ("layers", "operators", "modules", "types", "memory_timeline", "memory_events", "weights")


@pytest.fixture(scope="module")
def report(digits):
    return prony.profile(digits, threads=1, runs=30, keep_samples=True)


@pytest.fixture(scope="module")
def static(digits):
    return prony.inspect(digits)


def test_profile(report):
    assert report.data["schema"] == "prony.report/1" and report.measured
    assert report.latency_ns["runs"] == 30 and len(report.latency_ns["samples"]) == 30
    assert report.data["config"]["intra_op_threads"] == 1
    assert report.totals["macs"] == sum(row["macs"] for row in report.rows("layers"))
    assert report.totals["parameters"] == sum(row["elements"] for row in report.rows("weights") if row["trainable"])
    assert 0.99 < sum(row["time_share"] for row in report.rows("operators")) < 1.01
    assert len(report.layer_samples(0)) == 30
    operators, time = report.critical_path
    assert operators and 0 < time
    assert report.metrics["macs"] == report.totals["macs"]
    assert "MACs" in repr(report) and "digits" in str(report)


def test_inputs_count(digits):
    x = np.ones((5, 1, 8, 8), np.float32)
    name = prony.Session(digits).input_names[0]
    assert prony.profile(digits, {name: x}, runs=2).data["config"]["batch"] == 5
    assert prony.profile(digits, batch=3, runs=2).data["config"]["batch"] == 3
    first, again, other = (prony.profile(digits, runs=1, seed=seed).data["output_sha256"] for seed in (1, 1, 2))
    assert first == again != other


def test_static_report(static, report):
    assert not static.measured and static.totals["macs"] == report.totals["macs"]
    assert "time_share" not in static.rows("layers")[0] and "flops_share" in static.rows("types")[0]
    with pytest.raises(prony.InvalidArgument, match="has no latency"):
        static.latency_ns
    with pytest.raises(prony.InvalidArgument, match="needs a measured report"):
        static.plot("roofline")


def test_layers_that_ran_come_first_with_their_kernels():
    constants = [ob.floats("a", [2], [1.0, 2.0]), ob.floats("b", [2], [3.0, 4.0])]
    nodes = [ob.node("Add", ["a", "b"], ["c"], name="folded"), ob.node("Mul", ["x", "c"], ["y"], name="ran")]
    model = ob.model(ob.graph(nodes, [ob.value("x", ob.FLOAT, [2])], [ob.value("y", ob.FLOAT, [2])], constants))
    report = prony.profile(model, threads=1, runs=2)
    first, second = report.rows("layers")
    assert (first["name"], first["index"], second["name"], second["index"]) == ("ran", 1, "folded", 0)
    assert second["folded"] and "time_mean_ns" not in second and second["kernel"] is None
    assert first["kernel"] == report.rows("operators")[0]["kernel"] and first["time_mean_ns"] > 0
    assert [row["kernel"] for row in prony.inspect(model).rows("layers")] == [None, None]


def test_rows_name_their_units(report):
    for level in LEVELS:
        for key in report.rows(level)[0]:
            assert not key.endswith("_time") and key not in ("bytes_read", "share", "time", "latency", "memory"), (level, key)
    with pytest.raises(prony.InvalidArgument, match="unknown rows 'nothing'"):
        report.rows("nothing")


def test_frames(report):
    pandas = pytest.importorskip("pandas")
    for level in LEVELS:
        frame = getattr(report, level)
        assert isinstance(frame, pandas.DataFrame) and len(frame) == len(report.rows(level))
    assert report.layers["macs"].sum() == report.totals["macs"]
    assert {"time_mean_ns", "flops_per_second", "arithmetic_intensity_flop_per_byte", "bound",
            "percent_of_roof"} <= set(report.operators.columns)


def test_without_pandas_and_matplotlib(digits, tmp_path):
    code = """
import sys
sys.modules["pandas"] = sys.modules["matplotlib"] = None
import prony
report = prony.profile(sys.argv[1], runs=2)
print(len(report.rows("layers")) > 3, report.rows("types")[0]["op"], len(report._repr_html_()) > 500, "MACs" in str(report))
for what in (lambda: report.layers, lambda: report.plot("layers")):
    try:
        what()
    except prony.PackageMissing as error:
        print(str(error).split(" (")[0], isinstance(error, ImportError))
"""
    import os

    ran = subprocess.run([sys.executable, "-c", code, digits], capture_output=True, text=True, timeout=60,
                         env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(prony.__file__))})
    assert ran.stdout.splitlines()[0].split()[0::2] == ["True", "True"] and ran.stdout.splitlines()[0].endswith("True"), ran.stderr
    assert ran.stdout.splitlines()[1:] == ["frames need pandas True", "plots need matplotlib True"]


@pytest.mark.parametrize("kind", ["layers", "types", "latency", "memory", "roofline"])
def test_plots(report, kind):
    pytest.importorskip("matplotlib")
    from matplotlib import pyplot

    axes = report.plot(kind)
    assert axes.get_title().startswith("digits.onnx") and axes.get_xlabel()
    drawn = len(axes.patches) + len(axes.lines) + len(axes.collections)
    assert drawn >= (len(report.rows("types")) if kind == "types" else 1)
    own = pyplot.figure().subplots()
    assert report.plot(kind, ax=own) is own
    own.figure.canvas.draw()
    pyplot.close("all")
    with pytest.raises(prony.InvalidArgument, match="unknown plot 'pie'; wanted one of layers"):
        report.plot("pie")


def test_card(report, static):
    card = report._repr_html_()
    assert "median latency" in card and "digits.onnx" in card and card.count("<tr ") == min(8, len(report.rows("operators")))
    assert card.count("<div") == card.count("</div>") and "median latency" not in static._repr_html_()


def test_card_escapes(mlp):
    report = prony.inspect(prony.Model(mlp, name="<script>alert(1)</script>"))
    assert "<script>" not in report._repr_html_()


def test_forms(report, tmp_path):
    for suffix, start in [("json", "{"), ("html", "<!"), ("csv", "index"), ("tex", "%"), ("svg", "<svg"), ("dot", "digraph"), ("txt", "")]:
        path = tmp_path / f"report.{suffix}"
        report.save(path, **({"chart": "layers"} if suffix == "svg" else {}))
        assert path.read_text(encoding="utf-8").lstrip().startswith(start), suffix
    assert json.loads(report.write("trace"))
    assert "kernel" in report.write("csv", levels="operators").splitlines()[0]
    for call in (lambda: report.save(tmp_path / "report.pdf"), lambda: report.write("pdf"), lambda: report.write("text", levels="atoms")):
        with pytest.raises(prony.InvalidArgument):
            call()


def test_read_back(report, tmp_path):
    report.save(tmp_path / "a.json")
    for other in (prony.load_report(tmp_path / "a.json"), pickle.loads(pickle.dumps(report))):
        assert other.latency_ns["samples"] == report.latency_ns["samples"]
        assert list(other.rows("memory_timeline")) == list(report.rows("memory_timeline"))
    (tmp_path / "b.json").write_text('{"schema": "prony.report/9"}')
    with pytest.raises(prony.Error, match="b.json"):
        prony.load_report(tmp_path / "b.json")


def test_count_presets(digits, static):
    assert "fvcore" in prony.count_presets()
    counted = prony.inspect(digits, count="fvcore")
    assert counted.totals["count"] > 0 and counted.rows("layers")[0]["count"] is not None
    assert "count" not in counted.set_count(None).totals
    with pytest.raises(prony.InvalidArgument, match="nothing"):
        static.set_count("nothing")


def test_one_call_per_question(digits, static):
    params = prony.count_params(digits)
    assert params.total["name"] == "__root__" and params.total["trainable"] == static.totals["parameters"]
    assert sum(row["trainable"] for row in params.layers) == params.total["trainable"]
    assert prony.estimate_ops(digits).total["flops"] == static.totals["flops"]
    assert prony.estimate_ops(digits, count="fvcore").total["count"] == prony.inspect(digits, count="fvcore").totals["count"]
    rows = prony.trace_io_sizes(digits)
    assert {row["output"] for row in rows} == {False, True} and all(row["elements"] == math.prod(row["shape"]) for row in rows)
    assert "parameters" in repr(params) and "<table>" in params._repr_html_()


def test_progress_and_its_exceptions(digits):
    seen = []
    prony.profile(digits, seconds=1.5, runs=10 ** 9, progress=lambda runs, seconds, error: seen.append((runs, seconds)))
    assert seen and all(runs >= 0 and seconds >= 0 for runs, seconds in seen)

    def fail(runs, seconds, error):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        prony.profile(digits, seconds=60, runs=10 ** 9, progress=fail)


def test_bench(digits):
    made = prony.bench(digits, threads=[1, 2], batches=[1, 4], runs=20)
    assert [(row["threads"], row["batch"]) for row in made.rows] == [(1, 1), (1, 4), (2, 1), (2, 4)]
    assert all(row["median_low_ns"] <= row["median_ns"] <= row["median_high_ns"] for row in made.rows)
    assert made.best() == max(made.rows, key=lambda row: row["samples_per_second"]) and len(made.reports) == 4


def test_compare(digits, report, tmp_path):
    same = prony.compare(report, report)
    assert same.ok and same.regressions == [] and {row["verdict"] for row in same.rows("metrics")} <= {"same", "none"}
    assert {"a_time_ns", "b_time_ns", "time_difference_ns"} <= set(same.rows("layers")[0])
    report.save(tmp_path / "a.json")
    slow = json.loads((tmp_path / "a.json").read_text())
    slow["totals"]["parameters"] *= 2
    for layer in slow["layers"]:
        layer["parameters"] *= 2
    slow["model"]["parameters"] *= 2
    (tmp_path / "b.json").write_text(json.dumps(slow))
    worse = prony.compare(tmp_path / "a.json", tmp_path / "b.json", keys=["parameters", "macs"])
    assert [row["key"] for row in worse.rows("metrics")] == ["macs", "parameters"] and worse.regressions == ["parameters"] and not worse.ok
    assert "worse: parameters" in worse._repr_html_()
    models = prony.compare(digits, prony.Model(digits), runs=10, names=("one", "other"))
    assert models.a.latency_ns["runs"] == models.b.latency_ns["runs"] and models.data["a"]["name"] == "one"
    with pytest.raises(prony.InvalidArgument, match="two reports or two models"):
        prony.compare(report, digits)


def test_check(report):
    good = report.check("latency:3600s", "params:1G")
    assert good.ok and bool(good) and [row["outcome"] for row in good.rows] == ["met", "met"]
    good.raise_for_misses()
    bad = prony.check(report, "params:1", "accuracy:0.9")
    assert not bad.ok and [row["outcome"] for row in bad.rows] == ["missed", "unknown"]
    with pytest.raises(prony.ThresholdMissed, match="MISSED") as caught:
        bad.raise_for_misses()
    assert isinstance(caught.value, AssertionError)
    for wrong in ("nothing:1", "latency:1", "latency"):
        with pytest.raises(prony.InvalidArgument):
            report.check(wrong)
    with pytest.raises(prony.InvalidArgument, match="needs a threshold"):
        report.check()


def test_recommend(digits, report):
    alone = prony.recommend(report)
    assert alone.variants == [] and {row["topic"] for row in [*alone.rows, *alone.considered]} >= {"fusion", "precision", "memory"}
    measured = prony.recommend(digits, seconds=0.02)
    assert len(measured.variants) >= 4 and "Recommendations" in str(measured)


def test_evaluate(digits, root):
    images = np.load(root / "models/digits_images.npy")
    labels = np.load(root / "models/digits_labels.npy")
    session = prony.Session(digits)
    name = session.input_names[0]
    expected = np.mean(np.argmax(session.run({name: images.astype(np.float32)})[session.output_names[0]], 1) == labels)
    done = prony.evaluate(session, {name: images.astype(np.float32)}, labels, batch=16)
    assert done["evaluation"]["metric"] == "top1_accuracy" and done["evaluation"]["value"] == pytest.approx(expected)
    assert done["evaluation"]["samples"] == len(labels)

    def wrong(outputs, truth):
        return float(np.mean(np.argmax(outputs[0], 1) != truth))

    mine = prony.evaluate(digits, {name: images.astype(np.float32)}, labels, metric=wrong, threads=1)
    assert mine["evaluation"]["metric"] == "wrong" and mine["evaluation"]["value"] == pytest.approx(1 - expected)

    def fail(outputs, truth):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        prony.evaluate(digits, {name: images.astype(np.float32)}, labels, metric=fail)
    with pytest.raises(prony.InvalidArgument, match="labels are missing"):
        prony.evaluate(digits, {name: images})
    with pytest.raises(prony.Error, match="nowhere"):
        prony.evaluate(digits, "nowhere")


def test_extract(digits, tmp_path):
    layers = prony.inspect(digits).data["layers"]
    middle = prony.Model(digits)
    middle.extract(tmp_path / "whole.onnx")
    assert prony.inspect(tmp_path / "whole.onnx").totals["macs"] == sum(row["macs"] for row in layers)
    with pytest.raises(prony.InvalidArgument, match="nowhere"):
        middle.extract(tmp_path / "part.onnx", outputs=["nowhere"])


def test_study(digits, tmp_path):
    shown = []
    study = prony.scale(digits, threads=[1, 2], processes=2, seconds=0.05, progress=shown.append)
    assert study["schema"] == "prony.study/1" and shown[-1]["done"] == shown[-1]["planned"]
    assert [row["intra_op_threads"] for row in study.rows("results")] == [1, 2, 1]
    assert len(study.rows("samples")) == sum(row["samples"] for row in study.rows("blocks"))
    study.save(tmp_path / "study.json")
    again = prony.load_study(tmp_path / "study.json")
    assert list(again.rows("results")) == list(study.rows("results")) and again.differences(study) >= 0
    for suffix, chart in (("html", None), ("csv", None), ("svg", "speedup"), ("txt", None)):
        again.save(tmp_path / f"study.{suffix}", chart)
        assert (tmp_path / f"study.{suffix}").stat().st_size > 100
    with pytest.raises(prony.InvalidArgument, match="study.pdf"):
        again.save(tmp_path / "study.pdf")
    with pytest.raises(prony.Error, match="nowhere.json"):
        prony.load_study(tmp_path / "nowhere.json")


@pytest.mark.parametrize("kind", ["speedup", "efficiency", "latency"])
def test_study_plots(root, kind, tmp_path):
    pytest.importorskip("matplotlib")
    study = prony.load_study(root / "python/examples/study.json")
    axes = study.plot(kind)
    assert axes.get_xlabel() == "threads" and axes.lines
    axes.figure.savefig(tmp_path / "study.png")
    assert len(study.results) == len(study.rows("results")) and "<table>" in study._repr_html_()


def test_machine(tmp_path):
    import os

    code = ("import prony, json; a = prony.machine(); b = prony.machine(measure=True, threads=1, seconds=0.2); "
            "c = prony.machine(); print(a, c == b, c['compute'][0]['precision'])")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
                         env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(prony.__file__)),
                              "XDG_CACHE_HOME": str(tmp_path)})
    assert ran.stdout.split()[:2] == ["None", "True"], ran.stderr


def test_what_is_running():
    assert prony.build()["version"] == prony.__version__
    assert any(row["name"] == "Conv" for row in prony.builtin_operators())
    assert prony.memory_in_use() >= 0


def test_roofs_are_those_of_the_threads_that_ran():
    """A run on one thread stands under what one thread can do, not under two."""
    from types import SimpleNamespace

    from prony.plots import _roofs
    compute = [{"precision": p, "threads": t, "flops_per_second": f * t} for t in (1, 2, 4) for p, f in (("fp32", 100.0), ("fp64", 50.0))]
    memory = [{"level": level, "threads": t, "bytes_per_second": b * t} for t in (1, 2, 4) for level, b in (("L1", 9.0), ("DRAM", 1.0))]
    for intra_op, inter_op, found in ((1, 1, 1), (2, 1, 2), (1, 2, 2), (3, 1, 2), (4, 2, 4)):
        data = {"roof": {"compute": compute, "memory": memory}, "config": {"intra_op_threads": intra_op, "inter_op_threads": inter_op}}
        assert _roofs(SimpleNamespace(data=data)) == (100.0 * found, [("L1", 9.0 * found), ("DRAM", 1.0 * found)])
    assert _roofs(SimpleNamespace(data={"config": {}})) == (None, [])
