"""Checks the include rules of the tree: check_layering.py ROOT

prony.h <- base <- {loaders, ops} <- engine <- profiler <- evaluate <- quantize <- api <- {bench, python, tests}. Within ops/,
families never include one another, only the contract (ops/ itself) and what they share (ops/kernels/); kernels know no family
and the contract neither; vendor libraries are called from ops/vendor/ alone. Files do not include one another in circles, nor
do folders. Besides: each outside library has its one user, the heap is reached through base/memory/alloc.c alone, the library
neither prints nor ends the process, and source files of the library have names of their own (an archive names its members by
them)."""
import collections
import pathlib
import re
import sys

ALLOWED = {
    "include": set(),
    "base": {"base"},
    "loaders": {"base", "loaders"},
    "ops": {"base", "ops"},
    "engine": {"base", "loaders", "ops", "engine"},
    "profiler": {"base", "loaders", "ops", "engine", "profiler", "generated"},
    "quantize": {"base", "loaders", "ops", "engine", "profiler", "evaluate", "quantize"},
    "evaluate": {"base", "loaders", "ops", "engine", "profiler", "evaluate"},
    "api": {"base", "loaders", "ops", "engine", "profiler", "quantize", "evaluate", "api", "generated"},
    "bench": {"bench"},
    "python": {"python"},
}
# Rooms of ops/ that a room may include besides itself; a family is any other room.
ROOMS = {"": set(), "kernels": {""}, "vendor": {"", "kernels"}}
FAMILY = {"", "kernels", "vendor"}
OWNERS = {  # header prefix: files that may include it
    "omp.h": r"base/threads/parallel\.c",
    "mpi.h": r"bench/cluster/((prony_mpi|message)\.c|pipeline\.h)",
    "microhttpd.h": r"bench/serve/microhttpd_library\.h",
    "sqlite3.h": r"bench/history/sqlite_library\.h",
    "cblas": r"ops/vendor/blas\.c",
    "openblas": r"ops/vendor/blas\.c",
    "CL/": r"ops/vendor/opencl/opencl_library\.h",
    "dlfcn.h": r"base/os/shared_library\.c|ops/vendor/opencl/opencl_library\.c|"
               r"ops/vendor/blas\.c|ops/vendor/dnnl_guard\.c|bench/versus/ort\.c|bench/process/late_library\.c",
    "oneapi/": r"ops/vendor/dnnl\w*\.[ch]",
    "dnnl": r"ops/vendor/dnnl\w*\.[ch]",
    "png.h": r"loaders/images/image_png\.c",
    "jpeglib.h": r"loaders/images/image_jpeg\.c",
    "jerror.h": r"loaders/images/image_jpeg\.c",
    "zlib.h": r"loaders/tensors/inflate\.c",
    "cjson/": r"profiler/json/json_read\.c",
    "cJSON": r"profiler/json/json_read\.c",
}
HEAP = re.compile(r"(?<![\w.>])(malloc|calloc|realloc|reallocarray|free|strdup|strndup|aligned_alloc|posix_memalign|memalign"
                  r"|asprintf|vasprintf|getline|open_memstream|fopen|fdopen|opendir)\s*\(")
SPEAK = re.compile(r"(?<![\w.>])(abort|exit|_exit|printf|puts|putchar|perror)\s*\(|\b(stdout|stderr)\b")
# Files (a .c and its .h are one) that include one another, and may: a budget's last block frees the budget; the caller
# of a thread pool and its job slot are one thing; the loops of a table and the function that picks it; a report estimates shares, which
# are read off its rows.
PAIRS = {("base/memory/alloc", "base/memory/budget"), ("base/threads/job_slot", "base/threads/thread_pool"),
         ("ops/kernels/vector/number", "ops/kernels/vector/number_simd"),
         ("profiler/report/report", "profiler/report/work")}
# A Gradient node becomes nodes, which are bound immediately.
MUTUAL_ROOMS = {("engine/bind", "engine/gradient")}
LARGEST_ROOM = 45  # files of C in one folder: a reader can still survey them
COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
PUBLIC = re.compile(r"prony(_\w+)?\.h")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<([^>]+)>|"([^"]+)")', re.M)


def layer_of(header, path, root):
    """The folder a quoted header belongs to."""
    if PUBLIC.fullmatch(header):
        return None
    if header == "prn_build_info.h":
        return "generated"
    if (root / header).is_file():
        return header.split("/")[0]
    if (path.parent / header).is_file():
        return path.relative_to(root).parts[0]
    return "nowhere"


def room_of(name):
    """The room of ops/ that a path lies in: "" for the contract; None elsewhere."""
    parts = name.split("/")
    return (parts[1] if len(parts) > 2 else "") if parts[0] == "ops" else None


def check_room(name, header, problems):
    own, other = room_of(name), room_of(header)
    if own is None or other is None or own == other:
        return
    if other not in ROOMS.get(own, FAMILY):
        problems.append(f"{name}: ops/{own}/ may not include {header}")


def check_file(path, root, problems):
    name = path.relative_to(root).as_posix()
    folder = name.split("/")[0]
    text = path.read_text(encoding="utf-8")
    for match in INCLUDE.finditer(text):
        angled, quoted = match.groups()
        header = angled or quoted
        for prefix, owner in OWNERS.items():
            if header.startswith(prefix) and not re.fullmatch(owner, name):
                problems.append(f"{name}: only {owner} may include {header}")
        if quoted and not PUBLIC.fullmatch(quoted):
            check_room(name, quoted, problems)
            layer = layer_of(quoted, path, root)
            if layer and layer not in ALLOWED[folder] and not any(quoted.startswith(p) for p in OWNERS):
                problems.append(f"{name}: {folder}/ may not include {quoted} ({layer})")
    if folder in ("include", "bench", "python"):
        return
    code = COMMENT_OR_TEXT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    for number, line in enumerate(code.splitlines(), 1):
        match = HEAP.search(line)
        if match and name != "base/memory/alloc.c":
            problems.append(f"{name}:{number}: {match.group(1)} is called outside base/memory/alloc.c")
        match = SPEAK.search(line)
        if match:
            problems.append(f"{name}:{number}: the library may not use {match.group(1) or match.group(2)}")


def circles(includes):
    """Groups of files each of which leads to every other one by includes, but for PAIRS."""
    reached = {}
    for start in includes:
        found, open_ends = set(), [start]
        while open_ends:
            at = open_ends.pop()
            for name in includes.get(at, ()):
                if name not in found and (at, name) not in PAIRS and (name, at) not in PAIRS:
                    found.add(name)
                    open_ends.append(name)
        reached[start] = found
    return {tuple(sorted(b for b in reached[a] | {a} if a in reached.get(b, ()))) for a in reached if a in reached[a]}


def mutual_rooms(includes):
    """Pairs of folders each of which includes the other, but for MUTUAL_ROOMS; a folder is a subject, and one of two needs the other."""
    edges = {(str(pathlib.PurePosixPath(a).parent), str(pathlib.PurePosixPath(b).parent)) for a, used in includes.items() for b in used}
    return {(a, b) for a, b in edges if a < b and (b, a) in edges and (a, b) not in MUTUAL_ROOMS}


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    problems, seen, count, includes = [], {}, 0, {}
    for folder in ALLOWED:
        for path in sorted((root / folder).rglob("*.[ch]")):
            if path.relative_to(root).parts[:2] == ("python", "build"):  # what pip left
                continue
            check_file(path, root, problems)
            count += 1
            module = includes.setdefault(path.relative_to(root).with_suffix("").as_posix(), set())
            for _, quoted in INCLUDE.findall(path.read_text(encoding="utf-8")):
                if not (root / quoted).is_file():
                    continue
                target = pathlib.Path(quoted).with_suffix("").as_posix()
                if target != path.relative_to(root).with_suffix("").as_posix():
                    module.add(target)
            other = seen.setdefault((folder if folder in ("bench", "python") else "library", path.name), path)
            if other != path:
                problems.append(f"{path.relative_to(root)}: {other.relative_to(root)} has the same name")
    problems += [f"{' and '.join(circle)} include one another" for circle in sorted(circles(includes))]
    problems += [f"{a}/ and {b}/ include one another" for a, b in sorted(mutual_rooms(includes))]
    rooms = collections.Counter(path.parent.as_posix() for (_, _), path in seen.items())
    problems += [f"{room}: {n} files, more than {LARGEST_ROOM}" for room, n in sorted(rooms.items()) if n > LARGEST_ROOM]
    for problem in problems:
        print(problem)
    print(f"{count} files, {len(problems)} problems")
    return 1 if problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
