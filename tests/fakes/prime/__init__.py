"""A fake of Prime Intellect's compute API: a stateful HTTP server on loopback whose pods are processes that answer SSH.

What it says has the shapes of Prime's own OpenAPI and command line. Where nobody knows how Prime answers (how a preempted pod is seen,
with what words there is no capacity), the test says which it shall be: `Terms` for the API, `Plan` for pods to come, `fail` for requests.

Its clock stands still unless `running=True`, and is put forward with `advance`. Of pods nothing outlives the test, not even where the test
is killed: each has a first process that takes it all along (machine.py).
"""

from tests.fakes.prime.accounts import ALL, API_KEY, ApiKey, Team
from tests.fakes.prime.answering import Request
from tests.fakes.prime.faults import (
    ALWAYS,
    BAD_GATEWAY,
    NO_FUNDS,
    NO_STOCK_400,
    NO_STOCK_409,
    NO_STOCK_503,
    SERVER_ERROR,
    TOO_MANY,
    UNAVAILABLE,
    Answer,
    CutRequest,
    Hang,
    LoseAnswer,
    Replace,
    detail,
)
from tests.fakes.prime.machine import MARKER
from tests.fakes.prime.machines import needs_sshd, sshd_program
from tests.fakes.prime.ordering import Terms
from tests.fakes.prime.pods import NEVER_S, End, Plan, SshForm
from tests.fakes.prime.refusals import InvalidForm
from tests.fakes.prime.rows import EXAMPLES, ON_DEMAND, SPOT, SPOT_BOX, DiskRow, GpuRow, Prices, Spec
from tests.fakes.prime.server import FakePrime

__all__ = [
    "ALL",
    "ALWAYS",
    "API_KEY",
    "BAD_GATEWAY",
    "EXAMPLES",
    "MARKER",
    "NEVER_S",
    "NO_FUNDS",
    "NO_STOCK_400",
    "NO_STOCK_409",
    "NO_STOCK_503",
    "ON_DEMAND",
    "SERVER_ERROR",
    "SPOT",
    "SPOT_BOX",
    "TOO_MANY",
    "UNAVAILABLE",
    "Answer",
    "ApiKey",
    "CutRequest",
    "DiskRow",
    "End",
    "FakePrime",
    "GpuRow",
    "Hang",
    "InvalidForm",
    "LoseAnswer",
    "Plan",
    "Prices",
    "Replace",
    "Request",
    "Spec",
    "SshForm",
    "Team",
    "Terms",
    "detail",
    "needs_sshd",
    "sshd_program",
]
