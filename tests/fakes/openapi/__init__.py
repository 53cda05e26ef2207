"""What fakes of documented APIs share: published descriptions (OpenAPI 3.0 and 3.1) that every request and
response is checked against.

A description is cut to the calls that are used, and kept below tests/data with its source and date:

    python -m tests.fakes.openapi SOURCE tests/data/acme/openapi.json --from URL --date 2026-11-22 "GET
    /v2/pods" "POST /v2/pods"

`Description` checks with such a cut, and fills in the fields of responses that a fake does not know;
`DescribedFake` is a server that does both for each of its routes.
"""

from tests.fakes.openapi.description import Description
from tests.fakes.openapi.fake import OUTSIDE, DescribedFake
from tests.fakes.openapi.schemas import Filler, resolved

__all__ = ["OUTSIDE", "DescribedFake", "Description", "Filler", "resolved"]
