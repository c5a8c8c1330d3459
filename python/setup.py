"""Builds the wheel: CMake makes the extension, with the static library in it, from the folder above.

The version is that of include/prony.h. PRONY_BUILD_DIR names a CMake build folder to use again; otherwise one is made for the
build. PRONY_CMAKE_ARGS holds further arguments, such as -DPRONY_ONEDNN=OFF.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
ABI3 = sys.version_info >= (3, 11)  # where the stable ABI has the buffer protocol


def version():
    header = ROOT / "include" / "prony.h"
    if not header.is_file():
        sys.exit(f"{header} is missing: the package is built from a clone of the repository, which holds the library beside it")
    return re.search(r'^#define PRONY_VERSION "([^"]+)"', header.read_text(encoding="utf-8"), re.M).group(1)


def cached(folder, name):
    """A variable of a CMake folder; None: it has none."""
    cache = folder / "CMakeCache.txt"
    found = re.search(f"^{name}:[A-Z]*=(.*)$", cache.read_text(encoding="utf-8"), re.M) if cache.is_file() else None
    return found and found.group(1)


class BuildExtension(build_ext):
    def configure(self, folder):
        python = os.path.realpath(sys.executable)  # a virtual environment goes, the interpreter behind it stays
        arguments = shlex.split(os.environ.get("PRONY_CMAKE_ARGS", ""))
        known = cached(folder, "PRONY_PYTHON_EXECUTABLE")
        if not arguments and known and os.path.realpath(known) == python and cached(folder, "PRONY_PYTHON") != "OFF":
            return
        command = ["cmake", "-S", str(ROOT), "-B", str(folder), "-DPRONY_PYTHON=ON", f"-DPRONY_PYTHON_EXECUTABLE={python}"]
        if not (folder / "CMakeCache.txt").is_file():
            command += ["-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF", "-DPRONY_COMMAND=OFF", "-DBUILD_SHARED_LIBS=OFF"]
        subprocess.run(command + arguments, check=True)

    def build_extension(self, extension):
        given = os.environ.get("PRONY_BUILD_DIR")
        folder = pathlib.Path(given).resolve() if given else pathlib.Path(self.build_temp).resolve() / "cmake"
        self.configure(folder)
        jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(self.parallel or len(os.sched_getaffinity(0)))
        subprocess.run(["cmake", "--build", str(folder), "--target", "prony_python", "-j", jobs], check=True)
        [made] = (folder / "python" / "prony").glob("_prony*.so")
        target = pathlib.Path(self.get_ext_fullpath(extension.name)).resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        self.copy_file(str(made), str(target))


class BuildFiles(build_py):
    def run(self):
        super().run()
        if not self.editable_mode:
            target = pathlib.Path(self.build_lib) / "prony" / "_version.py"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(f'VERSION = "{version()}"\n', encoding="utf-8")


class NoSources(sdist):
    def run(self):
        sys.exit("a source distribution would lack the library, which lies beside this folder: build a wheel from a clone")


commands = {"build_ext": BuildExtension, "build_py": BuildFiles, "sdist": NoSources}
if ABI3:
    try:
        from setuptools.command.bdist_wheel import bdist_wheel  # of setuptools from 70.1 on
    except ImportError:
        try:
            from wheel.bdist_wheel import bdist_wheel
        except ImportError:
            sys.exit("the package 'wheel' is missing in this environment: pip install wheel, or Debian's python3-wheel and a "
                     "virtual environment that sees it (python3 -m venv --system-site-packages); "
                     "pip without --no-build-isolation fetches it by itself")

    class Wheel(bdist_wheel):
        def finalize_options(self):
            self.py_limited_api = "cp311"
            super().finalize_options()

    commands["bdist_wheel"] = Wheel

setup(version=version(), ext_modules=[Extension("prony._prony", [], py_limited_api=ABI3)], cmdclass=commands)
