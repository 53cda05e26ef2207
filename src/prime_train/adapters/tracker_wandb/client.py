"""A client of W&B's GraphQL API.

W&B's own SDK is not used, for two reasons. It is 74 MB. And it makes its requests in a separate process, which repeats them for minutes
while W&B is down; the caller's process cannot end before that one does. This client sends the same queries under the same names, each with
a timeout.
"""

import json
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from prime_train.adapters.http import Http, failure
from prime_train.adapters.tracker_wandb.conversion import summary_of, tracker_run
from prime_train.core.text.redaction import HIDDEN, redacted
from prime_train.core.tracker.tracked_run import CUT_OFF, FAILED, RUNNING, TrackerRun
from prime_train.core.tracker.urls import API, SITE
from prime_train.ports import PermanentError, TemporaryError

CALL_S = 10
"""Timeout in seconds of each of the few requests that one query takes."""
PAGE = 100
RUNS_MAX = 1000
ERROR_CHARS_MAX = 300
REFUSED = ("permission", "api key", "could not find", "not logged in", "relogin")
"""Phrases, in lower case, in W&B's errors for which a retry does not help."""

_FIELDS = "id name displayName state heartbeatAt notes"
_OF_PROJECT = "project(name: $project, entityName: $entity)"
VIEWER = "query Viewer { viewer { id entity username } }"
_ONE = f"{{ {_OF_PROJECT} {{ run(name: $name) {{ {_FIELDS} historyKeys }} }} }}"
RUN = f"query Run($project: String!, $entity: String!, $name: String!) {_ONE}"
RUNS = (
    "query Runs($project: String!, $entity: String!, $cursor: String, $perPage: Int, $order: String, $filters: JSONString) "
    f"{{ {_OF_PROJECT} {{ runs(filters: $filters, after: $cursor, first: $perPage, order: $order) "
    f"{{ edges {{ node {{ {_FIELDS} }} cursor }} pageInfo {{ endCursor hasNextPage }} }} }} }}"
)
SUMMARY = (
    "query RunSummary($project: String!, $entity: String!, $name: String!) "
    f"{{ {_OF_PROJECT} {{ run(name: $name) {{ {_FIELDS} summaryMetrics }} }} }}"
)
UPSERT = (
    "mutation UpsertBucket($id: String, $summaryMetrics: JSONString) "
    "{ upsertBucket(input: { id: $id, summaryMetrics: $summaryMetrics }) { bucket { id } } }"
)
"""Replaces the whole summary, as the SDK's public API does for `run.summary.update`."""
UPDATE = "mutation UpdateRunState($input: UpdateRunStateInput!) { updateRunState(input: $input) { success } }"

Node = Mapping[str, object]


class WandbClient:
    """Queries to W&B, authenticated with `key`. `url` and `entity` replace W&B's own server and the account's entity; where the methods'
    `entity` is empty, this default is used. Every method raises TemporaryError or PermanentError if W&B cannot be queried."""

    def __init__(self, key: str, *, url: str = "", entity: str = "", call_s: int = CALL_S) -> None:
        self._key, self._call_s = key, call_s
        self._url = (url or API).rstrip("/")
        self._http = Http(self._url, key=key, user="api")
        self._own, self._turn = entity, threading.Lock()

    def run(self, project: str, run_id: str, *, entity: str = "") -> TrackerRun | None:
        """Return the run as it is now, with its step, or None if there is no run with that id."""
        owner = entity or self.entity()
        node = self._node(owner, project, run_id)
        return tracker_run(node, owner, project, self._site()) if node else None

    def running(self, project: str, *, entity: str = "") -> list[TrackerRun]:
        """Return the runs of the project that W&B calls running, at most `RUNS_MAX`, without steps."""
        owner = entity or self.entity()
        return [tracker_run(node, owner, project, self._site()) for node in self._in_state(owner, project, RUNNING)]

    def cut_off(self, project: str, *, entity: str = "") -> list[TrackerRun]:
        """Return the runs of the project that W&B calls crashed, preempting, preempted or killed, of each the newest, at most `PAGE`,
        without steps."""
        owner = entity or self.entity()
        nodes = (node for state in CUT_OFF for node in self._in_state(owner, project, state, order="-created_at", pages_max=1))
        return [tracker_run(node, owner, project, self._site()) for node in nodes]

    def mark_failed(self, project: str, run_id: str, *, entity: str = "", received_by_s: int) -> bool:
        """Mark the run as failed if W&B still shows it as running and received nothing from it after the second `received_by_s`. Return
        False if that does not hold or there is no run with that id."""
        owner = entity or self.entity()
        node = self._node(owner, project, run_id)
        if not node or not tracker_run(node, owner, project, self._site()).is_silent_since(received_by_s):
            return False
        answer = self._query(UPDATE, {"input": {"id": node["id"], "state": FAILED}})
        return bool(_part(answer, "updateRunState").get("success"))

    def summarize(self, project: str, run_id: str, values: Mapping[str, object], *, entity: str = "", received_by_s: int) -> bool:
        """Add these values to the run's summary if W&B received nothing from the run after the second `received_by_s`. Return False if it
        did, because its own process replaces the summary; True also if there is no run with that id."""
        owner = entity or self.entity()
        found = self._query(SUMMARY, {"project": project, "entity": owner, "name": run_id})
        node = _part(_part(found, "project"), "run")
        if not node:
            return True
        if tracker_run(node, owner, project, self._site()).received_s > received_by_s:
            return False
        before = summary_of(node)
        if {name: before.get(name) for name in values} != dict(values):
            self._query(UPSERT, {"id": node["id"], "summaryMetrics": json.dumps({**before, **values})})
        return True

    def entity(self) -> str:
        """Return the default entity: the configured one, or else the account's own, which is requested once."""
        with self._turn:
            self._own = self._own or self.account_entity()
        return self._own

    def account_entity(self) -> str:
        """Return the account's default entity. Raises PermanentError if W&B does not recognise the key."""
        own = str(_part(self._query(VIEWER, {}), "viewer").get("entity") or "")
        if not own:
            raise PermanentError("W&B does not report the account of this key")
        return own

    def _node(self, owner: str, project: str, run_id: str) -> Node:
        return _part(_part(self._query(RUN, {"project": project, "entity": owner, "name": run_id}), "project"), "run")

    def _in_state(
        self, owner: str, project: str, state: str, *, order: str = "+created_at", pages_max: int = RUNS_MAX // PAGE
    ) -> Iterator[Node]:
        variables = {
            "project": project,
            "entity": owner,
            "perPage": PAGE,
            "order": order,
            "filters": json.dumps({"state": state}),
        }
        cursor: object = None
        for _ in range(pages_max):
            of_project = _part(self._query(RUNS, variables | {"cursor": cursor}), "project")
            if not of_project:
                raise PermanentError(f"W&B has no project {owner}/{project} that this key can access")
            runs = _part(of_project, "runs")
            edges, page = runs.get("edges"), _part(runs, "pageInfo")
            for edge in edges if isinstance(edges, list) else []:
                yield _part(edge, "node")
            cursor = page.get("endCursor")
            if not page.get("hasNextPage"):
                return

    def _query(self, query: str, variables: Mapping[str, object]) -> Node:
        answer = self._http.ask("POST", "/graphql", body={"query": query, "variables": variables}, read_s=self._call_s)
        content = answer.content()
        reason = _shown(_complaint(content), self._key)
        error = failure(answer, reason) if not answer.is_ok else None
        if isinstance(error, TemporaryError):
            raise error
        if error is not None or any(word in reason.lower() for word in REFUSED):
            raise PermanentError(f"W&B refused: {reason or answer.status}")
        if reason:
            raise TemporaryError(f"W&B could not be queried: {reason}")
        if not isinstance(content, dict) or not isinstance(content.get("data"), dict):
            raise TemporaryError("W&B's answer cannot be parsed")  # it must not pass for a run that does not exist
        return _part(content, "data")

    def _site(self) -> str:
        """Return the web address of the runs; W&B's own service has a different host for its web pages."""
        return SITE if urlsplit(self._url).hostname == urlsplit(API).hostname else self._url


def _part(content: object, name: str) -> Node:
    """Return the object `name` of `content`, or an empty one if it is missing. Raises TemporaryError if it is not an object."""
    part = content.get(name) if isinstance(content, dict) else None
    if part is not None and not isinstance(part, dict):
        raise TemporaryError(f"W&B's answer cannot be parsed: {name} is not an object")
    return part or {}


def _complaint(content: object) -> str:
    errors = content.get("errors") if isinstance(content, dict) else None
    first = errors[0] if isinstance(errors, list) and errors else None
    return str(first.get("message") or "no reason was given") if isinstance(first, dict) else ""


def _shown(text: str, key: str) -> str:
    """Return W&B's error message on one line, cut short and without the key, also as a Basic authorization header encodes it."""
    for secret in (b64encode(f"api:{key}".encode()).decode(), key):
        text = text.replace(secret, HIDDEN)
    return redacted(" ".join(text.split()))[:ERROR_CHARS_MAX]
