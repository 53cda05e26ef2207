"""A real browser, driven over Chromium's own pipe: what a person would see, click and measure.

with chromium(tmp_path) as browser:
    browser.open(url, width=400, scheme="dark")
    assert browser.value("document.documentElement.scrollWidth") == 400
"""

import base64
import json
import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import HANG_S

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
"""Command-line options of the browser."""


@dataclass
class Browser:
    """One tab. `events`: all events that the tab has sent so far, by name, with their values."""

    reads: int
    writes: int
    session: str = ""
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    _requested: int = 0
    _rest: bytes = b""

    def ask(self, method: str, **values: object) -> dict[str, Any]:
        """Call a method of Chrome's DevTools protocol, and wait for its response."""
        self._requested += 1
        message = {"id": self._requested, "method": method, "params": values} | (
            {"sessionId": self.session} if self.session else {}
        )
        os.write(self.writes, json.dumps(message).encode() + b"\0")
        while True:
            text = self._next()
            if text.get("id") == self._requested:
                assert "error" not in text, f"{method}: {text['error']}"
                answer: dict[str, Any] = text["result"]
                return answer
            self._note(text)

    def await_event(self, name: str) -> dict[str, Any]:
        """Return the next event of that name that was not returned yet."""
        while True:
            for place, (reported, values) in enumerate(self.events):
                if reported == name:
                    del self.events[place]
                    return values
            self._note(self._next())

    def _note(self, text: dict[str, Any]) -> None:
        if "method" in text:
            self.events.append((text["method"], text.get("params", {})))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self.reads], [], [], HANG_S)
            assert ready, f"the browser has said nothing for {HANG_S} s"
            data = os.read(self.reads, 2**20)
            assert data, "the browser has ended"
            self._rest += data
        one, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(one)
        return message

    def open(self, url: str, *, width: int = 1400, height: int = 1000, scheme: str = "light") -> None:
        """Open the page, and wait until it is loaded."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events = [event for event in self.events if event[0] != "Page.loadEventFired"]
        self.ask("Page.navigate", url=url)
        self.await_event("Page.loadEventFired")

    def value(self, expression: str) -> Any:
        """Return the value of the expression in the page; a promise is awaited."""
        text = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in text, text["exceptionDetails"]
        return text["result"].get("value")

    def complaints(self) -> list[str]:
        """Return the errors that the browser has reported so far: scripts that failed, and everything blocked
        by the page's policy.
        """
        self.value("0")
        logged = [values["entry"]["text"] for name, values in self.events if name == "Log.entryAdded"]
        return logged + [
            values["exceptionDetails"]["text"]
            for name, values in self.events
            if name == "Runtime.exceptionThrown"
        ]

    def picture(self, file: Path) -> None:
        """Write the complete page as a PNG."""
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """Start the browser, with its profile in `folder`. Skips the test if there is no Chromium."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no Chromium here")
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    # It reads at descriptor 3 and writes at 4.
    command = [
        "bash",
        "-c",
        f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}',
        program,
        *OPTIONS,
        f"--user-data-dir={folder / 'chromium'}",
    ]
    process = subprocess.Popen(
        command,
        pass_fds=(theirs_in, theirs_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    browser = Browser(ours_in, ours_out)
    try:
        target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        browser.session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            browser.ask(f"{domain}.enable")
        yield browser
    finally:
        process.kill()
        process.wait()
        os.close(ours_in)
        os.close(ours_out)
