"""A fake of RunPod: its REST API, version 2, and the few queries of GraphQL that are still in use, as an HTTP
server on loopback.

Every REST request and response is checked against RunPod's published description (tests/data/runpod); what is
outside of it is recorded in `violations`. Where RunPod's behaviour is not known, such as the wording of
refusals, the test chooses it: `Terms`.

The clock stands still unless `running=True`, and is advanced with `advance`. With `home`, running pods are
processes that answer SSH.
"""

from tests.fakes.runpod.catalogue import A100, COMMUNITY, EXAMPLES, GRACE, H100, MI300, RTX4090, SECURE, Kind
from tests.fakes.runpod.pods import Pod, Status
from tests.fakes.runpod.server import ACCOUNT_ID, API_KEY, FakeRunPod, Terms, problem

__all__ = [
    "A100",
    "ACCOUNT_ID",
    "API_KEY",
    "COMMUNITY",
    "EXAMPLES",
    "GRACE",
    "H100",
    "MI300",
    "RTX4090",
    "SECURE",
    "FakeRunPod",
    "Kind",
    "Pod",
    "Status",
    "Terms",
    "problem",
]
