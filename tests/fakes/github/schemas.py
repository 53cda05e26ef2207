"""The extracts of GitHub's published descriptions."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.fakes.openapi import Description

DATA = Path(__file__).resolve().parents[2] / "data" / "github"
OPENAPI = DATA / "openapi.json"
WEBHOOKS = DATA / "webhooks.json"
DESCRIPTION = Description(OPENAPI, "GitHub", is_usual_error=lambda body: "message" in body)


@cache
def webhooks() -> dict[str, Any]:
    return dict(json.loads(WEBHOOKS.read_text(encoding="utf-8")))
