"""Starts the fake alone: python -m tests.fakes.github --port 0 --ready FILE. Its clock runs like the real
one.
"""

import argparse
import signal
from pathlib import Path

from tests.fakes.github.server import FakeGitHub


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fakes.github", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 is any that is free")
    parser.add_argument("--ready", type=Path, help="the file that gets its address as soon as it answers")
    wanted = parser.parse_args()
    # Blocked before there are threads, a signal waits for sigwait and goes to none of them.
    stops = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    with FakeGitHub(running=True, port=wanted.port) as fake:
        if wanted.ready:
            written = wanted.ready.with_suffix(".part")
            written.write_text(fake.url, encoding="utf-8")
            written.replace(wanted.ready)
        print(fake.url, flush=True)
        signal.sigwait(stops)


if __name__ == "__main__":
    main()
