"""A fake of Weights & Biases: the part of its GraphQL and of its file stream that the real SDK needs, to
write and to read.

The responses were derived from what the SDK requests and reads; in tests/adapters/test_tracker_wandb.py a
real process trains with it. As at W&B, a run is `running` until its process reports how it ended; a killed
one keeps that state, and only its heartbeat becomes old.
"""

import base64
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.fakes.http import HttpFake, Request, Response, Route, json_response

KEY = "f4ce" * 10
ENTITY = "acme"
AUTHORIZATION = "Basic " + base64.b64encode(f"api:{KEY}".encode()).decode()
UPLOADS = "/uploads/"

_OPERATION = re.compile(r"\b(?:query|mutation)\s+(\w+)")
_VIEWER = {
    "viewer": {
        "id": "V",
        "entity": ENTITY,
        "username": "ann",
        "email": "ann@acme.test",
        "flags": "{}",
        "teams": {"edges": []},
    }
}

Variables = dict[str, Any]


@dataclass
class FakeRun:
    """A run. `heartbeat_s`: the second of its last report, None: there was none."""

    project: str
    name: str
    state: str = "running"
    heartbeat_s: float | None = None
    step: int = -1
    summary: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    display_name: str = ""
    notes: str = ""
    tags: list[str] = field(default_factory=list)
    created_s: float = 1_000_000.0
    history: list[dict[str, Any]] = field(default_factory=list)
    exit_code: int | None = None
    preempting: bool = False
    entity: str = ENTITY

    @property
    def id(self) -> str:
        return base64.b64encode(f"Run:v1:{self.name}:{self.project}:{self.entity}".encode()).decode()

    def json(self) -> dict[str, Any]:
        """Return all fields that a client requests; a client ignores others."""
        return {
            "id": self.id,
            "projectId": "1",
            "tags": self.tags,
            "name": self.name,
            "displayName": self.display_name or self.name,
            "sweepName": None,
            "state": self.state,
            "config": json.dumps({key: {"value": value, "desc": None} for key, value in self.config.items()}),
            "group": None,
            "jobType": None,
            "commit": None,
            "readOnly": False,
            "createdAt": _time(self.created_s),
            "heartbeatAt": _time(self.heartbeat_s) if self.heartbeat_s is not None else None,
            "description": None,
            "notes": self.notes,
            "systemMetrics": "{}",
            "summaryMetrics": json.dumps(self.summary),
            "historyLineCount": len(self.history),
            "user": {"name": "Ann", "username": "ann"},
            "historyKeys": {"lastStep": self.step, "sets": [], "keys": {}},
        }

    def resume_json(self) -> dict[str, Any]:
        """Return what a process gets that resumes the run."""
        tail = json.dumps([json.dumps(row) for row in self.history[-1:]])
        counts = {"logLineCount": 0, "historyLineCount": len(self.history), "eventsLineCount": 0}
        return (
            self.json()
            | counts
            | {"historyTail": tail, "eventsTail": "[]", "wandbConfig": json.dumps({"t": 1})}
        )

    def add_chunk(self, chunk: dict[str, Any], now_s: float) -> None:
        """Add a piece of the stream; each one counts as a sign of life, also an empty one."""
        self.heartbeat_s = now_s
        files = chunk.get("files") or {}
        for line in files.get("wandb-history.jsonl", {}).get("content", []):
            row = json.loads(line)
            self.history.append(row)
            self.step = max(self.step, int(row.get("_step", self.step)))
        for line in files.get("wandb-summary.json", {}).get("content", []):
            self.summary = json.loads(line)
        self.preempting = self.preempting or bool(chunk.get("preempting"))
        if chunk.get("complete"):
            self.exit_code = int(chunk.get("exitcode") or 0)
            self.state = "finished" if self.exit_code == 0 else "failed"


def _time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class FakeWandb(HttpFake):
    """The fake. `KEY` is its only key. `asked`: the names of the operations, in order; `secret`: projects
    that the key may not see.
    """

    def __init__(self, *runs: FakeRun) -> None:
        super().__init__()
        self.runs = {(run.project, run.name): run for run in runs}
        self.requested: list[str] = []
        self.secret: set[str] = set()

    def add(self, run: FakeRun) -> FakeRun:
        self.runs[run.project, run.name] = run
        return run

    def dispatch(self, route: Any, request: Request) -> object:
        if route.handler != FakeWandb._discard and request.headers.get("authorization") != AUTHORIZATION:
            return _errors(401, "invalid API key", "PERMISSION_ERROR")
        return super().dispatch(route, request)

    def no_route(self, request: Request) -> Response:
        return _errors(404, f"the fake knows no {request.path}")

    def _discard(self, _: Request) -> Variables:
        """Discard counters, and files at URLs of their own, which are never read again."""
        return {}

    def _stream(self, request: Request) -> Variables:
        self.runs[request.params["project"], request.params["run"]].add_chunk(request.json, time.time())
        return {"exitcode": None, "limits": {}}

    def _graphql(self, request: Request) -> Response | Variables:
        found = _OPERATION.search(request.json["query"])
        name = found[1] if found else ""
        self.requested.append(name)
        if name not in _OPERATIONS:
            return _errors(400, f"the fake knows no {name}")
        variables = request.json.get("variables") or {}
        if variables.get("project") in self.secret:
            return _errors(403, "permission denied to access it", "PERMISSION_ERROR")
        try:
            return {"data": _OPERATIONS[name](self, variables)}
        except ValueError as refused:
            return {"data": None, "errors": [{"message": str(refused)}]}

    def _run(self, variables: Variables) -> FakeRun | None:
        return (
            self.runs.get((variables["project"], variables["name"]))
            if variables.get("entity", ENTITY) == ENTITY
            else None
        )

    routes = (
        Route("GET|POST|PUT", "/sdk/otel/{rest:path}", _discard),
        Route("PUT", UPLOADS + "{number}", _discard),
        Route("POST", "/graphql", _graphql),
        Route("POST", "/files/{entity}/{project}/{run}/file_stream", _stream),
    )


def unwell(status: int) -> Response:
    """Return a failure that repeats the request, including the key."""
    return _errors(status, f"it is unwell, {AUTHORIZATION}")


def _errors(status: int, message: str, code: str = "") -> Response:
    return json_response(
        {"errors": [{"message": message} | ({"extensions": {"code": code}} if code else {})]}, status
    )


def _one(fake: FakeWandb, variables: Variables) -> object:
    run = fake._run(variables)
    return {"project": {"run": run.json() if run is not None else None}}


def _many(fake: FakeWandb, variables: Variables) -> object:
    """Return the matching runs. Of W&B's filter language only equal fields are supported."""
    wanted = json.loads(variables.get("filters") or "{}")
    if set(wanted) - {"state"}:
        raise ValueError(f"the fake filters by state only, not {wanted}")
    mine = [run for (project, _), run in sorted(fake.runs.items()) if project == variables["project"]]
    if not mine or variables["entity"] != ENTITY:
        return {"project": None}
    found = [run for run in mine if run.state == wanted.get("state", run.state)]
    start = int(variables.get("cursor") or 0)
    page = found[start : start + variables["perPage"]]
    end = start + len(page)
    edges = [{"node": run.json(), "cursor": str(start + index + 1)} for index, run in enumerate(page)]
    runs = {"edges": edges, "pageInfo": {"endCursor": str(end), "hasNextPage": end < len(found)}}
    return {"project": {"internalId": "1", "runCount": len(found), "readOnly": False, "runs": runs}}


def _resume_status(fake: FakeWandb, variables: Variables) -> object:
    run = fake._run(variables)
    if run is None:
        return {"model": None}
    return {
        "model": {
            "id": "P",
            "name": run.project,
            "entity": {"id": "E", "name": ENTITY},
            "bucket": run.resume_json(),
        }
    }


def _upsert(fake: FakeWandb, variables: Variables) -> object:
    if "id" in variables and "name" not in variables:
        return _changed(fake, variables)
    project, name = variables["project"], variables["name"]
    before = fake.runs.get((project, name))
    run = before or fake.add(FakeRun(project, name, created_s=time.time()))
    run.state, run.heartbeat_s = "running", time.time()
    run.display_name = variables.get("displayName") or run.display_name
    run.notes, run.tags = variables.get("notes") or run.notes, variables.get("tags") or run.tags
    bucket = run.json() | {"project": {"name": project, "entity": {"id": "E", "name": ENTITY}}}
    return {"upsertBucket": {"bucket": bucket, "inserted": before is None}}


def _changed(fake: FakeWandb, variables: Variables) -> object:
    """Change a run that there is, as the public API of the SDK does: what is not given stays, and it does not
    count as running again.
    """
    run = next((run for run in fake.runs.values() if run.id == variables["id"]), None)
    if run is None:
        raise ValueError("could not find run")
    run.summary = json.loads(variables["summaryMetrics"]) if "summaryMetrics" in variables else run.summary
    return {"upsertBucket": {"bucket": {"id": run.id}}}


def _files(fake: FakeWandb, variables: Variables) -> object:
    files = [
        {"name": name, "uploadUrl": f"{fake.url}{UPLOADS}{number}"}
        for number, name in enumerate(variables["files"])
    ]
    return {"createRunFiles": {"runID": "R", "uploadHeaders": [], "files": files}}


def _state(fake: FakeWandb, variables: Variables) -> object:
    wanted = variables["input"]
    run = next((run for run in fake.runs.values() if run.id == wanted["id"]), None)
    if (
        run is None
        or run.state
        not in {"failed": ("pending", "running"), "pending": ("running", "failed", "crashed")}[
            wanted["state"]
        ]
    ):
        raise ValueError(f"a run that is {run.state if run else 'not there'} cannot become {wanted['state']}")
    run.state = wanted["state"]
    return {"updateRunState": {"success": True}}


_OPERATIONS: dict[str, Callable[[FakeWandb, Variables], object]] = {
    "Viewer": lambda fake, _: _VIEWER,
    "GetDefaultEntity": lambda fake, _: _VIEWER,
    "Run": _one,
    "RunHistoryKeys": _one,
    "RunState": _one,
    "RunSummary": _one,
    "Runs": _many,
    "RunResumeStatus": _resume_status,
    "UpsertBucket": _upsert,
    "CreateRunFiles": _files,
    "UpdateRunState": _state,
    "OrganizationCoreWeaveOrganizationID": lambda fake, _: {"entity": {"organization": None}},
}
