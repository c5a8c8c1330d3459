"""Converts inputs that are not contiguous arrays of numbers for the extension module, which takes contiguous arrays itself."""

from __future__ import annotations

from typing import Any, Sequence

from .errors import InvalidArgument

_TENSOR, _SEQUENCE, _OPTIONAL = 0, 1, 2
_NARROW = {"uint4": "uint8", "int4": "int8", "uint2": "uint8", "int2": "int8"}


def _as_array(value: Any, name: str, dtype: str) -> Any:
    import numpy as np

    if isinstance(value, np.ndarray) or isinstance(value, np.generic):
        array = np.asarray(value)
        if array.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"):
            array = array.view(f"uint{8 * array.dtype.itemsize}")  # of the package ml_dtypes
        return array
    if hasattr(value, "__dlpack__"):
        if getattr(value, "requires_grad", False):
            raise InvalidArgument(f"input '{name}' requires a gradient, which Prony does not keep; give it detached (x.detach())")
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError) as reason:
            raise InvalidArgument(f"input '{name}' cannot be shared by DLPack ({reason}); expected an array of {dtype} in the "
                                  "processor's memory") from reason
    if hasattr(value, "__array_interface__") or hasattr(value, "__array__"):
        return np.asarray(value)
    if isinstance(value, (list, tuple, int, float, bool, complex)) and dtype not in ("string", "object"):
        try:
            return np.asarray(value, dtype=_NARROW.get(dtype, dtype if dtype in np.sctypeDict else None))
        except (ValueError, TypeError, OverflowError) as reason:
            raise InvalidArgument(f"input '{name}': {reason}; expected an array of {dtype}") from reason
    if isinstance(value, (str, bytes, list, tuple)):
        return np.asarray(value, dtype=object)
    raise InvalidArgument(f"input '{name}': {type(value).__name__} is not an array; expected an array of {dtype or 'numbers'}")


def _texts(array: Any, name: str) -> list[bytes]:
    texts = []
    for element in array.ravel().tolist():
        if isinstance(element, str):
            texts.append(element.encode("utf-8", "surrogateescape"))
        elif isinstance(element, bytes):
            texts.append(element)
        else:
            raise InvalidArgument(f"input '{name}': an element is {type(element).__name__}; expected str or bytes")
    return texts


def prepare(value: Any, name: str, kind: int, dtype: str) -> tuple[Any, ...]:
    """Returns the value as the extension reads it: (0, array) of numbers, contiguous and native; (1, list of bytes, shape) of text;
    (2, list) of a sequence; (3, list) of an optional; (4, array) of integers narrower than a byte, one element per byte."""
    import numpy as np

    if kind == _SEQUENCE:
        if not isinstance(value, (list, tuple)):
            raise InvalidArgument(f"input '{name}': {type(value).__name__}; expected a sequence, which is a list of arrays")
        return (2, list(value))
    if kind == _OPTIONAL:
        return (3, [] if value is None else [value])
    if value is None:
        raise InvalidArgument(f"input '{name}' is None; expected an array of {dtype}")
    array = _as_array(value, name, dtype)
    if dtype == "string" and array.dtype.kind in "OUS":
        return (1, _texts(array, name), array.shape)
    if array.dtype.kind in "OUSVMm":
        what = "objects" if array.dtype.kind == "O" else "text" if array.dtype.kind in "US" else str(array.dtype)
        raise InvalidArgument(f"input '{name}' is an array of {what}; expected {dtype}")
    if not array.dtype.isnative:
        raise InvalidArgument(f"input '{name}' is {array.dtype.name} of the other byte order ({array.dtype.str}); expected native "
                              f"{dtype}: x.astype(x.dtype.newbyteorder('='))")
    if array.ndim > 16:
        raise InvalidArgument(f"input '{name}' has {array.ndim} dimensions; at most 16")
    if array.dtype.kind in "fc" and array.dtype.itemsize in (10, 12, 16, 20, 24, 32) and array.dtype.name not in ("complex128",):
        raise InvalidArgument(f"input '{name}' is {array.dtype.name}; expected {dtype}")
    array = array if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(array.shape)
    if dtype in _NARROW and array.dtype.name == _NARROW[dtype]:
        return (4, array)
    return (0, array)


def text_array(texts: Sequence[str], shape: tuple[int, ...]) -> Any:
    """Returns an array of str."""
    import numpy as np

    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array.reshape(shape)


def bfloat16_bits(array: Any) -> Any:
    """Converts float32 to bfloat16 in an array of uint16, rounded to the nearest, ties to even."""
    import numpy as np

    bits = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(array), 0x7FC0, rounded).astype(np.uint16).reshape(np.shape(array))
