#!/usr/bin/env python3
"""prony serve under requests that are damaged, huge, slow or many: it answers others meanwhile, and does not grow.

    test_serve_hostile.py PRONY SOURCE_DIR [unittest options]

PRN_REQUESTS in the environment sets the length of the loops (20000)."""
import concurrent.futures
import json
import os
import random
import socket
import threading
import time

import command_case
from serve_case import ServeTest, raw_request, read_responses, serving, tensor

REQUESTS = int(os.environ.get("PRN_REQUESTS", "20000"))
INFER = "/v2/models/digits/infer"


class Hostile(ServeTest):
    def alive(self, service):
        self.assertEqual(service.infer("digits", self.image())[0], 200)

    def exchange(self, service, data, timeout=0.2):
        """All that comes back for these bytes, until the service closes or says nothing for `timeout`."""
        with service.connect(timeout) as connection:
            got = b""
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while True:
                    chunk = connection.recv(1 << 16)
                    if not chunk:
                        return got
                    got += chunk
            except OSError:
                return got

    def test_bodies(self):
        body = json.dumps(self.image()).encode()
        with serving(self.digits, "-x", 1, "--max-body", "1MiB") as service:
            for depth in (63, 64, 65, 100000):
                for text in (b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth):
                    status, _, answer = service.infer("digits", b'{"x": ' + text + b', "inputs": []}')
                    self.assertEqual(status, 400)
                    self.assertIn("64 deep" if depth > 64 else "missing", answer["error"])
            for data in (b"[" * 1000000, b"\x00" * 1000, b'{"inputs": [' + b"{}," * 300000, b'"' * 1001, b"\xff\xfe" * 500,
                         json.dumps({"inputs": [tensor("image", "FP32", [1, 1, 8, 8], "9" * 500000)]}).encode()):
                self.assertEqual(service.infer("digits", data)[0], 400)
            self.refused(service.infer("digits", b" " * (1 << 20) + b" "), 413, "1048576 bytes", "--max-body")
            self.refused(service.infer("digits", (b"12345678" for _ in range(200000))), 413)
            text = service.request("GET", "/metrics")[2].decode()
            self.assertIn('prony_requests_total{model="digits",status="413"} 2', text)
            self.assertEqual(service.infer("digits", iter([body[:10], body[10:]]))[0], 200)  # chunked, of fitting size
            for length in ("99999999999", "99999999999999999999999", "-1", "0x10", "1 1"):
                got = self.exchange(service, b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %s\r\n\r\nabc" % (INFER.encode(),
                                                                                                                length.encode()))
                self.assertIn(got.split(b" ")[1] if got else b"", (b"413", b"400", b""), got)
            # cut anywhere, in the headers and in the body
            whole = raw_request(INFER, body)
            with concurrent.futures.ThreadPoolExecutor(16) as pool:  # the service waits for the rest of each
                list(pool.map(lambda cut: self.exchange(service, whole[:cut]), range(1, len(whole), 37)))
            self.alive(service)

    def test_wire(self):
        draw = random.Random(1)
        with serving(self.digits, "-x", 1) as service:
            for text in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00",
                         b"GET " + b"/" * 100000 + b" HTTP/1.1\r\n\r\n",
                         b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000 + b"\r\n", b"GET /%00%2e%2e/etc HTTP/1.1\r\nHost: x\r\n\r\n",
                         b"POST " + INFER.encode() + b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
                         b"POST " + INFER.encode() + b" HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n{}\r\n"):
                self.exchange(service, text)
            whole = raw_request(INFER, json.dumps(self.image()).encode())
            for _ in range(150):  # damaged requests
                data = bytearray(whole)
                for _ in range(draw.randrange(1, 6)):
                    data[draw.randrange(len(data))] = draw.randrange(256)
                self.exchange(service, bytes(data))
            self.alive(service)

    def test_a_body_has_one_end(self):
        """Headers that name two ends of a body let a request pass a proxy unseen: 400, and the connection closes, so that the bytes
        behind are no request. libmicrohttpd 1.0 refuses some of them itself, by a page of its own: only the service's answers are JSON."""
        body = json.dumps(self.image()).encode()
        hidden = b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n"
        with serving(self.digits, "-x", 1) as service:
            for headers, word in ((b"Content-Length: %d\r\nContent-Length: 5\r\n" % len(body), b"several values"),
                                  (b"Content-Length: 5\r\nContent-Length: %d\r\n" % len(body), b"several values"),
                                  (b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n" % len(body), b"both Content-Length"),
                                  (b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", b"both Content-Length"),
                                  (b"Transfer-Encoding: gzip\r\n", b"not chunked"),
                                  (b"Transfer-Encoding: gzip, chunked\r\n", b"not chunked"),
                                  (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", b"several values")):
                got = self.exchange(service, b"POST %s HTTP/1.1\r\nHost: x\r\n%s\r\n" % (INFER.encode(), headers) + body + hidden, 5)
                self.assertEqual(got.count(b"HTTP/1.1 "), 1, (headers, got))
                self.assertEqual(got.split(b" ")[1], b"400", (headers, got))
                self.assertIn(word if b"application/json" in got else b"<html><head><title>", got, headers)
            twice = b"POST %s HTTP/1.1\r\nHost: x\r\n%s\r\n" % (INFER.encode(), b"Content-Length: %d\r\n" % len(body) * 2)
            self.assertIn(b" 200 ", self.exchange(service, twice + body, 5))  # the same value twice is one end
            self.alive(service)

    def test_pipelining(self):
        whole = raw_request(INFER, json.dumps(self.image()).encode())
        with serving(self.digits, "-x", 1) as service, service.connect() as connection:
            connection.sendall(whole * 50)
            answers = read_responses(connection, 50)
            self.assertEqual([status for status, _ in answers], [200] * 50)
            self.assertEqual(len({body for _, body in answers}), 1)

    def test_slow_clients_are_closed_and_disturb_no_one(self):
        whole = raw_request(INFER, json.dumps(self.image()).encode())
        with serving(self.digits, "-x", 1, "--client-timeout", "1s", "--connections", 64) as service:
            begin, ends = time.monotonic(), []

            def drip(data, reads):
                with service.connect() as connection:
                    try:
                        for i in range(len(data)):
                            connection.sendall(data[i:i + 1])
                            time.sleep(0.1)
                        if not reads:
                            time.sleep(5)
                        while connection.recv(1 << 16):
                            pass
                    except OSError:
                        pass
                ends.append(time.monotonic() - begin)

            slow = [whole] * 20 + [b"GET / HTTP/1.1\r\nA: " + b"b" * 500] * 10 + [b""] * 5
            drips = [threading.Thread(target=drip, args=(data, True)) for data in slow]
            for thread in drips:
                thread.start()
            for _ in range(30):
                self.alive(service)
                time.sleep(0.02)
            for thread in drips:
                thread.join(30)
            self.assertEqual(len(ends), 35)
            self.assertLess(max(ends), 8)
            self.alive(service)

    def test_many_connections(self):
        with serving(self.digits, "-x", 1, "--connections", 100, "--client-timeout", "2s") as service:
            held = [service.connect() for _ in range(300)]  # beyond the limit: they wait
            time.sleep(0.5)
            for connection in held:
                connection.close()
            for _ in range(100):
                try:
                    self.alive(service)
                    break
                except OSError:
                    time.sleep(0.1)
            self.alive(service)

    def test_clients_that_leave(self):
        whole = raw_request(INFER, json.dumps(self.image()).encode())
        with serving(self.digits, "-x", 1, "--max-batch", 4, "--batch-window", "5ms") as service:
            for i in range(300):
                with service.connect() as connection:
                    connection.sendall(whole)
                    if i % 2:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset
            for _ in range(100):
                if service.get("/live")["in_progress"] == 0:
                    break
                time.sleep(0.05)
            self.assertEqual(service.get("/live")["in_progress"], 0)
            self.alive(service)

    def test_clients_that_leave_within_a_body_hold_nothing(self):
        whole = raw_request(INFER, json.dumps(self.image()).encode())
        with serving(self.digits, "-x", 1, "--client-timeout", "60s") as service:
            for _ in range(20):
                self.exchange(service, whole[:-20], 0.01)
            for _ in range(100):
                text = service.request("GET", "/metrics")[2].decode()
                if "prony_connections 1\n" in text:
                    break
                time.sleep(0.1)
            self.assertIn("prony_connections 1\n", text)
            with service.connect() as sends_on:  # a half-closed client gets its response
                sends_on.sendall(whole)
                sends_on.shutdown(socket.SHUT_WR)
                self.assertIn(b" 200 ", sends_on.recv(1 << 16))
            self.exchange(service, whole[:-20], 0.01)
            begin = time.monotonic()
        self.assertLess(time.monotonic() - begin, 20)  # the end does not wait for the client's 60 seconds

    def loop(self, service, request, count, status):
        """`count` requests over one connection, 100 at a time; a connection that the service closes is opened again."""
        left, connection = count, service.connect()
        while left > 0:
            some = min(left, 100)
            connection.sendall(request * some)
            answers = read_responses(connection, some)
            self.assertEqual({s for s, _ in answers}, {status})
            left -= len(answers)
            if len(answers) < some:
                connection.close()
                connection = service.connect()
        connection.close()

    def test_it_does_not_grow(self):
        good = raw_request(INFER, json.dumps(self.image(id="x" * 100)).encode())
        bad = raw_request(INFER, json.dumps(self.image()).encode().replace(b"]}]", b"true]}]"))
        lost = raw_request("/v2/models/none/infer", b"{}")
        with serving(self.digits, "-x", 1, "--profile-every", 100) as service:
            for request, status in ((good, 200), (bad, 400), (lost, 404)):  # whatever grows once
                self.loop(service, request, 3000, status)
            before = service.rss()
            self.loop(service, good, REQUESTS, 200)
            self.loop(service, bad, REQUESTS // 5, 400)
            self.loop(service, lost, REQUESTS // 5, 404)
            for _ in range(200):
                service.request("GET", "/metrics")
                service.request("GET", "/live")
            grown = service.rss() - before
            if not os.environ.get("PRN_SANITIZED"):  # a sanitizer keeps freed memory for a while
                self.assertLess(grown, min(40 * REQUESTS + (1 << 20), 4 << 20), "%d bytes more after %d requests" % (grown, REQUESTS))
            text = service.request("GET", "/metrics")[2].decode()
            self.assertIn('prony_requests_total{model="digits",status="200"} %d' % (REQUESTS + 3000), text)


if __name__ == "__main__":
    command_case.main()
