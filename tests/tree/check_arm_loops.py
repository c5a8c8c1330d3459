"""Inner loops of AArch64 kernels, taken from their objects by symbol: instructions, spills, and llvm-mca's bounds.

    check_arm_loops.py OBJDUMP LLVM_MCA BUILD_FOLDER

A loop is the innermost one of a function that has most multiply-adds. It must not touch the stack with vector registers, and its
multiply-adds must take at least the stated share of the cycles that llvm-mca gives for one iteration: the bound is the number of
multiply-adds over the number of pipes that take them. SDOT has less than 90 %, as it flips the sign of each code: its goal is what gcc 12
reaches, less two. Exit status: 0 all hold, 1 one does not, 77 no llvm-mca that knows both cores.
"""
import re
import subprocess
import sys

VARIANT = "CMakeFiles/prony_simd_{}.dir/"
# Multiply-adds of vectors that a core starts in a cycle: the manufacturer's optimisation guides.
PIPES = {"neoverse-n1": 2, "neoverse-v1": 4}
MULTIPLY = re.compile(r"^(fmla|fmls|sdot|udot|usdot|sudot|smmla|ummla|usmmla|smlal2?|umlal2?)$")
MODELS_SINCE = 17  # LLVM's first release with pipes and latencies of both cores; earlier ones take another core's
# Object, variant, function, least share of the port bound on each core.
LOOPS = [
    ("product, 8 x 8", "neon", "ops/kernels/gemm/gemm_simd.c.o", "tile_8x2_1", (90, 90)),
    ("direct convolution, 4 blocks x 5", "neon", "ops/conv/conv_direct_simd.c.o", "conv_direct_simd_tile_4x5", (90, 90)),
    ("direct convolution, 2 blocks x 8", "neon", "ops/conv/conv_direct_simd.c.o", "conv_direct_simd_tile_2x8", (90, 90)),
    ("direct convolution, 3 blocks x 6", "neon", "ops/conv/conv_direct_simd.c.o", "conv_direct_simd_tile_3x6", (90, 90)),
    ("Winograd product, 4 blocks x 5", "neon", "ops/conv/conv_winograd_simd.c.o", "product_4x5", (90, 90)),
    ("Winograd product, 2 blocks x 8", "neon", "ops/conv/conv_winograd_simd.c.o", "product_2x8", (90, 90)),
    ("depthwise rows, 7 columns", "neon", "ops/conv/conv_depthwise_simd.c.o", "conv_depthwise_simd_run_row", (90, 90)),
    ("first layer and rows, 6 x 4", "neon", "ops/conv/conv_row_direct_simd.c.o", "conv_row_direct_simd_tile_6x4", (90, 90)),
    ("int8 product, SDOT", "dotprod", "ops/kernels/int8/int8_dot_simd.c.o", "int8_blocks_rows_8", (88, 88)),
    ("int8 product, USMMLA, 8 rows", "i8mm", "ops/kernels/int8/int8_dot_simd.c.o", "int8_blocks_tile_4", (90, 90)),
    ("int8 product, USMMLA, 4 rows", "i8mm", "ops/kernels/int8/int8_dot_simd.c.o", "int8_blocks_tile_2", (90, 90)),
]


def functions(objdump, path):
    text = subprocess.run([objdump, "-d", "--no-show-raw-insn", path], stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout
    found = {}
    for block in re.split(r"\n\n", text):
        head = re.match(r"\s*[0-9a-f]+ <([^>]+)>:", block)
        if not head:
            continue
        lines = []
        for line in block.splitlines()[1:]:
            match = re.match(r"\s*([0-9a-f]+):\s+(\S+)\s*([^/]*)", line)
            if match:
                lines.append((int(match.group(1), 16), match.group(2), match.group(3).strip()))
        found[head.group(1)] = lines
    return found


def inner_loop(lines):
    """The instructions of the innermost loop with most multiply-adds."""
    best, most = [], 0
    loops = []
    at = {address: i for i, (address, _, _) in enumerate(lines)}
    for i, (_, name, operands) in enumerate(lines):
        match = re.search(r"([0-9a-f]+) <", operands)
        if re.match(r"(b$|b\.|cbn?z|tbn?z)", name) and match:
            to = at.get(int(match.group(1), 16))
            if to is not None and to <= i:
                loops.append((to, i))
    for begin, end in loops:
        if any((b, e) != (begin, end) and begin <= b and e <= end for b, e in loops):
            continue
        body = lines[begin:end + 1]
        count = sum(1 for _, name, _ in body if MULTIPLY.match(name))
        if count > most:
            best, most = body, count
    return best, most


def spills(body):
    return [f"{name} {operands}" for _, name, operands in body
            if re.match(r"(ldr|str|ldp|stp|ldur|stur)$", name) and re.match(r"[qdsv]\d", operands) and "[sp" in operands]


def cycles(mca, cpu, body):
    """Cycles of an iteration, and the rest of llvm-mca's summary."""
    text = "".join(f"{name} {re.sub(r'[0-9a-f]+ <.*', '.', operands)}\n" for _, name, operands in body)
    done = subprocess.run([mca, "-mtriple=aarch64-linux-gnu", "-mcpu=" + cpu, "-mattr=+dotprod,+i8mm", "-iterations=100", "-"], input=text,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False)
    match = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
    if not match:
        raise RuntimeError(done.stderr)
    return int(match.group(1)) / 100


def main(objdump, mca, folder):
    version = subprocess.run([mca, "--version"], stdout=subprocess.PIPE, universal_newlines=True, check=False).stdout
    number = re.search(r"LLVM version (\d+)", version)
    if "aarch64" not in version or not number or int(number.group(1)) < MODELS_SINCE:
        print(f"{mca} has no models of both cores: needs LLVM {MODELS_SINCE} or later for AArch64 (Debian: llvm-19)")
        return 77
    failed, read = 0, {}
    print(f"{'loop':34} {'core':12} {'mul-adds':>8} {'instr.':>7} {'bound':>6} {'cycles':>7} {'share':>6}")
    for title, variant, obj, symbol, goals in LOOPS:
        path = f"{folder}/{VARIANT.format(variant)}{obj}"
        if path not in read:
            read[path] = functions(objdump, path)
        if symbol not in read[path]:
            print(f"{title}: {obj} has no function {symbol}")
            failed += 1
            continue
        body, count = inner_loop(read[path][symbol])
        if not count:
            print(f"{title}: {symbol} has no loop with multiply-adds")
            failed += 1
            continue
        for line in spills(body):
            print(f"{title}: {symbol} spills in its inner loop: {line}")
            failed += 1
        for (cpu, pipes), goal in zip(PIPES.items(), goals):
            bound, took = count / pipes, cycles(mca, cpu, body)
            share = 100 * bound / took
            print(f"{title:34} {cpu:12} {count:8} {len(body):7} {bound:6.1f} {took:7.2f} {share:5.1f}% (at least {goal})")
            failed += share < goal
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
