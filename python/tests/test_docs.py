"""The pages about Python name every public name, and the example that trains runs as it stands there."""
import os
import pathlib
import re

import pytest

import prony

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def test_the_reference_names_every_public_name():
    page = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    missing = [name for name in prony.__all__ if not re.search(r"`[^`]*\b%s\b" % re.escape(name), page)]
    assert missing == []


def test_the_training_example_learns(tmp_path, monkeypatch, capsys):
    pytest.importorskip("onnx")
    np = pytest.importorskip("numpy")
    page = (DOCS / "guides" / "train.md").read_text(encoding="utf-8")
    code, = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "train.md", "exec"), {})
    losses = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()]
    assert len(losses) == 4 and losses[-1] < losses[0] and np.isfinite(losses).all()
    assert os.path.isfile("training.onnx")
