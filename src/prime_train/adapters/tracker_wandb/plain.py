"""W&B's GraphQL API without its SDK, which is 74 MB and starts a process of its own: too much for a function that runs once a minute.

It sends the same queries as the SDK, under the same names, and does nothing that the SDK could not do.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from prime_train.adapters.http import Http, failure
from prime_train.adapters.tracker_wandb.asking import CALL_S, REFUSED, RUNS_MAX, shown
from prime_train.adapters.tracker_wandb.seen import seen_in
from prime_train.core.tracker.pages import API, SITE
from prime_train.core.tracker.seen_run import FAILED, RUNNING, RunSeen
from prime_train.ports import PermanentError, TemporaryError

PAGE = 100

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
UPDATE = "mutation UpdateRunState($input: UpdateRunStateInput!) { updateRunState(input: $input) { success } }"

Node = Mapping[str, object]


class PlainWandb:
    """A `Wandb` authenticated with `key`. `url` and `entity` replace W&B's own server and the account's entity."""

    def __init__(self, key: str, *, url: str = "", entity: str = "", call_s: int = CALL_S) -> None:
        self._key, self._call_s = key, call_s
        self._url = (url or API).rstrip("/")
        self._http = Http(self._url, key=key, user="api")
        self._own, self._turn = entity, threading.Lock()

    def run(self, project: str, run_id: str, *, entity: str = "") -> RunSeen | None:
        owner = entity or self.entity()
        node = self._node(owner, project, run_id)
        return seen_in(node, owner, project, self._site()) if node else None

    def running(self, project: str, *, entity: str = "") -> list[RunSeen]:
        owner = entity or self.entity()
        return [seen_in(node, owner, project, self._site()) for node in self._running(owner, project)]

    def mark_failed(self, project: str, run_id: str, *, entity: str = "", heard_by_s: int) -> bool:
        owner = entity or self.entity()
        node = self._node(owner, project, run_id)
        if not node or not seen_in(node, owner, project, self._site()).is_silent_since(heard_by_s):
            return False
        said = self._asked(UPDATE, {"input": {"id": node["id"], "state": FAILED}})
        return bool(_part(said, "updateRunState").get("success"))

    def entity(self) -> str:
        """Return the default entity: the configured one, or else the account's own, which is requested once."""
        with self._turn:
            self._own = self._own or self.account_entity()
        return self._own

    def account_entity(self) -> str:
        """Return the account's default entity. Raises PermanentError if W&B does not recognise the key."""
        own = str(_part(self._asked(VIEWER, {}), "viewer").get("entity") or "")
        if not own:
            raise PermanentError("W&B does not say whose key this is")
        return own

    def _node(self, owner: str, project: str, run_id: str) -> Node:
        return _part(_part(self._asked(RUN, {"project": project, "entity": owner, "name": run_id}), "project"), "run")

    def _running(self, owner: str, project: str) -> Iterator[Node]:
        asked = {"project": project, "entity": owner, "perPage": PAGE, "order": "+created_at", "filters": json.dumps({"state": RUNNING})}
        cursor: object = None
        for _ in range(RUNS_MAX // PAGE):
            of_project = _part(self._asked(RUNS, asked | {"cursor": cursor}), "project")
            if not of_project:
                raise PermanentError(f"W&B has no project {owner}/{project} that this key may see")
            runs = _part(of_project, "runs")
            edges, page = runs.get("edges"), _part(runs, "pageInfo")
            for edge in edges if isinstance(edges, list) else []:
                yield _part(edge, "node")
            cursor = page.get("endCursor")
            if not page.get("hasNextPage"):
                return

    def _asked(self, query: str, variables: Mapping[str, object]) -> Node:
        answer = self._http.ask("POST", "/graphql", body={"query": query, "variables": variables}, read_s=self._call_s)
        content = answer.content()
        said = shown(_complaint(content), self._key)
        error = failure(answer, said) if not answer.is_ok else None
        if isinstance(error, TemporaryError):
            raise error
        if error is not None or any(word in said.lower() for word in REFUSED):
            raise PermanentError(f"W&B refused: {said or answer.status}")
        if said:
            raise TemporaryError(f"W&B could not be asked: {said}")
        if not isinstance(content, dict) or not isinstance(content.get("data"), dict):
            raise TemporaryError("W&B's answer is not understood")  # it must not pass for a run that does not exist
        return _part(content, "data")

    def _site(self) -> str:
        """Return the web address of the runs; W&B's own service has a different host for its web pages."""
        return SITE if urlsplit(self._url).hostname == urlsplit(API).hostname else self._url


def _part(content: object, name: str) -> Node:
    """Return the object `name` of `content`, or an empty one if it is missing. Raises TemporaryError if it is not an object."""
    part = content.get(name) if isinstance(content, dict) else None
    if part is not None and not isinstance(part, dict):
        raise TemporaryError(f"W&B's answer is not understood: {name} is no object")
    return part or {}


def _complaint(content: object) -> str:
    errors = content.get("errors") if isinstance(content, dict) else None
    first = errors[0] if isinstance(errors, list) and errors else None
    return str(first.get("message") or "it does not say what is wrong") if isinstance(first, dict) else ""
