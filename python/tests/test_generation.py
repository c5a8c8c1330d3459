"""Text generation: session.generator, with the decoders of models/export_decoders.py."""
import gc
import pathlib
import subprocess
import sys

import numpy
import pytest

import prony

EXPORT = pathlib.Path(__file__).resolve().parents[2] / "models" / "export_decoders.py"


@pytest.fixture(scope="module")
def decoders(tmp_path_factory):
    if not EXPORT.is_file():
        pytest.skip("models/export_decoders.py is not beside these tests")
    folder, made = tmp_path_factory.mktemp("decoders"), {}
    for kind in ("gpt2", "gpt2-no-cache", "llama", "t5"):
        made[kind] = str(folder / f"{kind}.onnx")
        subprocess.run([sys.executable, str(EXPORT), "--kind", kind, "--size", "tiny", "--out", made[kind]], check=True)
    return made


def greedy(path, prompt, new):
    """The same by whole runs of the model without a cache."""
    ids = list(prompt)
    with prony.Session(path) as session:
        for _ in range(new):
            array = numpy.array([ids], numpy.int64)
            logits = session.run({"input_ids": array, "attention_mask": numpy.ones_like(array)})["logits"]
            ids.append(int(logits[0, -1].argmax()))
    return ids[len(prompt):]


def test_iterates_over_ids(decoders):
    with prony.Session(decoders["gpt2"]) as session:
        generator = session.generator([1, 2, 3], new=12)
        ids = list(generator)
        assert ids == greedy(decoders["gpt2-no-cache"], [1, 2, 3], 12)
        assert list(generator) == []
        info = generator.info
        assert (info["cache"], info["length"], info["computed"], info["max_length"], info["vocabulary"]) == ("growing", 15, 14, 64, 96)
        assert info["cache_copied_bytes"] == 0
        assert generator.logits().shape == (96,) and generator.logits(1) is None


def test_smaller_caches(decoders):
    with prony.Session(decoders["llama"]) as session:
        ids = list(session.generator([1, 2, 3], new=12))
        held = []
        for kind in (None, "fp32", "fp16", "int8"):
            generator = session.generator([1, 2, 3], new=12, kv_cache=kind)
            found = list(generator)
            assert found == ids or kind == "int8"
            held.append(generator.info["cache_bytes"])
        assert held[0] == held[1] == 2 * held[2] and 3 * held[3] < held[0]
        with pytest.raises(ValueError, match="kv_cache must be 'fp32', 'fp16' or 'int8', not 'int4'"):
            session.generator([1], kv_cache="int4")
    with prony.Session(decoders["gpt2-no-cache"]) as session:
        with pytest.raises(prony.Error, match="no cache"):
            session.generator([1], kv_cache="fp16")


def test_batches_rewinding_and_prompts(decoders):
    with prony.Session(decoders["llama"], threads=1) as session:
        both = list(session.generator([[1, 2, 3], [4, 5]], new=6))
        alone = [list(session.generator(p, new=6)) for p in ([1, 2, 3], [4, 5])]
        assert [list(pair) for pair in zip(*both)] == alone
        generator = session.generator([1, 2, 3])
        first = [next(generator) for _ in range(6)]
        generator.rewind(3)
        assert [next(generator) for _ in range(6)] == first
        generator.rewind(0)
        generator.prompt([1, 2])
        generator.prompt([3])
        assert next(generator) == first[0]
        assert len(list(generator)) == 64 - 4  # until the context is full


def test_sampling_and_stop_ids(decoders):
    with prony.Session(decoders["gpt2"]) as session:
        plain = list(session.generator([1, 2, 3], new=10))
        drawn = [list(session.generator([1, 2, 3], new=10, temperature=2, top_k=50, top_p=0.9, seed=s)) for s in (1, 1, 2)]
        assert drawn[0] == drawn[1] != drawn[2]
        assert list(session.generator([1, 2, 3], new=10, temperature=1, top_k=1)) == plain
        assert list(session.generator([1, 2, 3], stop_ids=[plain[4]])) == plain[:plain.index(plain[4]) + 1]


def test_inputs_of_the_caller(decoders):
    shape = (1, 2, 5, 16)
    inputs = {"encoder_hidden_states": numpy.ones((1, 5, 32), numpy.float32), "encoder_attention_mask": numpy.ones((1, 5), numpy.int64)}
    for layer in range(2):
        for what in ("key", "value"):
            inputs[f"past_key_values.{layer}.encoder.{what}"] = numpy.full(shape, 0.1, numpy.float32)
    with prony.Session(decoders["t5"]) as session:
        with pytest.raises(prony.InvalidArgument, match="is not set"):
            session.generator([1])
        assert len(list(session.generator([1], new=4, inputs=inputs))) == 4
        with pytest.raises(prony.InvalidArgument, match="unknown input 'x'"):
            session.generator([1], inputs={"x": inputs["encoder_hidden_states"]})


def renamed(path, names):
    """The model with other names of inputs and outputs."""
    onnx = pytest.importorskip("onnx")
    model = onnx.load(path)
    for value in [*model.graph.input, *model.graph.output]:
        value.name = names.get(value.name, value.name)
    for node in model.graph.node:
        node.input[:] = [names.get(n, n) for n in node.input]
        node.output[:] = [names.get(n, n) for n in node.output]
    onnx.save(model, path + ".renamed.onnx")
    return path + ".renamed.onnx"


def test_roles_and_caches(decoders):
    names = {"attention_mask": "m", "position_ids": "p", "logits": "scores"}
    for layer in range(2):
        for what in ("key", "value"):
            names[f"past_key_values.{layer}.{what}"] = f"old.{layer}.{what}"
            names[f"present.{layer}.{what}"] = f"new.{layer}.{what}"
    path = renamed(decoders["gpt2"], names)
    with prony.Session(decoders["gpt2"]) as session:
        wanted = list(session.generator([1, 2, 3], new=8))
    with prony.Session(path) as session:
        roles = {"mask": "m", "positions": "p", "logits": "scores"}
        generator = session.generator([1, 2, 3], new=8, roles=roles, caches={"old.*": "new.*"})
        assert list(generator) == wanted
        assert generator.info["cache"] == "growing" and generator.info["convention"] == "old.0.key -> new.0.key"
        with pytest.raises(prony.InvalidArgument, match="role 'beam' is unknown"):
            session.generator([1], roles={"beam": "m"})
        with pytest.raises(prony.InvalidArgument, match="input 'q' does not exist"):
            session.generator([1], roles={"mask": "q"})
        with pytest.raises(prony.InvalidArgument, match="no input and output match the cache 'a=b'"):
            session.generator([1], caches={"a": "b"})
        with pytest.raises(TypeError, match="roles must be a dict of names"):
            session.generator([1], roles={"mask": 1})


def test_refusals(decoders):
    with prony.Session(decoders["gpt2"]) as session:
        with pytest.raises(prony.OutOfRange, match="id 96 .* not in the vocabulary"):
            session.generator([1, 96])
        with pytest.raises(TypeError, match="there is no option beams"):
            session.generator([1], beams=2)
        with pytest.raises(TypeError):
            session.generator(["a"])
        with pytest.raises(ValueError, match="2 prompts for 1 sequences"):
            session.generator([1]).prompt([[1], [2]])


def test_sessions_close_before_their_generators(decoders):
    session = prony.Session(decoders["gpt2"])
    one, two = session.generator([1, 2]), session.generator([3])
    del one
    gc.collect()
    session.close()
    with pytest.raises(prony.ClosedError):
        next(two)


def test_the_session_runs_between(decoders):
    array = numpy.array([[1, 2, 3]], numpy.int64)
    with prony.Session(decoders["gpt2-no-cache"]) as session:
        inputs = {"input_ids": array, "attention_mask": numpy.ones_like(array)}
        before = session.run(inputs)["logits"]
        generator = session.generator([1, 2, 3], new=3)
        list(generator)
        assert numpy.array_equal(session.run(inputs)["logits"], before)
