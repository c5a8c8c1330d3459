"""Shared by the tests of the command: running it, the schema of its documents, a test case with a folder.

A test file calls main(), which takes PRONY SOURCE_DIR [unittest options] from the command line."""
import contextlib
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

import onnx_bytes as ob

try:
    import jsonschema
except ImportError:
    jsonschema = None
needs_jsonschema = unittest.skipUnless(jsonschema, "no jsonschema (Debian: python3-jsonschema)")

PRONY, SOURCE = "", ""
DONE, FAILED, USAGE, VERDICT = 0, 1, 2, 3

CACHE = tempfile.TemporaryDirectory()


def run(*arguments, environment=None, prepare=None, seconds=300, statuses=(DONE, FAILED, USAGE, VERDICT)):
    """Exit status, stdout and stderr; neither stream is a terminal. Another status, of a crash say, fails the test at
    once. `prepare` is called in the new process before the command starts."""
    env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "TERM")}
    env["XDG_CACHE_HOME"] = CACHE.name  # reports would contain peaks that the user measured
    env.update(environment or {})
    for sanitizer in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):  # whose findings must not pass for a status of the command's own
        env[sanitizer] = env.get(sanitizer, "") + ":exitcode=99"
    ran = subprocess.run([PRONY, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, timeout=seconds,
                         stdin=subprocess.DEVNULL, preexec_fn=prepare)
    if ran.returncode not in statuses:
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
    """A schema of docs/schemas, by python3-jsonschema. Keys that it does not name are problems too. Without the package no
    document has any: tests that expect problems skip themselves by needs_jsonschema."""

    def __init__(self, name):
        store = {}
        for path in glob.glob(os.path.join(SOURCE, "docs", "schemas", "*.schema.json")):
            with open(path, encoding="utf-8") as file:
                schema = self.closed(json.load(file))
            schema.pop("$id", None)  # a name like "prony.report/1" is no address that references are relative to
            store[os.path.basename(path)] = schema
        self.name = name + ".schema.json"
        self.root, self.store = store[self.name], store

    def closed(self, rule):
        if isinstance(rule, list):
            return [self.closed(item) for item in rule]
        if not isinstance(rule, dict):
            return rule
        rule = {key: self.closed(item) for key, item in rule.items()}
        return {"additionalProperties": False, **rule} if isinstance(rule.get("properties"), dict) else rule

    def problems(self, value, path="report"):
        if not jsonschema:
            return []
        jsonschema.Draft202012Validator.check_schema(self.root)
        resolver = jsonschema.RefResolver(self.name, self.root, store=self.store)
        errors = jsonschema.Draft202012Validator(self.root, resolver=resolver).iter_errors(value)
        return ["%s%s: %s" % (path, error.json_path[1:], error.message) for error in errors]


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
