"""Models for ort_script.py: a classifier, a step of a language model with and without a state, a loop that does not end soon."""

import conftest
import numpy as np
import onnx_bytes as ob

_random = np.random.default_rng(5)
_EMBED, _MIX, _HEAD = (_random.standard_normal(shape).astype(np.float32) for shape in ((12, 16), (16, 16), (16, 12)))


def mlp():
    return conftest.mlp_bytes()


def _weights():
    return [ob.floats("embed", [12, 16], _EMBED.ravel().tolist()), ob.floats("head", [16, 12], _HEAD.ravel().tolist())]


def step():
    """logits [B, T, 12] of tokens [B, T]: the sum of all embeddings so far"""
    nodes = [ob.node("Gather", ["embed", "tokens"], ["e"]), ob.node("CumSum", ["e", "one"], ["s"]),
             ob.node("MatMul", ["s", "head"], ["logits"])]
    return ob.model(ob.graph(nodes, [ob.value("tokens", ob.INT64, ["B", "T"])], [ob.value("logits", ob.FLOAT, ["B", "T", 12])],
                             [*_weights(), ob.int64s("one", [], [1])]))


def cached_step():
    """The same for one token, with the sum as a state."""
    nodes = [ob.node("Gather", ["embed", "token"], ["e"]), ob.node("Add", ["e", "state"], ["new_state"]),
             ob.node("MatMul", ["new_state", "head"], ["logits"])]
    return ob.model(ob.graph(nodes, [ob.value("token", ob.INT64, ["B"]), ob.value("state", ob.FLOAT, ["B", 16])],
                             [ob.value("logits", ob.FLOAT, ["B", 12]), ob.value("new_state", ob.FLOAT, ["B", 16])], _weights()))


def slow():
    """n trips of a loop"""
    body = ob.graph([ob.node("Identity", ["c"], ["d"]), ob.node("Add", ["v", "step"], ["w"])],
                    [ob.value("i", ob.INT64, []), ob.value("c", ob.BOOL, []), ob.value("v", ob.FLOAT, [])],
                    [ob.value("d", ob.BOOL, []), ob.value("w", ob.FLOAT, [])], [ob.floats("step", [], [1.0])], name="body")
    return ob.model(ob.graph([ob.node("Loop", ["n", "", "x"], ["y"], name="loop", body=("graph", body))],
                             [ob.value("n", ob.INT64, []), ob.value("x", ob.FLOAT, [])], [ob.value("y", ob.FLOAT, [])]))
