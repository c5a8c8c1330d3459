"""run, bench and profile --generate, with the decoders of models/export_decoders.py.

    test_generate_command.py PRONY SOURCE_DIR"""
import array
import csv
import json
import math
import os
import unittest

import command_case
import decoders
import onnx_bytes as ob
from command_case import DONE, FAILED, USAGE, CommandTest, Schema, run

INTERRUPTED = 130
KINDS = ("gpt2", "llama", "llama-gqa", "gpt2-packed", "gpt2-no-cache")


class Generate(CommandTest):
    def model(self, kind="gpt2"):
        return decoders.export(self.path(kind + ".onnx"), kind)

    def ids(self, *arguments):
        return [[int(i) for i in line.split(",")] for line in self.succeed("run", *arguments).split()]

    def static_decoder(self, kind):
        """Sums of the embeddings so far, times weights: rows written by position ("rows", "keys" with a mask), rows of which the oldest
        leaves ("rolled", with a mask), or a state; ids come one by one, but for the state."""
        wide = {"dims": [1, 8, 4], "ids": [1, 1]} if kind != "state" else {"dims": [1, 1, 4], "ids": [1, "length"]}
        table = [((37 * i * i + 11 * i) % 101 - 50) / 25 for i in range(16 * 4)]
        nodes = [ob.node("Gather", ["table", "input_ids"], ["x"])]
        inputs = [ob.value("input_ids", ob.INT64, wide["ids"]), ob.value("past", ob.FLOAT, wide["dims"])]
        if kind == "state":
            nodes += [ob.node("ReduceSum", ["x", "one"], ["new"], keepdims=1), ob.node("Add", ["past", "new"], ["present"]),
                      ob.node("Identity", ["present"], ["sum"])]
        elif kind == "rolled":
            nodes += [ob.node("Concat", ["past", "x"], ["all"], axis=1), ob.node("Slice", ["all", "one", "nine", "one"], ["present"])]
        else:
            inputs.append(ob.value("cache_position", ob.INT64, [1]))
            nodes += [ob.node("Reshape", ["cache_position", "place"], ["row"]), ob.node("Concat", ["zero", "row"], ["at"], axis=2),
                      ob.node("ScatterND", ["past", "at", "x"], ["present"])]
        masked = kind in ("keys", "rolled")
        if masked:
            inputs.append(ob.value("attention_mask", ob.INT64, [1, 8]))
            nodes += [ob.node("Cast", ["attention_mask"], ["seen"], to=ob.FLOAT), ob.node("Reshape", ["seen", "column"], ["keys"]),
                      ob.node("Add", ["present", "keys"], ["some"]), ob.node("Mul", ["some", "keys"], ["shown"])]
        if kind != "state":
            nodes.append(ob.node("ReduceSum", ["shown" if masked else "present", "one"], ["sum"], keepdims=1))
        nodes.append(ob.node("MatMul", ["sum", "w"], ["logits"]))
        return self.save(kind + ".onnx", ob.graph(
            nodes, inputs=inputs, outputs=[ob.value("logits", ob.FLOAT, [1, 1, 16]), ob.value("present", ob.FLOAT, wide["dims"])],
            initializers=[ob.floats("table", [16, 4], table), ob.floats("w", [4, 16], table[::-1]), ob.int64s("one", [1], [1]),
                          ob.int64s("nine", [1], [9]), ob.int64s("place", [3], [1, 1, 1]), ob.int64s("column", [3], [1, 8, 1]),
                          ob.int64s("zero", [1, 1, 1], [0])]))

    def test_versus_runs_static_caches_and_states(self):
        library = os.environ.get("PRONY_ORT_LIB")
        if not library:
            raise unittest.SkipTest("PRONY_ORT_LIB is not set")
        models = [self.static_decoder(kind) for kind in ("rows", "keys", "rolled", "state")] + [self.recurrent_decoder(False)]
        for model in models:
            generate = (model, "--generate", "new=5", "--prompt-ids", "3,1,2", "--max-length", "8")
            self.assertGreater(len(set(self.ids(*generate)[0])), 1, model)
            document = json.loads(self.succeed("versus", *generate, "-x", "1", "-r", "2", "-t", "10ms", "--processes", "1", "--ignore-load",
                                               "--ort-lib", library, "--json", "-"))
            self.assertEqual(document["equal_ids"], 5, (model, document))

    def test_every_kind_generates(self):
        for kind in KINDS:
            ids = self.ids(self.model(kind), "--generate", "new=12", "--prompt-ids", "1,2,3,4,5")
            self.assertEqual([len(row) for row in ids], [12], kind)
            self.assertTrue(all(0 <= i < 96 for i in ids[0]))

    def test_chunks_change_no_id(self):
        for kind in KINDS:
            model, prompt = self.model(kind), ("--generate", "new=12", "--prompt-ids", ",".join(str(i) for i in range(1, 30)))
            self.assertEqual(self.ids(model, *prompt, "--chunk", "8"), self.ids(model, *prompt), kind)
        self.refuse(USAGE, ["--chunk"], "run", model, *prompt, "--chunk", "0")

    def test_bench_counts_all_chunks(self):
        flops = []
        for chunk in ((), ("--chunk", "8")):
            self.succeed("bench", self.model(), "--generate", "prompt=20,new=2", "-r", "1", "-q", "--json", self.path("b.json"), *chunk)
            flops.append(json.loads(self.read(self.path("b.json")))["generation"]["prefill_flops_per_token"])
        self.assertLess(abs(flops[1] / flops[0] - 1), 0.1)  # a chunk sees no later keys, and has logits of its own

    def test_a_cache_changes_no_id(self):
        prompt = ("--generate", "new=24", "--prompt-ids", "1,2,3,4,5")
        self.assertEqual(self.ids(self.model("gpt2"), *prompt), self.ids(self.model("gpt2-no-cache"), *prompt))

    def test_sequences_of_a_batch_are_those_of_each_alone(self):
        for kind in ("gpt2", "llama", "llama-gqa", "gpt2-packed"):
            model = self.model(kind)
            both = self.ids(model, "--generate", "new=8", "--prompt-ids", "7,8,9,10;5,6")
            alone = [self.ids(model, "--generate", "new=8", "--prompt-ids", p)[0] for p in ("7,8,9,10", "5,6")]
            self.assertEqual(both, alone, kind)

    def test_cross_attention(self):
        model = self.model("t5")
        self.refuse(FAILED, ["encoder_hidden_states", "encoder_sequence_length is free", "--dim"], "run", model, "--generate",
                    "new=4", "--prompt-ids", "1")
        ids = self.ids(model, "--generate", "new=4", "--prompt-ids", "1,2", "--dim", "encoder_sequence_length=6")
        self.assertEqual(len(ids[0]), 4)

    def test_names_of_genai_config(self):
        """A file beside the model names its tensors; names that the model lacks are skipped, and so are other models' files."""
        model = self.model("gpt2")
        wanted = self.ids(model, "--generate", "new=6", "--prompt-ids", "1,2,3")
        data = self.read(model)
        for old, new in ((b"input_ids", b"words_now"), (b"attention_mask", b"attends_inputs"), (b"position_ids", b"place_number"),
                         (b"logits", b"result"), (b"past_key_values", b"c_of_the_layers"), (b"present", b"new_one")):
            self.assertEqual(len(old), len(new))
            data = data.replace(old, new)
        os.mkdir(self.path("named"))
        other = self.write("named/decoder.onnx", data)
        self.refuse(FAILED, ["not a decoder: no input of token ids"], "run", other, "--generate", "new=6", "--prompt-ids", "1,2,3")
        names = {"filename": "decoder.onnx",
                 "inputs": {"input_ids": "words_now", "attention_mask": "attends_inputs", "position_ids": "place_number",
                            "past_key_names": "c_of_the_layers.%d.key", "past_value_names": "c_of_the_layers.%d.value",
                            "past_sequence_length": "nowhere"},
                 "outputs": {"logits": "result", "present_key_names": "new_one.%d.key", "present_value_names": "new_one.%d.value"}}
        config = {"model": {"decoder": names, "eos_token_id": [2, 3], "vocab_size": 96}, "search": {"top_k": 1}}
        self.write("named/genai_config.json", json.dumps(config).encode())
        self.assertEqual(self.ids(other, "--generate", "new=6", "--prompt-ids", "1,2,3"), wanted)
        out = self.succeed("bench", other, "--generate", "prompt=4,new=3", "-r", "1")
        self.assertIn("c_of_the_layers.0.key -> new_one.0.key", " ".join(out.split()))
        names["inputs"]["attention_mask"] = "absent"
        self.write("named/genai_config.json", json.dumps(config).encode())
        self.refuse(FAILED, ["attends_inputs"], "run", other, "--generate", "new=6", "--prompt-ids", "1,2,3")
        names["inputs"]["attention_mask"] = 7
        self.write("named/genai_config.json", json.dumps(config).encode())
        self.refuse(FAILED, ["genai_config.json", "attention_mask"], "run", other, "--generate", "new=6", "--prompt-ids", "1,2,3")
        self.write("named/genai_config.json", b"{\n oops")
        self.refuse(FAILED, ["genai_config.json"], "run", other, "--generate", "new=6", "--prompt-ids", "1,2,3")
        names["filename"] = "other.onnx"
        self.write("named/genai_config.json", json.dumps(config).encode())
        self.refuse(FAILED, ["not a decoder: no input of token ids"], "run", other, "--generate", "new=6", "--prompt-ids", "1,2,3")

    def test_prompt_files_and_json(self):
        model = self.model()
        self.write("prompt.npy", ob.npy("<i8", [2, 3], bytes().join(i.to_bytes(8, "little") for i in (1, 2, 3, 4, 5, 6))))
        listed = self.ids(model, "--generate", "new=6", "--prompt-ids", "1,2,3;4,5,6")
        self.assertEqual(self.ids(model, "--generate", "new=6", "--prompt-ids", self.path("prompt.npy")), listed)
        document = json.loads(self.succeed("run", model, "--generate", "new=6", "--prompt-ids", "1,2,3;4,5,6", "--json", "-"))
        self.assertEqual(document["ids"], listed)
        self.assertFalse(document["stopped"])
        self.assertEqual(list(Schema("generated").problems(document)), [])
        stop = listed[0][2]
        stopped = self.ids(model, "--generate", "new=6", "--prompt-ids", "1,2,3", "--stop-ids", str(stop))
        self.assertEqual(stopped[0], listed[0][:listed[0].index(stop) + 1])

    def test_sampling(self):
        model = self.model()
        greedy = ("--generate", "new=16", "--prompt-ids", "1,2,3")
        drawn = greedy + ("--temperature", "1.5", "--top-k", "40", "--top-p", "0.95", "--min-p", "0.01", "--repetition-penalty", "1.1")
        one = self.ids(model, *drawn, "--seed", "1")
        self.assertEqual(one, self.ids(model, *drawn, "--seed", "1", "-x", "2"))
        self.assertNotEqual(one, self.ids(model, *drawn, "--seed", "2"))
        self.assertEqual(self.ids(model, *greedy), self.ids(model, *greedy, "--temperature", "1", "--top-k", "1"))

    def test_refusals(self):
        model = self.model()
        new = ("--generate", "new=4")
        self.refuse(USAGE, ["--generate needs prompt=N and new=N", "got 'tokens=3'"], "run", model, "--generate", "tokens=3")
        self.refuse(USAGE, ["needs --prompt-ids"], "run", model, *new)
        self.refuse(USAGE, ["--prompt-ids needs ids such as 1,2,3"], "run", model, *new, "--prompt-ids", ";")
        self.refuse(FAILED, ["id 96", "not in the vocabulary", "model.embed_tokens.weight", "96 rows"], "run", model, *new,
                    "--prompt-ids", "1,96")
        self.refuse(FAILED, ["max_length 70", "64 positions", "model.positions.weight"], "run", model, "--generate", "new=67",
                    "--prompt-ids", "1,2,3")
        self.refuse(FAILED, ["end of context", "5 positions"], "run", model, *new, "--prompt-ids", "1,2,3", "--max-length", "5")
        self.refuse(FAILED, ["not a decoder", "no input of token ids", "'image'"], "run", self.digits, *new, "--prompt-ids", "1")
        self.refuse(FAILED, ["no input and output match the cache 'a*=b*'"], "run", model, *new, "--prompt-ids", "1", "--cache", "a*=b*")
        self.refuse(USAGE, ["--roles needs ids=NAME"], "run", model, *new, "--prompt-ids", "1", "--roles", "x=y")
        self.refuse(FAILED, ["input 'nothing' does not exist"], "run", model, *new, "--prompt-ids", "1", "--roles", "mask=nothing")
        self.refuse(USAGE, ["--generate does not go with"], "bench", model, *new, "--scenario", "server")
        self.refuse(USAGE, ["bench takes one prompt"], "bench", model, *new, "--prompt-ids", "1;2")
        self.refuse(USAGE, ["--prompt-ids needs --generate"], "run", model, "--prompt-ids", "1")
        self.refuse(FAILED, ["different lengths", "need inputs attention_mask and position_ids"], "run",
                    self.model("gpt2-no-cache"), *new, "--prompt-ids", "1,2;3")

    def test_options_that_the_prompt_contradicts(self):
        """Each of these was ignored, and other ids than the wanted ones came out."""
        model, new = self.model(), ("--generate", "new=4")
        for ids in ("1,,2", ",1", "1,", "1, ,2", "1,2;3,", " ", "1,-2", "-1", "1.5"):
            self.refuse(USAGE, ["--prompt-ids needs ids such as 1,2,3, got '"], "run", model, *new, "--prompt-ids", ids)
        self.refuse(USAGE, ["--stop-ids needs ids", "got '2,,3'"], "run", model, *new, "--prompt-ids", "1", "--stop-ids", "2,,3")
        self.assertEqual(self.ids(model, *new, "--prompt-ids", " 1, 2"), self.ids(model, *new, "--prompt-ids", "1,2"))
        self.refuse(USAGE, ["prompt=7 differs from the 2 ids of --prompt-ids"], "run", model, "--generate", "prompt=7,new=4",
                    "--prompt-ids", "1,2")
        self.refuse(USAGE, ["-b 2 differs from the sequences of --prompt-ids: 1"], "run", model, *new, "-b", "2", "--prompt-ids", "1,2")
        self.assertEqual(len(self.ids(model, *new, "-b", "2", "--prompt-ids", "1,2;3,4")), 2)
        self.refuse(USAGE, ["--output-dir does not go with --generate"], "run", model, *new, "--prompt-ids", "1", "--output-dir",
                    self.path("out"))
        self.refuse(USAGE, ["new=N", "each from 1 to 2147483647", "got 'new=0'"], "run", model, "--generate", "new=0", "--prompt-ids", "1")

    def test_dimensions_that_the_generator_sets(self):
        """--dim batch_size=3 was ignored: one sequence came out."""
        model, new = self.model(), ("--generate", "new=4", "--prompt-ids", "1,2")
        self.refuse(USAGE, ["--dim batch_size=3 differs from the 1 sequence", "--prompt-ids"], "run", model, *new, "--dim", "batch_size=3")
        self.refuse(USAGE, ["--dim past_sequence_length=1", "sets this dimension of 'past_key_values.0.key' itself"], "run", model,
                    *new, "--dim", "past_sequence_length=1")
        self.refuse(USAGE, ["--dim batch_size=3 differs from the 1 sequence", "-b sets"], "bench", model, "--generate", "prompt=4,new=2",
                    "-r", "1", "--dim", "batch_size=3")
        self.assertEqual(self.ids(model, *new, "--dim", "batch_size=1"), self.ids(model, *new))

    def test_kv_cache(self):
        for kind in ("gpt2", "llama", "llama-gqa"):
            model = self.model(kind)
            prompt = ("--generate", "new=24", "--prompt-ids", "1,2,3,4,5")
            plain = self.ids(model, *prompt)
            self.assertEqual(self.ids(model, *prompt, "--kv-cache", "fp32"), plain)
            self.assertEqual(self.ids(model, *prompt, "--kv-cache", "fp16"), plain)
            codes = self.ids(model, *prompt, "--kv-cache", "int8", "-x", "1")
            self.assertEqual(self.ids(model, *prompt, "--kv-cache", "int8", "-x", "3"), codes)
        self.refuse(USAGE, ["--kv-cache", "int4", "fp32, fp16 or int8"], "run", model, *prompt, "--kv-cache", "int4")
        for kind, words in (("gpt2-packed", ["'past_0'", "float32[2"]), ("gpt2-no-cache", ["no cache"])):
            self.refuse(FAILED, words, "run", self.model(kind), *prompt, "--kv-cache", "int8")

    def test_bench_of_kv_caches(self):
        held = []
        for cache in ("fp32", "fp16", "int8"):
            out = self.succeed("bench", self.model(), "--generate", "prompt=16,new=48", "-r", "1", "--kv-cache", cache, "--json",
                               self.path("b.json"))
            self.assertTrue(all(len(line) <= 80 for line in out.replace(self.path(""), "").splitlines()), out)
            report = json.loads(self.read(self.path("b.json")))
            self.assertEqual(list(Schema("report").problems(report)), [])
            g = report["generation"]
            held.append(g["cache_bytes"])
            self.assertEqual((g["cache_type"], g["cache_bytes_copied_per_token"]), (cache, 0))
            if cache == "fp32":
                self.assertNotIn("cache_error_tokens", g)
                self.assertNotIn("cache error", out)
                continue
            self.assertRegex(out, f"cache error      {cache}: logits differ from fp32's by [0-9.e-]+ \\(RMS [0-9.e-]+\\);\n"
                                  " +[0-9.]+ % of 48 greedy")
            self.assertEqual(g["cache_error_tokens"], 48)
            self.assertTrue(0 < g["cache_error_rms"] < g["cache_error_max"] < 0.1, g)
            self.assertTrue(0.5 < g["cache_error_equal_ids"] <= 1, g)
        # 2 layers of keys and values, 64 rows of 2 heads of 16: a row of codes has a scale
        self.assertEqual(held, [2 * 2 * 64 * 2 * bytes for bytes in (16 * 4, 16 * 2, 16 + 4)])

    def test_perplexity(self):
        ids = [(7 * k * k + k) % 96 for k in range(40)]
        self.write("ids.npy", ob.npy("<i8", [40], bytes().join(i.to_bytes(8, "little") for i in ids)))
        out = self.succeed("eval", self.model(), "--token-ids", self.path("ids.npy"), "-p", "fp32,int8-weights", "--kv-cache", "int8",
                           "--json", self.path("p.json"))
        self.assertIn("39 tokens in windows of 40", out)
        document = json.loads(self.read(self.path("p.json")))
        self.assertEqual(list(Schema("perplexity").problems(document)), [])
        rows = document["results"]
        self.assertEqual([(r["precision"], r["kv_cache"]) for r in rows],
                         [(p, c) for p in ("fp32", "int8-weights") for c in ("fp32", "int8")])
        self.assertTrue(all(abs(r["change"]) < 0.05 for r in rows), rows)
        self.assertNotEqual(rows[0]["loss"], rows[1]["loss"])
        # Each position's logits by the model without a cache, in one run.
        self.write("row.npy", ob.npy("<i8", [1, 40], bytes().join(i.to_bytes(8, "little") for i in ids)))
        self.succeed("run", self.model("gpt2-no-cache"), "-q", "-i", "input_ids=" + self.path("row.npy"), "-i", "attention_mask=ones",
                     "--output-dir", self.path("out"))
        with open(self.path("out/output_0.npy"), "rb") as file:
            data = file.read()
        logits = array.array("f", data[-40 * 96 * 4:])
        loss = 0.0
        for k in range(39):
            row = logits[96 * k:96 * (k + 1)]
            loss += math.log(sum(math.exp(x) for x in row)) - row[ids[k + 1]]
        self.assertAlmostEqual(rows[0]["loss"], loss / 39, places=4)
        # Windows begin anew: 4 windows of 10 predict 9 tokens each.
        document = json.loads(self.succeed("eval", self.model(), "--token-ids", self.path("ids.npy"), "--max-length", "10", "--json", "-"))
        self.assertEqual((document["window"], document["results"][0]["tokens"]), (10, 36))
        self.refuse(USAGE, ["takes the place of DATA"], "eval", self.model(), "data.npz", "--token-ids", "1,2")
        self.refuse(USAGE, ["eval needs MODEL DATA"], "eval", self.model())
        self.refuse(USAGE, ["two ids"], "eval", self.model(), "--token-ids", "1")
        self.refuse(FAILED, ["id 96"], "eval", self.model(), "--token-ids", "1,2,96")
        self.refuse(FAILED, ["not a decoder"], "eval", self.digits, "--token-ids", "1,2")

    def test_bench(self):
        model = self.model()
        out = self.succeed("bench", model, "--generate", "prompt=16,new=8", "-r", "4", "--json", self.path("bench.json"))
        for words in ("prefill (pp16)", "decode (tg8)", "first token", "between tokens", "growth", "cache            growing",
                      "past_key_values.0.key -> present.0.key", "copied a token", "weights", "FLOPs"):
            self.assertIn(words, out)
        self.assertRegex(out, "[0-9] KiB held")
        self.assertNotIn("kiB", out)
        self.assertTrue(all(len(line) <= 80 for line in out.replace(model, "").splitlines()), out)
        report = json.loads(self.read(self.path("bench.json")))
        self.assertEqual(list(Schema("report").problems(report)), [])
        g = report["generation"]
        self.assertEqual((g["batch"], g["prompt_tokens"], g["new_tokens"], g["repetitions"], g["cache"]), (1, 16, 8, 4, "growing"))
        self.assertEqual(g["tpot_ns"]["steps"], 4 * 7)
        self.assertEqual(len(g["position_ns"]), 7)
        self.assertGreater(g["prefill_tokens_per_second"], 0)
        self.assertGreater(g["decode_tokens_per_second"], 0)
        self.assertLessEqual(g["tpot_ns"]["p50"], g["tpot_ns"]["max"])
        # 2 layers of keys and values, 23 computed tokens of 32 floats
        self.assertEqual(g["cache_live_bytes"], 2 * 2 * 23 * 32 * 4)
        self.assertLessEqual(g["cache_live_bytes"], g["cache_bytes"])
        self.assertEqual(g["cache_bytes_copied_per_token"], 0)
        # products of 12 width^2 in each layer, and the logits; tables by their rows
        weights = 4 * (2 * 12 * 32 * 32 + 32 * 96)
        self.assertGreaterEqual(g["weight_bytes_per_token"], weights)
        self.assertLess(g["weight_bytes_per_token"], 1.2 * weights)
        flops = 2 * (2 * 12 * 32 * 32 + 32 * 96)
        self.assertGreaterEqual(g["decode_flops_per_token"], flops)
        self.assertLess(g["decode_flops_per_token"], 1.5 * flops)
        self.assertGreater(g["prefill_flops_per_token"], flops)
        self.succeed("check", self.path("bench.json"), "--threshold", "latency:10s")
        self.succeed("bench", model, "--generate", "prompt=16,new=8", "-r", "2", "-q", "--csv", self.path("bench.csv"))
        with open(self.path("bench.csv"), encoding="utf-8", newline="") as file:
            row, = csv.DictReader(file)
        self.assertEqual((row["prompt_tokens"], row["new_tokens"], row["cache"]), ("16", "8", "growing"))
        self.assertEqual(row["cache_bytes_copied_per_token"], "0")

    def test_bench_matrix(self):
        model = decoders.export(self.path("llama.onnx"), "llama", "4")  # smaller products stay in fp32
        out = self.succeed("bench", model, "--generate", "prompt=8,new=4", "-b", "1,2", "-p", "fp32,int8-weights", "-r", "2",
                           "--json", self.path("matrix.json"), "--csv", self.path("matrix.csv"))
        self.assertIn("pp8", out)
        self.assertIn("tg4", out)
        matrix = json.loads(self.read(self.path("matrix.json")))
        self.assertEqual(list(Schema("matrix").problems(matrix)), [])
        self.assertEqual([(r["generation"]["batch"], r["config"]["precision"]) for r in matrix["reports"]],
                         [(1, "fp32"), (2, "fp32"), (1, "int8-weights"), (2, "int8-weights")])
        with open(self.path("matrix.csv"), encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([float(row["generation_decode_tokens_per_second"]) for row in rows],
                         [r["generation"]["decode_tokens_per_second"] for r in matrix["reports"]])
        by_precision = [r["generation"]["weight_bytes_per_token"] for r in matrix["reports"]]
        self.assertLess(by_precision[2], 0.6 * by_precision[0])

    def test_bench_without_a_cache(self):
        out = self.succeed("bench", self.model("gpt2-no-cache"), "--generate", "prompt=8,new=4", "-r", "2", "--json", self.path("r.json"))
        self.assertIn("none: the last step computed 11 tokens for one", out)
        self.assertEqual(json.loads(self.read(self.path("r.json")))["generation"]["computed_tokens_per_token"], 11)

    def test_versus_says_what_the_peer_refuses(self):
        code, out, err = run("versus", self.model(), "--generate", "prompt=4,new=2", "--ort-lib", command_case.fake_library(),
                             "--processes", "1", environment={"TMPDIR": self.folder})
        self.assertEqual((code, out), (FAILED, ""))
        self.assertIn("the peer: ", err)
        self.refuse(USAGE, ["versus takes one prompt"], "versus", self.model(), "--generate", "new=2", "--prompt-ids", "1;2")
        self.refuse(USAGE, ["--prompt-ids needs --generate"], "versus", self.model(), "--prompt-ids", "1")

    def counting_decoder(self, caches):
        """The decoder of fake_ort.c, whose caches only --cache names. Returns its path and the options for them."""
        table = ob.floats("table", [16, 16], [float(column == (row + 1) % 16) for row in range(16) for column in range(16)])
        narrow = ob.floats("narrow", [16, 4], [0.5] * 64)
        nodes = [ob.node("Gather", ["table", "input_ids"], ["logits"]), ob.node("Gather", ["narrow", "input_ids"], ["rows"]),
                 ob.node("Unsqueeze", ["rows", "one"], ["step"])]
        for k in range(caches):
            nodes += [ob.node("Concat", ["a%d" % k, "step"], ["c%d" % k], axis=2), ob.node("Identity", ["c%d" % k], ["b%d" % k])]
        values = [[ob.value("%s%d" % (letter, k), ob.FLOAT, [1, 1, rows, 4]) for k in range(caches)]
                  for letter, rows in (("a", "past"), ("b", "total"))]
        path = self.save("counting.onnx", ob.graph(
            nodes, inputs=[ob.value("input_ids", ob.INT64, [1, "sequence"])] + values[0],
            outputs=[ob.value("logits", ob.FLOAT, [1, "sequence", 16])] + values[1],
            initializers=[table, narrow, ob.int64s("one", [1], [1])]))
        return path, [word for k in range(caches) for word in ("--cache", "a%d=b%d" % (k, k))]

    def recurrent_decoder(self, second_table):
        """One token a run; the state is half the former one and a row of the table. `second_table`: 'b' gathers rows too."""
        table = ob.floats("table", [16, 16], [((row * 7 + column * 5) % 11) / 11 for row in range(16) for column in range(16)])
        nodes = [ob.node("Gather", ["table", "a"], ["x"]), ob.node("Squeeze", ["x", "one"], ["row"]),
                 ob.node("Mul", ["old", "half"], ["kept"]), ob.node("Add", ["kept", "row"], ["new"]),
                 ob.node("MatMul", ["new", "table"], ["scores"])]
        inputs = [ob.value("a", ob.INT64, ["n", 1]), ob.value("old", ob.FLOAT, ["n", 16])]
        if second_table:
            nodes.insert(1, ob.node("Gather", ["table", "b"], ["y"]))
            inputs.insert(1, ob.value("b", ob.INT64, ["n", 1]))
        return self.save("recurrent.onnx", ob.graph(
            nodes, inputs=inputs, outputs=[ob.value("scores", ob.FLOAT, ["n", 16]), ob.value("new", ob.FLOAT, ["n", 16])],
            initializers=[table, ob.floats("half", [1], [0.5]), ob.int64s("one", [1], [1])]))

    def test_a_decoder_without_known_names(self):
        model, prompt = self.recurrent_decoder(False), ("--generate", "new=6", "--prompt-ids", "1,2,3")
        wanted = self.ids(model, *prompt)
        self.assertEqual(len(wanted[0]), 6)
        self.assertIn("old -> new", self.succeed("bench", model, "--generate", "prompt=4,new=3", "-r", "1"))
        self.succeed("profile", model, "--generate", "prompt=4,new=3", "-q", "--json", self.path("p.json"))
        self.assertEqual(list(Schema("report").problems(json.loads(self.read(self.path("p.json"))))), [])
        counted = self.save("counted.onnx", ob.graph(
            [ob.node("Gather", ["table", "ids"], ["x"]), ob.node("Gather", ["table", "cur_len"], ["y"]),
             ob.node("Add", ["x", "y"], ["logits"])],
            inputs=[ob.value("ids", ob.INT64, ["n", "s"]), ob.value("cur_len", ob.INT64, [1])],
            outputs=[ob.value("logits", ob.FLOAT, ["n", "s", 2])], initializers=[ob.floats("table", [9, 2], range(18))]))
        lone = self.save("lone.onnx", ob.graph(
            [ob.node("Gather", ["table", "ids"], ["x"]), ob.node("ReduceSum", ["past_k"], ["sum"], keepdims=0),
             ob.node("Add", ["x", "sum"], ["logits"])],
            inputs=[ob.value("ids", ob.INT64, ["n", "s"]), ob.value("past_k", ob.FLOAT, ["n", 2, 4])],
            outputs=[ob.value("logits", ob.FLOAT, ["n", "s", 2])], initializers=[ob.floats("table", [9, 2], range(18))]))
        self.refuse(FAILED, ["input 'past_k' looks like a cache", "--cache 'past_k=OUTPUT'"], "run", lone, *prompt)
        self.refuse(FAILED, ["input 'cur_len' counts tokens", "--roles past_length=cur_len"], "run", counted, *prompt)
        self.assertEqual(self.ids(counted, *prompt, "--roles", "total=cur_len"), [[1] * 6])
        versus = ("--generate", "prompt=4,new=2", "--ort-lib", command_case.fake_library())
        fixed = self.save("fixed.onnx", ob.graph(
            [ob.node("Gather", ["table", "ids"], ["logits"])], inputs=[ob.value("ids", ob.INT64, ["n", 3])],
            outputs=[ob.value("logits", ob.FLOAT, ["n", 3, 9])], initializers=[ob.floats("table", [9, 9], range(81))]))
        self.refuse(FAILED, ["versus wants ids [batch, length] of any length, or of 1 (input 'ids')"], "versus", fixed, "--generate",
                    "prompt=1,new=1", *versus[2:])
        both = self.recurrent_decoder(True)
        self.refuse(FAILED, ["it may be 'a' or 'b'", "--roles ids=NAME"], "run", both, *prompt)
        self.assertEqual(self.ids(both, *prompt, "--roles", "ids=a,positions=b"), wanted)
        self.refuse(USAGE, ["--roles needs ids=NAME", "past_length"], "run", both, *prompt, "--roles", "id=a")

    def versus_fake(self, caches, *arguments, **environment):
        path, options = self.counting_decoder(caches)
        environment = {"FAKE_ORT": "decoder", "FAKE_ORT_CACHES": str(caches), "TMPDIR": self.folder, **environment}
        code, out, err = run("versus", path, "--generate", "prompt=4,new=3", "-x", "1", "-r", "1", "--processes", "1", "--ignore-load",
                             "--ort-lib", command_case.fake_library(), "--json", self.path("v.json"), *options, *arguments,
                             environment=environment, statuses=(DONE, FAILED, INTERRUPTED))
        document = json.loads(self.read(self.path("v.json")), parse_constant=self.fail) if os.path.exists(self.path("v.json")) else None
        if document:
            self.assertEqual(list(Schema("versus_generation").problems(document)), [])
        return code, out, err, document

    def test_versus_passes_all_caches_on(self):
        code, out, err, document = self.versus_fake(12)
        self.assertEqual((code, err), (DONE, ""))
        self.assertIn("All 3 new ids are equal.", out)
        self.assertEqual((document["equal_ids"], document["results"][0]["pairs"]), (3, 1))
        self.assertEqual(document["results"][0]["decode"]["prony_is"], "not judged")

    def test_an_interrupted_versus_writes_valid_json(self):
        code, out, err, document = self.versus_fake(1, FAKE_ORT_STOP=self.path("stop"))
        self.assertEqual(code, INTERRUPTED, err)
        self.assertIn("interrupted; the results of the pairs until then follow", err)
        row, = document["results"]
        self.assertEqual((row["pairs"], row["decode"]["ratio"], row["prefill"]["ratio"]), (0, None, None))
        self.assertNotIn("nan", out)

    def test_versus(self):
        """Beside ONNX Runtime, whose library PRONY_ORT_LIB names."""
        library = os.environ.get("PRONY_ORT_LIB")
        if not library:
            raise unittest.SkipTest("PRONY_ORT_LIB is not set")
        for kind in KINDS:
            out = self.succeed("versus", self.model(kind), "--generate", "prompt=12,new=6", "-x", "1", "-r", "2", "--processes", "2",
                               "--ignore-load", "--ort-lib", library, "--json", self.path("v.json"))
            for words in ("pp12", "tg6", "peak memory", "All 6 new ids are equal.", "not judged"):
                self.assertIn(words, out, kind)
            document = json.loads(self.read(self.path("v.json")))
            self.assertEqual(list(Schema("versus_generation").problems(document)), [])
            row, = document["results"]
            self.assertEqual((document["equal_ids"], row["pairs"], row["decode"]["ratio_ci95"]), (6, 2, None))
            self.assertGreater(row["prefill"]["ratio"], 0)
        both = self.succeed("versus", self.model("llama-gqa"), "--generate", "new=4", "--prompt-ids", "3,1,4,1,5", "-b", "2", "-x", "1,2",
                            "-r", "1", "--processes", "1", "--ignore-load", "--ort-lib", library)
        self.assertIn("All 4 new ids are equal.", both)
        t5 = self.succeed("versus", self.model("t5"), "--generate", "prompt=5,new=4", "--dim", "encoder_sequence_length=6", "-x", "1", "-r",
                          "1", "--processes", "1", "--ignore-load", "--ort-lib", library)
        self.assertIn("All 4 new ids are equal.", t5)

    def test_profile(self):
        model = self.model()
        out = self.succeed("profile", model, "--generate", "prompt=16,new=4", "-t", "0.1", "--json", self.path("p.json"), "--html",
                           self.path("p.html"))
        self.assertIn("The prompt:", out)
        self.assertIn("One step at the last position:", out)
        step, prompt = (json.loads(self.read(self.path(n))) for n in ("p.json", "p_prefill.json"))
        for report in (step, prompt):
            self.assertEqual(list(Schema("report").problems(report)), [])
        self.assertTrue(os.path.exists(self.path("p_prefill.html")))
        shapes = [{i["name"]: i["shape"] for i in r["model"]["inputs"]} for r in (step, prompt)]
        self.assertEqual([s["input_ids"] for s in shapes], [[1, 1], [1, 16]])
        self.assertEqual(shapes[0]["past_key_values.0.key"][2], 18)
        self.assertIn("generation", step)
        self.assertNotIn("generation", prompt)
        self.assertIn(b"Latency over the position", self.read(self.path("p.html")))
        self.assertNotIn(b"Latency over the position", self.read(self.path("p_prefill.html")))
        self.succeed("profile", model, "--generate", "prompt=16,new=4", "-t", "0.1", "-q", "--svg", "generation=" + self.path("g.svg"))
        self.assertIn(b"tokens before it", self.read(self.path("g.svg")))
        self.assertFalse(os.path.exists(self.path("g_prefill.svg")))

    def test_an_interrupted_run_leaves_no_process(self):
        code, _, err = run("bench", self.model(), "--generate", "prompt=16,new=40", "--time-limit", "50ms")
        self.assertIn(code, (DONE, FAILED), err)


if __name__ == "__main__":
    command_case.main()
