"""The store of a remote control plane, over HTTPS, for a scheduled job or a laptop that has no direct access
to it.

Every call is signed with the operator's key, which is derived from the master key. A call that only reads is
retried after a failure. If a call that writes gets no response, it is unknown whether it took effect:
TemporaryError is raised, and the caller reads again before it decides.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from prime_train.clock import MeasuredClock
from prime_train.errors import ExternalError, PermanentError, TemporaryError
from prime_train.http import NoSuchHost, failure
from prime_train.runs.breaker import Watch
from prime_train.runs.launch_key import LaunchToken
from prime_train.runs.offer import Offer
from prime_train.runs.run import Alert, Change, HistoryEvent, Run
from prime_train.runs.store import LeaseReply, LeaseStatus, RunRecord
from prime_train.runs.unreadable import Unreadable, UnreadableRecord
from prime_train.runs.wire import STORE_PATH, Commit, Heartbeat, operator_key
from prime_train.spec.spec import HardwareSpec
from prime_train.stores.offers_remote import read_offers
from prime_train.stores.remote_calls import (
    ABOUT,
    ABOUT_GIVES,
    CODE_URL,
    CODE_URL_GIVES,
    CODE_URL_TAKES,
    OPENING,
    OPENING_GIVES,
    STORE_METHODS,
    About,
    Opening,
    packed,
)
from prime_train.stores.signed_http import STORE, SignedHttp, reason_of
from prime_train.version import __version__

READS_MAX = 3
NOT_FOUND = 404
HINTS: Mapping[int, str] = {
    401: "check that PRIME_TRAIN_MASTER_KEY is the key of this control plane, or PRIME_TRAIN_LAUNCH_KEY one "
    "of its launch keys",
    403: "check that this is the address of a control plane",
    404: "check that this is the address of a control plane, without a path",
}
"""Advice for the user by HTTP status."""


class Unknown(PermanentError):
    """The control plane does not have this call, because it is an older version."""


class RemoteStore:
    """A `Store` at `url`, the control plane's address without a path. `key`: the master key, or a launch key,
    with which only a part of the calls is permitted. Raises PermanentError if that is neither an https
    address nor one of this machine.
    """

    def __init__(self, url: str, key: bytes | LaunchToken) -> None:
        name, secret = (key.name, key.secret) if isinstance(key, LaunchToken) else ("", operator_key(key))
        self._http = SignedHttp(url, secret, key_name=name)
        self._sees_own_only = isinstance(key, LaunchToken)
        """Whether only the runs of one repository can be read; whose an unreadable run is cannot be known."""
        self._is_same_version = False
        self._clock = MeasuredClock(lambda: float(self._call("now_s")))

    def now_s(self) -> int:
        return self._clock()

    def about(self) -> About:
        """Return what the control plane reports about itself, such as its version."""
        answer = self._ask(ABOUT, b"[]", tries=READS_MAX)
        try:
            about: About = ABOUT_GIVES.validate_json(answer)
        except ValueError as error:
            raise PermanentError(
                "the control plane's answer cannot be parsed; it may be of another version"
            ) from error
        return about

    def opening(self) -> Opening:
        """Return settings and newly issued credentials for the control plane's bucket; an empty `Opening` if
        its version is too old.
        """
        try:
            opening: Opening = OPENING_GIVES.validate_json(self._ask(OPENING, b"[]", tries=READS_MAX))
        except Unknown:
            return Opening({})
        return opening

    def code_url(self, run_id: str, size_bytes: int) -> str:
        """Return the URL to which the code of a new run, of exactly that size, may be uploaded with a launch
        key; empty if the bucket is a folder.
        """
        url: str = CODE_URL_GIVES.validate_json(
            self._ask(CODE_URL, packed(CODE_URL_TAKES, (run_id, size_bytes)), tries=READS_MAX)
        )
        return url

    def offers(self, hardware: HardwareSpec) -> list[Offer] | None:
        """Return what the control plane's providers have for rent, as `read_offers` does."""
        return read_offers(self._http, hardware)

    def create(self, run: Run) -> bool:
        return bool(self._call("create", run))

    def load(self, run_id: str) -> RunRecord | None:
        try:
            record: RunRecord | None = self._call("load", run_id)
        except ExternalError as error:
            for one in self._unreadable_of(run_id):
                raise UnreadableRecord(one) from error
            raise
        return record

    def _unreadable_of(self, run_id: str) -> list[Unreadable]:
        """Return why the control plane could not load the run, if its record is the reason."""
        with suppress(ExternalError):
            return [one for one in self.unreadable() if one.run_id == run_id and one.is_run]
        return []

    def list_runs(self) -> list[Run]:
        runs: list[Run] = self._call("list_runs")
        return runs

    def unreadable(self) -> list[Unreadable]:
        if self._sees_own_only:
            return []
        try:
            unreadable: list[Unreadable] = self._call("unreadable")
        except Unknown:
            return []
        return unreadable

    def save(self, change: Change) -> bool:
        return bool(self._call("save", change))

    def wake(self, run_id: str, now_s: int) -> None:
        self._call("wake", run_id, now_s)

    def due(self, now_s: int, limit: int) -> list[str]:
        due: list[str] = self._call("due", now_s, limit)
        return due

    def lease_statuses(self) -> list[LeaseStatus]:
        lease_statuses: list[LeaseStatus] = self._call("lease_statuses")
        return lease_statuses

    def heartbeat(self, heartbeat: Heartbeat, now_s: int) -> LeaseReply:
        return self.heartbeats((heartbeat,), now_s)[0]

    def heartbeats(self, heartbeats: Sequence[Heartbeat], now_s: int) -> list[LeaseReply]:
        answers: list[LeaseReply] = self._call("heartbeats", list(heartbeats), now_s)
        return answers

    def commit(self, commit: Commit, now_s: int) -> LeaseReply:
        answer: LeaseReply = self._call("commit", commit, now_s)
        return answer

    def history(self, run_id: str) -> list[HistoryEvent]:
        lines: list[HistoryEvent] = self._call("history", run_id)
        return lines

    def enqueue_alert(self, alert: Alert) -> None:
        self._call("enqueue_alert", alert)

    def outbox(self, limit: int, *, lacking: str | None = None) -> list[Alert]:
        alerts: list[Alert] = self._call("outbox", limit, lacking)
        return alerts

    def mark_sent(self, key: str, notifier: str | None = None, *, among: Sequence[str] = ()) -> bool:
        return bool(self._call("mark_sent", key, notifier, list(among)))

    def claim(self, key: str, notifier: str, owner: str, *, now_s: int, until_s: int) -> bool:
        return bool(self._call("claim", key, notifier, owner, now_s, until_s))

    def watch(self) -> Watch:
        watch: Watch = self._call("watch")
        return watch

    def save_watch(self, watch: Watch, *, version: int) -> bool:
        return bool(self._call("save_watch", watch, version))

    def _call(self, name: str, *given: object) -> Any:
        call = STORE_METHODS[name]
        if not call.reads:
            self._check_version()
        body = packed(call.takes, given)
        answer = self._ask(name, body, tries=READS_MAX if call.reads else 1)
        try:
            return call.gives.validate_json(answer)
        except ValueError as error:
            raise PermanentError(
                f"{name}: the control plane's answer cannot be parsed; it may be of another version"
            ) from error

    def _check_version(self) -> None:
        """Raise PermanentError before a write if the versions differ: a control plane that lacks a field of a
        run would drop it.
        """
        if not self._is_same_version:
            theirs = self.about().version
            if theirs != __version__:
                their_version = theirs or "of an older version"
                raise PermanentError(
                    f"the control plane is prime-train {their_version}, this is {__version__}; use the same "
                    "version at both ends"
                )
            self._is_same_version = True

    def _ask(self, name: str, body: bytes, *, tries: int) -> bytes:
        path = STORE_PATH + name
        for left in reversed(range(tries)):
            try:
                answer = self._http.ask("POST", path, body)
            except NoSuchHost as error:
                raise PermanentError(f"{error}; correct {STORE}") from error
            except TemporaryError as error:
                if left == 0:
                    raise TemporaryError(
                        f"{error}; check {STORE}, and that a control plane is serving there",
                        delay_s=error.delay_s,
                    ) from error
                continue
            if answer.is_ok:
                return answer.body
            refusal = failure(answer, "; ".join(filter(None, (reason_of(answer), HINTS.get(answer.status)))))
            if answer.status == NOT_FOUND:
                raise Unknown(str(refusal))
            if left == 0 or not isinstance(refusal, TemporaryError):
                raise refusal
        raise AssertionError("there is at least one try")
