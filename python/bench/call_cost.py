"""What Python adds: the import, and a Session.run beside the bare C call. By hand, on a machine that does nothing else:

    PYTHONPATH=build/python python3 python/bench/call_cost.py [MODEL]

Without MODEL a small multilayer perceptron (8 -> 32) is written. The C call is that of bench/call_cost.c, compiled here against the static
library, in turns with Python's; the least of many rounds counts, since other work can only add."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUNDS, CALLS = 40, 5000


def import_ms():
    code = "import time; t = time.perf_counter(); import prony; print(1e3 * (time.perf_counter() - t))"
    return min(float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) for _ in range(20))


def c_program(folder):
    """Compiled with what prony.pc of the build says."""
    build = pathlib.Path(os.environ.get("PRONY_BUILD_DIR", pathlib.Path(__import__("prony").__file__).parents[2]))
    lines = (build / "prony.pc").read_text().splitlines()
    private = next(line for line in lines if line.startswith("Libs.private:")).split(":", 1)[1].split()
    program = str(pathlib.Path(folder) / "call_cost")
    subprocess.run(["cc", "-O2", "-I", str(ROOT / "include"), str(pathlib.Path(__file__).with_suffix(".c")), "-o", program,
                    str(build / "libprony.a"), *private], check=True)
    return program


def python_ns(session, given):
    run = session.run
    start = time.perf_counter_ns()
    for _ in range(CALLS):
        run(given)
    return (time.perf_counter_ns() - start) / CALLS


def main():
    import numpy as np

    import prony

    sys.path.insert(0, str(ROOT / "python" / "tests"))
    import conftest

    with tempfile.TemporaryDirectory() as folder:
        model = sys.argv[1] if len(sys.argv) > 1 else os.path.join(folder, "mlp.onnx")
        if len(sys.argv) < 2:
            pathlib.Path(model).write_bytes(conftest.mlp_bytes())
        program = c_program(folder)
        session = prony.Session(model, threads=1, profiled=False)
        given = {port.name: np.zeros([n or 1 for n in port.shape], port.dtype) for port in session.inputs}
        session.run(given)
        in_python, in_c = [], []
        for _ in range(ROUNDS):
            in_python.append(python_ns(session, given))
            in_c.append(float(subprocess.run([program, model, str(CALLS)], capture_output=True, text=True, check=True).stdout))
        print(json.dumps({"import_ms": round(import_ms(), 1), "python_run_ns": round(min(in_python)), "c_run_ns": round(min(in_c)),
                          "difference_ns": round(min(in_python) - min(in_c))}))


if __name__ == "__main__":
    main()
