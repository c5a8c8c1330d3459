"""Decoders for tests of the command, by models/export_decoders.py, which needs numpy."""
import functools
import os
import subprocess
import sys
import unittest

import command_case


@functools.lru_cache
def interpreter():
    """An interpreter that has numpy; skips the test where there is none."""
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            if subprocess.run([python, "-c", "import numpy"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
                return python
        except OSError:
            continue
    raise unittest.SkipTest("no Python with numpy (Debian: python3-numpy)")


def export(path, kind, size="tiny"):
    """Writes a decoder, and returns its path."""
    script = os.path.join(command_case.SOURCE, "models", "export_decoders.py")
    subprocess.run([interpreter(), script, "--kind", kind, "--size", size, "--out", path], check=True)
    return path
