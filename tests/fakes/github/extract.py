"""Makes tests/data/github again: the parts of two published descriptions of GitHub's API that the fake needs.

    npm install @octokit/openapi@23.0.2 @octokit/webhooks-schemas@7.6.1
    python -m tests.fakes.github.extract node_modules/@octokit

Other paths, prose and examples, which validate nothing, are left out.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from openapi_core import OpenAPI

from tests.fakes.github.routes import OPERATIONS
from tests.fakes.github.schemas import DATA, OPENAPI, WEBHOOKS

EVENTS = (
    "pull_request$opened",
    "pull_request$synchronize",
    "pull_request$labeled",
    "pull_request$closed",
    "issue_comment$created",
    "workflow_dispatch$event",
    "repository_dispatch$event",
    "push$event",
)
NAMED = ("properties", "definitions", "schemas", "parameters", "responses", "headers", "content")
"""Keywords whose own keys are names, and not words of the description's language."""
PROSE = ("description", "example", "examples", "externalDocs", "summary", "tags", "operationId", "tsAdditionalProperties", "title")


NULL = {"type": "object", "nullable": True, "enum": [None]}


def main(packages: Path) -> None:
    """Make the extracts. `packages`: the folder with both packages."""
    openapi = packages / "openapi"
    version = json.loads((openapi / "package.json").read_text(encoding="utf-8"))["version"]
    complete = json.loads((openapi / "generated" / "api.github.com.json").read_text(encoding="utf-8"))
    write(OPENAPI, extract_openapi(complete, OPERATIONS, version))
    schemas = json.loads((packages / "webhooks-schemas" / "schema.json").read_text(encoding="utf-8"))
    source = json.loads((packages / "webhooks-schemas" / "package.json").read_text(encoding="utf-8"))
    write(WEBHOOKS, {"$comment": f"of {source['name']} {source['version']}, {source['license']}"} | extract_schemas(schemas, EVENTS))
    (DATA / "LICENSE").write_text((openapi / "LICENSE").read_text(encoding="utf-8"), encoding="utf-8")


def extract_openapi(complete: Mapping[str, Any], operations: Sequence[tuple[str, str]], version: str) -> dict[str, Any]:
    """Return the extract. `operations`: method and path of each."""
    paths: dict[str, Any] = {}
    for method, path in operations:
        paths.setdefault(path, {})[method.lower()] = plain(complete["paths"][path][method.lower()])
    parts: dict[str, Any] = {"schemas": {"basic-error": plain(complete["components"]["schemas"]["basic-error"])}}
    gather(paths, complete, parts)
    info = {"title": "GitHub v3 REST API", "version": version, "license": complete["info"]["license"]}
    made = {"openapi": complete["openapi"], "info": info, "paths": paths, "components": parts}
    OpenAPI.from_dict(made)  # that what was made is a description still
    return made


def extract_schemas(complete: Mapping[str, Any], events: Sequence[str]) -> dict[str, Any]:
    kept = {"definitions": {event: plain(complete["definitions"][event]) for event in events}}
    gather(list(kept["definitions"].values()), complete, kept)
    return {"$schema": complete["$schema"], **kept}


def gather(found: Any, complete: Mapping[str, Any], into: dict[str, Any]) -> None:
    """Add to `into` everything that is referred to, directly or indirectly."""
    for reference in references(found):
        *kind, name = reference.removeprefix("#/").removeprefix("components/").split("/")
        source = complete.get("components", complete)
        if name not in into.setdefault(kind[0], {}):
            into[kind[0]][name] = ({"description": ""} if kind[0] == "responses" else {}) | plain(source[kind[0]][name])
            gather(into[kind[0]][name], complete, into)


def references(found: Any) -> Iterator[str]:
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
    kept = {}
    for key, value in found.items():
        if not named and (key in PROSE or key.startswith("x-")):
            continue
        if not named and key == "discriminator" and "array" in value.get("mapping", {}):
            continue  # a list has no member by which to tell it from the others
        kept[key] = plain(value, named=not named and key in NAMED)
        if not named and key == "enum" and found.get("nullable"):
            # What may be null is so among the named values too; the description leaves it to be understood.
            kept[key] = [*value, None]
        if not named and key in ("anyOf", "oneOf") and found.get("nullable"):
            kept[key] = [*kept[key], NULL]
        if not named and key == "responses":
            # Of a response the language demands a description, be it empty.
            kept[key] = {status: each if "$ref" in each else {"description": "", **each} for status, each in kept[key].items()}
    return kept


def write(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, separators=(",", ":"), ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
