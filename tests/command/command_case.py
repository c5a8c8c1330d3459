"""Shared by the tests of the command: running it, the schema of its documents, a test case with a folder.

A test file calls main(), which takes PRONY SOURCE_DIR [unittest options] from the command line."""
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import onnx_bytes as ob

PRONY, SOURCE = "", ""
DONE, FAILED, USAGE, VERDICT = 0, 1, 2, 3

CACHE = tempfile.TemporaryDirectory()


def run(*arguments, environment=None, prepare=None, seconds=300):
    """Exit status, stdout and stderr; neither stream is a terminal. A crash fails the test at once. `prepare` is called in
    the new process before the command starts."""
    env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "TERM")}
    env["XDG_CACHE_HOME"] = CACHE.name  # reports would contain peaks that the user measured
    env.update(environment or {})
    for sanitizer in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):  # whose findings must not pass for a status of the command's own
        env[sanitizer] = env.get(sanitizer, "") + ":exitcode=99"
    ran = subprocess.run([PRONY, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, timeout=seconds,
                         stdin=subprocess.DEVNULL, preexec_fn=prepare)
    if ran.returncode not in (DONE, FAILED, USAGE, VERDICT):
        raise AssertionError("%s ended with %d: %s" % (arguments, ran.returncode, ran.stderr.decode(errors="replace")[-3000:]))
    return ran.returncode, ran.stdout.decode(), ran.stderr.decode()


def open_pty():
    """Both ends of a pseudo-terminal, as pty.openpty() returns them; skips the test on a system without them."""
    try:
        import pty
        return pty.openpty()
    except (ImportError, OSError) as error:
        raise unittest.SkipTest("no pseudo-terminal here (is /dev/pts mounted?): %s" % error) from error


def fake_library():
    """The tests' replacement of ONNX Runtime (fake_ort.c)."""
    return os.path.join(os.path.dirname(PRONY), "tests", "libfake_ort.so")


@contextlib.contextmanager
def busy_machine():
    """Runs several processes per usable processor, which use all of it meanwhile."""
    count = 3 * len(os.sched_getaffinity(0))
    if count > 96:
        raise unittest.SkipTest("too many processors to keep busy")
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


class Schema:
    """The part of JSON Schema that docs/schemas uses; an unknown keyword is an error."""
    KNOWN = {"$schema", "$id", "$ref", "$defs", "title", "description", "type", "const", "enum", "pattern", "minimum", "maximum",
             "oneOf", "items", "minItems", "maxItems", "properties", "required", "additionalProperties"}

    def __init__(self, name):
        with open(os.path.join(SOURCE, "docs", "schemas", name + ".schema.json"), encoding="utf-8") as file:
            self.root = json.load(file)

    def types(self, value):
        if value is None:
            return {"null"}
        if isinstance(value, bool):
            return {"boolean"}
        if isinstance(value, int):
            return {"integer", "number"}
        return {{float: "number", str: "string", list: "array", dict: "object"}[type(value)]}

    def problems(self, value, rule=None, path="report"):
        rule = self.root if rule is None else rule
        yield from ("%s: the schema says '%s'" % (path, word) for word in rule if word not in self.KNOWN)
        if "$ref" in rule and rule["$ref"].endswith(".schema.json"):
            yield from Schema(rule["$ref"][:-len(".schema.json")]).problems(value, None, path)
        elif "$ref" in rule:
            target = self.root
            for part in rule["$ref"].lstrip("#/").split("/"):
                target = target[part]
            yield from self.problems(value, target, path)
        allowed = rule.get("type", [])
        allowed = [allowed] if isinstance(allowed, str) else allowed
        if allowed and not self.types(value) & set(allowed):
            yield "%s is %s, not %s" % (path, self.types(value), allowed)
            return
        if "const" in rule and value != rule["const"] or "enum" in rule and value not in rule["enum"]:
            yield "%s cannot be %r" % (path, value)
        if "pattern" in rule and isinstance(value, str) and not re.search(rule["pattern"], value):
            yield "%s: %r does not match %s" % (path, value, rule["pattern"])
        if isinstance(value, (int, float)) and not rule.get("minimum", value) <= value <= rule.get("maximum", value):
            yield "%s: %r is out of range" % (path, value)
        if "oneOf" in rule and sum(not list(self.problems(value, r, path)) for r in rule["oneOf"]) != 1:
            yield "%s fits none or several of its forms" % path
        if isinstance(value, list):
            if not rule.get("minItems", 0) <= len(value) <= rule.get("maxItems", len(value)):
                yield "%s has %d items" % (path, len(value))
            for i, item in enumerate(value):
                yield from self.problems(item, rule.get("items", {}), "%s[%d]" % (path, i))
        if isinstance(value, dict):
            known = rule.get("properties", {})
            yield from ("%s.%s is missing" % (path, key) for key in rule.get("required", []) if key not in value)
            for key, item in value.items():
                yield from self.problems(item, known.get(key, rule.get("additionalProperties", {})), "%s.%s" % (path, key))
                if known and key not in known:
                    yield "%s.%s is not in the schema" % (path, key)


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.digits = os.path.join(SOURCE, "models", "digits.onnx")
        self.lenet = os.path.join(SOURCE, "tests", "data", "lenet5.onnx")
        self.branches = os.path.join(SOURCE, "tests", "data", "if_two_branch.onnx")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def read(self, path):
        with open(path, "rb") as file:
            return file.read()

    def save(self, name, graph, **options):
        return self.write(name, ob.model(graph, **options))

    def succeed(self, *arguments, **options):
        code, out, err = run(*arguments, **options)
        self.assertEqual((code, err), (DONE, ""), "%s: %s%s" % (arguments, out, err))
        return out

    def refuse(self, code, words, *arguments):
        """The command ends with `code`, and stderr has all of `words`; nothing goes to stdout."""
        got, out, err = run(*arguments)
        self.assertEqual((got, out), (code, ""), "%s: %s%s" % (arguments, out, err))
        for word in words:
            self.assertIn(word, err)
        self.assertTrue(err.startswith("prony"), err)
        return err

    def report(self, *arguments):
        return json.loads(self.succeed(*arguments, "--json", "-"))


def main():
    global PRONY, SOURCE
    if len(sys.argv) < 3:
        sys.exit(sys.modules["__main__"].__doc__)
    PRONY, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[3:]])
