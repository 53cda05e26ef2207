"""Makes tests/data/github again: the parts of two published descriptions of GitHub's API that the fake needs.

    npm install @octokit/openapi@23.0.2 @octokit/webhooks-schemas@7.6.1
    python -m tests.fakes.github.extract node_modules/@octokit

Other paths, prose and examples, which validate nothing, are left out.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.fakes.github.routes import OPERATIONS
from tests.fakes.github.schemas import DATA, OPENAPI, WEBHOOKS
from tests.fakes.openapi.cut import cut, gather, plain, write
from tests.fakes.openapi.schemas import Json

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


def extract_openapi(complete: Json, operations: Sequence[tuple[str, str]], version: str) -> Json:
    """Return the extract. `operations`: method and path of each."""
    info = {"title": "GitHub v3 REST API", "version": version, "license": complete["info"]["license"]}
    return cut(complete, operations, info, schemas=["basic-error"])


def extract_schemas(complete: Mapping[str, Any], events: Sequence[str]) -> dict[str, Any]:
    kept = {"definitions": {event: plain(complete["definitions"][event]) for event in events}}
    gather(list(kept["definitions"].values()), complete, kept)
    return {"$schema": complete["$schema"], **kept}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
