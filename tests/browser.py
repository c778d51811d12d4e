"""A real browser, controlled over its debugging pipe: reports what a page logs, requests and shows."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ABSENT = (
    "the report was not opened in a browser: Chromium is not installed (apt-get install chromium)"
)
# The browser reads commands from file descriptor 3 and writes answers to 4.
LAUNCH = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(commands, 3), os.dup2(answers, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def installed() -> str | None:
    """Returns the path of Chromium, or None if it is not installed."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of a headless Chromium."""

    def __init__(self, profile):
        command_in, self.commands = os.pipe()
        self.answers, answer_out = os.pipe()
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        options += ["--remote-debugging-pipe", f"--user-data-dir={profile}", "--hide-scrollbars"]
        launch = [sys.executable, "-c", LAUNCH, str(command_in), str(answer_out)]
        self.process = subprocess.Popen(
            [*launch, installed(), *options],
            pass_fds=(command_in, answer_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(command_in), os.close(answer_out)
        self.buffer, self.events, self.number, self.session = b"", [], 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters):
        """Sends a command and returns its answer; events that arrive before it are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        message |= {"sessionId": self.session} if self.session else {}
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self.events.append(answer)

    def _receive(self, seconds=30.0):
        deadline = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.answers], [], [], max(0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            data = os.read(self.answers, 1 << 20)
            assert data, "the browser has exited"
            self.buffer += data
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def open(self, url: str) -> list[dict]:
        """Loads a page and returns the events from the request to the end of loading."""
        self.events = []
        self.call("Page.navigate", url=url)
        while not self.seen("Page.loadEventFired"):
            self.events.append(self._receive())
        self.evaluate("Promise.all([...document.images].map(i => i.decode())).then(() => 1)")
        return self.events

    def seen(self, method: str) -> list[dict]:
        return [event["params"] for event in self.events if event.get("method") == method]

    def evaluate(self, expression: str):
        """Evaluates a JavaScript expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def show(self, width: int, dark: bool, height: int = 900) -> None:
        """Sets the screen size and the preferred color scheme."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self, whole: bool = False) -> bytes:
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            code = {"Tab": 9, "Enter": 13}[key]
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text
            )

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.commands), os.close(self.answers)
