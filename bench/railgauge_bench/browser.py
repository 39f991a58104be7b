"""Chromium without a screen, driven by the DevTools protocol over two pipes. It can reach nothing."""
import json
import os
import shutil
import subprocess
import tempfile

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


class Trouble(Exception):
    """The browser did not do what it was asked to."""


def missing():
    """What is not installed; None if a browser is there."""
    return None if any(map(shutil.which, NAMES)) else "chromium"


class Browser:
    """A browser with one page of 1440 x 900."""

    def __enter__(self):
        self.profile = tempfile.TemporaryDirectory()
        from_us, to_browser = os.pipe()
        from_browser, to_us = os.pipe()
        words = [next(name for name in NAMES if shutil.which(name)), "--headless", "--no-sandbox", "--disable-gpu",
                 "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe",
                 "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={self.profile.name}", "about:blank"]

        def pipes():
            # The browser reads orders from descriptor 3 and writes answers to 4. Both may have such a number already.
            orders, answers = os.dup(from_us), os.dup(to_us)
            os.dup2(orders, 3)
            os.dup2(answers, 4)

        self.process = subprocess.Popen(words, preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(from_us)
        os.close(to_us)
        self.orders, self.answers = os.fdopen(to_browser, "wb"), os.fdopen(from_browser, "rb")
        self.last, self.session, self.rest = 0, None, b""
        target = self.order("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.order("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime"):
            self.order(f"{domain}.enable")
        self.order("Emulation.setDeviceMetricsOverride", width=1440, height=900, deviceScaleFactor=1, mobile=False)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.orders.close()
        self.answers.close()
        self.profile.cleanup()

    def _message(self):
        while b"\0" not in self.rest:
            piece = os.read(self.answers.fileno(), 1 << 16)
            if not piece:
                raise Trouble("the browser ended")
            self.rest += piece
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def _send(self, method, params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.orders.write(json.dumps(message).encode() + b"\0")
        self.orders.flush()
        return self.last

    def order(self, method, **params):
        """Gives an order, and returns what it came to."""
        number = self._send(method, params)
        while True:
            message = self._message()
            if message.get("id") == number:
                if "error" in message:
                    raise Trouble(f"{method}: {message['error']}")
                return message["result"]

    def open(self, page):
        """Opens a file, and waits until it is loaded."""
        number, waits = self._send("Page.navigate", {"url": f"file://{page}"}), {"answer", "load"}
        while waits:
            message = self._message()
            waits -= {"answer"} if message.get("id") == number else set()
            waits -= {"load"} if message.get("method") == "Page.loadEventFired" else set()

    def ask(self, expression):
        """The value of an expression in the page."""
        told = self.order("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in told:
            raise Trouble(f"{expression}: {told['exceptionDetails']}")
        return told["result"].get("value")

    def press(self, key):
        """Presses a key: a letter, a digit, or Backspace."""
        code = {"key": key, "code": key, "windowsVirtualKeyCode": 8} if key == "Backspace" else {"key": key, "text": key}
        for kind in ("keyDown", "keyUp"):
            self.order("Input.dispatchKeyEvent", type=kind, **code)

    def move(self, x, y):
        """Moves the pointer."""
        self.order("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
