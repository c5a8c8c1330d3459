"""The notebooks run from the first cell to the last. Their pictures are written where PRONY_PICTURES names a folder, to be looked at."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap

import prony
import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"

RUN = textwrap.dedent("""
    import ast, json, pathlib, sys, warnings
    import matplotlib
    matplotlib.use("agg")
    from matplotlib import pyplot
    warnings.simplefilter("ignore")
    notebook, pictures = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")), pathlib.Path(sys.argv[2])
    names, drawn, shown = {"__name__": "__main__"}, 0, 0
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        code = "".join(cell["source"])
        tree = ast.parse(code)
        last = tree.body[-1] if isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";") else None
        if last:
            tree.body.pop()
        exec(compile(tree, f"cell {number}", "exec"), names)
        value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names) if last else None
        if value is not None:
            shown += hasattr(value, "_repr_html_") and len(value._repr_html_()) > 100
            print(value if not hasattr(value, "_repr_html_") else repr(value))
        for figure in map(pyplot.figure, pyplot.get_fignums()):
            figure.savefig(pictures / f"{pathlib.Path(sys.argv[1]).stem}_{drawn}.png", dpi=80)
            drawn += 1
        pyplot.close("all")
    print(f"{drawn} pictures, {shown} tables and cards")
    """)


def run_notebook(name, folder, **environment):
    pictures = pathlib.Path(os.environ.get("PRONY_PICTURES", folder))
    ran = subprocess.run([sys.executable, "-c", RUN, str(EXAMPLES / name), str(pictures)], capture_output=True, text=True,
                         timeout=500, cwd=folder,
                         env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(prony.__file__)), **environment})
    assert ran.returncode == 0, ran.stderr
    print(ran.stdout)
    return ran.stdout


def test_walkthrough(tmp_path):
    for module in ("torch", "torchvision", "onnx", "pandas", "matplotlib"):
        pytest.importorskip(module, reason=f"python3-{module} is not installed: the walkthrough does not run")
    said = run_notebook("walkthrough.ipynb", tmp_path)
    assert said.endswith("3 pictures, 5 tables and cards\n") or said.endswith("3 pictures, 6 tables and cards\n")
    assert "/classifier/classifier.1/Gemm: " in said and "parameters" in said and "MISSED" in said


def test_scaling(tmp_path):
    for module in ("pandas", "matplotlib"):
        pytest.importorskip(module, reason=f"python3-{module} is not installed: the notebook does not run")
    said = run_notebook("scaling.ipynb", tmp_path, STUDY=str(EXAMPLES / "study.json"))
    assert "3 pictures, 3 tables and cards" in said and "Amdahl" in said or "amdahl" in said


@pytest.mark.parametrize("name", ["walkthrough.ipynb", "scaling.ipynb"])
def test_notebooks_are_clean(name):
    """No outputs and no numbers of runs are kept: they would be another machine's."""
    for cell in json.loads((EXAMPLES / name).read_text(encoding="utf-8"))["cells"]:
        assert cell["cell_type"] == "markdown" or (cell["outputs"] == [] and cell["execution_count"] is None)
