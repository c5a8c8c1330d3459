#!/usr/bin/env python3
"""prony serve: the Open Inference Protocol v2, its limits, deadlines, draining, replaced files.

    test_serve.py PRONY SOURCE_DIR [unittest options]
"""
import concurrent.futures
import json
import os
import re
import signal
import struct
import time

import command_case
import onnx_bytes as ob
from command_case import FAILED, USAGE, run
from serve_case import (ServeTest, Service, count_request, counting_model, identity_model, pack, serving, tensor)

# Number, name, elements as JSON, and their bytes.
TYPES = (
    (1, "FP32", [0.5, -2, 3e38, 1e-45], pack([0.5, -2, 3e38, 1e-45], "f")),
    (2, "UINT8", [0, 255], b"\x00\xff"),
    (3, "INT8", [-128, 127], b"\x80\x7f"),
    (4, "UINT16", [0, 65535], pack([0, 65535], "H")),
    (5, "INT16", [-32768, 32767], pack([-32768, 32767], "h")),
    (6, "INT32", [-2**31, 2**31 - 1], pack([-2**31, 2**31 - 1], "i")),
    (7, "INT64", [-2**63, 2**63 - 1], pack([-2**63, 2**63 - 1], "q")),
    (8, "BYTES", ["", "a\"\\\u00e9\U0001f600\n"], b"\0\0\0\0" + struct.pack("<I", 10) + "a\"\\\u00e9\U0001f600\n".encode()),
    (9, "BOOL", [True, False], b"\x01\x00"),
    (10, "FP16", [0.5, -65504, 2**-24], pack([0.5, -65504, 2**-24], "e")),
    (11, "FP64", [0.1, -1e308], pack([0.1, -1e308], "d")),
    (12, "UINT32", [0, 2**32 - 1], pack([0, 2**32 - 1], "I")),
    (13, "UINT64", [0, 2**64 - 1], pack([0, 2**64 - 1], "Q")),
    (16, "BF16", [0.5, -3, 2**-130], b"\x00\x3f\x40\xc0\x08\x00"),
    (17, "FP8E4M3FN", [1, -448, 0.001953125], b"\x38\xfe\x01"),
    (18, "FP8E4M3FNUZ", [1, -240], b"\x40\xff"),
    (19, "FP8E5M2", [1, -57344], b"\x3c\xfb"),
    (20, "FP8E5M2FNUZ", [1, -57344], b"\x40\xff"),
    (21, "UINT4", [1, 15, 7], b"\xf1\x07"),
    (22, "INT4", [-8, 7, -1], b"\x78\x0f"),
    (23, "FP4E2M1", [0.5, -6], b"\xf1"),
)


class Protocol(ServeTest):
    def test_metadata_and_health(self):
        with serving(self.digits, self.lenet + "=net.2") as service:
            server = service.get("/v2")
            self.assertEqual((server["name"], server["extensions"]), ("prony", ["binary_tensor_data"]))
            self.assertEqual(service.get("/v2/health/live"), {"live": True})
            self.assertEqual(service.get("/v2/health/ready"), {"ready": True})
            model = service.get("/v2/models/digits")
            self.assertEqual(model, service.get("/v2/models/digits/versions/1"))
            self.assertEqual(model["inputs"], [{"name": "image", "datatype": "FP32", "shape": [-1, 1, 8, 8]}])
            self.assertEqual(model["outputs"], [{"name": "logits", "datatype": "FP32", "shape": [-1, 10]}])
            self.assertEqual((model["versions"], model["platform"]), (["1"], "onnx_onnxv1"))
            self.assertEqual(service.get("/v2/models/net.2/ready"), {"name": "net.2", "ready": True})
            self.assertEqual([m["name"] for m in service.get("/v2/models")["models"]], ["digits", "net.2"])
            for path, words in (("/v3", "unknown path"), ("/v2/models/none", "unknown model 'none'"), ("/v2/models/digits/versions/2",
                                                                                                       "no version '2'"),
                                ("/v2/models/digits/metadata", "no 'metadata'"), ("/v2/health", "unknown path"),
                                ("/v2/models/digits/infer/x", "wanted")):
                self.assertIn(words, service.get(path, wanted=404)["error"])
            self.assertEqual(service.request("HEAD", "/v2")[2], b"")

    def test_a_wrong_method_learns_the_paths_methods(self):
        with serving(self.digits) as service:
            wrong = [("GET", "/v2/models/digits/infer", "POST"), ("DELETE", "/v2", "GET, HEAD"), ("PUT", "/live", "GET, HEAD"),
                     ("POST", "/events", "GET")]
            wrong += [("POST", path, "GET, HEAD")
                      for path in ("/", "/metrics", "/v2", "/v2/health/live", "/v2/models/", "/v2/models/digits",
                                   "/v2/models/digits/versions/1/ready")]
            for method, path, allow in wrong:
                status, headers, body = service.request(method, path, b"{}" if method == "POST" else None)
                self.assertEqual((status, headers.get("Allow")), (405, allow), path)
                self.assertIn("method " + method, json.loads(body)["error"])
            for method, path in (("POST", "/metric"), ("DELETE", "/v2/models/none"), ("POST", "/v2/models/digits/infer/")):
                status, headers, _ = service.request(method, path, b"{}" if method == "POST" else None)
                self.assertEqual((status, headers.get("Allow")), (404, None), path)

    def test_an_inference_gives_the_outputs_of_run(self):
        self.write("image.npy", ob.npy("<f4", [1, 1, 8, 8], pack(self.pixels(), "f")))
        self.succeed("run", self.digits, "-x", 1, "-i", "image=" + self.path("image.npy"), "--output-dir", self.path("out"))
        wanted = struct.unpack("<10f", ob.read_npy(self.path("out/output_0.npy"))[2])
        with serving(self.digits, "-x", 1) as service:
            status, _, answer = service.infer("digits", self.image(id="one \u00e9\"", parameters={"unknown": [1, {}]}))
            self.assertEqual((status, answer["model_name"], answer["model_version"], answer["id"]), (200, "digits", "1", "one \u00e9\""))
            output = answer["outputs"][0]
            self.assertEqual((output["name"], output["datatype"], output["shape"]), ("logits", "FP32", [1, 10]))
            self.assertEqual(pack(output["data"], "f"), pack(wanted, "f"))
            nested = self.image(outputs=[{"name": "logits"}])
            nested["inputs"][0]["data"] = [[[self.pixels()[8 * i:8 * i + 8] for i in range(8)]]]
            self.assertEqual(service.infer("digits/versions/1", nested)[2]["outputs"], answer["outputs"])
            # the same as binary tensors, in and out
            header = {"inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 1, 8, 8], "parameters": {"binary_data_size": 256}}],
                      "parameters": {"binary_data_output": True}}
            body = json.dumps(header).encode()
            for padding in range(4):  # aligned and not
                text = body + b" " * padding
                status, headers, got = service.infer("digits", text + pack(self.pixels(), "f"),
                                                     {"Inference-Header-Content-Length": str(len(text))})
                self.assertEqual((status, headers["Content-Type"]), (200, "application/octet-stream"))
                size = int(headers["Inference-Header-Content-Length"])
                self.assertEqual(json.loads(got[:size])["outputs"][0]["parameters"], {"binary_data_size": 40})
                self.assertEqual(got[size:], pack(wanted, "f"))
            # an output says more than the request
            header["outputs"] = [{"name": "logits", "parameters": {"binary_data": False}}]
            text = json.dumps(header).encode()
            answer = service.infer("digits", text + pack(self.pixels(), "f"), {"Inference-Header-Content-Length": str(len(text))})
            self.assertEqual(answer[2]["outputs"][0]["data"], output["data"])

    def test_every_type(self):
        names = []
        for number, name, values, _ in TYPES:
            self.save(name + ".onnx", identity_model(number, ["n"]), opset=23)
            names.append(self.path(name + ".onnx"))
        with serving(*names, "-x", 1) as service:
            for number, name, values, data in TYPES:
                with self.subTest(name):
                    count = len(values)
                    self.assertEqual(service.get("/v2/models/" + name)["inputs"][0]["datatype"], name)
                    status, _, answer = service.infer(name, {"inputs": [tensor("x", name, [count], values)]})
                    self.assertEqual(status, 200, answer)
                    output = answer["outputs"][0]
                    self.assertEqual((output["datatype"], output["shape"]), (name, [count]))
                    if name == "FP32":  # as many digits as a float32 needs
                        self.assertEqual(pack(output["data"], "f"), pack(values, "f"))
                    else:
                        self.assertEqual(output["data"], values)
                    header = json.dumps({"inputs": [{"name": "x", "datatype": name, "shape": [count],
                                                     "parameters": {"binary_data_size": len(data)}}],
                                         "outputs": [{"name": "y", "parameters": {"binary_data": True}}]}).encode()
                    status, headers, got = service.infer(name, header + data, {"Inference-Header-Content-Length": str(len(header))})
                    self.assertEqual(status, 200, got)
                    self.assertEqual(got[int(headers["Inference-Header-Content-Length"]):], data)

    def test_values_that_json_lacks_are_null(self):
        self.save("x.onnx", identity_model(ob.FLOAT, [None]))
        with serving(self.path("x.onnx"), "-x", 1) as service:
            data = pack([float("nan"), float("inf"), 1], "f")
            header = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [3],
                                             "parameters": {"binary_data_size": 12}}]}).encode()
            answer = service.infer("x", header + data, {"Inference-Header-Content-Length": str(len(header))})
            self.assertEqual(answer[2]["outputs"][0]["data"], [None, None, 1])

    def test_wrong_requests_name_model_input_and_value(self):
        def changed(**fields):
            body = self.image()
            body["inputs"][0].update(fields)
            return {key: value for key, value in body.items() if value is not None}

        def without(field):
            body = self.image()
            del body["inputs"][0][field]
            return body

        with serving(self.digits, "-x", 1) as service:
            for body, words in (
                    (b"", ["invalid JSON"]), (b"[]", ["invalid JSON"]), (b"{", ["invalid JSON"]), (b'{"inputs": 3}', ["array"]),
                    (b'{"inputs": [], }', ["byte 15"]), (b'{"inputs": []} x', ["text follows"]), (b"{}", ["'digits'", "no inputs"]),
                    (b'{"inputs": []}', ["'digits'", "'image' is missing"]), (b'{"inputs": [{}]}', ["no name"]),
                    (b'{"id": 3, "inputs": []}', ["a string is missing"]), (b'{"id": "\\ud8"}', ["escape"]), (b'{"a": 01}', ["byte"]),
                    (changed(name="picture"), ["'digits' has no input 'picture'"]), (without("shape"), ["'image' has no shape"]),
                    (without("datatype"), ["'image' has no datatype"]), (without("data"), ["either data or binary_data_size"]),
                    (changed(datatype="FP99"), ["unknown datatype 'FP99'"]), (changed(datatype="INT64"),
                                                                              ["'image' has the datatype INT64; wanted FP32"]),
                    (changed(shape=[1, 1, 8]), ["'image' has the shape [1,1,8]; wanted [-1,1,8,8]"]),
                    (changed(shape=[1, 1, 8, 9]), ["[1,1,8,9]"]), (changed(shape=[-1, 1, 8, 8]), ["dimension 0, -1"]),
                    (changed(shape=[2**62, 1, 8, 8]), ["too many elements"]), (changed(shape=[2**50, 1, 8, 8]), ["fewer elements"]),
                    (changed(shape=[1.5, 1, 8, 8]), ["dimension 0, 1.5"]), (changed(shape=[1] * 17), ["more than 16"]),
                    (changed(data=[1] * 63), ["63 elements", "64"]), (changed(data=[1] * 65), ["more than the 64"]),
                    (changed(data=[1] * 63 + ["x"]), ["element 63, \"x\""]), (changed(data=[1] * 63 + [None]), ["element 63, null"]),
                    (changed(data=3), ["not an array"]), (changed(data=[{}] * 64), ["object"]), (changed(data=[1] * 63 + [1e39]),
                                                                                                 ["element 63, 1e+39", "range"]),
                    (self.image(outputs=[{"name": "none"}]), ["no output 'none'"]), (self.image(outputs=[3]), ["outputs"]),
                    (self.image(parameters={"binary_data_output": 3}), ["binary_data_output"]),
                    ({"inputs": self.image()["inputs"] * 2}, ["'image' is given twice"])):
                self.refused(service.infer("digits", body), 400, *words)
            header = {"Inference-Header-Content-Length": "4000"}
            self.refused(service.infer("digits", b"{}", header), 400, "4000", "2 bytes")
            self.refused(service.infer("digits", b"{}", {"Inference-Header-Content-Length": "-1"}), 400, "not a number of bytes")
            text = json.dumps({"inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 1, 8, 8],
                                           "parameters": {"binary_data_size": 256}}]}).encode()
            length = {"Inference-Header-Content-Length": str(len(text))}
            self.refused(service.infer("digits", text + b"x" * 100, length), 400, "'image'", "256", "100 bytes")
            self.refused(service.infer("digits", text + b"x" * 300, length), 400, "44 bytes follow")
            self.refused(service.infer("digits", text.replace(b"256", b"252") + b"x" * 252, length), 400, "252", "256 bytes")
            self.refused(service.infer("digits", self.image(), {"Content-Encoding": "gzip"}), 415, "gzip")
            for timeout in ("0", "-1", "x", "1y", "nan", "1e30"):
                self.refused(service.infer("digits", self.image(), {"Request-Timeout": timeout}), 400, "Request-Timeout")
            self.assertEqual(service.infer("digits", self.image())[0], 200)

    def test_integers_are_checked(self):
        for number, name, values in ((2, "UINT8", [256, -1]), (3, "INT8", [128, -129]), (7, "INT64", [2**63, -2**63 - 1]), (13, "UINT64",
                                                                                                                            [2**64, -1]),
                                     (9, "BOOL", [2, "true"]), (22, "INT4", [8, -9])):
            self.save(name + ".onnx", identity_model(number, ["n"]), opset=23)
            with serving(self.path(name + ".onnx"), "-x", 1) as service:
                for value in values + [0.5, None]:
                    self.refused(service.infer(name, {"inputs": [tensor("x", name, [1], [value])]}), 400, "'x'")

    def test_a_run_that_fails_is_the_requests_fault(self):
        table = ob.graph([ob.node("Gather", ["table", "x"], ["y"], axis=0)], inputs=[ob.value("x", ob.INT64, ["n"])],
                         outputs=[ob.value("y", ob.FLOAT, ["n"])], initializers=[ob.floats("table", [4], [0, 10, 20, 30])])
        self.save("table.onnx", table)
        with serving(self.path("table.onnx"), "-x", 1) as service:
            self.assertEqual(service.infer("table", {"inputs": [tensor("x", "INT64", [1], [3])]})[2]["outputs"][0]["data"], [30])
            self.refused(service.infer("table", {"inputs": [tensor("x", "INT64", [1], [9])]}), 400, "'table'", "9")

    def test_wrong_usage(self):
        for arguments, words in (([self.digits + "=a/b"], "not a name"), ([self.digits, self.digits], "two models are named 'digits'"),
                                 ([self.digits, "--max-body", "0"], "--max-body"), ([self.digits, "--port", "70000"], "--port"),
                                 ([self.digits, "--alert", "nothing > 3"], "unknown metric 'nothing'")):
            code, _, error = run("serve", *arguments)
            self.assertEqual(code, USAGE, error)
            self.assertIn(words, error)
        self.save("sequence.onnx", ob.graph([ob.node("SequenceConstruct", ["x"], ["y"])], inputs=[ob.value("x", ob.FLOAT, [2])],
                                            outputs=[ob.chunk(1, "y") + ob.chunk(2, ob.chunk(4, ob.chunk(1, ob.chunk(1, ob.integer(1,
                                                                                                                                   1)))))]))
        for arguments, words in (([self.path("none.onnx")], "none.onnx"), ([self.path("sequence.onnx")], "output 'y'"),
                                 ([self.digits, "--host", "256.1.1.1"], "--host")):
            code, _, error = run("serve", *arguments)
            self.assertEqual(code, FAILED, error)
            self.assertIn(words, error)
        # the first address of this name cannot be bound
        fake = {"LD_PRELOAD": os.path.join(os.path.dirname(command_case.PRONY), "tests", "libfake_addresses.so"),
                "ASAN_OPTIONS": "verify_asan_link_order=0"}
        with serving(self.digits, "--host", "two.test", environment=fake) as service:
            self.assertEqual(service.get("/v2/health/live"), {"live": True})
        with serving(self.digits) as service:
            code, _, error = run("serve", self.digits, "--port", service.port)
            self.assertEqual(code, FAILED)
            self.assertIn("cannot listen", error)


class Limits(ServeTest):
    def setUp(self):
        super().setUp()
        self.save("count.onnx", counting_model())
        self.count = self.path("count.onnx")
        # trips that take about 0.3 s here
        trips = 20000
        with serving(self.count, "-x", 1) as service:
            while True:
                begin = time.monotonic()
                self.assertEqual(service.infer("count", count_request(trips))[0], 200)
                if time.monotonic() - begin > 0.15:
                    break
                trips *= 2
        self.slow = trips * 2

    def test_a_full_queue_is_429(self):
        with serving(self.count, "-x", 1, "--max-queue", 2) as service:
            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                answers = list(pool.map(lambda _: service.infer("count", count_request(self.slow)), range(12)))
            statuses = sorted(a[0] for a in answers)
            self.assertEqual(set(statuses), {200, 429})
            self.assertGreaterEqual(statuses.count(200), 2)
            full = [a for a in answers if a[0] == 429][0]
            self.refused(full, 429, "'count'", "queue is full", "2 requests")
            self.assertEqual(full[1]["Retry-After"], "1")

    def test_deadlines(self):
        with serving(self.count, "-x", 1, "--request-timeout", "20s") as service:
            begin = time.monotonic()
            self.refused(service.infer("count", count_request(self.slow * 4), {"Request-Timeout": "50ms"}), 504, "'count'")
            self.assertLess(time.monotonic() - begin, 1)  # the run goes on; the answer does not wait for it
            self.refused(service.infer("count", count_request(1), {"Request-Timeout": "0.01"}), 504)  # it waits behind
            self.assertEqual(service.infer("count", count_request(1), {"Request-Timeout": "60"})[0], 200)
            text = service.request("GET", "/metrics")[2].decode()
            self.assertIn('prony_requests_total{model="count",status="504"} 2', text)
            self.assertIn("prony_run_duration_seconds_count{model=\"count\"} 1", text)

    def body_bytes(self, service):
        text = service.request("GET", "/metrics")[2].decode()
        return int(re.search(r"^prony_request_body_bytes (\d+)$", text, re.MULTILINE).group(1))

    def test_bodies_count_until_their_requests_leave_the_queue(self):
        padded = dict(count_request(1), pad=" " * 1000000)
        with serving(self.count, "-x", 1) as service:
            self.refused(service.infer("count", count_request(self.slow * 8), {"Request-Timeout": "300ms"}), 504)  # it runs
            self.refused(service.infer("count", padded, {"Request-Timeout": "1ms"}), 504)
            self.assertGreater(self.body_bytes(service), 1000000)  # it waits behind the run, which goes on
            self.assertEqual(service.infer("count", count_request(1))[0], 200)
            for _ in range(100):
                if self.body_bytes(service) == 0:
                    break
                time.sleep(0.05)
            self.assertEqual(self.body_bytes(service), 0)

    def test_a_signal_drains(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            service = Service(self.count, "-x", 1)
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                answers = [pool.submit(service.infer, "count", count_request(self.slow)) for _ in range(3)]
                idle = service.connect()
                while service.get("/live")["in_progress"] < 3:
                    time.sleep(0.01)
                service.process.send_signal(number)
                time.sleep(0.15)
                idle.sendall(b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n")  # an open connection learns of it
                self.assertIn(idle.recv(4096)[9:12], (b"503", b""))  # b"": it has ended already
                idle.close()
                self.assertEqual([a.result()[0] for a in answers], [200, 200, 200])
            self.assertEqual(service.process.wait(30), 0)
            self.assertIn("accepted requests are answered", service.process.stdout.read())
            service.stop()
            service.process.stdout.close()

    def test_the_drain_ends_in_time(self):
        service = Service(self.count, "-x", 1, "--drain-time", "100ms")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answer = pool.submit(service.infer, "count", count_request(self.slow * 4))
            while service.get("/live")["in_progress"] < 1:
                time.sleep(0.01)
            service.process.send_signal(signal.SIGTERM)
            self.refused(answer.result(), 503, "ending")
        self.assertEqual(service.process.wait(60), 0)
        service.process.stdout.close()

    def test_requests_are_combined(self):
        with serving(self.digits, "-x", 1, "--max-batch", 8, "--batch-window", "20ms") as service:
            wanted = [service.infer("digits", self.image(seed))[2]["outputs"][0]["data"] for seed in range(16)]
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                got = list(pool.map(lambda seed: service.infer("digits", self.image(seed))[2]["outputs"][0]["data"], range(16)))
            for a, b in zip(wanted, got):
                self.assertLess(max(abs(x - y) for x, y in zip(a, b)), 1e-4)
            sizes = service.get("/live")["models"][0]["sizes"]
            self.assertGreater(sum(sizes[1:]), 0, "no run had several requests")


class Reload(ServeTest):
    def await_version(self, service, version):
        for _ in range(200):
            if service.get("/v2/models/m")["versions"] == [version]:
                return
            time.sleep(0.05)
        self.fail("version %s is not served: %s" % (version, service.said))

    def plus(self, number):
        """y = x + number, replaced by rename."""
        graph = ob.graph([ob.node("Add", ["x", "n"], ["y"])], inputs=[ob.value("x", ob.FLOAT, ["rows"])],
                         outputs=[ob.value("y", ob.FLOAT, ["rows"])], initializers=[ob.floats("n", [1], [number])])
        self.save("new.onnx", graph)
        os.rename(self.path("new.onnx"), self.path("m.onnx"))

    def test_a_replaced_file_is_served(self):
        self.plus(1)
        with serving(self.path("m.onnx"), "-x", 1) as service:
            def ask():
                status, _, answer = service.infer("m", {"inputs": [tensor("x", "FP32", [1], [0])]})
                return status, answer["model_version"], answer["outputs"][0]["data"]

            self.assertEqual(ask(), (200, "1", [1]))
            stop, seen = [], []

            def load():
                while not stop:
                    seen.append(ask())

            with concurrent.futures.ThreadPoolExecutor(3) as pool:
                for _ in range(3):
                    pool.submit(load)
                for version in (2, 3, 4):
                    self.plus(version)
                    self.await_version(service, str(version))
                stop.append(True)
            self.assertEqual({status for status, _, _ in seen}, {200})
            self.assertEqual({(int(v), d[0]) for _, v, d in seen}, {(1, 1), (2, 2), (3, 3), (4, 4)})
            # a damaged file changes nothing
            self.write("new.onnx", b"damaged")
            os.rename(self.path("new.onnx"), self.path("m.onnx"))
            for _ in range(100):
                if "cannot be served" in service.said:
                    break
                time.sleep(0.05)
            self.assertIn("version 4 stays", service.said)
            self.assertEqual(ask(), (200, "4", [4]))
            self.plus(5)
            self.await_version(service, "5")
            self.assertEqual(ask(), (200, "5", [5]))
            text = service.request("GET", "/metrics")[2].decode()
            self.assertIn('prony_model_reloads_total{model="m"} 4', text)
            self.assertIn('prony_model_reload_failures_total{model="m"} 1', text)

    def history(self, *arguments):
        return json.loads(self.succeed("history", self.path("runs.db"), *arguments, "--json", "-"))

    def test_each_version_is_a_run_of_the_history(self):
        if "sqlite" not in self.succeed("--version"):
            self.skipTest("this build has no SQLite")
        request = {"inputs": [tensor("x", "FP32", [1], [0])]}
        self.plus(1)
        arguments = [self.path("m.onnx"), self.digits, "-x", 1, "--streams", 2, "--history", self.path("runs.db")]
        with serving(*arguments, "--label", "first") as service:
            for _ in range(70):
                self.assertEqual(service.infer("m", request)[0], 200)
            service.infer("m", b"{}")  # no latency
            self.plus(2)
            self.await_version(service, "2")
            self.assertEqual(service.infer("m", request)[0], 200)
        document = self.history()
        runs, groups = document["runs"], document["groups"]
        self.assertEqual([(run["model"], run["label"]) for run in runs], [("m.onnx", "first")] * 2)  # digits answered none
        self.assertEqual(len({run["sha256"] for run in runs}), 2)
        self.assertEqual({group["configuration"] for group in groups}, {"serve, 2 sessions of 1 thread, batches to 1, fp32"})
        metrics = [{v["metric"]: v["value"] for v in document["values"] if v["run"] == run["run"]} for run in runs]
        first, last = sorted(metrics, key=len, reverse=True)
        self.assertIn("latency_p90", first)
        self.assertNotIn("latency_p99", first)  # too few requests
        self.assertNotIn("latency_p90", last)
        self.assertEqual(last["latency_min"], last["latency_max"])
        for values in metrics:
            self.assertTrue(0 < values["latency_min"] <= values["latency"] <= values["latency_max"] < 60e9, values)
            self.assertGreater(values["requests_per_second"], 0)
        with serving(*arguments) as service:
            self.assertEqual(service.infer("m", request)[0], 200)
            self.assertEqual(service.infer("digits", self.image())[0], 200)
        self.assertEqual(sorted(run["model"] for run in self.history()["runs"]), ["digits.onnx", "m.onnx", "m.onnx", "m.onnx"])

    def test_a_history_that_cannot_be_written_ends_the_command_at_once(self):
        if "sqlite" not in self.succeed("--version"):
            self.skipTest("this build has no SQLite")
        self.write("text.db", b"no history" * 500)
        for name in ("none/runs.db", "text.db"):
            code, _, error = run("serve", self.digits, "--port", 0, "--history", self.path(name))
            self.assertEqual(code, FAILED)
            self.assertIn(name, error)


if __name__ == "__main__":
    command_case.main()
