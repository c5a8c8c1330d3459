"""Writes decoders with random weights as exporters write them, to measure and to test generation with.

    python3 models/export_decoders.py --kind gpt2 --size 4 --out gpt2.onnx [--seed 0]

Kinds: gpt2 (learned positions, LayerNormalization, GELU; a cache with Optimum's names), llama (RMSNorm, rotary embedding, grouped
queries, SwiGLU; the same names), llama-gqa (GroupQueryAttention and MatMulNBits, as ONNX Runtime's model builder writes them),
gpt2-packed (one past_N [2, B, H, S, D] a layer), gpt2-no-cache, t5 (a decoder with cross attention, whose keys and values are
inputs). Sizes: tiny (below 200 KB), 4, 40 and 160 MB. Needs numpy alone; the file follows from the arguments."""
import argparse
import struct

import numpy as np

FLOAT, UINT8, INT32, INT64, BOOL = 1, 2, 6, 7, 9
TYPES = {np.dtype("float32"): FLOAT, np.dtype("uint8"): UINT8, np.dtype("int32"): INT32, np.dtype("int64"): INT64,
         np.dtype("bool"): BOOL}
# vocabulary, width, layers, heads, key heads, positions
SIZES = {"tiny": (96, 32, 2, 2, 1, 64), "4": (1000, 128, 4, 4, 2, 1024), "40": (4000, 320, 6, 10, 5, 2048),
         "160": (8000, 576, 8, 9, 3, 2048)}


# ---- protocol-buffer fields of onnx.proto3

def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def integer(field, value):
    return varint(field << 3) + varint(value)


def chunk(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name, array):
    return (b"".join(integer(1, d) for d in array.shape) + integer(2, TYPES[array.dtype]) + chunk(8, name)
            + chunk(9, np.ascontiguousarray(array).tobytes()))


def attribute(name, value):
    if isinstance(value, float):
        return chunk(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + integer(20, 1)
    if isinstance(value, int):
        return chunk(1, name) + integer(3, value) + integer(20, 2)
    return chunk(1, name) + b"".join(integer(8, v) for v in value) + integer(20, 7)


def port(name, dtype, dims):
    shape = b"".join(chunk(1, integer(1, d) if isinstance(d, int) else chunk(2, d)) for d in dims)
    return chunk(1, name) + chunk(2, chunk(1, integer(1, dtype) + chunk(2, shape)))


class Writer:
    """Collects nodes, constants and ports of one graph."""

    def __init__(self, seed, bits=0):
        self.nodes, self.tensors, self.inputs, self.outputs, self.names = [], [], [], [], set()
        self.random, self.bits = np.random.default_rng(seed), bits

    def constant(self, name, array):
        if name not in self.names:
            self.names.add(name)
            self.tensors.append(chunk(5, tensor(name, np.asarray(array))))
        return name

    def ints(self, *values):
        return self.constant("ints_" + "_".join(str(v) for v in values).replace("-", "m"), np.array(values, np.int64))

    def index(self, value):
        return self.constant(f"index_{value}", np.array(value, np.int64))

    def scalar(self, value):
        return self.constant(f"scalar_{value!r}", np.array(value, np.float32))

    def weight(self, name, *dims):
        depth = dims[-2] if len(dims) > 1 else 1
        return self.constant(name, self.random.standard_normal(dims, dtype=np.float32) / np.float32(depth**0.5))

    def node(self, op, inputs, output, domain="", **attributes):
        outputs = [output] if isinstance(output, str) else output
        out = b"".join(chunk(1, i) for i in inputs) + b"".join(chunk(2, o) for o in outputs) + chunk(3, outputs[0]) + chunk(4, op)
        out += b"".join(chunk(5, attribute(k, v)) for k, v in attributes.items())
        self.nodes.append(chunk(1, out + (chunk(7, domain) if domain else b"")))
        return output

    def input(self, name, dtype, *dims):
        self.inputs.append(chunk(11, port(name, dtype, dims)))
        return name

    def output(self, name, dtype, *dims):
        self.outputs.append(chunk(12, port(name, dtype, dims)))

    def extent(self, value, axis, at):
        """One dimension of a value as a scalar, in two nodes."""
        return self.node("Gather", [self.node("Shape", [value], at + "/Shape"), self.index(axis)], at + "/Gather", axis=0)

    def joined(self, at, *parts):
        rows = [self.node("Unsqueeze", [p, self.ints(0)], f"{at}/Unsqueeze_{i}") if p not in self.names else p
                for i, p in enumerate(parts)]
        return self.node("Concat", rows, at + "/Concat", axis=0)

    def product(self, x, name, depth, columns, bias=False):
        if self.bits:
            blocks = depth // 32
            codes = self.random.integers(0, 256, (columns, blocks, 4 * self.bits), dtype=np.uint8)
            scales = self.random.random(columns * blocks, dtype=np.float32) + np.float32(0.5)
            scales *= np.float32(depth**-0.5 / 2**(self.bits - 2))
            x = self.node("MatMulNBits", [x, self.constant(name + ".weight_Q4", codes), self.constant(name + ".scales", scales)],
                          name + "/MatMul", "com.microsoft", K=depth, N=columns, bits=self.bits, block_size=32)
        else:
            x = self.node("MatMul", [x, self.weight(name + ".weight", depth, columns)], name + "/MatMul")
        if not bias:
            return x
        bias_values = self.random.standard_normal(columns, dtype=np.float32) * np.float32(0.1)
        return self.node("Add", [x, self.constant(name + ".bias", bias_values)], name + "/Add")

    def heads(self, x, at, rows, heads, depth):
        x = self.node("Reshape", [x, self.joined(at + "/shape", *rows, self.ints(heads), self.ints(depth))], at + "/Reshape")
        return self.node("Transpose", [x], at + "/Transpose", perm=[0, 2, 1, 3])

    def save(self, path):
        graph = b"".join(self.nodes) + chunk(2, "main_graph") + b"".join(self.tensors) + b"".join(self.inputs) + b"".join(self.outputs)
        opsets = chunk(8, chunk(1, "") + integer(2, 17)) + chunk(8, chunk(1, "com.microsoft") + integer(2, 1))
        with open(path, "wb") as file:
            file.write(integer(1, 8) + chunk(2, "export_decoders") + chunk(7, graph) + opsets)


TOTAL = "past_sequence_length + sequence_length"


class Decoder:
    def __init__(self, kind, size, seed):
        self.kind, self.w = kind, Writer(seed, 4 if kind == "llama-gqa" else 0)
        self.vocabulary, self.width, self.layers, self.heads, self.key_heads, self.positions = SIZES[size]
        if "llama" not in kind:
            self.key_heads = self.heads
        self.depth = self.width // self.heads
        self.hidden = (8 * self.width // 3 + 31) // 32 * 32 if "llama" in kind else 4 * self.width

    # ---- pieces

    def norm(self, x, at):
        scale = self.w.constant(at + ".weight", np.ones(self.width, np.float32))
        if self.kind == "llama-gqa":
            return self.w.node("SimplifiedLayerNormalization", [x, scale], at + "/Norm", axis=-1, epsilon=1e-5, stash_type=1)
        if "gpt2" in self.kind:
            shift = self.w.constant(at + ".bias", np.zeros(self.width, np.float32))
            return self.w.node("LayerNormalization", [x, scale, shift], at + "/LayerNormalization", axis=-1, epsilon=1e-5)
        square = self.w.node("Pow", [x, self.w.scalar(2.0)], at + "/Pow")
        mean = self.w.node("ReduceMean", [square], at + "/ReduceMean", axes=[-1], keepdims=1)
        root = self.w.node("Sqrt", [self.w.node("Add", [mean, self.w.scalar(1e-5)], at + "/Add")], at + "/Sqrt")
        one = self.w.node("Div", [self.w.scalar(1.0), root], at + "/Div")
        return self.w.node("Mul", [scale, self.w.node("Mul", [x, one], at + "/Mul")], at + "/Mul_1")

    def turned(self, x, at, cosines, sines):
        """Rotary embedding as Transformers writes it: x cos + rotate_half(x) sin."""
        half = self.depth // 2
        first = self.w.node("Slice", [x, self.w.ints(0), self.w.ints(half), self.w.ints(3)], at + "/Slice")
        second = self.w.node("Slice", [x, self.w.ints(half), self.w.ints(2**62), self.w.ints(3)], at + "/Slice_1")
        other = self.w.node("Concat", [self.w.node("Neg", [second], at + "/Neg"), first], at + "/Concat", axis=-1)
        return self.w.node("Add", [self.w.node("Mul", [x, cosines], at + "/Mul"), self.w.node("Mul", [other, sines], at + "/Mul_1")],
                           at + "/Add")

    def repeated(self, x, at, rows, total):
        """Keys or values once for each query head of their group."""
        group = self.heads // self.key_heads
        if group == 1:
            return x
        wide = self.w.node("Unsqueeze", [x, self.w.ints(2)], at + "/Unsqueeze")
        shape = self.w.joined(at + "/expand", rows[0], self.w.ints(self.key_heads), self.w.ints(group), total, self.w.ints(self.depth))
        wide = self.w.node("Expand", [wide, shape], at + "/Expand")
        flat = self.w.joined(at + "/flat", rows[0], self.w.ints(self.heads), total, self.w.ints(self.depth))
        return self.w.node("Reshape", [wide, flat], at + "/Reshape")

    def mixed(self, q, k, v, at, mask, rows, scale=True):
        scores = self.w.node("MatMul", [q, self.w.node("Transpose", [k], at + "/Transpose", perm=[0, 1, 3, 2])], at + "/MatMul")
        if scale:
            scores = self.w.node("Div", [scores, self.w.scalar(float(self.depth**0.5))], at + "/Div")
        if mask:
            scores = self.w.node("Add", [scores, mask], at + "/Add")
        y = self.w.node("MatMul", [self.w.node("Softmax", [scores], at + "/Softmax", axis=-1), v], at + "/MatMul_1")
        y = self.w.node("Transpose", [y], at + "/Transpose_1", perm=[0, 2, 1, 3])
        return self.w.node("Reshape", [y, self.w.joined(at + "/out", *rows, self.w.ints(self.width))], at + "/Reshape")

    def cached(self, layer, what, new, at):
        """The former rows and the new ones: past -> present."""
        if self.kind == "gpt2-no-cache":
            return new
        dims = ("batch_size", self.key_heads)
        middle = "decoder." if self.kind == "t5" else ""
        past, present = f"past_key_values.{layer}.{middle}{what}", f"present.{layer}.{middle}{what}"
        self.w.input(past, FLOAT, *dims, "past_sequence_length", self.depth)
        self.w.output(present, FLOAT, *dims, TOTAL, self.depth)
        return self.w.node("Concat", [past, new], present, axis=2)

    def mask(self, ids, total, rows):
        """0 where a row may look, the least float elsewhere: [B, 1, S, T]."""
        w, at = self.w, "/mask"
        first = w.node("Sub", [total, rows[1]], at + "/Sub")
        mine = w.node("Range", [first, total, w.index(1)], at + "/Range")
        all_keys = w.node("Range", [w.index(0), total, w.index(1)], at + "/Range_1")
        future = w.node("Greater", [all_keys, w.node("Unsqueeze", [mine, w.ints(1)], at + "/Unsqueeze")], at + "/Greater")
        least = w.scalar(float(np.finfo(np.float32).min))
        future = w.node("Where", [future, least, w.scalar(0.0)], at + "/Where")
        if "attention_mask" not in ids:
            return w.node("Unsqueeze", [future, w.ints(0, 1)], at + "/Unsqueeze_1")
        seen = w.node("Unsqueeze", [ids["attention_mask"], w.ints(1, 2)], at + "/Unsqueeze_2")
        hidden = w.node("Equal", [seen, w.index(0)], at + "/Equal")
        return w.node("Where", [hidden, least, future], at + "/Where_1")

    # ---- models

    def make(self):
        w, kind = self.w, self.kind
        ids = {"input_ids": w.input("input_ids", INT64, "batch_size", "sequence_length")}
        cache = kind != "gpt2-no-cache"
        length = TOTAL if cache else "sequence_length"
        if kind == "t5":
            w.input("encoder_hidden_states", FLOAT, "batch_size", "encoder_sequence_length", self.width)
            w.input("encoder_attention_mask", INT64, "batch_size", "encoder_sequence_length")
        else:
            ids["attention_mask"] = w.input("attention_mask", INT64, "batch_size", length)
        if kind in ("gpt2", "llama", "gpt2-packed"):
            ids["position_ids"] = w.input("position_ids", INT64, "batch_size", "sequence_length")
        rows = [w.extent("input_ids", 0, "/batch"), w.extent("input_ids", 1, "/rows")]
        table = w.weight("model.embed_tokens.weight", self.vocabulary, self.width)
        x = w.node("Gather", [table, "input_ids"], "/model/embed_tokens/Gather")
        if kind == "llama-gqa":
            return self.finish(self.grouped_layers(x), rows)
        total = w.extent("attention_mask", 1, "/total") if kind != "t5" else None
        if kind == "t5":
            past = w.extent("past_key_values.0.decoder.key", 2, "/past")
            total = w.node("Add", [past, rows[1]], "/total")
        mask = self.mask(ids, total, rows)
        turn = None
        positions = ids.get("position_ids")
        if not positions:
            first = w.node("Sub", [total, rows[1]], "/positions/Sub")
            positions = w.node("Unsqueeze", [w.node("Range", [first, total, w.index(1)], "/positions/Range"), w.ints(0)], "/positions")
        if kind == "llama":
            turn = [w.node("Unsqueeze", [w.node("Gather", [w.constant(n, t), positions], f"/rotary/{n}/Gather"), w.ints(1)],
                           f"/rotary/{n}/Unsqueeze") for n, t in zip(("cos", "sin"), self.angles(True))]
        else:
            table = w.weight("model.positions.weight", self.positions, self.width)
            x = w.node("Add", [x, w.node("Gather", [table, positions], "/model/positions/Gather")], "/model/embed/Add")
        for i in range(self.layers):
            x = self.layer(x, i, f"/model/layers.{i}", rows, total, mask, turn)
        self.finish(x, rows)

    def angles(self, twice):
        half = self.depth // 2
        turns = np.outer(np.arange(self.positions), 10000.0 ** (-np.arange(half) / half))
        turns = np.concatenate([turns, turns], 1) if twice else turns
        return np.cos(turns).astype(np.float32), np.sin(turns).astype(np.float32)

    def layer(self, x, i, at, rows, total, mask, turn):
        w, bias = self.w, "gpt2" in self.kind
        h, a = self.norm(x, at + "/norm1"), at + "/attn"
        if self.kind == "gpt2-packed":
            q, k, v = self.packed(h, i, a, rows)
        else:
            q = w.product(h, a + "/q_proj", self.width, self.width, bias)
            k = w.product(h, a + "/k_proj", self.width, self.key_heads * self.depth, bias)
            v = w.product(h, a + "/v_proj", self.width, self.key_heads * self.depth, bias)
            q, k, v = (w.heads(t, f"{a}/{n}", rows, c, self.depth) for t, n, c in
                       ((q, "q", self.heads), (k, "k", self.key_heads), (v, "v", self.key_heads)))
            if turn:
                q, k = self.turned(q, a + "/q_rotary", *turn), self.turned(k, a + "/k_rotary", *turn)
            k, v = self.cached(i, "key", k, a), self.cached(i, "value", v, a)
        k, v = self.repeated(k, a + "/k_repeat", rows, total), self.repeated(v, a + "/v_repeat", rows, total)
        y = w.product(self.mixed(q, k, v, a, mask, rows, self.kind != "t5"), a + "/o_proj", self.width, self.width, bias)
        x = w.node("Add", [x, y], at + "/Add")
        if self.kind == "t5":
            x = self.cross(x, i, at + "/cross", rows)
        return w.node("Add", [x, self.feed_forward(self.norm(x, at + "/norm2"), at + "/mlp")], at + "/Add_1")

    def packed(self, h, i, a, rows):
        """Keys and values of a layer in one cache [2, B, H, S, D], as older exports of GPT-2 have it."""
        w = self.w
        qkv = w.product(h, a + "/c_attn", self.width, 3 * self.width, True)
        parts = w.node("Split", [qkv, w.ints(self.width, self.width, self.width)], [a + f"/Split_{n}" for n in "qkv"], axis=2)
        q, k, v = (w.heads(t, f"{a}/{n}", rows, self.heads, self.depth) for t, n in zip(parts, "qkv"))
        past = w.input(f"past_{i}", FLOAT, 2, "batch_size", self.heads, "past_sequence_length", self.depth)
        w.output(f"present_{i}", FLOAT, 2, "batch_size", self.heads, TOTAL, self.depth)
        new = []
        for n, fresh in (("k", k), ("v", v)):
            old = w.node("Gather", [past, w.index("kv".index(n))], f"{a}/{n}_past/Gather", axis=0)
            new.append(w.node("Concat", [old, fresh], f"{a}/{n}_present/Concat", axis=2))
        both = [w.node("Unsqueeze", [t, w.ints(0)], f"{a}/present/Unsqueeze_{n}") for n, t in enumerate(new)]
        w.node("Concat", both, f"present_{i}", axis=0)
        return q, new[0], new[1]

    def cross(self, x, i, at, rows):
        """Cross attention: keys and values of the encoder's states are inputs, computed once and passed through."""
        w, dims = self.w, ("batch_size", self.heads, "encoder_sequence_length", self.depth)
        q = w.heads(w.product(self.norm(x, at + "/norm"), at + "/q_proj", self.width, self.width), at + "/q", rows, self.heads, self.depth)
        new = []
        for what in ("key", "value"):
            past = w.input(f"past_key_values.{i}.encoder.{what}", FLOAT, *dims)
            new.append(past)
            w.output(f"present.{i}.encoder.{what}", FLOAT, *dims)
            w.node("Identity", [past], f"present.{i}.encoder.{what}")
        y = w.product(self.mixed(q, new[0], new[1], at, None, rows, False), at + "/o_proj", self.width, self.width)
        return w.node("Add", [x, y], at + "/Add")

    def feed_forward(self, x, at):
        w, bias = self.w, "gpt2" in self.kind
        if "llama" in self.kind:
            gate = w.product(x, at + "/gate_proj", self.width, self.hidden)
            gate = w.node("Mul", [gate, w.node("Sigmoid", [gate], at + "/Sigmoid")], at + "/Mul")
            x = w.node("Mul", [gate, w.product(x, at + "/up_proj", self.width, self.hidden)], at + "/Mul_1")
            return w.product(x, at + "/down_proj", self.hidden, self.width)
        x = w.product(x, at + "/c_fc", self.width, self.hidden, bias)
        if self.kind == "t5":
            x = w.node("Relu", [x], at + "/Relu")
        else:  # GELU by tanh, in primitives
            cube = w.node("Mul", [w.node("Pow", [x, w.scalar(3.0)], at + "/Pow"), w.scalar(0.044714998453855515)], at + "/Mul")
            inner = w.node("Mul", [w.node("Add", [x, cube], at + "/Add_1"), w.scalar(0.7978845834732056)], at + "/Mul_1")
            grown = w.node("Add", [w.node("Tanh", [inner], at + "/Tanh"), w.scalar(1.0)], at + "/Add_2")
            x = w.node("Mul", [w.node("Mul", [x, w.scalar(0.5)], at + "/Mul_2"), grown], at + "/Mul_3")
        return w.product(x, at + "/c_proj", self.hidden, self.width, bias)

    def grouped_layers(self, x):
        w, microsoft = self.w, "com.microsoft"
        seen = w.node("ReduceSum", ["attention_mask", w.ints(1)], "/lengths/ReduceSum", keepdims=1)
        lengths = w.node("Cast", [w.node("Sub", [seen, w.ints(1)], "/lengths/Sub")], "/lengths/Cast", to=INT32)
        total = w.node("Cast", [w.extent("attention_mask", 1, "/total")], "/total/Cast", to=INT32)
        tables = [w.constant(n + "_cache", t) for n, t in zip(("cos", "sin"), self.angles(False))]
        key_width = self.key_heads * self.depth
        for i in range(self.layers):
            at, a = f"/model/layers.{i}", f"/model/layers.{i}/attn"
            h = self.norm(x, at + "/input_layernorm")
            q, k, v = (w.product(h, f"{a}/{n}_proj", self.width, c)
                       for n, c in (("q", self.width), ("k", key_width), ("v", key_width)))
            pasts, presents = [], []
            for what in ("key", "value"):
                dims = ("batch_size", self.key_heads)
                pasts.append(w.input(f"past_key_values.{i}.{what}", FLOAT, *dims, "past_sequence_length", self.depth))
                presents.append(f"present.{i}.{what}")
                w.output(presents[-1], FLOAT, *dims, "total_sequence_length", self.depth)
            y = w.node("GroupQueryAttention", [q, k, v, *pasts, lengths, total, *tables],
                       [a + "/GroupQueryAttention", *presents], microsoft, num_heads=self.heads,
                       kv_num_heads=self.key_heads, do_rotary=1, scale=float(self.depth**-0.5))[0]
            x = w.node("Add", [x, w.product(y, a + "/o_proj", self.width, self.width)], at + "/Add")
            x = w.node("Add", [x, self.feed_forward(self.norm(x, at + "/post_layernorm"), at + "/mlp")], at + "/Add_1")
        return x

    def finish(self, x, rows):
        bits, self.w.bits = self.w.bits, 0
        head = self.w.weight("lm_head.weight", self.width, self.vocabulary)
        logits = self.w.node("MatMul", [self.norm(x, "/model/norm"), head], "logits")
        self.w.output(logits, FLOAT, "batch_size", "sequence_length", self.vocabulary)
        self.w.bits = bits


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", default="gpt2", choices=["gpt2", "llama", "llama-gqa", "gpt2-packed", "gpt2-no-cache", "t5"])
    parser.add_argument("--size", default="4", choices=list(SIZES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", required=True)
    given = parser.parse_args()
    decoder = Decoder(given.kind, given.size, given.seed)
    decoder.make()
    decoder.w.save(given.out)


if __name__ == "__main__":
    main()
