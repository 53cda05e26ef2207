"""Makes tests/data/github again: the parts of two published descriptions of GitHub's API that the fake needs.

    npm install @octokit/openapi@23.0.2 @octokit/webhooks-schemas@7.6.1
    python -m tests.fakes.github.extract node_modules/@octokit --date 2026-11-21

Other paths, prose and examples, which validate nothing, are left out.
"""

import argparse
import json
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
    "merge_group$checks_requested",
    "workflow_dispatch$event",
    "repository_dispatch$event",
    "push$event",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fakes.github.extract", description=__doc__)
    parser.add_argument("packages", type=Path, help="the folder with both packages")
    parser.add_argument("--date", required=True, help="the day on which they were read, 2026-11-21")
    given = parser.parse_args()
    openapi, webhooks = given.packages / "openapi", given.packages / "webhooks-schemas"
    complete = _json(openapi / "generated" / "api.github.com.json")
    write(OPENAPI, extract_openapi(complete, OPERATIONS, _json(openapi / "package.json"), given.date))
    package = _json(webhooks / "package.json")
    comment = {
        "$comment": f"of {package['name']} {package['version']}, {package['license']}, read on {given.date}"
    }
    write(WEBHOOKS, comment | extract_schemas(_json(webhooks / "schema.json"), EVENTS))
    (DATA / "LICENSE").write_text((openapi / "LICENSE").read_text(encoding="utf-8"), encoding="utf-8")


def extract_openapi(complete: Json, operations: Sequence[tuple[str, str]], package: Json, date: str) -> Json:
    """Return the extract. `operations`: method and path of each."""
    info = {
        "title": "GitHub v3 REST API",
        "version": package["version"],
        "license": complete["info"]["license"],
    }
    return cut(
        complete,
        operations,
        {**info, "x-source": f"{package['name']}@{package['version']} (npm)", "x-read": date},
        schemas=["basic-error"],
    )


def extract_schemas(complete: Mapping[str, Any], events: Sequence[str]) -> dict[str, Any]:
    kept = {"definitions": {event: plain(complete["definitions"][event]) for event in events}}
    gather(list(kept["definitions"].values()), complete, kept)
    return {"$schema": complete["$schema"], **kept}


def _json(path: Path) -> Json:
    return dict(json.loads(path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
