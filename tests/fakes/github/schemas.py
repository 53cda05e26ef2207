"""The extracts of GitHub's published descriptions. Fields that a schema requires and the fake does not know are filled in."""

import json
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[2] / "data" / "github"
OPENAPI = DATA / "openapi.json"
WEBHOOKS = DATA / "webhooks.json"
MOMENT = "2026-01-01T00:00:00Z"
LINK = "https://api.github.com/"


@cache
def openapi() -> dict[str, Any]:
    return dict(json.loads(OPENAPI.read_text(encoding="utf-8")))


@cache
def webhooks() -> dict[str, Any]:
    return dict(json.loads(WEBHOOKS.read_text(encoding="utf-8")))


def resolved(complete: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the target of a reference; anything else unchanged."""
    while "$ref" in schema:
        found: Any = complete
        for step in schema["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        schema = found
    return schema


class Filler:
    """Fills in fields. `whole`: the description in which references are looked up."""

    def __init__(self, complete: dict[str, Any]) -> None:
        self._whole = complete

    def filled(self, schema: dict[str, Any], known: Any) -> Any:
        """Return `known` with everything that is required and missing, at any depth, and without what is not allowed."""
        schema = self._chosen(resolved(self._whole, schema), known)
        if isinstance(known, list):
            return [self.filled(schema.get("items", {}), each) for each in known]
        if not isinstance(known, dict):
            return known
        properties, full = self._members(schema), {}
        for name, value in known.items():
            if name in properties or schema.get("additionalProperties", True):
                full[name] = self.filled(properties.get(name, {}), value)
        for name in self._demanded(schema):
            if name not in full:
                full[name] = self._invented(properties.get(name, {}))
        return full

    def _chosen(self, schema: dict[str, Any], known: Any) -> dict[str, Any]:
        """Return the alternative that `known` seems to be."""
        for word in ("oneOf", "anyOf"):
            if word in schema and "properties" not in schema:
                options = [resolved(self._whole, option) for option in schema[word]]
                return self._chosen(max(options, key=lambda option: self._likeness(option, known)), known)
        return schema

    def _likeness(self, schema: dict[str, Any], known: Any) -> int:
        kinds = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
        kind = schema.get("type", "object" if "properties" in schema or "allOf" in schema else "")
        if kinds.get(type(known)) != kind:
            return -1
        if not isinstance(known, dict):
            return 1
        members = self._members(schema)
        fits = all(known[name] in members[name].get("enum", [known[name]]) for name in known.keys() & members.keys())
        return 1 + len(known.keys() & members.keys()) if fits else 0

    def _members(self, schema: dict[str, Any]) -> dict[str, Any]:
        members = dict(schema.get("properties", {}))
        for part in schema.get("allOf", ()):
            members |= self._members(resolved(self._whole, part))
        return members

    def _demanded(self, schema: dict[str, Any]) -> list[str]:
        demanded = list(schema.get("required", ()))
        for part in schema.get("allOf", ()):
            demanded += self._demanded(resolved(self._whole, part))
        return demanded

    def _invented(self, schema: dict[str, Any]) -> Any:
        schema = resolved(self._whole, schema)
        options = [resolved(self._whole, option) for word in ("oneOf", "anyOf") for option in schema.get(word, ())]
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else list(kinds)
        if schema.get("nullable") or "null" in kinds or any(option.get("type") == "null" for option in options):
            return None
        if options and not kinds:
            return self._invented(options[0])
        if "const" in schema or "enum" in schema:
            return schema.get("const", schema.get("enum", [None])[0])
        return self._plain(kinds[0] if kinds else "object", schema)

    def _plain(self, kind: str, schema: dict[str, Any]) -> Any:
        match kind:
            case "object":
                return self.filled(schema, {})
            case "array":
                return []
            case "boolean":
                return False
            case "string":
                return {"date-time": MOMENT, "uri": LINK}.get(schema.get("format", ""), "")
            case _:
                return 0
