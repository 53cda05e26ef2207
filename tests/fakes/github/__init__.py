"""A fake of GitHub's REST API: a stateful HTTP server on loopback.

Every request and every response is checked against GitHub's published description of its API; others are
answered 599 and recorded in `violations`. The fake knows who sends a request: tokens of jobs with their
`permissions:`, of an app's installation, of people with their roles. It refuses what GitHub refuses: rights,
rates, sizes, states. Its clock stands still unless `running=True`, and is advanced with `advance`.

`python -m tests.fakes.github --port 0 --ready FILE` starts it alone; a test in another process controls it
with POST /_control/NAME.
"""

from tests.fakes.github.refusals import (
    BAD_GATEWAY,
    OUTSIDE,
    SECONDARY_403,
    SECONDARY_429,
    SERVER_ERROR,
    UNAVAILABLE,
    problem,
)
from tests.fakes.github.server import FAULTS, FakeGitHub

__all__ = [
    "BAD_GATEWAY",
    "FAULTS",
    "OUTSIDE",
    "SECONDARY_403",
    "SECONDARY_429",
    "SERVER_ERROR",
    "UNAVAILABLE",
    "FakeGitHub",
    "problem",
]
