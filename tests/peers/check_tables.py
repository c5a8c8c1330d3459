"""Compares what `prony inspect` counts with published figures, to the digits shown, and with figures computed here from
the models' definitions, exactly.

    python3 tests/peers/check_tables.py --prony BUILD/prony --work DIR [--presets]

Models that DIR lacks are exported first. --presets also checks the figures that `--count` gives. Exit status: 0 all
agree, 1 it could not be checked, 2 wrong usage, 3 a figure differs.
"""
import argparse
import json
import pathlib
import subprocess
import sys

from check_models import CheckError, ensure_models

# torchvision's published figures at 224x224 (the detector: 320x320), batch 1, in 1e9 MACs.
GMACS = {
    "alexnet": "0.714", "vgg11": "7.609", "resnet18": "1.814", "resnet50": "4.089", "squeezenet1_1": "0.349",
    "densenet121": "2.834", "mobilenet_v2": "0.301", "mobilenet_v3_small": "0.057", "mobilenet_v3_large": "0.217",
    "efficientnet_b0": "0.386", "shufflenet_v2_x1_0": "0.145", "convnext_tiny": "4.456", "vit_b_16": "17.564",
    "ssdlite320_mobilenet_v3": "0.583",
}


def giga(value):
    return value / 1e9


# The layers of export_models.py. Bidirectional cells read 2 * 64 features in the second layer.
STEPS, SEQUENCE = 24, 128
DIMENSIONS = {"gpt2": {"sequence": SEQUENCE}, "gpt2_tiny": {"sequence": SEQUENCE}, "bilstm": {"sequence": STEPS},
              "gru": {"sequence": STEPS}, "stateful_lstm": {"sequence": STEPS}, "crnn": {"width": 100},
              "ssdlite320_mobilenet_v3": {"height": 320, "width": 320}}


def gpt_macs(layers, hidden, vocabulary):
    products = 12 * hidden * hidden  # query, key, value, output and the two of the inner layer, with width 4 * hidden
    return SEQUENCE * (layers * (products + 2 * SEQUENCE * hidden) + hidden * vocabulary)


def cell_macs(gates, directions, inputs, hidden):
    return directions * gates * hidden * (inputs + hidden)


CRNN_CONVOLUTIONS = 9 * (32 * 100 * 1 * 32 + 16 * 50 * 32 * 64 + 8 * 25 * 64 * 128 + 4 * 25 * 128 * 128)
COMPUTED = {
    "gpt2": gpt_macs(12, 768, 50257),
    "gpt2_tiny": gpt_macs(2, 64, 1000),
    "bilstm": STEPS * (cell_macs(4, 2, 32, 64) + cell_macs(4, 2, 128, 64) + 128 * 20),
    "gru": STEPS * (cell_macs(3, 1, 32, 64) + cell_macs(3, 1, 64, 64) + 64 * 20),
    "stateful_lstm": STEPS * (cell_macs(4, 1, 32, 64) + cell_macs(4, 1, 64, 64) + 64 * 20),
    "crnn": CRNN_CONVOLUTIONS + 25 * (cell_macs(4, 2, 128, 128) + cell_macs(4, 2, 256, 128) + 256 * 37),
}

# model, what, preset, path in the report (rows by operator), conversion, published figure: its decimals are the digits
# compared
FIGURES = [(name, "GMACs", None, "totals.macs", giga, figure) for name, figure in GMACS.items()] + [
    ("resnet18_cifar_bn", "parameters", None, "totals.parameters", int, "11220132"),
    ("resnet18_cifar_bn", "MB of weights", None, "model.parameter_bytes", lambda value: value / 2**20, "42.8014"),
    ("resnet18_cifar_bn", "GMACs", None, "totals.macs", giga, "0.5555"),
    ("mlp", "parameters", None, "totals.parameters", int, "288"),
    ("mlp", "bits of weights", None, "model.parameter_bytes", lambda value: value * 8, "9216"),
    ("resnet18_cifar_bn", "G, deeplite", "deeplite", "totals.count", giga, "0.5567"),
    ("gpt2", "parameters", None, "totals.parameters", int, "124439808"),
    *((name, "MACs, computed", None, "totals.macs", int, str(macs)) for name, macs in COMPUTED.items()),
    ("mlp", "operations, moduleprofiler", "moduleprofiler", "layers.Gemm.count", int, "512"),  # without its Sigmoid
]


def inspect(prony, path, preset):
    """The report, or CheckError."""
    command = [str(prony), "inspect", str(path), "--json", "-"] + (["--count", preset] if preset else [])
    dimensions = DIMENSIONS.get(path.stem, {})
    for name, size in (dimensions if "height" in dimensions else {"batch": 1, **dimensions}).items():
        command += ["--dim", f"{name}={size}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise CheckError(f"exit status {done.returncode}: {done.stderr.strip() or 'nothing said'}")
        return json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise CheckError(str(error)) from error


def main():
    parser = argparse.ArgumentParser(description="Compares prony's counts with published figures.")
    parser.add_argument("--prony", type=pathlib.Path, required=True, metavar="FILE")
    parser.add_argument("--work", type=pathlib.Path, required=True, metavar="DIR", help="the exported models; kept")
    parser.add_argument("--presets", action="store_true", help="also the figures of other tools")
    args = parser.parse_args()
    figures = [row for row in FIGURES if row[2] is None or args.presets]
    prony, work = args.prony.resolve(), args.work.resolve()
    if not prony.is_file():
        raise SystemExit(f"check_tables: no such file: {args.prony}")
    try:
        ensure_models(work, dict.fromkeys(row[0] for row in figures))
    except CheckError as error:
        raise SystemExit(f"check_tables: {error}") from error

    print(f"{'model':23}  {'figure':26}  {'published':>11}  {'prony':>18}  verdict")
    failures, reports = [], {}
    for name, what, preset, key, convert, published in figures:
        try:
            if (name, preset) not in reports:
                reports[name, preset] = inspect(prony, work / f"{name}.onnx", preset)
            value = reports[name, preset]
            for part in key.split("."):
                if isinstance(value, list):
                    value = {row["op"]: row for row in value}
                if part not in value:
                    raise CheckError(f"the report has no {key}")
                value = value[part]
            digits = len(published.partition(".")[2])
            ours, shown = f"{convert(value):.{digits}f}", f"{value:,}"
        except CheckError as error:
            failures.append(f"{name}: {error}")
            ours = shown = "-"
        else:
            if ours != published:
                failures.append(f"{name}: {what} {ours} ({shown}), published {published}")
        verdict = "pass" if ours == published else "FAIL"
        print(f"{name:23}  {what:26}  {published:>11}  {shown:>18}  {verdict}", flush=True)
    print(f"\n{len(figures) - len(failures)} of {len(figures)} agree")
    for failure in failures:
        print(f"  {failure}")
    return 3 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
