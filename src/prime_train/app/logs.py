"""The format and level of the control plane's own log."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path

from prime_train.text.safe import neutralized

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
BYTES_MAX = 4 * 2**20
"""Size at which the log of a process in the background is put aside. The one that was put aside before is
deleted, so that the two together never have much more than twice as many bytes.
"""


class OneLine(logging.Formatter):
    """A formatter that prints a record's own text on one line, so that no text can imitate another record;
    tracebacks keep their lines.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # it overrides one of logging's
        record.message = neutralized(record.message)
        return super().formatMessage(record)


def log_to_stderr() -> None:
    """Log to stderr from INFO on. urllib3's messages on retries are hidden: a call that failed for good is
    reported by its caller.
    """
    _log_to(logging.StreamHandler())


def log_to_file(path: Path) -> Callable[[], None]:
    """Log to a file of at most `BYTES_MAX` from INFO on, and warnings to stderr as well until the function
    that is returned is called: from then on, the file also gets what this process writes to its stdout and
    stderr. Raises OSError if the file cannot be written.
    """
    handler, first = _OwnFile(path), logging.StreamHandler()
    first.setLevel(logging.WARNING)
    first.setFormatter(OneLine("warning: %(message)s"))
    _log_to(handler)
    logging.getLogger().addHandler(first)

    def take_over() -> None:
        logging.getLogger().removeHandler(first)
        handler.take_over()

    return take_over


class _OwnFile(RotatingFileHandler):
    """A file of limited size, which can replace stdout and stderr of this process."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, maxBytes=BYTES_MAX, backupCount=1, encoding="utf-8")
        self._has_output = False

    def take_over(self) -> None:
        self.acquire()
        try:
            self._has_output = True
            self._replace_output()
        finally:
            self.release()

    def doRollover(self) -> None:  # it overrides one of logging's
        super().doRollover()
        if self._has_output:
            self._replace_output()

    def _replace_output(self) -> None:
        if self.stream is None:  # closed by a library that has configured logging for itself
            self.stream = self._open()
        for descriptor in (1, 2):
            os.dup2(self.stream.fileno(), descriptor)


def _log_to(handler: logging.Handler) -> None:
    handler.setFormatter(OneLine(FORMAT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("urllib3").setLevel(logging.ERROR)


@contextmanager
def logged_in(path: Path) -> Iterator[None]:
    """Log to a file during the block, because the terminal shows the same events in another form."""
    logger, quiet = logging.getLogger("prime_train"), logging.getLogger("urllib3")
    handler = logging.FileHandler(path, mode="w")
    handler.setFormatter(OneLine(FORMAT))
    before = logger.level, logger.propagate, quiet.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    quiet.setLevel(logging.ERROR)
    logger.propagate = False
    try:
        yield
    finally:
        logger.level, logger.propagate, quiet.level = before
        logger.removeHandler(handler)
        handler.close()
