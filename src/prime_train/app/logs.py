"""The format and level of the control plane's own log."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prime_train.text.safe import neutralized

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


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
    handler = logging.StreamHandler()
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
