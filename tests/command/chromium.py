"""Headless Chromium, driven through its DevTools protocol over a pipe; nothing but Python's own library."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    return None


class Browser:
    """One browser with one page. `problems` collects what the page's console and network complain of."""

    def __init__(self, path, seconds=60):
        self.seconds, self.number, self.waiting, self.problems, self.buffer = seconds, 0, [], [], b""
        self.profile = tempfile.mkdtemp(prefix="prony-chromium-")
        to_read, self.to = os.pipe()
        self.back, to_write = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-extensions", "--disable-background-networking", "--hide-scrollbars", "--remote-debugging-pipe",
                 "--user-data-dir=" + self.profile, "about:blank"]
        shell = 'exec "$@" 3<&%d 4>&%d' % (to_read, to_write)
        self.process = subprocess.Popen(["/bin/sh", "-c", shell, "sh", path] + flags, pass_fds=(to_read, to_write),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env=dict(os.environ, HOME=self.profile))
        os.close(to_read)
        os.close(to_write)
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _message(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.back], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            chunk = os.read(self.back, 1 << 16)
            if not chunk:
                raise EOFError("the browser ended")
            self.buffer += chunk
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, message):
        kind, detail = message.get("method", ""), message.get("params", {})
        if kind == "Runtime.exceptionThrown":
            thrown = detail["exceptionDetails"]
            self.problems.append(thrown.get("exception", {}).get("description") or thrown["text"])
        elif kind == "Runtime.consoleAPICalled" and detail["type"] in ("error", "warning", "assert"):
            self.problems.append("console: %s" % [a.get("value", a.get("description")) for a in detail["args"]])
        elif kind == "Log.entryAdded" and detail["entry"]["level"] in ("error", "warning"):
            self.problems.append("log: " + detail["entry"]["text"])
        elif kind == "Network.requestWillBeSent" and not detail["request"]["url"].startswith(("file:", "data:", "blob:", "about:")):
            self.problems.append("network: " + detail["request"]["url"])

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        deadline = time.monotonic() + self.seconds
        while True:
            message = self._message(deadline)
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError("%s: %s" % (method, message["error"]))
                return message["result"]
            self._note(message)
            self.waiting.append(message.get("method"))

    def open(self, path, width=1400, height=900, dark=False, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.waiting.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        deadline = time.monotonic() + self.seconds
        while "Page.loadEventFired" not in self.waiting:
            message = self._message(deadline)
            self._note(message)
            self.waiting.append(message.get("method"))

    def run(self, script):
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError("%s: %s" % (script, answer["exceptionDetails"].get("exception", {}).get("description")))
        return answer["result"].get("value")

    def settle(self):
        """Waits until the requested drawing is done."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def drag(self, x1, y1, x2, y2, modifiers=0):
        at = dict(button="left", modifiers=modifiers, clickCount=1)
        self.call("Input.dispatchMouseEvent", type="mousePressed", x=x1, y=y1, **at)
        for step in range(1, 5):
            self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x1 + (x2 - x1) * step / 4, y=y1 + (y2 - y1) * step / 4,
                      buttons=1, **at)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=x2, y=y2, **at)
        self.settle()

    def wheel(self, x, y, down):
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=down)
        self.settle()

    def key(self, key):
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **(text if kind == "keyDown" else {}))
        self.settle()

    def pinch(self, x, y, before, after):
        """Two fingers around a point, their distance from it before and after."""
        def fingers(apart):
            return [{"x": x - apart, "y": y, "id": 1}, {"x": x + apart, "y": y, "id": 2}]
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=fingers(before))
        for step in range(1, 5):
            self.call("Input.dispatchTouchEvent", type="touchMove", touchPoints=fingers(before + (after - before) * step / 4))
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.settle()

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])

    def screenshot(self, path, whole=True):
        options = {"format": "png"}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            options.update(captureBeyondViewport=True,
                           clip={"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12000), "scale": 1})
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", **options)["data"]))
