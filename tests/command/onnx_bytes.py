"""Writes small ONNX models by hand, for tests of the command: protobuf fields, nothing checked, so that odd models can be
written as well. Only the standard library is used."""
import struct

FLOAT, UINT8, INT8, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE, BFLOAT16 = 1, 2, 3, 6, 7, 8, 9, 10, 11, 16


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(field, value):
    return varint(field << 3) + varint(value)


def chunk(field, data):
    if isinstance(data, str):
        data = data.encode()
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name, dtype, dims, raw):
    return b"".join(integer(1, d) for d in dims) + integer(2, dtype) + chunk(8, name) + chunk(9, raw)


def floats(name, dims, values):
    return tensor(name, FLOAT, dims, struct.pack("<%df" % len(values), *values))


def int64s(name, dims, values):
    return tensor(name, INT64, dims, struct.pack("<%dq" % len(values), *values))


def external(name, dtype, dims, location):
    """A tensor whose bytes are those of another file."""
    entry = chunk(13, chunk(1, "location") + chunk(2, location))
    return b"".join(integer(1, d) for d in dims) + integer(2, dtype) + chunk(8, name) + entry + integer(14, 1)


def attribute(name, value):
    """int, float, str, list of ints, ("graph", bytes) or ("tensor", bytes)."""
    out = chunk(1, name)
    if isinstance(value, bool):
        raise TypeError(name)
    if isinstance(value, int):
        return out + integer(3, value) + integer(20, 2)
    if isinstance(value, float):
        return out + varint(2 << 3 | 5) + struct.pack("<f", value) + integer(20, 1)
    if isinstance(value, str):
        return out + chunk(4, value) + integer(20, 3)
    if isinstance(value, list):
        return out + b"".join(integer(8, v) for v in value) + integer(20, 7)
    kind, data = value
    return out + (chunk(6, data) + integer(20, 5) if kind == "graph" else chunk(5, data) + integer(20, 4))


def node(op, inputs, outputs, name="", domain="", **attributes):
    out = b"".join(chunk(1, i) for i in inputs) + b"".join(chunk(2, o) for o in outputs)
    out += chunk(3, name) if name else b""
    out += chunk(4, op)
    out += b"".join(chunk(5, attribute(k, v)) for k, v in attributes.items())
    return out + (chunk(7, domain) if domain else b"")


def value(name, dtype, dims):
    """`dims`: numbers, symbols and None for a free one without; None: no shape is declared."""
    shape = b""
    if dims is not None:
        parts = (chunk(1, b"" if d is None else integer(1, d) if isinstance(d, int) else chunk(2, d)) for d in dims)
        shape = chunk(2, b"".join(parts))
    return chunk(1, name) + chunk(2, chunk(1, integer(1, dtype) + shape))


def graph(nodes, inputs=(), outputs=(), initializers=(), name="g", value_infos=()):
    return (b"".join(chunk(1, n) for n in nodes) + chunk(2, name) + b"".join(chunk(5, i) for i in initializers) +
            b"".join(chunk(11, i) for i in inputs) + b"".join(chunk(12, o) for o in outputs) +
            b"".join(chunk(13, i) for i in value_infos))


def model(graph_bytes, opset=13, domains=()):
    out = integer(1, 8) + chunk(2, "hand") + chunk(7, graph_bytes) + chunk(8, chunk(1, "") + integer(2, opset))
    return out + b"".join(chunk(8, chunk(1, d) + integer(2, v)) for d, v in domains)


def doubled_relu():
    """A graph of y = 2 max(x, 0), as the library in place of ONNX Runtime computes it (fake_ort.c)."""
    nodes = [node("Relu", ["x"], ["h"], name="/body/act/Relu"), node("Mul", ["h", "two"], ["y"], name="/body/Mul")]
    return graph(nodes, inputs=[value("x", FLOAT, ["rows", 64])], outputs=[value("y", FLOAT, ["rows", 64])],
                 initializers=[floats("two", [], [2.0])])


def npy(dtype, dims, data):
    """An .npy file of version 1.0; `dtype` as NumPy writes it ('<f4')."""
    shape = "(" + "".join("%d," % d for d in dims) + ")"
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (dtype, shape)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def read_npy(path):
    """(dtype, shape, data) of a file of version 1.0."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"\x93NUMPY\x01\x00":
        raise ValueError("%s is no .npy file of version 1.0" % path)
    end = 10 + struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:end].decode(), {"__builtins__": {}}, {"False": False, "True": True})
    return header["descr"], header["shape"], data[end:]
