"""The program of the new trainer: `train.py CHECKPOINTS STEPS [FOLDER]` counts to STEPS, from the checkpoint
in FOLDER.

Its state is a number computed from the previous one, so that a step that is skipped or made twice shows in
the final state.
"""

import signal
import socket
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

EVERY = 5
"""Steps between two checkpoints."""
STEP_S = 0.01


def after(state: int) -> int:
    """Return the state that follows this one."""
    return (state * 6364136223846793005 + 1442695040888963407) % 2**64


class Alive(BaseHTTPRequestHandler):
    requested = 0

    def do_GET(self) -> None:
        Alive.requested += 1
        if Alive.requested == 3:  # once by the trainer, and twice by the agent, which has thus had an answer
            Path("probed").touch()
        self.send_response(200 if self.path == "/alive" else 404)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def save(folder: Path, state: int) -> None:
    folder.mkdir(parents=True)
    (folder / "state").write_text(str(state))
    (folder / "done").touch()


def serve(port: int) -> "subprocess.Popen[bytes]":
    """Start the service, and return once it answers."""
    abacus = subprocess.Popen([sys.executable, __file__, "--serve", str(port)])
    while True:
        try:
            with urlopen(f"http://127.0.0.1:{port}/alive", timeout=5):
                return abacus
        except URLError:
            time.sleep(0.02)


def count(checkpoints: Path, steps: int, resumed: Path | None) -> None:
    settings = dict(line.split("=") for line in Path("counting.txt").read_text().splitlines())
    out = checkpoints.parent
    out.mkdir(exist_ok=True)
    if (out / "session").exists():
        raise SystemExit("there is a session already")
    (out / "session").touch()
    abacus = serve(int(settings["port"]))
    first, state = (
        (int(resumed.name.rpartition("-")[2]), int((resumed / "state").read_text()))
        if resumed is not None
        else (0, 1)
    )
    with (out / "progress.txt").open("a", buffering=1) as progress:
        for step in range(first + 1, steps + 1):
            if str(step) == settings.get("dies"):
                (out / "counting.log").write_text("it ran out of fingers\n")
                raise SystemExit(1)
            time.sleep(STEP_S)
            state = after(state)
            progress.write(f"iteration {step} of {steps}, cost {1 / step:.4f}\n")
            if step % EVERY == 0 or step == steps:
                save(checkpoints / f"iteration-{step:06d}", state)
            if str(step) == settings.get("stall"):
                while not Path("probed").exists():
                    time.sleep(0.02)
                abacus.kill()
                abacus.wait()
                # a bound port refuses connections, and nobody else on a busy machine can answer there
                with socket.socket() as held:
                    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    held.bind(("127.0.0.1", int(settings["port"])))
                    signal.pause()
    abacus.kill()


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        HTTPServer(("127.0.0.1", int(sys.argv[2])), Alive).serve_forever()
    count(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]) if len(sys.argv) > 3 else None)
