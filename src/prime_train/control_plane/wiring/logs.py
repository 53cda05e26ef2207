"""What the control plane logs of itself, and what it does not."""

import logging

from prime_train.core.text.safe import neutralized

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class OneLine(logging.Formatter):
    """A record's own text is one line, so that nobody's text looks like a record of its own; a traceback below it has several."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # it overrides one of logging's
        record.message = neutralized(record.message)
        return super().formatMessage(record)


def log_to_stderr() -> None:
    """From INFO on. A call that urllib3 tries again is no news: one that failed for good is told by whoever made it."""
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine(FORMAT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("urllib3").setLevel(logging.ERROR)
