"""The format and level of the control plane's own log."""

import logging

from prime_train.core.text.safe import neutralized

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class OneLine(logging.Formatter):
    """A formatter that prints a record's own text on one line, so that no text can imitate another record; tracebacks keep their lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # it overrides one of logging's
        record.message = neutralized(record.message)
        return super().formatMessage(record)


def log_to_stderr() -> None:
    """Log to stderr from INFO on. urllib3's messages on retries are hidden: a call that failed for good is reported by its caller."""
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine(FORMAT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("urllib3").setLevel(logging.ERROR)
