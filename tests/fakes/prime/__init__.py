"""A fake of Prime Intellect's compute API: a stateful HTTP server on loopback whose pods are processes that
answer SSH.

Its responses have the format of Prime's own OpenAPI and command line. Where Prime's behaviour is not known
(how a preempted pod is reported, the wording when there is no capacity), the test chooses it: `Terms` for the
API, `Plan` for later pods, `fail` for requests.

Its clock stands still unless `running=True`, and is advanced with `advance`. Nothing of a pod outlives the
test, even if the test is killed: each has a first process that ends everything (machine.py).
"""

from tests.fakes.prime.accounts import ALL, API_KEY, ApiKey, Team
from tests.fakes.prime.machine import POD_VARIABLE
from tests.fakes.prime.machines import needs_sshd, sshd_program
from tests.fakes.prime.pods import NEVER_S, End, Plan, Pod, SshForm
from tests.fakes.prime.refusals import (
    BAD_GATEWAY,
    NO_FUNDS,
    NO_STOCK_400,
    NO_STOCK_409,
    NO_STOCK_503,
    SERVER_ERROR,
    TOO_MANY,
    UNAVAILABLE,
    InvalidForm,
    detail,
)
from tests.fakes.prime.rows import EXAMPLES, ON_DEMAND, SPOT, SPOT_BOX, DiskRow, GpuRow, Prices, Spec
from tests.fakes.prime.server import FakePrime
from tests.fakes.prime.terms import Terms

__all__ = [
    "ALL",
    "API_KEY",
    "BAD_GATEWAY",
    "EXAMPLES",
    "NEVER_S",
    "NO_FUNDS",
    "NO_STOCK_400",
    "NO_STOCK_409",
    "NO_STOCK_503",
    "ON_DEMAND",
    "POD_VARIABLE",
    "SERVER_ERROR",
    "SPOT",
    "SPOT_BOX",
    "TOO_MANY",
    "UNAVAILABLE",
    "ApiKey",
    "DiskRow",
    "End",
    "FakePrime",
    "GpuRow",
    "InvalidForm",
    "Plan",
    "Pod",
    "Prices",
    "Spec",
    "SshForm",
    "Team",
    "Terms",
    "detail",
    "needs_sshd",
    "sshd_program",
]
