"""The server, and what it answers."""

import base64
import gzip
import json
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.fakes.wandb.runs import ENTITY, KEY, FakeRun

_OPERATION = re.compile(r"\b(?:query|mutation)\s+(\w+)")
_STREAM = re.compile(r"/files/([^/]+)/([^/]+)/([^/]+)/file_stream")
_VIEWER = {"viewer": {"id": "V", "entity": ENTITY, "username": "ann", "email": "ann@acme.test", "flags": "{}", "teams": {"edges": []}}}
HELD_S_MAX = 60.0
KEPT = "/kept/"

Variables = dict[str, Any]


class FakeWandb:
    """`KEY` is its only key. `failing`: a status with which everything is answered instead; `holding`: nothing is answered until `let_go`.
    `asked`: the names of the operations, in order; `refused`: how many were
    answered with `failing`; `secret`: projects that the key may not see."""

    def __init__(self, *runs: FakeRun) -> None:
        self.runs = {(run.project, run.name): run for run in runs}
        self.failing: int | None = None
        self.asked: list[str] = []
        self.refused = 0
        self.secret: set[str] = set()
        self.went_on = threading.Event()
        self.went_on.set()
        self.wrote = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def hold(self) -> None:
        self.went_on.clear()

    def let_go(self) -> None:
        self.went_on.set()

    def add(self, run: FakeRun) -> FakeRun:
        self.runs[run.project, run.name] = run
        return run

    def wait_for(self, ready: Callable[[], bool], limit_s: float = HELD_S_MAX) -> bool:
        """Until what a process has written makes `ready` true."""
        with self.wrote:
            return self.wrote.wait_for(ready, limit_s)

    def reply(self, path: str, body: bytes, authorization: str) -> tuple[int, object]:
        self.went_on.wait(HELD_S_MAX)
        if self.failing is not None and path == "/graphql":
            self.refused += 1
        if self.failing is not None:
            return self.failing, {"errors": [{"message": f"it is unwell, {authorization}"}]}
        if path.startswith(("/sdk/otel/", KEPT)):
            return 200, {}  # counters, and files at addresses of their own: nobody reads them again
        if authorization != f"Basic {base64.b64encode(f'api:{KEY}'.encode()).decode()}":
            return 401, {"errors": [{"message": "invalid API key", "extensions": {"code": "PERMISSION_ERROR"}}]}
        if path == "/graphql":
            return self._graphql(json.loads(body))
        stream = _STREAM.fullmatch(path)
        if stream is not None:
            with self.wrote:
                self.runs[stream[2], stream[3]].streamed(json.loads(body), time.time())
                self.wrote.notify_all()
            return 200, {"exitcode": None, "limits": {}}
        return 404, {"errors": [{"message": f"the fake knows no {path}"}]}

    def _graphql(self, request: dict[str, Any]) -> tuple[int, object]:
        found = _OPERATION.search(request["query"])
        name = found[1] if found else ""
        self.asked.append(name)
        answer = _ANSWERS.get(name)
        if answer is None:
            return 400, {"errors": [{"message": f"the fake knows no {name}"}]}
        asked = request.get("variables") or {}
        if asked.get("project") in self.secret:
            return 403, {"errors": [{"message": "permission denied to access it", "extensions": {"code": "PERMISSION_ERROR"}}]}
        try:
            return 200, {"data": answer(self, asked)}
        except ValueError as refused:
            return 200, {"data": None, "errors": [{"message": str(refused)}]}

    def _run(self, asked: Variables) -> FakeRun | None:
        return self.runs.get((asked["project"], asked["name"])) if asked.get("entity", ENTITY) == ENTITY else None


def _one(fake: FakeWandb, asked: Variables) -> object:
    run = fake._run(asked)
    return {"project": {"run": run.told() if run is not None else None}}


def _many(fake: FakeWandb, asked: Variables) -> object:
    """Of its language of filters only what is asked here: fields that are equal."""
    wanted = json.loads(asked.get("filters") or "{}")
    if set(wanted) - {"state"}:
        raise ValueError(f"the fake filters by state only, not {wanted}")
    mine = [run for (project, _), run in sorted(fake.runs.items()) if project == asked["project"]]
    if not mine or asked["entity"] != ENTITY:
        return {"project": None}
    found = [run for run in mine if run.state == wanted.get("state", run.state)]
    start = int(asked.get("cursor") or 0)
    page = found[start : start + asked["perPage"]]
    end = start + len(page)
    edges = [{"node": run.told(), "cursor": str(start + index + 1)} for index, run in enumerate(page)]
    runs = {"edges": edges, "pageInfo": {"endCursor": str(end), "hasNextPage": end < len(found)}}
    return {"project": {"internalId": "1", "runCount": len(found), "readOnly": False, "runs": runs}}


def _resume_status(fake: FakeWandb, asked: Variables) -> object:
    run = fake._run(asked)
    if run is None:
        return {"model": None}
    return {"model": {"id": "P", "name": run.project, "entity": {"id": "E", "name": ENTITY}, "bucket": run.resumed()}}


def _upsert(fake: FakeWandb, asked: Variables) -> object:
    project, name = asked["project"], asked["name"]
    before = fake.runs.get((project, name))
    run = before or fake.add(FakeRun(project, name, created_s=time.time()))
    run.state, run.heartbeat_s = "running", time.time()
    run.display_name = asked.get("displayName") or run.display_name
    run.notes, run.tags = asked.get("notes") or run.notes, asked.get("tags") or run.tags
    bucket = run.told() | {"project": {"name": project, "entity": {"id": "E", "name": ENTITY}}}
    return {"upsertBucket": {"bucket": bucket, "inserted": before is None}}


def _files(fake: FakeWandb, asked: Variables) -> object:
    files = [{"name": name, "uploadUrl": f"{fake.url}{KEPT}{number}"} for number, name in enumerate(asked["files"])]
    return {"createRunFiles": {"runID": "R", "uploadHeaders": [], "files": files}}


def _state(fake: FakeWandb, asked: Variables) -> object:
    wanted = asked["input"]
    run = next((run for run in fake.runs.values() if run.id == wanted["id"]), None)
    if run is None or run.state not in {"failed": ("pending", "running"), "pending": ("running", "failed", "crashed")}[wanted["state"]]:
        raise ValueError(f"a run that is {run.state if run else 'not there'} cannot become {wanted['state']}")
    run.state = wanted["state"]
    return {"updateRunState": {"success": True}}


_ANSWERS: dict[str, Callable[[FakeWandb, Variables], object]] = {
    "Viewer": lambda fake, asked: _VIEWER,
    "GetDefaultEntity": lambda fake, asked: _VIEWER,
    "Run": _one,
    "RunHistoryKeys": _one,
    "RunState": _one,
    "Runs": _many,
    "RunResumeStatus": _resume_status,
    "UpsertBucket": _upsert,
    "CreateRunFiles": _files,
    "UpdateRunState": _state,
    "OrganizationCoreWeaveOrganizationID": lambda fake, asked: {"entity": {"organization": None}},
}


def _handler(fake: FakeWandb) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = HELD_S_MAX

        def log_message(self, *_: object) -> None:
            return None

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            plain = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
            status, content = fake.reply(self.path, plain, self.headers.get("authorization") or "")
            data = json.dumps(content).encode()
            with suppress(ConnectionError):  # a client that was killed, or that does not wait any longer
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        do_GET = do_POST = do_PUT = _answer

    return Handler
