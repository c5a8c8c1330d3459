"""Type hints: mypy --strict finds nothing; and whatever is public says what it is."""

import inspect
import os
import pathlib
import shutil
import subprocess

import prony
import pytest

HERE = pathlib.Path(__file__).resolve().parent


def test_mypy(tmp_path):
    if not shutil.which("mypy"):
        pytest.skip("mypy is not installed (Debian: mypy)")
    folder = pathlib.Path(prony.__file__).resolve().parent
    ran = subprocess.run(["mypy", "--config-file", str(HERE.parent / "pyproject.toml"), "--cache-dir", str(tmp_path), str(folder)],
                         capture_output=True, text=True, timeout=300, cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""})
    assert ran.returncode == 0, ran.stdout
    assert (folder / "py.typed").is_file()


@pytest.mark.parametrize("name", sorted(set(prony.__all__) - {"__version__", "errors"}))
def test_public_names_are_described(name):
    thing = getattr(prony, name)
    assert inspect.getdoc(thing), name
    if inspect.isclass(thing):
        for key, member in vars(thing).items():
            described = isinstance(member, property) or (inspect.isfunction(member) and not key.startswith("_"))
            if described and thing.__module__.startswith("prony") and not issubclass(thing, tuple):
                assert inspect.getdoc(member) or key in ("rows", "considered", "regressions", "notes", "ok"), f"{name}.{key}"


def test_help_is_readable():
    import pydoc

    text = pydoc.plain(pydoc.render_doc(prony))
    assert "prony.profile(" in text and "session.run(" in text and "class Session" in text
