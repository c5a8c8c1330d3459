"""Checks what the compiled library says of its layers: check_links.py NM LIBRARY.a COMPILE_COMMANDS ROOT BUILD_TYPE

No object takes a symbol from a layer above its own (prony.h <- base <- {loaders, ops} <- engine <- profiler <- evaluate
<- quantize <- api), whatever headers it includes. Objects do not take symbols of one another in circles, but for MUTUAL. Every
source of ops/ is compiled as kernels are, and every *_simd.c once per instruction set."""
import json
import pathlib
import re
import subprocess
import sys

FLOORS = {"base": 0, "loaders": 1, "ops": 1, "engine": 2, "profiler": 3, "evaluate": 4, "quantize": 5, "api": 6}
KERNEL_FLAGS = {"-fno-math-errno", "-fno-trapping-math"}
VARIANTS = {"scalar": set(), "avx2": {"-mavx2", "-mfma"}, "avx512": {"-mavx512f", "-mavx512bw"}}
DOT_VARIANTS = VARIANTS | {"vnni": {"-mavx512bw", "-mavx512vnni"}, "bf16": {"-mavx512vnni", "-mavx512bf16"},
                           "amx": {"-mavx512vnni", "-mamx-int8", "-mamx-bf16"}}  # of *_dot_simd.c
# Files that call one another, and may: nested graphs, bodies and calls are read, bound and run by what reads, binds and runs the outer
# one; a budget's last block frees the budget; a plan's values and steps are made where it is settled; a row's kernel for codes
# is a file beside the file of the row.
MUTUAL = [
    {"base/memory/alloc", "base/memory/budget"},
    {"loaders/onnx/attributes", "loaders/onnx/graph"},
    {"engine/bind/bind", "engine/bind/bind_constants", "engine/bind/bind_costs", "engine/bind/bind_gradient",
     "engine/bind/bind_inline"},
    {"engine/plan/constants", "engine/plan/planner", "engine/plan/assign_layouts"},
    {"engine/plan/buffer_order", "engine/plan/buffers", "engine/plan/step_graph", "engine/plan/workers"},
    {"ops/kernels/gemm/lowbit_weights", "ops/kernels/gemm/lowbit_weights_simd"},
    {"ops/rnn/recurrent_native", "ops/rnn/recurrent_walk"},
    {"ops/quantized/qint8_conv", "ops/quantized/int_conv", "ops/quantized/int_conv_device"},
    {"ops/quantized/qint8_matmul", "ops/quantized/int_matmul", "ops/quantized/int_matmul_device"},
    {"profiler/accuracy/reference", "profiler/accuracy/reference_quantized", "profiler/accuracy/reference_control",
     "profiler/accuracy/reference_conv"},
]


def source_folders(root):
    return {path.name + ".o": path.relative_to(root).parts[0] for floor in FLOORS for path in (root / floor).rglob("*.c")}


def symbols(nm, library):
    """Defined and needed symbols of each member of the archive."""
    defined, needed, member = {}, {}, None
    for line in subprocess.run([nm, library], capture_output=True, text=True, check=True).stdout.splitlines():
        if line.endswith(":"):
            member = line[:-1]
        elif match := re.match(r"[0-9a-f ]{16} ([A-Za-z]) (\S+)$", line):
            kind, name = match.groups()
            if kind == "U":
                needed.setdefault(name, set()).add(member)
            elif kind.isupper():
                defined[name] = member
    return defined, needed


def check_floors(nm, library, root, problems):
    folders = source_folders(root)
    defined, needed = symbols(nm, library)
    for name, users in sorted(needed.items()):
        home = folders.get(defined.get(name))
        for user in sorted(users):
            room = folders.get(user)
            if home and room and (FLOORS[home] > FLOORS[room] or {home, room} == {"loaders", "ops"}):
                problems.append(f"{room}/ ({user[:-2]}) takes {name} from {home}/ ({defined[name][:-2]})")
    return len(needed)


def check_circles(nm, library, root, problems):
    """The table of operators (prn_ops_*) leads to every family, which may look a row up: this does not count as a
    circle of files."""
    homes = {path.name + ".o": path.relative_to(root).with_suffix("").as_posix()
             for floor in FLOORS for path in (root / floor).rglob("*.c")}
    defined, needed = symbols(nm, library)
    takes, reached = {}, {}
    for name, users in needed.items():
        home = homes.get(defined.get(name))
        for user in users if home and not name.startswith("prn_ops_") else ():
            takes.setdefault(homes.get(user), set()).add(home)
    for start in takes:
        found, open_ends = set(), [start]
        while open_ends:
            new = takes.get(open_ends.pop(), set()) - found
            found |= new
            open_ends.extend(new)
        reached[start] = found
    circles = {tuple(sorted(b for b in reached[a] if a in reached.get(b, ()))) for a in reached if a in reached[a]}
    for circle in sorted(circles):
        if len(circle) > 1 and not any(set(circle) <= group for group in MUTUAL):
            problems.append(f"{', '.join(circle)} take symbols of one another in a circle")


def check_flags(commands, root, optimised, problems):
    variants = {}
    for entry in json.loads(pathlib.Path(commands).read_text(encoding="utf-8")):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if root not in path.parents or path.relative_to(root).parts[0] not in ("ops", "base"):
            continue
        name, flags = path.relative_to(root).as_posix(), set(entry["command"].split())
        if path.name.endswith("_simd.c"):
            isa = next((f.split("=")[1] for f in flags if f.startswith("-DPRN_SIMD=")), "none")
            variants.setdefault(name, set()).add(isa)
            if not DOT_VARIANTS.get(isa, set()) <= flags and "-DPRN_EMULATED_AVX512" not in flags:
                problems.append(f"{name}: compiled as {isa} without {' '.join(sorted(DOT_VARIANTS[isa]))}")
        elif not name.startswith("ops/"):
            continue
        if not KERNEL_FLAGS <= flags:
            problems.append(f"{name}: compiled without {' '.join(sorted(KERNEL_FLAGS - flags))}")
        if optimised and "-O3" not in flags:
            problems.append(f"{name}: compiled without -O3")
    for path in [*(root / "ops").rglob("*_simd.c"), *(root / "base").rglob("*_simd.c")]:
        name = path.relative_to(root).as_posix()
        wanted = DOT_VARIANTS if name.endswith("_dot_simd.c") else VARIANTS
        for missing in sorted(set(wanted) - variants.get(name, set())):
            problems.append(f"{name}: not compiled for {missing}")
    return len(variants)


def main():
    nm, library, commands, root, build_type = sys.argv[1:]
    root, problems = pathlib.Path(root).resolve(), []
    count = check_floors(nm, library, root, problems)
    check_circles(nm, library, root, problems)
    variants = check_flags(commands, root, build_type.startswith("Rel"), problems)
    for problem in problems:
        print(problem)
    print(f"{count} symbols between objects, {variants} sources per instruction set, {len(problems)} problems")
    return 1 if problems or not count or not variants else 0


if __name__ == "__main__":
    sys.exit(main())
