"""Waiting for events: until they happen, and never by a time that a busy machine could exceed."""

import threading
import time
from collections.abc import Callable

HANG_S = 600.0
"""A limit that only a hanging test reaches, however busy the machine is."""


def await_true(
    what: str, question: Callable[[], object], *, limit_s: float = HANG_S, every_s: float = 0.02
) -> None:
    """Return when `question` returns a true value; fail with `what` if that has not happened after
    `limit_s`.
    """
    end_s, pause = time.monotonic() + limit_s, threading.Event()
    while not question():
        assert time.monotonic() < end_s, f"after {limit_s:.0f} s still not: {what}"
        pause.wait(every_s)
