"""Schemas of a description: references, members, and values for fields that a schema requires and a fake does
not know.
"""

from collections.abc import Iterator, Mapping
from typing import Any

MOMENT = "2026-01-01T00:00:00Z"
LINK = "https://example.com/"
FORMATS = {
    "date-time": MOMENT,
    "date": MOMENT[:10],
    "uri": LINK,
    "uuid": "00000000-0000-4000-8000-000000000000",
}

Json = dict[str, Any]


def resolved(complete: Mapping[str, Any], schema: Json) -> Json:
    """Return the target of a reference; anything else unchanged."""
    while "$ref" in schema:
        found: Any = complete
        for step in schema["$ref"].removeprefix("#/").split("/"):
            found = found[step.replace("~1", "/").replace("~0", "~")]
        schema = found
    return schema


def members(complete: Mapping[str, Any], schema: Json) -> Json:
    """Return the schemas of an object's members, including those of all its parts."""
    found = dict(schema.get("properties", {}))
    for part in schema.get("allOf", ()):
        found |= members(complete, resolved(complete, part))
    return found


def required(complete: Mapping[str, Any], schema: Json) -> list[str]:
    """Return the names of the members that an object must have."""
    found = list(schema.get("required", ()))
    for part in schema.get("allOf", ()):
        found += required(complete, resolved(complete, part))
    return found


def unknown(complete: Mapping[str, Any], schema: Json, value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of members that a schema does not name, at any depth; a schema that leaves its members
    open knows all of them.
    """
    schema = resolved(complete, schema)
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from unknown(complete, schema.get("items", {}), each, f"{path}[{number}]")
    known = members(complete, schema)
    if not known or not isinstance(value, dict) or {"additionalProperties", "oneOf", "anyOf"} & schema.keys():
        return
    for name, below in value.items():
        there = f"{path}.{name}".removeprefix(".")
        if name in known:
            yield from unknown(complete, known[name], below, there)
        else:
            yield there


class Filler:
    """Fills in fields. `complete`: the description in which references are looked up."""

    def __init__(self, complete: Mapping[str, Any]) -> None:
        self._complete = complete

    def filled(self, schema: Json, known: Any) -> Any:
        """Return `known` with everything that is required and missing, at any depth, and without what is not
        allowed.
        """
        schema = self._chosen(resolved(self._complete, schema), known)
        if isinstance(known, list):
            return [self.filled(schema.get("items", {}), each) for each in known]
        if not isinstance(known, dict):
            return known
        properties, full = members(self._complete, schema), {}
        others = schema.get("additionalProperties", True)
        for name, value in known.items():
            if name in properties or others:
                full[name] = self.filled(
                    properties.get(name, others if isinstance(others, dict) else {}), value
                )
        for name in required(self._complete, schema):
            if name not in full:
                full[name] = self._invented(properties.get(name, {}))
        return full

    def _chosen(self, schema: Json, known: Any) -> Json:
        """Return the alternative that `known` seems to be."""
        for word in ("oneOf", "anyOf"):
            if word in schema and "properties" not in schema:
                options = [resolved(self._complete, option) for option in schema[word]]
                return self._chosen(max(options, key=lambda option: self._likeness(option, known)), known)
        return schema

    def _likeness(self, schema: Json, known: Any) -> int:
        names = {
            dict: ("object",),
            list: ("array",),
            str: ("string",),
            bool: ("boolean",),
            int: ("integer", "number"),
            float: ("number",),
        }
        kinds = _kinds(schema) or (["object"] if "properties" in schema or "allOf" in schema else [])
        if not set(names.get(type(known), ("null",))) & set(kinds):
            return -1
        if not isinstance(known, dict):
            return 1
        properties = members(self._complete, schema)
        shared = known.keys() & properties.keys()
        fits = all(known[name] in properties[name].get("enum", [known[name]]) for name in shared)
        return 1 + len(shared) if fits else 0

    def _invented(self, schema: Json) -> Any:
        schema = resolved(self._complete, schema)
        options = [
            resolved(self._complete, option) for word in ("oneOf", "anyOf") for option in schema.get(word, ())
        ]
        kinds = _kinds(schema)
        if (
            schema.get("nullable")
            or "null" in kinds
            or any(option.get("type") == "null" for option in options)
        ):
            return None
        if options and not kinds:
            return self._invented(options[0])
        if "const" in schema or "enum" in schema:
            return schema.get("const", schema.get("enum", [None])[0])
        if not kinds and len(schema.get("allOf", ())) == 1:
            return self._invented(schema["allOf"][0])
        return self._plain(kinds[0] if kinds else "object", schema)

    def _plain(self, kind: str, schema: Json) -> Any:
        match kind:
            case "object":
                return self.filled(schema, {})
            case "array":
                return [self._invented(schema.get("items", {})) for _ in range(schema.get("minItems", 0))]
            case "boolean":
                return False
            case "string":
                return FORMATS.get(schema.get("format", ""), "x" * schema.get("minLength", 0))
            case _:
                return schema.get("minimum", 0)


def _kinds(schema: Json) -> list[str]:
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)
