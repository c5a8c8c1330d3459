"""Shared by the tests of prony serve: a service on a free port, requests over its connections."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import tempfile
import threading

import command_case
import onnx_bytes as ob
from command_case import CommandTest


class Service:
    """A running `prony serve`. `said` collects its stderr."""

    def __init__(self, *arguments, environment=None):
        env = dict(os.environ, XDG_CACHE_HOME=command_case.CACHE.name, **environment or {})
        for sanitizer in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            env[sanitizer] = env.get(sanitizer, "") + ":exitcode=99"
        self.process = subprocess.Popen([command_case.PRONY, "serve", *map(str, arguments), "--port", "0"], env=env,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.port, self.lines, self.errors = None, [], []
        self.reader = threading.Thread(target=lambda: self.errors.extend(self.process.stderr), daemon=True)
        self.reader.start()
        for line in self.process.stdout:
            self.lines.append(line)
            found = re.match(r"listening on http://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found.group(1))
                return
        raise AssertionError("the service ended with %s: %s" % (self.process.wait(), self.said))

    @property
    def said(self):
        return "".join(self.errors)

    def connect(self, timeout=60):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def request(self, method, path, body=None, headers=None, timeout=60):
        """Status, headers and body of one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def get(self, path, wanted=200):
        status, _, body = self.request("GET", path)
        if status != wanted:
            raise AssertionError("GET %s: %d %s" % (path, status, body))
        return json.loads(body)

    def infer(self, model, body, headers=None, **options):
        """Status and document of an inference; `body` is an object or bytes."""
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        status, got, answer = self.request("POST", "/v2/models/%s/infer" % model, data, headers, **options)
        if "Inference-Header-Content-Length" in got:
            return status, got, answer
        return status, got, json.loads(answer)

    def rss(self):
        with open("/proc/%d/statm" % self.process.pid) as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def stop(self, number=signal.SIGTERM, seconds=60):
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(seconds)
        self.lines.extend(self.process.stdout)
        self.reader.join(10)
        return status


@contextlib.contextmanager
def serving(*arguments, wanted=0, environment=None):
    service = Service(*arguments, environment=environment)
    try:
        yield service
        status = service.stop()
        if status != wanted:
            raise AssertionError("the service ended with %d: %s" % (status, service.said[-3000:]))
    finally:
        if service.process.poll() is None:
            service.process.kill()
            service.process.wait()
        service.process.stdout.close()


def tensor(name, datatype, shape, data):
    return {"name": name, "datatype": datatype, "shape": shape, "data": data}


def counting_model():
    """y = x + trips, one addition after another: a run as long as its input says."""
    body = ob.graph([ob.node("Add", ["v", "one"], ["w"]), ob.node("Identity", ["c"], ["d"])],
                    inputs=[ob.value("i", ob.INT64, []), ob.value("c", ob.BOOL, []), ob.value("v", ob.FLOAT, [1])],
                    outputs=[ob.value("d", ob.BOOL, []), ob.value("w", ob.FLOAT, [1])], initializers=[ob.floats("one", [1], [1.0])])
    loop = ob.node("Loop", ["trips", "", "x"], ["y"], body=("graph", body))
    return ob.graph([loop], inputs=[ob.value("trips", ob.INT64, []), ob.value("x", ob.FLOAT, [1])], outputs=[ob.value("y", ob.FLOAT, [1])])


def count_request(trips):
    return {"inputs": [tensor("trips", "INT64", [], [trips]), tensor("x", "FP32", [1], [0.5])]}


def identity_model(dtype, dims):
    return ob.graph([ob.node("Identity", ["x"], ["y"])], inputs=[ob.value("x", dtype, dims)], outputs=[ob.value("y", dtype, dims)])


class ServeTest(CommandTest):
    def pixels(self, seed=0):
        return [((i * 37 + seed * 101) % 97) / 97 for i in range(64)]

    def image(self, seed=0, **more):
        return {"inputs": [tensor("image", "FP32", [1, 1, 8, 8], self.pixels(seed))], **more}

    def refused(self, answer, status, *words):
        self.assertEqual(answer[0], status, answer)
        self.assertEqual(list(answer[2]), ["error"])
        for word in words:
            self.assertIn(word, answer[2]["error"])


def read_responses(connection, count):
    """Bodies of `count` responses on one connection."""
    buffer, bodies = b"", []
    while len(bodies) < count:
        while b"\r\n\r\n" not in buffer:
            chunk = connection.recv(1 << 16)
            if not chunk:
                return bodies
            buffer += chunk
        head, rest = buffer.split(b"\r\n\r\n", 1)
        length = int(re.search(rb"content-length: *(\d+)", head, re.IGNORECASE).group(1))
        while len(rest) < length:
            chunk = connection.recv(1 << 16)
            if not chunk:
                return bodies
            rest += chunk
        bodies.append((int(head.split()[1]), rest[:length]))
        buffer = rest[length:]
    return bodies


def raw_request(path, body, headers=()):
    lines = ["POST %s HTTP/1.1" % path, "Host: localhost", "Content-Length: %d" % len(body), *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def pack(values, kind):
    return struct.pack("<%d%s" % (len(values), kind), *values)


__all__ = ["Service", "ServeTest", "tempfile", "tensor", "serving", "counting_model", "count_request", "identity_model",
           "read_responses", "raw_request", "pack"]
