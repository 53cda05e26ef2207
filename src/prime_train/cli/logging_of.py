"""What the control plane logs of itself, and what it does not."""

import logging

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def log_to_stderr() -> None:
    """From INFO on. A call that urllib3 tries again is no news: one that failed for good is told by whoever made it."""
    logging.basicConfig(level=logging.INFO, format=FORMAT)
    logging.getLogger("urllib3").setLevel(logging.ERROR)
