"""Exceptions. Every exception of Prony is a prony.Error. Its message is the C library's and names file, node and value."""

from __future__ import annotations

__all__ = ["Error", "OutOfMemory", "InvalidArgument", "ClosedError", "FileError", "InvalidModel", "Unsupported", "ShapeMismatch",
           "OutOfRange", "Busy", "LimitExceeded", "InternalError", "Cancelled", "NeedsDimension", "ForkError", "VersionError",
           "ThresholdMissed"]


class Error(Exception):
    """The base of Prony's exceptions. `status` is the C library's number (0: raised by the Python side)."""

    status: int = 0


class OutOfMemory(Error, MemoryError):
    """An allocation failed."""

    status = 1


class InvalidArgument(Error, ValueError):
    """An invalid argument: an unknown name, a number out of range, an array of the other byte order."""

    status = 2


class FileError(Error, OSError):
    """A file cannot be read or written, or it changed after it was loaded."""

    status = 3


class InvalidModel(Error, ValueError):
    """A model file is damaged or contradicts itself."""

    status = 4


class Unsupported(Error, NotImplementedError):
    """This build lacks an operator, type or precision."""

    status = 5


class ShapeMismatch(Error, ValueError):
    """An array has another element type or shape than the model expects. The message names the input and both types."""

    status = 6


class OutOfRange(Error, ValueError):
    """A value is outside an operator's range, such as an index beyond an axis."""

    status = 7


class Busy(Error, RuntimeError):
    """An operator or callback of a run called the session of this run."""

    status = 8


class LimitExceeded(Error, RuntimeError):
    """A limit was reached: memory, loop trips, time."""

    status = 9


class InternalError(Error, RuntimeError):
    """An internal fault, or an exception of an operator in Python, which is then the cause."""

    status = 10


class Cancelled(Error, RuntimeError):
    """The call was cancelled (Session.cancel)."""

    status = 11


class NeedsDimension(Error, ValueError):
    """A free dimension has no value; give dims."""

    status = 12


class ClosedError(InvalidArgument):
    """The session is closed."""


class ForkError(Error, RuntimeError):
    """This process was forked from one with sessions: use the start methods 'spawn' or 'forkserver'."""


class VersionError(Error, ImportError):
    """The extension module has another version than the package."""


class ThresholdMissed(Error, AssertionError):
    """A report misses a threshold (Check.raise_for_misses)."""


BY_STATUS: dict[int, type[Error]] = {cls.status: cls for cls in (
    OutOfMemory, InvalidArgument, FileError, InvalidModel, Unsupported, ShapeMismatch, OutOfRange, Busy, LimitExceeded, InternalError,
    Cancelled, NeedsDimension)}
