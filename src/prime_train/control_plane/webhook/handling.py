"""From request to response: `parse`, the store, `answer`."""

from collections.abc import Sequence
from typing import TypeGuard

from pydantic import ValidationError

from prime_train import __version__
from prime_train.control_plane.admission.admission import admit
from prime_train.control_plane.admission.calls import Place, Request, Response, StoreCall
from prime_train.control_plane.admission.responses import BEAT_S, RETRY_S, refuse, reply, unavailable
from prime_train.control_plane.webhook.bodies import describe
from prime_train.control_plane.webhook.calls import BeatCall, BootstrapCall, Call, CanaryCall, CommitCall, KeysCall
from prime_train.control_plane.webhook.desk import Desk
from prime_train.control_plane.webhook.parsing import read
from prime_train.core.budget import flush_from_s, training_s
from prime_train.core.causes import Cause
from prime_train.core.keys import tree_key
from prime_train.core.run import Run
from prime_train.core.run_secrets import VARIABLE
from prime_train.core.tracker.pages import origin_url
from prime_train.core.wire import Bootstrap, Nonce, Order, PodKeys, Verdict
from prime_train.ports import Answer, Held, OutsideError, PermanentError

WAKING = frozenset({"create", "save", "wake"})
"""Methods after which a run may have something to decide."""


def handle(desk: Desk, request: Request) -> Response:
    """The answer to one request, after whatever it asks for is durable. Raises nothing but bugs."""
    admitted = admit(desk, request)
    return admitted if isinstance(admitted, Response) else fulfil(desk, admitted, request)


def fulfil(desk: Desk, admitted: Place | StoreCall, request: Request) -> Response:
    """The answer to a request that was admitted at the door."""
    call = read(admitted, request) if isinstance(admitted, Place) else admitted
    return call if isinstance(call, Response) else carry_out(desk, call, request.now_s)


def carry_out(desk: Desk, call: Call, now_s: int) -> Response:
    """What the store makes of a parsed call; 503 when it cannot be asked now."""
    try:
        match call:
            case BeatCall():
                return record(desk, [call], now_s)[0]
            case CommitCall(commit):
                return answer(call, desk.store.commit(commit, now_s), pace_s=desk.pace_s(commit.run), now_s=now_s)
            case BootstrapCall():
                return _bootstrap(desk, desk.store.load(call.run), call, now_s)
            case KeysCall():
                return _keys(desk, desk.store.load(call.run), call, now_s)
            case CanaryCall(nonce):
                desk.store.watch()
                return Response(200, Nonce(nonce=nonce).model_dump_json().encode())
            case StoreCall(name, body):
                return _store(desk, name, body, now_s)
    except OutsideError as error:
        return unavailable(error, now_s)


def record(desk: Desk, calls: Sequence[BeatCall], now_s: int) -> list[Response]:
    """Stores the beats in one transaction; their answers, in order. Raises what the store raises; then none may count as stored."""
    said = desk.store.beats([call.beat for call in calls], now_s)
    return [
        answer(call, one, pace_s=BEAT_S if one.verdict is Verdict.FENCED else desk.pace_s(call.beat.run), now_s=now_s)
        for call, one in zip(calls, said, strict=True)
    ]


def answer(call: BeatCall | CommitCall, said: Answer, *, pace_s: int, now_s: int) -> Response:
    """The response to what the store said: 409 for `fenced`, else 200."""
    wakes = isinstance(call, BeatCall) and call.beat.news and said.verdict is Verdict.OK
    return reply(said.verdict, said.order, said.order_reason, pace_s, said.committed_step, now_s, wakes)


def _store(desk: Desk, name: str, body: bytes, now_s: int) -> Response:
    from prime_train.control_plane import store_calls

    if name == store_calls.ABOUT:
        about = store_calls.About(desk.provider, desk.bucket_url, desk.public_url, desk.watches, __version__, desk.run_secrets)
        return Response(200, store_calls.packed(store_calls.ABOUT_GIVES, about))
    if name == store_calls.OPENING:
        opening = store_calls.Opening(desk.bucket_keys, _operators(desk))
        return Response(200, store_calls.packed(store_calls.OPENING_GIVES, opening))
    if name not in store_calls.CALLS:
        return refuse(404, "the store has no such method", now_s)
    try:
        return Response(200, store_calls.carry_out(desk.store, name, body), wakes=name in WAKING)
    except ValidationError as error:
        return refuse(422, describe(error), now_s)


def _operators(desk: Desk) -> PodKeys | None:
    """None: those in the environment have to do. It may be for want of the role that somebody has given them."""
    try:
        return desk.lend("", 0) if desk.lend is not None else None
    except PermanentError:
        if desk.starts_with_lent:
            raise
        return None


def _is_current(held: Held | None, call: BootstrapCall | KeysCall) -> TypeGuard[Held]:
    return held is not None and held.lease.open and (held.lease.epoch, held.lease.identity) == (call.epoch, call.identity)


def _bootstrap(desk: Desk, held: Held | None, call: BootstrapCall, now_s: int) -> Response:
    if not _is_current(held, call):
        return reply(Verdict.FENCED, Order.NONE, "", BEAT_S, 0, now_s)
    missing = [name for name in held.run.spec.secrets if name not in desk.secrets]
    if missing:
        said = f"the control plane does not hand out {', '.join(missing)}: not set there, or not on its list {VARIABLE}"
        return refuse(503, said, now_s, (("retry-after", str(RETRY_S)),))
    try:
        job = _job(desk, held.run, call, now_s)
    except OutsideError:
        return _no_keys_now(now_s)
    return Response(200, job.as_json().encode())


def _keys(desk: Desk, held: Held | None, call: KeysCall, now_s: int) -> Response:
    """Whoever has been fenced gets none."""
    if not _is_current(held, call):
        return reply(Verdict.FENCED, Order.NONE, "", BEAT_S, 0, now_s)
    if desk.lend is None:
        return refuse(404, "the keys that machines get here do not end, so there are no others", now_s)
    try:
        return Response(200, desk.lend(held.run.run_id, call.epoch).model_dump_json().encode())
    except OutsideError:
        return _no_keys_now(now_s)


def _no_keys_now(now_s: int) -> Response:
    return refuse(503, "keys to the bucket cannot be had now; ask again", now_s, (("retry-after", str(RETRY_S)),))


def _job(desk: Desk, run: Run, call: BootstrapCall, now_s: int) -> Bootstrap:
    spec, epoch = run.spec, call.epoch
    hours, flush_s = spec.budget.hours, flush_from_s(run)
    return Bootstrap(
        run=run.run_id,
        epoch=epoch,
        spec=spec,
        bucket_url=desk.bucket_url,
        bucket_mark=desk.bucket_mark,
        bucket_keys=desk.bucket_keys,
        keys=desk.lend(run.run_id, epoch) if desk.lend is not None and desk.starts_with_lent else None,
        tree_key=None if spec.trainer.tree.repo else tree_key(run.run_id, run.revision),
        tree_sha256=run.tree_sha256,
        commit=run.commit,
        origin_url=origin_url(run),
        resume=run.resume,
        secrets={name: desk.secrets[name] for name in spec.secrets},
        train_s_max=None if hours is None else max(0, int(hours * 3600) - training_s(run, now_s)),
        deadline_in_s=None if flush_s is None else max(1, flush_s - now_s),
        last_cause=_last_cause(run, epoch),
        best_step=run.best_step,
        step_slow_s=run.step_slow_s,
        now_s=now_s,
        identity=call.identity,
    )


def _last_cause(run: Run, epoch: int) -> Cause | None:
    """Of the newest earlier attempt that came as far as to run anything; a launch that was refused says nothing about the trainer."""
    return next((a.cause for a in reversed(run.attempts) if a.epoch < epoch and a.first_beat_s is not None), None)
