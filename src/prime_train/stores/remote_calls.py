"""The `Store` as calls over HTTP, for both ends: each method's name, its arguments and its result.

A call's body is a JSON list of the arguments, its response the JSON of the result. Only the operator may
call: the key is derived from the master key, and permits everything. (Loading this module builds the parsers
of everything in a store, so a webhook that only receives heartbeats does not import it.)
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from prime_train.providers.kinds import allowed_providers
from prime_train.runs.breaker import Watch
from prime_train.runs.offer import Offer
from prime_train.runs.record_size import SHORTEN, too_large
from prime_train.runs.run import Alert, Change, HistoryEvent, Run
from prime_train.runs.signing import OFFERS_PATH, STORE_PATH
from prime_train.runs.store import LeaseReply, LeaseStatus, RunRecord, Store
from prime_train.runs.unreadable import Unreadable
from prime_train.runs.wire import INTEGER_MAX, Commit, Heartbeat, PodKeys
from prime_train.spec.access_run_secrets import DEFAULT
from prime_train.spec.policy import Caller, InForce, beyond, in_words, placed
from prime_train.spec.spec import HardwareSpec

LIST_BYTES_MAX = 4 * 2**20
"""Size limit of one response; runs that are not over are always included, so that they can be found and
stopped.
"""


_RUN = TypeAdapter(Run)
_LONG_NUMBER = re.compile(rb"[0-9]{16}")


class TooLarge(ValueError):
    """An integer that no store keeps exactly."""


@dataclass(frozen=True)
class StoreMethod:
    """A method of the store that clients may call. `reads`: it changes nothing, so that it may be retried."""

    takes: TypeAdapter[Any]
    gives: TypeAdapter[Any]
    does: Callable[..., Any]
    reads: bool = False


@dataclass(frozen=True)
class About:
    """The description of a control plane for its operator; `bucket_url` without keys."""

    providers: tuple[str, ...]
    bucket_url: str
    public_url: str
    watches: bool = False
    version: str = ""
    run_secrets: tuple[str, ...] = DEFAULT
    policy: InForce | None = None
    """The operator's policy; None: this version knew none, or it cannot be used now."""
    policy_unusable: str = ""
    """Why the policy cannot be used now, so that nothing is launched; empty: it can be, or this version did
    not say it.
    """


@dataclass(frozen=True)
class Opening:
    """The operator's access to the bucket: variables as AWS's tools read them, and temporary keys if the
    control plane issues them.
    """

    environment: dict[str, str] = field(repr=False)
    keys: PodKeys | None = field(default=None, repr=False)


def fitting(runs: list[Run]) -> list[Run]:
    """Return, in the given order, all runs that are not over, and as many of the newest others as fit."""
    left, kept = LIST_BYTES_MAX, set()
    for run in sorted(runs, key=lambda run: run.is_over):
        left -= len(packed(_RUN, run))
        if left < 0 and run.is_over:
            break
        kept.add(run.run_id)
    return [run for run in runs if run.run_id in kept]


def _method(takes: Any, gives: Any, does: Callable[..., Any], *, reads: bool = False) -> StoreMethod:
    return StoreMethod(TypeAdapter(takes), TypeAdapter(gives), does, reads)


STORE_METHODS: dict[str, StoreMethod] = {
    "now_s": _method(tuple[()], int, lambda store: store.now_s(), reads=True),
    "create": _method(tuple[Run], bool, lambda store, run: store.create(run)),
    "load": _method(tuple[str], RunRecord | None, lambda store, run_id: store.load(run_id), reads=True),
    "list_runs": _method(tuple[()], list[Run], lambda store: fitting(store.list_runs()), reads=True),
    "unreadable": _method(tuple[()], list[Unreadable], lambda store: store.unreadable(), reads=True),
    "save": _method(tuple[Change], bool, lambda store, change: store.save(change)),
    "wake": _method(tuple[str, int], None, lambda store, run_id, now_s: store.wake(run_id, now_s)),
    "due": _method(
        tuple[int, int], list[str], lambda store, now_s, limit: store.due(now_s, limit), reads=True
    ),
    "lease_statuses": _method(tuple[()], list[LeaseStatus], lambda store: store.lease_statuses(), reads=True),
    "heartbeats": _method(
        tuple[list[Heartbeat], int],
        list[LeaseReply],
        lambda store, heartbeats, now_s: store.heartbeats(heartbeats, now_s),
    ),
    "commit": _method(
        tuple[Commit, int], LeaseReply, lambda store, commit, now_s: store.commit(commit, now_s)
    ),
    "history": _method(
        tuple[str], list[HistoryEvent], lambda store, run_id: store.history(run_id), reads=True
    ),
    "enqueue_alert": _method(tuple[Alert], None, lambda store, alert: store.enqueue_alert(alert)),
    "outbox": _method(
        tuple[int, str | None],
        list[Alert],
        lambda store, limit, lacking: store.outbox(limit, lacking=lacking),
        reads=True,
    ),
    "mark_sent": _method(
        tuple[str, str | None, list[str]],
        bool,
        lambda store, key, notifier, among: store.mark_sent(key, notifier, among=among),
    ),
    "claim": _method(
        tuple[str, str, str, int, int],
        bool,
        lambda store, key, notifier, owner, now_s, until_s: store.claim(
            key, notifier, owner, now_s=now_s, until_s=until_s
        ),
    ),
    "watch": _method(tuple[()], Watch, lambda store: store.watch(), reads=True),
    "save_watch": _method(
        tuple[Watch, int], bool, lambda store, watch, version: store.save_watch(watch, version=version)
    ),
}
ABOUT = "about"
ABOUT_GIVES = TypeAdapter(About)
CODE_URL = "code_url"
CODE_BYTES_MAX = 256 * 2**20
"""Upper limit of a packed working tree: what is packed has less than that, and compression adds hardly
anything.
"""
CODE_URL_TAKES: TypeAdapter[tuple[str, int]] = TypeAdapter(
    tuple[str, Annotated[int, Field(gt=0, le=CODE_BYTES_MAX)]]
)
CODE_URL_GIVES = TypeAdapter(str)
OPENING = "opening"
OPENING_GIVES = TypeAdapter(Opening)
OFFERS = OFFERS_PATH.removeprefix(STORE_PATH)
OFFERS_TAKES: TypeAdapter[tuple[HardwareSpec]] = TypeAdapter(tuple[HardwareSpec])
OFFERS_GIVES: TypeAdapter[list[Offer] | None] = TypeAdapter(list[Offer] | None)
"""None: none of the providers that the hardware names is set up where the control plane runs."""


class NotAllowed(Exception):
    """A client asks for more than the operator's policy allows; the message says what, and which line would
    allow it.
    """


def carry_out(store: Store, name: str, body: bytes, policy: Callable[[], InForce] | None = None) -> bytes:
    """Return the response to one call. `policy`: reads the operator's policy; None: clients may launch
    anything. Raises pydantic's ValidationError, a ValueError, if the body does not match the method's
    arguments, TooLarge for an integer that no store keeps exactly, NotAllowed, and whatever the store and
    `policy` raise.
    """
    call = STORE_METHODS[name]
    if _LONG_NUMBER.search(body):  # most bodies have none, so they are not parsed twice
        _check_integers(body)
    arguments = call.takes.validate_json(body)
    if name == "create":
        _check_size(arguments[0])
        arguments = (_from_elsewhere(arguments[0], policy),)
    elif name == "save":
        arguments = (_changed(store, arguments[0], policy),)
    return packed(call.gives, call.does(store, *arguments))


def check_allowed(policy: InForce, run: Run, caller: Caller) -> None:
    """Raise NotAllowed if the caller may not launch the run, or resume it."""
    found = beyond(policy, run.spec, caller)
    if found:
        raise NotAllowed(in_words(found))


def _check_size(run: Run) -> None:
    """Raise NotAllowed if the run's config is too large to be stored."""
    large = too_large(run.spec)
    if large is not None:
        raise NotAllowed(f"{large[1]}; {SHORTEN}")


def _from_elsewhere(run: Run, policy: Callable[[], InForce] | None) -> Run:
    """Return the run that a client launches, resumes or changes in what the policy is about, as it is stored:
    with the mark that it comes from elsewhere, which each watcher heeds before it rents, and with its
    providers, because another watcher has other default ones. Raises NotAllowed if the policy does not allow
    it.
    """
    if policy is not None:
        in_force = policy()
        run = replace(run, spec=placed(in_force, run.spec, is_remote=True))
        check_allowed(in_force, run, Caller.of(run.origin, is_remote=True))
        if not allowed_providers(run.spec.hardware):
            raise NotAllowed(
                "hardware.provider: is not set, and this control plane has no default one; write it into the "
                "config"
            )
    return replace(run, from_elsewhere=True)


def _changed(store: Store, change: Change, policy: Callable[[], InForce] | None) -> Change:
    """Return the change that a client saves, as it is stored. Writes such as those of a watcher that is
    elsewhere, or a request to stop, are about a run that was allowed when it was launched; they change
    nothing of where it came from.
    """
    run, stored = change.run, store.load(change.run.run_id)
    before = stored.run if stored is not None else None
    if before is None or before.spec != run.spec:
        _check_size(run)
    if (
        before is None
        or (before.spec, before.origin) != (run.spec, run.origin)
        or (before.is_over and not run.is_over)
    ):
        return replace(change, run=_from_elsewhere(run, policy))
    return replace(change, run=replace(run, from_elsewhere=before.from_elsewhere))


def _check_integers(body: bytes) -> None:
    def bounded(digits: str) -> int:
        if len(digits) > len(str(-INTEGER_MAX)) or abs(int(digits)) > INTEGER_MAX:
            raise TooLarge(
                f"body: the integer {digits[:24]} is beyond {INTEGER_MAX}, the largest that a store keeps "
                "exactly"
            )
        return int(digits)

    try:
        json.loads(body, parse_int=bounded)
    except TooLarge:
        raise
    except (ValueError, RecursionError):
        return  # no JSON: the parser of the method says so


def packed(adapter: TypeAdapter[Any], value: object) -> bytes:
    """Return JSON that loads again: infinite numbers are preserved, and lone surrogates become question
    marks.
    """
    text = json.dumps(adapter.dump_python(value, mode="json"), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")
