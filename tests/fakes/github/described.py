"""Where the cuts of GitHub's published descriptions lie, and what is in them."""

import json
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[2] / "data" / "github"
OPENAPI = DATA / "openapi.json"
WEBHOOKS = DATA / "webhooks.json"


@cache
def openapi() -> dict[str, Any]:
    return dict(json.loads(OPENAPI.read_text(encoding="utf-8")))


@cache
def webhooks() -> dict[str, Any]:
    return dict(json.loads(WEBHOOKS.read_text(encoding="utf-8")))


def resolved(whole: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """What a reference refers to; anything else as it is."""
    while "$ref" in schema:
        found: Any = whole
        for step in schema["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        schema = found
    return schema
