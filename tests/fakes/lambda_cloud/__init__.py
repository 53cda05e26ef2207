"""A fake of Lambda Cloud's API as an HTTP server on loopback.

Every request and response is checked against the published description (tests/data/lambda); what is outside
of it is recorded in `violations`. The description has no time of creation and no order of statuses beyond
their names; how long they last is chosen by the test: `Plan`.

The clock stands still unless `running=True`, and is advanced with `advance`.
"""

from tests.fakes.lambda_cloud.instances import Instance, Status
from tests.fakes.lambda_cloud.server import API_KEY, EXAMPLES, FakeLambdaCloud, Kind, error

__all__ = ["API_KEY", "EXAMPLES", "FakeLambdaCloud", "Instance", "Kind", "Status", "error"]
