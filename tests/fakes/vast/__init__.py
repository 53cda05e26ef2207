"""A fake of Vast.ai's API as an HTTP server on loopback.

Every request and response is checked against the published description (tests/data/vast); what is outside of
it is recorded in `violations`. Where the description contradicts Vast's own client, `CORRECTIONS` says so.
What neither tells, such as whether a bid that is too low leaves a stopped instance behind, is chosen by the
test: `Terms`.

Addresses may end in a slash, as those of Vast's own client do. The clock stands still unless `running=True`,
and is advanced with `advance`.
"""

from tests.fakes.vast.asks import EXAMPLES, Ask, Host
from tests.fakes.vast.instances import Instance, Status
from tests.fakes.vast.server import ACCOUNT_ID, API_KEY, FakeVast, Plan, Terms, refused

__all__ = [
    "ACCOUNT_ID",
    "API_KEY",
    "EXAMPLES",
    "Ask",
    "FakeVast",
    "Host",
    "Instance",
    "Plan",
    "Status",
    "Terms",
    "refused",
]
