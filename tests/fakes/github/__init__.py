"""A fake of GitHub's REST API: a stateful HTTP server on loopback.

Every request and every answer is held against GitHub's published description of its API; what lies outside is answered 599 and kept in
`violations`. It knows who asks: tokens of jobs with their `permissions:`, of an app's installation, of people with their roles; and what
GitHub refuses: rights, rates, sizes, states. Its clock stands still unless `running=True`, and is put forward with `advance`.

`python -m tests.fakes.github --port 0 --ready FILE` starts it alone; what a test can do to it in one process is then POST /_control/NAME.
"""

from tests.fakes.github.refusals import BAD_GATEWAY, OUTSIDE, SECONDARY_403, SECONDARY_429, SERVER_ERROR, UNAVAILABLE, problem
from tests.fakes.github.server import FAULTS, Call, FakeGitHub
from tests.fakes.prime.faults import ALWAYS, Answer, CutRequest, Hang, LoseAnswer, Replace

__all__ = [
    "ALWAYS",
    "BAD_GATEWAY",
    "FAULTS",
    "OUTSIDE",
    "SECONDARY_403",
    "SECONDARY_429",
    "SERVER_ERROR",
    "UNAVAILABLE",
    "Answer",
    "Call",
    "CutRequest",
    "FakeGitHub",
    "Hang",
    "LoseAnswer",
    "Replace",
    "problem",
]
