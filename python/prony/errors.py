"""Exceptions. Everything that Prony raises is a prony.Error with the C library's message, which names file, node and value."""

from __future__ import annotations

__all__ = ["Error", "OutOfMemory", "InvalidArgument", "ClosedError", "FileError", "InvalidModel", "Unsupported", "ShapeMismatch",
           "OutOfRange", "Busy", "LimitExceeded", "InternalError", "Cancelled", "NeedsDimension", "ForkError", "VersionError",
           "ThresholdMissed"]


class Error(Exception):
    """Whatever Prony raises. `status` is the C library's number for it (0: of the Python side)."""

    status: int = 0


class OutOfMemory(Error, MemoryError):
    """Memory that could not be had."""

    status = 1


class InvalidArgument(Error, ValueError):
    """An argument that there is none of: a name, a number, an array of the other byte order."""

    status = 2


class FileError(Error, OSError):
    """A file that cannot be read or written, or is no longer what was loaded."""

    status = 3


class InvalidModel(Error, ValueError):
    """A damaged model file, or one that contradicts itself."""

    status = 4


class Unsupported(Error, NotImplementedError):
    """Operators, types or precisions that this build has not."""

    status = 5


class ShapeMismatch(Error, ValueError):
    """An array whose element type or shape is not what the model expects; the message names the input and both."""

    status = 6


class OutOfRange(Error, ValueError):
    """A value outside of what an operator takes, such as an index beyond an axis."""

    status = 7


class Busy(Error, RuntimeError):
    """A session that is called again by an operator or callback of its own run."""

    status = 8


class LimitExceeded(Error, RuntimeError):
    """A bound that was set: memory, loop trips, time."""

    status = 9


class InternalError(Error, RuntimeError):
    """A fault, also one of an operator that was written in Python; its exception is the cause."""

    status = 10


class Cancelled(Error, RuntimeError):
    """The call was cancelled (Session.cancel)."""

    status = 11


class NeedsDimension(Error, ValueError):
    """A free dimension that nothing tells the value of; give dims."""

    status = 12


class ClosedError(InvalidArgument):
    """A session that was closed."""


class ForkError(Error, RuntimeError):
    """This process was forked while Prony had sessions in its parent: use the start methods 'spawn' or 'forkserver'."""


class VersionError(Error, ImportError):
    """The extension module beside the package is of another version."""


class ThresholdMissed(Error, AssertionError):
    """A threshold that a report does not meet (Check.raise_for_misses)."""


BY_STATUS: dict[int, type[Error]] = {cls.status: cls for cls in (
    OutOfMemory, InvalidArgument, FileError, InvalidModel, Unsupported, ShapeMismatch, OutOfRange, Busy, LimitExceeded, InternalError,
    Cancelled, NeedsDimension)}
