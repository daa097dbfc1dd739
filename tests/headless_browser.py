"""A page in a real browser, driven through the pipe of Chromium's DevTools protocol.

Only the program is needed, no package: requests and answers are JSON texts ended by a zero byte, on
the file descriptors 3 and 4 of the browser.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 60.0
"""Seconds for one answer, on a busy machine."""


def browser_program() -> str | None:
    """Where a Chromium is: the variable GPCERT_BROWSER, or on the path."""
    named = os.environ.get("GPCERT_BROWSER")
    return named or next(filter(None, map(shutil.which, PROGRAMS)), None)


class Page:
    """The only page of a browser; `problems` are errors and what it tried to load."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read, self._rest, self._last = write, read, b"", 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> Any:
        """One request and its answer; what happens meanwhile goes to `events`."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        while (answer := self._message()).get("id") != self._last:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def open(
        self, path: Path | str, *, width: int, height: int, scheme: str = "light", query: str = ""
    ) -> None:
        """A file or an address, as a screen of this width in light or dark shows it."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.ask("Emulation.setEmulatedMedia", features=[feature])
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.events.clear()
        url = path.absolute().as_uri() if isinstance(path, Path) else path
        self.ask("Page.navigate", url=url + query)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._message())

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives on the page."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, selector: str) -> None:
        """Click the first element of a CSS selector."""
        self.value(f"document.querySelector({json.dumps(selector)}).click()")

    def drag(self, start: tuple[float, float], end: tuple[float, float] | None = None) -> None:
        """Press the mouse at one point of the window, leave it at another; a click by default."""
        end = start if end is None else end
        middle = tuple(0.5 * (a + b) for a, b in zip(start, end, strict=True))
        steps = [("mousePressed", start), ("mouseMoved", middle), ("mouseMoved", end)]
        for kind, (x, y) in [*(steps if end != start else steps[:1]), ("mouseReleased", end)]:
            held = {"button": "left", "buttons": 1, "clickCount": 1}
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **held)

    def key(self, name: str) -> None:
        """Press and leave a key, as "ArrowDown"."""
        codes = {"ArrowDown": 40, "ArrowRight": 39, "Tab": 9, "Enter": 13}
        key = {"key": name, "code": name, "windowsVirtualKeyCode": codes[name]}
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, **key)

    def resize(self, width: int, height: int) -> None:
        """Change the size of the window."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", **size)

    def until(self, expression: str, seconds: float = PATIENCE) -> Any:
        """The value of an expression as soon as it is true."""
        end = time.monotonic() + seconds
        while not (value := self.value(expression)):
            if time.monotonic() > end:
                raise RuntimeError(f"not true after {seconds:g} seconds: {expression}")
            time.sleep(0.05)
        return value

    @property
    def problems(self) -> list[dict[str, Any]]:
        """Errors and warnings of scripts and of the browser, and requests beyond the page."""
        bad = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [
            event
            for event in self.events
            if event.get("method") in bad
            or (
                event.get("method") == "Network.requestWillBeSent"
                and not event["params"]["request"]["url"].startswith(("file:", "data:"))
            )
        ]

    def picture(self, path: Path) -> None:
        """The whole page as PNG."""
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def print(self) -> bytes:
        """The page as it would be printed, PDF."""
        return base64.b64decode(self.ask("Page.printToPDF")["data"])

    def _message(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, until - time.monotonic()))
            piece = os.read(self._read, 2**20) if ready else b""
            if not piece:
                raise RuntimeError("the browser did not answer")
            self._rest += piece
        text, _, self._rest = self._rest.partition(b"\0")
        return json.loads(text)


@contextlib.contextmanager
def opened_browser(program: str) -> Iterator[Page]:
    """A browser of its own with an empty profile; ended afterwards."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        # above 10, as 3 and 4 are about to be taken
        given = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (theirs_in, theirs_out)]
        arguments = [program, "--headless", "--remote-debugging-pipe", "--disable-gpu"]
        arguments += [f"--user-data-dir={profile}", "--no-first-run", "--disable-dev-shm-usage"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # a browser of root refuses to start otherwise
        actions = [
            (os.POSIX_SPAWN_DUP2, given[0], 3),
            (os.POSIX_SPAWN_DUP2, given[1], 4),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0o600),
        ]
        pid = os.posix_spawn(program, arguments, os.environ, file_actions=actions, setpgroup=0)
        for fd in (theirs_in, theirs_out, *given):
            os.close(fd)
        try:
            yield Page(ours_out, ours_in)
        finally:
            os.close(ours_out)
            os.close(ours_in)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
