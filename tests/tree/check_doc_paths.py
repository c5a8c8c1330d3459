"""Checks that the pages, and the comments of C sources, name what there is: check_doc_paths.py ROOT

Every link leads to a file, every path and every name of a source file is one of the tree, and every name of the code that a
page mentions stands in the sources. `*` and a word in capitals (cases/FAMILY.inc) stand for anything, {a,b} for each.
C on a page includes public headers that declare all that it uses, none in vain; in docs/internals/adding_an_operator.md, whose
examples are an operator of the tree, a piece of C without an ellipsis stands so in a file that the page names.
Prose in docs/ is wrapped at 100 columns. CHANGELOG.md and CITATION.cff have the version of include/prony.h."""
import fnmatch
import os
import pathlib
import re
import sys

# Names in the examples that are not in this tree: the reader's models and data, a repository's origin, built files.
EXAMPLES = {"program.c", "models/net.onnx", "val", "origin", "build", "PRONY_REPOSITORY"}
PATH = re.compile(r"(?<![\w/.<$~-])[\w*{},-]+(?:\.[\w*{},-]+)*(?:/[\w*{},.-]+)+/?")
NAME = re.compile(r"(?<![\w/.<-])[\w*]+\.(?:c|h|inc|S|py|sh|cmake|mjs|css)\b(?![\w/.])")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
FOLDER = re.compile(r"(?<![\w/.<$*-])[a-z]\w+/(?![\w/*.{<-])")
WORD = re.compile(r"\b(?:prn|prony|PRN|PRONY)_\w*[A-Za-z0-9]\b(?![*.-])")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
CODE = re.compile(r"^```c\n(.*?)^```", re.M | re.S)
INCLUDE = re.compile(r"^#include <(prony\w*\.h)>", re.M)
WIDTH = 100
PUBLIC = re.compile(r"\b(?:prony|PRONY)_\w+")


def tree(root):
    """Every file, as a path from the root, except built files and git's own."""
    found = set()
    for folder, folders, files in os.walk(root):
        here = pathlib.Path(folder).relative_to(root)
        folders[:] = [name for name in folders if not (folder == str(root) and name.startswith(("build", ".git", "shared")))
                      and not (pathlib.Path(folder) / name / "CMakeCache.txt").is_file() and name != "__pycache__"]
        found.update((here / name).as_posix() for name in files)
    return found


def expanded(name):
    """a{b,c}d: abd, acd."""
    match = re.search(r"\{([^{}]*)\}", name)
    if not match:
        return [name]
    return [one for part in match.group(1).split(",")
            for one in expanded(name[:match.start()] + part + name[match.end():])]


def comments(text):
    """The comments of C, in their lines."""
    out, at = [], 0
    for match in COMMENT.finditer(text):
        out.append("\n" * text.count("\n", at, match.start()) + match.group())
        at = match.end()
    return "".join(out)


def known(name, names):
    pattern = re.sub(r"(?<![A-Za-z])[A-Z]{3,}(?=\.)", "*", name)
    return name in names or ("*" in pattern and bool(fnmatch.filter(names, pattern)))


class Tree:
    def __init__(self, root):
        self.root = root
        self.files = tree(root)
        self.folders = {parent.as_posix() for name in self.files for parent in pathlib.PurePosixPath(name).parents} - {"."}
        self.paths = self.files | self.folders
        self.top = {name.split("/")[0] for name in self.folders}
        self.names = {name.split("/")[-1] for name in self.files}
        self.folder_names = {name.split("/")[-1] for name in self.folders}
        self.words = set()  # of the code, without comments
        for name in self.files:
            if not name.startswith("docs/") and re.search(r"\.(c|h|inc|S|py|in|txt|sh|cmake|map|js)$|(^|/)Makefile$", name):
                text = (root / name).read_text(encoding="utf-8", errors="replace")
                self.words.update(re.findall(r"\w+", COMMENT.sub("", text)))

    def check_names(self, page, text, problems):
        beside = pathlib.PurePosixPath(page).parent.as_posix()
        for number, line in enumerate(text.splitlines(), 1):
            def wrong(what):
                problems.append(f"{page}:{number}: {what}")
            for target in LINK.findall(line):
                path = os.path.normpath(os.path.join(beside, target))
                if "://" not in target and path not in self.paths:
                    wrong(f"the link {target} leads nowhere")
            line = LINK.sub("]", line)
            for match in PATH.finditer(line):
                for name in expanded(match.group().rstrip("/.,")):
                    if name.split("/")[0] in self.top and name not in EXAMPLES and not known(name, self.paths):
                        wrong(f"there is no {name}")
            for name in NAME.findall(line):
                if name not in EXAMPLES and not known(name, self.names):
                    wrong(f"there is no file {name}")
            for name in FOLDER.findall(line):
                if name[:-1] not in self.folder_names | EXAMPLES:
                    wrong(f"unknown folder {name}")
            for name in WORD.findall(line):
                if name not in self.words | EXAMPLES:
                    wrong(f"nothing is called {name}")

    def declared(self, name):
        """Declarations of a public header and of the headers that it includes."""
        text = COMMENT.sub("", (self.root / "include" / name).read_text(encoding="utf-8"))
        borrowed = set()
        for other in re.findall(r'#include "(prony\w*\.h)"', text):
            borrowed = borrowed.union(*self.declared(other))
        return set(PUBLIC.findall(text)) - borrowed, borrowed

    def check_includes(self, page, code, problems):
        headers, code = INCLUDE.findall(code), INCLUDE.sub("", COMMENT.sub("", code))
        unknown = used = set(PUBLIC.findall(code))
        for name in headers:
            if "include/" + name not in self.files:
                problems.append(f"{page}: unknown header {name}")
                return
            own, borrowed = self.declared(name)
            unknown = unknown - own - borrowed
            if not used & own:
                problems.append(f"{page}: uses nothing of {name}, which it includes")
        for word in sorted(unknown) if headers else []:
            problems.append(f"{page}: {word} is in none of {', '.join(headers)}")

    def check_walk(self, page, text, problems):
        """The page shows the operator's own data."""
        named = [self.root / name for name in sorted(self.files) if name in text]
        bare = ["".join(path.read_text(encoding="utf-8", errors="replace").split()) for path in named]
        for code in CODE.findall(text):
            if "…" not in code and not any("".join(code.split()) in one for one in bare):
                problems.append(f"{page}: no file that it names has\n{code.rstrip()}")


def check_width(page, text, problems):
    """Prose in lines of 100 columns; tables, code and pictures may be wider."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        code ^= line.startswith("```")
        if len(line) > WIDTH and not code and not line.startswith(("|", "    ", "!", "#", "<!--")) and " " in line.strip():
            problems.append(f"{page}:{number}: {len(line)} columns, wanted {WIDTH} at most")


def check_version(root, problems):
    """The version stands in prony.h; the release and its citation have the same."""
    version = re.search(r'^#define PRONY_VERSION "([^"]+)"', (root / "include/prony.h").read_text(encoding="utf-8"), re.M).group(1)
    for name, pattern in (("CHANGELOG.md", r"^## (\d\S*) - \d{4}-\d\d-\d\d$"), ("CITATION.cff", r"^version: (\S+)$")):
        found = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.M)
        if not found or found.group(1) != version:
            problems.append(f"{name}: the version is {found.group(1) if found else 'missing'}, wanted {version} of include/prony.h")


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    here, problems = Tree(root), []
    page = re.compile(r"(README|CONTRIBUTING|SECURITY|CODE_OF_CONDUCT)\.md|(models|docs(/\w+)?)/[\w-]+\.md")
    pages = sorted(name for name in here.files if page.fullmatch(name))
    for page in pages:
        text = (root / page).read_text(encoding="utf-8")
        here.check_names(page, text, problems)
        if page.startswith("docs/"):
            check_width(page, text, problems)
        for code in CODE.findall(text):
            here.check_includes(page, code, problems)
        if page == "docs/internals/adding_an_operator.md":
            here.check_walk(page, text, problems)
    sources = sorted(name for name in here.files if name.endswith((".c", ".h", ".inc")))
    for name in sources:
        here.check_names(name, comments((root / name).read_text(encoding="utf-8", errors="replace")), problems)
    here.check_includes("docs/example.c", (root / "docs/example.c").read_text(encoding="utf-8"), problems)
    check_version(root, problems)
    for problem in problems:
        print(problem)
    print(f"{len(pages)} pages, {len(sources)} sources, {len(problems)} problems")
    return 1 if problems or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
