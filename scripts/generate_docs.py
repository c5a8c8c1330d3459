"""Writes docs/reference/operators.md and counting.md from the operator table that `prony ops --json -` prints, and
options.md as `prony manual markdown` prints it.

    python3 scripts/generate_docs.py --prony BUILD/prony [--docs DIR] [--check]

--check writes nothing and compares. Use a build with oneDNN and OpenBLAS: the kernels of other builds are fewer.
Exit status: 0 done or current, 1 the table could not be read, 2 wrong usage, 3 a page is out of date.
"""
import argparse
import difflib
import json
import pathlib
import subprocess
import sys

DOMAIN_TITLES = {
    "": ("ai.onnx", "The ONNX standard."),
    "ai.onnx.ml": ("ai.onnx.ml", "Classical machine learning."),
    "ai.onnx.preview": ("ai.onnx.preview", "Operators that the standard tries out."),
    "ai.onnx.preview.training": ("ai.onnx.preview.training", "Gradients ([gradients.md](gradients.md)) and steps of gradient methods."),
    "com.microsoft": ("com.microsoft", "Operators that ONNX Runtime's optimizer and quantizer write into files."),
    "prony": ("prony", "Operators of Prony's own rewrites; files do not need them."),
}

OPERATORS_HEAD = """\
# Operators

`scripts/generate_docs.py` generates this page from the operator table; `prony ops` prints the same.

- *since* is the first opset of its domain that a row serves. A row serves all later ones up to the
  next row of that name, and tells the versions in between apart.
- *types* are element types of the first input. *all* stands for the types that the specification
  admits; shape inference refuses other types by name.
- *kernels* stand in order of preference. The plan takes the first that supports the node and is
  profitable; the last is the plain C reference.
"""

COUNTING_HEAD = """\
# Counting

`scripts/generate_docs.py` generates this page: the rules below, and each operator's formula from
the operator table (`cost` and `cost_text` of the descriptor, beside the code that counts).

## Quantities

For every node, at its bound shapes, exactly and in 64 bits (an overflow is an error, never a wrong
figure):

| | |
|---|---|
| **macs** | Multiplications accumulated into the sum of a contraction: convolutions, matrix products, the two products of attention, recurrent gates; integer ones as well. |
| **madds** | The MACs, plus the multiply-add pairs (a x + b) by which normalisations and piecewise linear maps scale and shift. Never less than macs. |
| **flops** | Arithmetic on floating-point data. A MAC is two. An addition, subtraction, multiplication, division, comparison, minimum, maximum, absolute value, negation, rounding, square root, exponential, logarithm or other elementary function is one. |
| **special** | FLOPs that cost a processor many cycles: divisions, square roots, powers, exponentials, logarithms, error functions, trigonometric and hyperbolic functions. |
| **int_ops** | The same arithmetic on integer data. An integer convolution of M MACs has macs M, flops 0, int_ops 2 M. |
| **bytes_read, bytes_written** | The minimum traffic: every input and weight once, every output once, at its stored width. Operators that select (Gather, Slice, embeddings) read the selected elements. |
| **parameters** | Elements of the weights, at the first node that uses them, including weights in attributes (trees, support vectors). 2-bit or 4-bit values packed into bytes (MatMulNBits, QMoE) are one each; the report gives their bits. Running statistics, shape tensors and other untrained constants do not count. |

Moving data is not arithmetic: reshaping, transposing, casting, slicing, joining, padding and
comparing strings count 0, as do logical operations on bools.

## Rules

- Counts belong to the nodes of the file, before any rewriting. A fused kernel carries the sum of
  its nodes, so layers, operators and model add up to the same macs, madds, flops, special, int_ops
  and parameters; the report says so (`totals.conserved`). FLOPs are therefore the model's, not the
  machine's (`executed_flops`, if a kernel executes fewer): work that folding saves still counts,
  work that a blocked layout adds does not.
- Bytes are not conserved. The bytes of a layer are its traffic if it ran alone. The bytes of an
  operator are its external inputs and outputs, and so show the saving of fusion.
- A node with constant inputs was evaluated when shapes were bound. It costs nothing per run and is
  marked `folded`.
- Padding of a convolution counts as if it were data. Padding of a pool does too.
- An empty tensor costs 0.
- Work known only at run time (the branch of an If, trips of a Loop, shapes behind NonZero) is
  counted as executed, by the last run; before a run the costlier branch and one trip stand in.
  These layers are marked `dynamic`.
- FLOPs are a number, FLOP/s a rate.

## Differences to other tools

- **They count the PyTorch module, Prony the exported file.** Exports fold BatchNorm into the
  convolution before it (unless `training=TrainingMode.PRESERVE`). Its arithmetic, which fvcore
  counts on the module, is then in no file, and the convolution has a bias that the
  module's lacks. Functions that the exporter writes as several nodes, or omits in inference
  (Dropout), differ likewise.
- **Another unit.** fvcore and thop count a MAC as one, Prony's FLOPs as two; and each omits some
  operators that are not products. `--count fvcore` applies fvcore's rules to the nodes in the file.
- **Another batch or image size.** Every count is at the shapes of the report's inputs.
- **A constant subgraph.** Layers that depend on constants alone are evaluated once. Their counts
  stay with the layers, and they take no time.

## Counting presets

`--count PRESET` (on `inspect`, `profile`, `bench`, `compare`, `metrics`), or
`prony_report_set_count`, adds the count of another tool as `count` to totals, modules and layers.
`prony ops --count PRESET` shows the formulas and the version of the tool.

| preset | a MAC is | not counted |
|---|---|---|
| `fvcore` | 1 | activations, softmax, elementwise operators, recurrent layers, most pools |
| `deepspeed` | 2 | sigmoid, tanh, elementwise operators other than add and mul |
| `onnx-tool` | 1 | RNN, reductions; it reads the model's own nodes |
| `moduleprofiler` | 2, less an addition per output without bias | functional products, GELU, elementwise operators; transposed convolutions, whose figure the tool takes from a float32 run of its own |
| `thop` | 1 | functional products, elementwise operators, sigmoid, tanh |
| `torch` | 2 | all but products, convolutions and attention |
| `deeplite` | 1 | all but convolutions, linear layers and BatchNorm (2 per output) |

A preset is a function of operator type, shapes and facts. The report has all of them, so a preset
works on a saved one. Operators that an exporter wrote as primitives (GELU, SiLU, HardSwish,
LayerNormalization, a linear layer as MatMul and Add) are counted as the one operator by every
preset but `onnx-tool`. `coverage.uncounted_ops` lists the computing operator types that are left
out, `coverage.uncounted_time_share` their share of the measured time. A MatMul counts as a linear
layer if it is the first to use its weight.

## Formulas

n: output elements; r: rows that are normalised or attended to; d (or D): length of such a row; K:
kernel volume, or the inner length of a product; M: macs; g: groups; T, B, I, H: steps, batch, input
and hidden size of a recurrence. A formula without a word before it is flops (int_ops on integer
data). Those called special are among the flops. madds are the scale-and-shift pairs added to the
macs. 0: data movement.
"""


class DocsError(Exception):
    pass


def run_command(*words):
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise DocsError(f"{' '.join(words)}: {error}") from error


def read_table(prony):
    try:
        return json.loads(run_command(prony, "ops", "--json", "-"))
    except json.JSONDecodeError as error:
        raise DocsError(f"{prony} ops --json -: {error}") from error


def cell(text):
    return text.replace("|", "\\|")


def by_domain(table):
    known = list(DOMAIN_TITLES)
    domains = sorted({op["domain"] for op in table}, key=lambda d: (known.index(d) if d in known else len(known), d))
    for domain in domains:
        rows = sorted((op for op in table if op["domain"] == domain), key=lambda op: (op["name"], op["since_opset"]))
        title, about = DOMAIN_TITLES.get(domain, (domain, ""))
        yield title, about, rows


def operators_page(table):
    lines = [OPERATORS_HEAD]
    for title, about, rows in by_domain(table):
        lines += [f"## {title}", "", f"{about} {len({op['name'] for op in rows})} operators.".strip(), "",
                  "| operator | since | types | kernels |", "|---|---|---|---|"]
        for op in rows:
            types = "all" if op["types"] == "any" else op["types"].replace(",", ", ")
            kernels = ", ".join(op["kernels"]) or "those of the nodes that replace it"
            lines.append(f"| {op['name']} | {op['since_opset']} | {types} | {kernels} |")
        lines.append("")
    return "\n".join(lines)


def counting_page(table):
    lines = [COUNTING_HEAD]
    for title, _, rows in by_domain(table):
        lines += [f"### {title}", "", "| operator | cost |", "|---|---|"]
        costs = {}
        for op in rows:
            costs.setdefault(op["name"], {}).setdefault(op["cost"], op["since_opset"])
        for name, formulas in costs.items():
            for cost, since in formulas.items():
                label = name if len(formulas) == 1 else f"{name} (since {since})"
                lines.append(f"| {label} | {cell(cost)} |")
        lines.append("")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--prony", required=True, help="the command")
    parser.add_argument("--docs", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent / "docs")
    parser.add_argument("--check", action="store_true", help="compare only")
    options = parser.parse_args()
    try:
        table = read_table(options.prony)
        option_table = run_command(options.prony, "manual", "markdown")
    except DocsError as error:
        print(f"generate_docs: {error}", file=sys.stderr)
        return 1
    status = 0
    for name, text in (("operators.md", operators_page(table)), ("counting.md", counting_page(table)),
                       ("options.md", option_table)):
        path = options.docs / "reference" / name
        if not options.check:
            path.write_text(text, encoding="utf-8")
            continue
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if old != text:
            status = 3
            print(f"{path} is out of date; run scripts/generate_docs.py --prony {options.prony}", file=sys.stderr)
            for line in list(difflib.unified_diff(old.splitlines(), text.splitlines(), "file", "table", lineterm="",
                                                  n=0))[:40]:
                print(line, file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
