"""Cuts a description to the calls that are used, and leaves out prose and examples, which check nothing."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from openapi_core import OpenAPI

from tests.fakes.openapi.schemas import Json

NAMED = (
    "properties",
    "patternProperties",
    "definitions",
    "$defs",
    "schemas",
    "parameters",
    "responses",
    "headers",
    "content",
)
"""Keywords whose own keys are names, and not words of the description's language."""
VALUES = ("const", "default")
PROSE = (
    "description",
    "example",
    "examples",
    "externalDocs",
    "summary",
    "tags",
    "operationId",
    "tsAdditionalProperties",
    "title",
)
LEFT_OUT = (*PROSE, "security", "callbacks", "servers", "links")
"""Fakes check keys themselves, and are reached by addresses of their own."""

NULL = {"type": "object", "nullable": True, "enum": [None]}


def read(source: Path) -> Json:
    """Return a description that was published as JSON or YAML."""
    text = source.read_text(encoding="utf-8")
    return dict(json.loads(text) if source.suffix == ".json" else yaml.safe_load(text))


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Write a cut, on one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps(content, separators=(",", ":"), ensure_ascii=False, sort_keys=True) + "\n",
        encoding="utf-8",
    )


def cut(
    complete: Json, operations: Iterable[tuple[str, str]], info: Json, schemas: Sequence[str] = ()
) -> Json:
    """Return the cut. `operations`: method and path of each call; `info`: replaces that of the description;
    `schemas`: those that no call refers to and that are kept as well.
    """
    paths: Json = {}
    for method, path in operations:
        item = complete["paths"][path]
        kept = paths.setdefault(
            path, {"parameters": plain(item["parameters"])} if "parameters" in item else {}
        )
        kept[method.lower()] = plain(item[method.lower()])
    parts: Json = (
        {"schemas": {name: plain(complete["components"]["schemas"][name]) for name in schemas}}
        if schemas
        else {}
    )
    gather([paths, *parts.values()], complete, parts)
    made = {"openapi": complete["openapi"], "info": info, "paths": paths, "components": parts}
    OpenAPI.from_dict(made)  # what was made must still be a description
    return made


def gather(found: Any, complete: Mapping[str, Any], into: Json) -> None:
    """Add to `into` everything that is referred to, directly or indirectly."""
    for reference in references(found):
        *kind, name = reference.removeprefix("#/").removeprefix("components/").split("/")
        source = complete.get("components", complete)
        if name not in into.setdefault(kind[0], {}):
            into[kind[0]][name] = ({"description": ""} if kind[0] == "responses" else {}) | plain(
                source[kind[0]][name]
            )
            gather(into[kind[0]][name], complete, into)


def references(found: Any) -> Iterator[str]:
    """Yield the targets of all references."""
    if isinstance(found, dict):
        if isinstance(found.get("$ref"), str):
            yield found["$ref"]
        for value in found.values():
            yield from references(value)
    elif isinstance(found, list):
        for value in found:
            yield from references(value)


def plain(found: Any, *, named: bool = False) -> Any:
    """Return the description without prose. `named`: the keys here are names."""
    if isinstance(found, list):
        return [plain(each) for each in found]
    if not isinstance(found, dict):
        return found
    kept: Json = {}
    for key, value in found.items():
        if not named and (key in LEFT_OUT or key.startswith("x-")):
            continue
        if not named and key == "discriminator" and "array" in value.get("mapping", {}):
            continue  # a list has no member by which to tell it from the others
        kept[key] = value if not named and key in VALUES else plain(value, named=not named and key in NAMED)
        if not named and key == "enum" and found.get("nullable") and None not in value:
            # What may be null is so among the named values too; the description leaves it to be understood.
            kept[key] = [*value, None]
        if not named and key in ("anyOf", "oneOf") and found.get("nullable") and NULL not in value:
            kept[key] = [*kept[key], NULL]
        if not named and key == "responses":
            # Of a response the language demands a description, be it empty.
            kept[key] = {
                status: each if "$ref" in each else {"description": "", **each}
                for status, each in kept[key].items()
            }
    return kept
