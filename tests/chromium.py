"""A real browser, driven over the pipe that Chromium offers for it: what a person would see, click and measure.

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
SILENT_S_MAX = 60
"""A net under what hangs: far beyond what a busy machine needs."""


@dataclass
class Browser:
    """One tab. `events`: whatever the tab has told so far, by name and values."""

    reads: int
    writes: int
    session: str = ""
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    _asked: int = 0
    _rest: bytes = b""

    def ask(self, method: str, **values: object) -> dict[str, Any]:
        """Calls a method of Chrome's DevTools protocol, and waits for its answer."""
        self._asked += 1
        message = {"id": self._asked, "method": method, "params": values} | ({"sessionId": self.session} if self.session else {})
        os.write(self.writes, json.dumps(message).encode() + b"\0")
        while True:
            said = self._next()
            if said.get("id") == self._asked:
                assert "error" not in said, f"{method}: {said['error']}"
                answer: dict[str, Any] = said["result"]
                return answer
            self._note(said)

    def await_event(self, name: str) -> dict[str, Any]:
        """The next event of that name that was not asked for yet."""
        while True:
            for place, (told, values) in enumerate(self.events):
                if told == name:
                    del self.events[place]
                    return values
            self._note(self._next())

    def _note(self, said: dict[str, Any]) -> None:
        if "method" in said:
            self.events.append((said["method"], said.get("params", {})))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self.reads], [], [], SILENT_S_MAX)
            assert ready, f"the browser has said nothing for {SILENT_S_MAX} s"
            data = os.read(self.reads, 2**20)
            assert data, "the browser has ended"
            self._rest += data
        one, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(one)
        return message

    def open(self, url: str, *, width: int = 1400, height: int = 1000, scheme: str = "light") -> None:
        """Shows the page, and waits until it is loaded."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events = [event for event in self.events if event[0] != "Page.loadEventFired"]
        self.ask("Page.navigate", url=url)
        self.await_event("Page.loadEventFired")

    def value(self, expression: str) -> Any:
        """What the expression has for a value in the page; a promise is awaited."""
        said = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in said, said["exceptionDetails"]
        return said["result"].get("value")

    def complaints(self) -> list[str]:
        """What the browser has said against the page so far: scripts that failed, and whatever its policy has kept from it."""
        self.value("0")
        logged = [values["entry"]["text"] for name, values in self.events if name == "Log.entryAdded"]
        return logged + [values["exceptionDetails"]["text"] for name, values in self.events if name == "Runtime.exceptionThrown"]

    def picture(self, file: Path) -> None:
        """Writes the whole page as a PNG."""
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """`folder`: for its profile. Skips the test where there is no Chromium."""
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
