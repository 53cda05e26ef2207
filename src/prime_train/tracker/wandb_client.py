"""A client of W&B: the questions that prime-train asks, answered by the package `wandb`."""

import threading
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from prime_train.errors import PermanentError, TemporaryError
from prime_train.runs.links import APIS, SITE, address
from prime_train.text.redaction import HIDDEN, redacted
from prime_train.tracker.tracked_run import CUT_OFF, RUNNING, TrackerRun
from prime_train.tracker.wandb_process import ApiProcess

KEY = "WANDB_API_KEY"
URL = "WANDB_BASE_URL"
ENTITY = "WANDB_ENTITY"
CALL_S = 10
"""Timeout in seconds of each of the few requests that one query takes."""
PAGE = 100
RUNS_MAX = 1000
ERROR_CHARS_MAX = 300
TEXT_CHARS_MAX = 500
REFUSED = ("permission", "api key", "could not find", "not logged in", "relogin")
"""Phrases, in lower case, in W&B's errors for which a retry does not help."""
LATER_STATUS = frozenset({408, 425, 429})

_PROCESS = ApiProcess()
"""One for all clients: the package is slow to start."""

Node = Mapping[str, object]


def wandb_from(environment: Mapping[str, str]) -> "WandbClient | None":
    """Return a client for the account whose key is in the environment, or None if there is no key."""
    key, url, entity = (environment.get(name, "").strip() for name in (KEY, URL, ENTITY))
    return WandbClient(key, url=url, entity=entity) if key else None


class WandbClient:
    """Queries to W&B, authenticated with `key`. `url` and `entity` replace W&B's own server and the account's
    entity; where the methods' `entity` is empty, this default is used. Every method raises TemporaryError or
    PermanentError if W&B cannot be queried.
    """

    def __init__(self, key: str, *, url: str = "", entity: str = "", call_s: int = CALL_S) -> None:
        self._key, self._call_s = key, call_s
        self._url = url.rstrip("/")
        # W&B's own service has a different host for its web pages.
        self._site = self._url if self._url and not self._url.startswith(APIS) else SITE
        self._own, self._turn = entity, threading.Lock()

    def run(self, project: str, run_id: str, *, entity: str = "") -> TrackerRun | None:
        """Return the run as it is now, with its step, or None if there is no run with that id."""
        owner = entity or self.entity()
        node = self._node(owner, project, run_id)
        return self._tracker_run(node, owner, project) if node is not None else None

    def running(self, project: str, *, entity: str = "") -> list[TrackerRun]:
        """Return the runs of the project that W&B calls running, at most `RUNS_MAX`, without steps."""
        return self._in_state(
            entity or self.entity(), project, RUNNING, order="+created_at", count_max=RUNS_MAX
        )

    def cut_off(self, project: str, *, entity: str = "") -> list[TrackerRun]:
        """Return the runs of the project that W&B calls crashed, preempting, preempted or killed, of each the
        newest, at most `PAGE`, without steps.
        """
        owner = entity or self.entity()
        return [
            run
            for state in CUT_OFF
            for run in self._in_state(owner, project, state, order="-created_at", count_max=PAGE)
        ]

    def mark_failed(self, project: str, run_id: str, *, entity: str = "", received_by_s: int) -> bool:
        """Mark the run as failed if W&B still shows it as running and received nothing from it after the
        second `received_by_s`. Return False if that does not hold or there is no run with that id.
        """
        owner = entity or self.entity()
        node = self._node(owner, project, run_id)
        if node is None or not self._tracker_run(node, owner, project).is_silent_since(received_by_s):
            return False
        return bool(self._ask("mark_failed", entity=owner, project=project, run_id=run_id))

    def summarize(
        self, project: str, run_id: str, values: Mapping[str, object], *, entity: str = "", received_by_s: int
    ) -> bool:
        """Add these values to the run's summary if W&B received nothing from the run after the second
        `received_by_s`. Return False if it did, because its own process replaces the summary; True also if
        there is no run with that id.
        """
        owner = entity or self.entity()
        node = self._node(owner, project, run_id, with_summary=True)
        if node is None:
            return True
        if self._tracker_run(node, owner, project).received_s > received_by_s:
            return False
        before = node.get("summary")
        if not isinstance(before, dict):
            # it must not be replaced
            raise TemporaryError("W&B's answer cannot be parsed: the summary is not an object")
        if {name: before.get(name) for name in values} != dict(values):
            self._ask("summarize", entity=owner, project=project, run_id=run_id, values=dict(values))
        return True

    def entity(self) -> str:
        """Return the default entity: the configured one, or else the account's own, which is requested
        once.
        """
        with self._turn:
            self._own = self._own or self.account_entity()
        return self._own

    def account_entity(self) -> str:
        """Return the account's default entity. Raises PermanentError if W&B does not recognise the key."""
        own = str(self._ask("entity") or "")
        if not own:
            raise PermanentError("W&B does not report the account of this key")
        return own

    def _node(self, owner: str, project: str, run_id: str, *, with_summary: bool = False) -> Node | None:
        node = self._ask("run", entity=owner, project=project, run_id=run_id, with_summary=with_summary)
        assert node is None or isinstance(node, dict)
        return node

    def _in_state(
        self, owner: str, project: str, state: str, *, order: str, count_max: int
    ) -> list[TrackerRun]:
        nodes = self._ask(
            "runs",
            entity=owner,
            project=project,
            state=state,
            order=order,
            per_page=PAGE,
            count_max=count_max,
        )
        if nodes is None:
            raise PermanentError(f"W&B has no project {owner}/{project} that this key can access")
        assert isinstance(nodes, Sequence)
        return [self._tracker_run(node, owner, project) for node in nodes]

    def _ask(self, call: str, **values: object) -> object:
        """Return the answer of `api_script` to this call."""
        account = {"url": self._url, "key": self._key, "call_s": self._call_s}
        answer = _PROCESS.ask({"call": call, **account, **values})
        problem = answer.get("problem")
        if not isinstance(problem, dict):
            return answer["answer"]
        # W&B's error message on one line, cut short and without the key, also as a Basic authorization header
        # encodes it.
        text = str(problem["text"])
        for secret in (b64encode(f"api:{self._key}".encode()).decode(), self._key):
            text = text.replace(secret, HIDDEN)
        reason, status = redacted(" ".join(text.split()))[:ERROR_CHARS_MAX], problem["status"]
        match problem["kind"]:
            case "late":
                raise TemporaryError(f"W&B did not answer within {self._call_s} s")
            case "malformed":
                raise TemporaryError(f"W&B's answer cannot be parsed: {reason}")
        is_refusal = 400 <= status < 500 and status not in LATER_STATUS
        if is_refusal or any(word in reason.lower() for word in REFUSED):
            raise PermanentError(f"W&B refused: {reason or status}")
        raise TemporaryError(f"W&B could not be queried: {reason or status}")

    def _tracker_run(self, node: Node, entity: str, project: str) -> TrackerRun:
        """Return the run of a node, whose `name` is the run's id. Raises TemporaryError if a field cannot be
        what W&B stores in it.
        """
        try:
            keys, run_id = node.get("historyKeys"), str(node["name"])
            return TrackerRun(
                entity=entity,
                project=project,
                run_id=run_id,
                name=_printable(node["displayName"] or run_id),
                state=str(node["state"]),
                received_s=_second(node["heartbeatAt"]),
                step=max(0, int(keys.get("lastStep", -1))) if isinstance(keys, Mapping) else None,
                notes=_printable(node["notes"] or ""),
                url=address(entity, project, run_id, site=self._site),
            )
        except (TypeError, ValueError) as error:
            raise TemporaryError(f"W&B's answer cannot be parsed: {type(error).__name__}") from None


def _printable(text: object) -> str:
    """Return user-written text without control characters and secrets, cut short, safe to print on a
    terminal.
    """
    return redacted(
        "".join(char if char.isprintable() else " " for char in str(text)[:TEXT_CHARS_MAX]).strip()
    )


def _second(text: object) -> int:
    """Return the second of an ISO time, or 0 for None. A time without a zone is UTC, as W&B's are."""
    if text is None:
        return 0
    at = datetime.fromisoformat(str(text))
    return int((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp())
