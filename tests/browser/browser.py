"""Drives Debian's Chromium without a window, through the DevTools protocol on two pipes."""

from __future__ import annotations

import base64
import io
import json
import os
import select
import shutil
import subprocess
import time


class Browser:
    """One page. Use it in a `with` statement."""

    def __init__(self, folder, width=1200, height=800):
        program = shutil.which("chromium")
        assert program, "chromium is not installed: tools/setup browser"
        (to_browser, self._to), (self._from, from_browser) = os.pipe(), os.pipe()
        command = [
            program,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-extensions",
            "--disable-background-networking",
            "--no-first-run",
            "--remote-debugging-pipe",
            f"--user-data-dir={folder}",
            f"--window-size={width},{height}",
            "about:blank",
        ]

        def connect():
            # Chromium reads commands from descriptor 3 and writes answers to 4.
            spare = [os.dup(fd) for fd in (to_browser, from_browser)]
            high = [os.dup2(fd, 40 + i) for i, fd in enumerate(spare)]
            for fd, target in zip(high, (3, 4), strict=True):
                os.dup2(fd, target)

        self._log = open(os.path.join(folder, "log"), "wb")  # noqa: SIM115
        self._process = subprocess.Popen(
            command, stdout=self._log, stderr=self._log, close_fds=False, preexec_fn=connect
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._number = 0
        self._session = None
        self.requests = []  #: the address of everything that the page asked for
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        flat = {"targetId": page["targetId"], "flatten": True}
        self._session = self.call("Target.attachToTarget", flat)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", size)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._log.close()

    def call(self, method, parameters=None, seconds=60):
        """Sends a command; returns its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters or {}}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + seconds
        while True:
            answer = self._receive(end - time.monotonic())
            if answer.get("method") == "Network.requestWillBeSent":
                self.requests.append(answer["params"]["request"]["url"])
            if answer.get("id") == message["id"]:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def _receive(self, seconds):
        while b"\0" not in self._buffer:
            readable, _, _ = select.select([self._from], [], [], max(0, seconds))
            assert readable, "the browser does not answer"
            data = os.read(self._from, 1 << 20)
            assert data, "the browser has ended"
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def open(self, address):
        """Opens a page."""
        self.call("Page.navigate", {"url": address})

    def run(self, script):
        """The value of a JavaScript expression, which may be a promise."""
        parameters = {"expression": script, "awaitPromise": True, "returnByValue": True}
        result = self.call("Runtime.evaluate", parameters)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait_for(self, script, seconds=60):
        """Waits until a JavaScript expression is true."""
        end = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.05)

    def mouse(self, kind, x, y, **more):
        """One event of the mouse."""
        self.call("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **more})

    def drag(self, start, end):
        """Moves the mouse from one place to another with the left button down."""
        held = {"button": "left", "buttons": 1, "clickCount": 1}
        self.mouse("mousePressed", *start, **held)
        for step in (0.25, 0.5, 0.75, 1):
            x, y = (a + step * (b - a) for a, b in zip(start, end, strict=True))
            self.mouse("mouseMoved", x, y, **held)
        self.mouse("mouseReleased", *end, button="left", clickCount=1)

    def screenshot(self, path=None):
        """What the page looks like: float32 [height, width, 3 or 4] from 0 to 1."""
        import matplotlib.image

        png = base64.b64decode(self.call("Page.captureScreenshot", {"format": "png"})["data"])
        if path is not None:
            path.write_bytes(png)
        return matplotlib.image.imread(io.BytesIO(png))
