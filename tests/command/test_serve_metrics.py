#!/usr/bin/env python3
"""prony serve: metrics, read by promtool and by a Prometheus where they are installed; events and the live page; alerts.

    test_serve_metrics.py PRONY SOURCE_DIR [unittest options]
"""
import concurrent.futures
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest
import urllib.request

import chromium
import command_case
import onnx_bytes as ob
from command_case import USAGE, run
from serve_case import ServeTest, count_request, counting_model, serving, tensor


def samples(text):
    """{name{labels}: value} of an exposition."""
    return {m.group(1): float(m.group(2)) for m in re.finditer(r"^([a-zA-Z_:][^ ]*(?:\{.*\})?) (\S+)$", text, re.MULTILINE)}


class Metrics(ServeTest):
    def scrape(self, service, accept=None):
        status, headers, body = service.request("GET", "/metrics", headers={"Accept": accept} if accept else {})
        self.assertEqual(status, 200)
        return headers["Content-Type"], body.decode()

    def test_figures(self):
        with serving(self.digits, "-x", 1, "--profile-every", 5, "--metrics-file", self.path("prony.prom"), "--max-batch", 4) as service:
            for i in range(40):
                self.assertEqual(service.infer("digits", self.image(i))[0], 200)
            service.infer("digits", b"{}")
            service.get("/v2/models/none", wanted=404)
            kind, text = self.scrape(service)
            self.assertEqual(kind, "text/plain; version=0.0.4; charset=utf-8")
            got = samples(text)
            for name, value in (('prony_requests_total{model="digits",status="200"}', 40),
                                ('prony_requests_total{model="digits",status="400"}', 1),
                                ('prony_request_duration_seconds_count{model="digits"}', 40),
                                ('prony_request_duration_seconds_bucket{model="digits",le="+Inf"}', 40),
                                ('prony_batch_size_count{model="digits"}', 40), ('prony_batch_size_bucket{model="digits",le="1.0"}', 40),
                                ('prony_samples_total{model="digits"}', 40), ('prony_profiled_runs_total{model="digits"}', 8),
                                ('prony_http_responses_total{status="404"}', 1), ('prony_model_info{model="digits",version="1"}', 1)):
                self.assertEqual(got[name], value, name)
            shares = [value for name, value in got.items() if name.startswith("prony_operator_time_share")]
            self.assertAlmostEqual(sum(shares), 1, places=3)
            self.assertGreater(got["process_resident_memory_bytes"], 1e6)
            self.assertGreater(got["process_cpu_seconds_total"], 0)
            self.assertGreater(got['prony_arena_bytes{model="digits"}'], 0)
            again = samples(self.scrape(service)[1])
            self.assertEqual(again["process_start_time_seconds"], got["process_start_time_seconds"])
            kind, text = self.scrape(service, "application/openmetrics-text; version=1.0.0, text/plain;q=0.5")
            self.assertEqual(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8")
            self.assertTrue(text.endswith("# EOF\n"))
            self.assertIn("# TYPE prony_requests counter", text)
        written = self.read(self.path("prony.prom")).decode()
        self.assertEqual(samples(written)['prony_requests_total{model="digits",status="200"}'], 40)
        self.assertFalse(os.path.exists(self.path("prony.prom.new")))

    @unittest.skipUnless(shutil.which("promtool"), "no promtool (Debian: prometheus)")
    def test_promtool(self):
        graph = ob.graph([ob.node("Relu", ["x"], ["y"], name='a"\\\n\u00e9b')], inputs=[ob.value("x", ob.FLOAT, [4])],
                         outputs=[ob.value("y", ob.FLOAT, [4])])
        self.save("odd.onnx", graph)
        with serving(self.digits, self.path("odd.onnx"), "-x", 1, "--profile-every", 1, "--alert", "rate > 1/s") as service:
            service.infer("digits", self.image())
            service.infer("odd", {"inputs": [tensor("x", "FP32", [4], [1, 2, 3, 4])]})
            text = self.scrape(service)[1]
            ran = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False)
            self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))
            self.assertIn('operator="a\\"\\\\?\u00e9b"', text)

    @unittest.skipUnless(shutil.which("promtool"), "no promtool (Debian: prometheus)")
    def test_examples(self):
        folder = os.path.join(command_case.SOURCE, "docs", "examples", "serve")
        for arguments in (["check", "rules", os.path.join(folder, "prony_rules.yml")], ["check", "config", os.path.join(folder,
                                                                                                                        "prometheus.yml")]):
            ran = subprocess.run(["promtool", *arguments], text=True, capture_output=True, check=False)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        with open(os.path.join(folder, "grafana_dashboard.json"), encoding="utf-8") as file:
            queries = [t["expr"] for panel in json.load(file)["panels"] for t in panel["targets"]]
        with open(os.path.join(folder, "prony_rules.yml"), encoding="utf-8") as file:
            queries.append(file.read())
        with serving(self.digits, "-x", 1, "--profile-every", 1) as service:
            service.infer("digits", self.image())
            time.sleep(1.1)
            known = self.scrape(service)[1]
        for name in set(re.findall(r"(?:prony|process)_[a-z_]+", " ".join(queries))):
            self.assertIn(name, known)

    @unittest.skipUnless(shutil.which("prometheus"), "no prometheus (Debian: prometheus)")
    def test_a_prometheus_scrapes(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with serving(self.digits, "-x", 1, "--profile-every", 1) as service:
            target = "{job_name: prony, static_configs: [{targets: ['127.0.0.1:%d']}]}" % service.port
            config = "global: {scrape_interval: 1s}\nscrape_configs: [%s]\n" % target
            self.write("prometheus.yml", config.encode())
            server = subprocess.Popen(["prometheus", "--config.file=" + self.path("prometheus.yml"),
                                       "--storage.tsdb.path=" + self.path("data"),
                                       "--web.listen-address=127.0.0.1:%d" % port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                for _ in range(7):
                    service.infer("digits", self.image())
                found = []
                for _ in range(150):
                    try:
                        with urllib.request.urlopen("http://127.0.0.1:%d/api/v1/query?query=prony_requests_total" % port,
                                                    timeout=5) as answer:
                            found = json.load(answer)["data"]["result"]
                    except OSError:
                        pass
                    if found:
                        break
                    time.sleep(0.2)
                self.assertEqual([r["value"][1] for r in found if r["metric"]["status"] == "200"], ["7"])
                with urllib.request.urlopen("http://127.0.0.1:%d/api/v1/targets" % port, timeout=5) as answer:
                    target = json.load(answer)["data"]["activeTargets"][0]
                self.assertEqual((target["health"], target["lastError"]), ("up", ""))
            finally:
                server.kill()
                server.wait()

    def test_a_metrics_file_that_cannot_be_written_is_named(self):
        for path, words in (("x/" * 2500, "x/x/x"), (self.path("none/prony.prom"), "No such file")):
            with serving(self.digits, "-x", 1, "--metrics-file", path) as service:
                pass
            self.assertEqual(service.said.count("--metrics-file"), 1)
            self.assertIn(words, service.said)


class Live(ServeTest):
    def test_events(self):
        with serving(self.digits, "-x", 1, "--profile-every", 2) as service:
            streams = [service.connect() for _ in range(16)]
            for stream in streams:
                stream.sendall(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
            time.sleep(0.3)
            status, _, body = service.request("GET", "/events")  # the seventeenth
            self.assertEqual((status, "too many" in body.decode()), (503, True))
            responses = samples(service.request("GET", "/metrics")[2].decode())
            self.assertEqual(responses['prony_http_responses_total{status="200"}'], 16)
            service.infer("digits", self.image())
            got = b""
            while got.count(b"data: ") < 3:
                got += streams[3].recv(1 << 16)
            head, rest = got.split(b"\r\n\r\n", 1)
            self.assertIn(b"text/event-stream", head)
            event = re.search(rb"data: (\{.*?\})\n\n", re.sub(rb"\r\n[0-9a-fA-F]+\r\n", b"", b"\r\n" + rest), re.DOTALL).group(1)
            state = json.loads(event)
            self.assertEqual(state["schema"], "prony.live/1")
            self.assertEqual(len(state["models"][0]["seconds"]), 59)
            for stream in streams[:8]:
                stream.close()
            for _ in range(100):
                status, _, _ = service.request("HEAD", "/v2")
                if service.get("/live")["connections"] <= 10:
                    break
                time.sleep(0.1)
            else:
                self.fail("streams of clients that left do not end")
            for stream in streams[8:]:
                stream.close()

    @unittest.skipUnless(chromium.find(), "no Chromium")
    def test_page(self):
        stop = []
        with chromium.Browser(chromium.find()) as browser, serving(self.digits, self.lenet, "-x", 1, "--profile-every", 20, "--max-batch",
                                                                   4,
                                                                   "--alert", "rate > 0.1/s", "--alert", "latency_p99 > 10s") as service:
            def load():
                while not stop:
                    service.infer("digits", self.image())

            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                pool.submit(load)
                try:
                    for width in (1440, 800):
                        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
                        browser.call("Page.navigate", url="http://127.0.0.1:%d/" % service.port)
                        for _ in range(100):
                            if browser.run("document.querySelectorAll('#operators .live-row').length > 3 && "
                                           "!!document.querySelector('.fires')"):
                                break
                            time.sleep(0.1)
                        self.assertEqual(browser.run("document.getElementById('title').textContent"), "digits")
                        self.assertRegex(browser.run("document.querySelector('.answer .value').textContent"), r"^[0-9.]+k? ?requests/s$")
                        self.assertGreater(browser.run("document.querySelectorAll('#sizes .live-row').length"), 0)
                        self.assertGreater(browser.run("document.querySelectorAll('#latency path').length"), 1)
                        self.assertRegex(browser.run("document.querySelector('.fires').textContent"), "fires since")
                        self.assertLessEqual(browser.run("document.documentElement.scrollWidth"), width)
                    browser.run("document.getElementById('model').value = 'lenet5'; document.getElementById('model').onchange()")
                    self.assertEqual(browser.run("document.getElementById('title').textContent"), "lenet5")
                finally:
                    stop.append(True)
            self.assertEqual([p for p in browser.problems if not p.startswith("network: ")], [])


class Alerts(ServeTest):
    def test_an_alert_reaches_its_command(self):
        self.save("count.onnx", counting_model())
        log = self.path("log")
        rules = self.write("rules", b"# comment\n\nlatency_p50 > 1ms for 1s # slow\n")
        arguments = [self.path("count.onnx"), "-x", 1, "--alert-file", rules, "--alert-state", self.path("state"), "--alert-command",
                     "cat >> '%s'; grep SigIgn /proc/self/status > '%s'" % (log, self.path("signals"))]
        stop = []
        with serving(*arguments) as service:
            def load():
                while not stop:
                    service.infer("count", count_request(20000))

            thread = threading.Thread(target=load)
            thread.start()
            for _ in range(150):
                if os.path.exists(log) and os.path.getsize(log):
                    break
                time.sleep(0.1)
            time.sleep(1.5)
            stop.append(True)
            thread.join()
            firing = [json.loads(line) for line in self.read(log).decode().splitlines()]
            self.assertEqual([(a["status"], a["model"], a["rule"]) for a in firing], [("firing", "count", "latency_p50 > 1ms for 1s")])
            ignored = int(self.read(self.path("signals")).split()[1], 16)
            self.assertEqual(ignored >> (signal.SIGPIPE - 1) & 1, 0)
            self.assertIn("alert fires: model 'count': latency_p50 > 1ms for 1s", service.said)
            self.assertEqual(samples(service.request("GET", "/metrics")[2].decode())["prony_alerts_firing"], 1)
        with serving(*arguments) as service:  # it fired already
            time.sleep(2.5)
            self.assertTrue(service.get("/live")["alerts"][0]["firing"])
            self.assertNotIn("alert", service.said)
        self.assertEqual(len(self.read(log).splitlines()), 1)

    def test_a_drift_is_found_beside_earlier_sessions(self):
        self.save("count.onnx", counting_model())
        history = self.path("past.db")
        arguments = [self.path("count.onnx"), "-x", 1, "--history", history]
        drift = arguments + ["--alert", "drift latency_median 200% for 1s"]
        for _ in range(3):
            with serving(*drift) as service:
                for _ in range(20):
                    service.infer("count", count_request(500))
                self.assertIn("of 3 sessions of this file, machine and configuration", service.said)
        with serving(*drift) as service:
            self.assertNotIn("of 3 sessions", service.said)
            end = time.monotonic() + 20
            while "alert fires" not in service.said and time.monotonic() < end:
                service.infer("count", count_request(50000))
            self.assertRegex(service.said, r"alert fires: model 'count': drift latency_median 200% for 1s "
                                           r"\([0-9.e+]+ ms, baseline [0-9.e-]+ ms\)")
        code, _, error = run("serve", self.path("count.onnx"), "--port", 0, "--alert", "drift latency_median 5%")
        self.assertEqual(code, USAGE)
        self.assertIn("--history FILE.db is missing", error)


if __name__ == "__main__":
    command_case.main()
