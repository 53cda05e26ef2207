"""Turns a request into a response: `admit`, `read`, the store, `answer`."""

import json
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeGuard

from pydantic import ValidationError

from prime_train.control_plane.admission.authenticate import Admitted, admit, proven
from prime_train.control_plane.admission.calls import GithubCall, LaunchCall, MarketCall, Request, RequestTarget, Response, StoreCall
from prime_train.control_plane.admission.notices import NoticeCall
from prime_train.control_plane.admission.responses import HEARTBEAT_S, RETRY_S, answer_to, refuse, reply, unavailable
from prime_train.control_plane.webhook.bodies import describe
from prime_train.control_plane.webhook.calls import BootstrapCall, Call, CanaryCall, CommitCall, HeartbeatCall, KeysCall
from prime_train.control_plane.webhook.commits import TooSoon, UnfitManifest
from prime_train.control_plane.webhook.context import WebhookContext
from prime_train.control_plane.webhook.offers import NotNow
from prime_train.control_plane.webhook.parsing import read
from prime_train.core.access.run_secrets import VARIABLE
from prime_train.core.budget import agent_limits_s, flush_from_s, training_s
from prime_train.core.causes import Cause
from prime_train.core.errors import UsageError
from prime_train.core.keys import code_key
from prime_train.core.offers import in_force
from prime_train.core.resuming.divergence import after_rollback
from prime_train.core.run import Attempt, Run
from prime_train.core.tracker.urls import origin_url
from prime_train.core.wire import Bootstrap, Commit, Nonce, Order, Outcome, PodKeys
from prime_train.ports import Answer, ExternalError, PermanentError, RunRecord
from prime_train.version import __version__

if TYPE_CHECKING:
    from prime_train.core.access.policy import InForce

WAKING = frozenset({"create", "save", "wake"})
"""Methods of the store after which a run may need a decision."""

log = logging.getLogger(__name__)


def handle(webhook: WebhookContext, request: Request) -> Response:
    """Return the response to one request, after everything it requests is durable. Never raises, except for bugs."""
    admitted = admit(webhook, request)
    return admitted if isinstance(admitted, Response) else fulfil(webhook, admitted, request)


def fulfil(webhook: WebhookContext, admitted: Admitted, request: Request) -> Response:
    """Return the response to a request that was admitted."""
    call = read(admitted, request) if isinstance(admitted, RequestTarget) else admitted
    return call if isinstance(call, Response) else proven(webhook, request, carry_out(webhook, call, request.now_s))


def carry_out(webhook: WebhookContext, call: Call, now_s: int) -> Response:
    """Return the response to a parsed call; 503 if the store does not answer now."""
    try:
        match call:
            case HeartbeatCall():
                return record(webhook, [call], now_s)[0]
            case CommitCall():
                return _commit(webhook, call, now_s)
            case BootstrapCall():
                return _bootstrap(webhook, webhook.store.load(call.run), call, now_s)
            case KeysCall():
                return _keys(webhook, webhook.store.load(call.run), call, now_s)
            case CanaryCall(nonce):
                webhook.store.watch()
                return Response(200, Nonce(nonce=nonce).model_dump_json().encode())
            case NoticeCall():
                return _look(webhook, call, now_s)
            case StoreCall(name, body):
                return _store(webhook, name, body, now_s)
            case LaunchCall() | GithubCall():
                return _launching(webhook, call, now_s)
            case MarketCall():
                return _market(webhook, now_s)
    except ExternalError as error:
        return unavailable(error, now_s)


def record(webhook: WebhookContext, calls: Sequence[HeartbeatCall], now_s: int) -> list[Response]:
    """Store the heartbeats in one transaction; return the responses in order. Raises the store's errors; then none counts as stored."""
    answers = webhook.store.heartbeats([call.heartbeat for call in calls], now_s)
    return [answer(webhook, call, one, now_s) for call, one in zip(calls, answers, strict=True)]


def answer(webhook: WebhookContext, call: HeartbeatCall | CommitCall, result: Answer, now_s: int) -> Response:
    """Return the response for the store's answer: 409 for `fenced`, else 200."""
    run, is_news = (call.heartbeat.run, call.heartbeat.news) if isinstance(call, HeartbeatCall) else (call.commit.run, False)
    return answer_to(
        result.outcome,
        result.order,
        result.order_reason,
        committed_step=result.committed_step,
        pace_s=lambda: webhook.pace_s(run),
        is_news=is_news,
        now_s=now_s,
    )


def _commit(webhook: WebhookContext, call: CommitCall, now_s: int) -> Response:
    """Commit a manifest that is in the bucket. A replaced attempt is answered `fenced` whatever the bucket holds or answers."""
    refusal = _unchecked(webhook, call.commit, now_s)
    if refusal is None:
        return answer(webhook, call, webhook.store.commit(call.commit, now_s), now_s)
    if not _is_current(webhook.store.load(call.commit.run), call.commit):
        return reply(Outcome.FENCED, Order.NONE, "", HEARTBEAT_S, 0, now_s)
    return refusal


def _unchecked(webhook: WebhookContext, commit: Commit, now_s: int) -> Response | None:
    """Return the refusal of a commit whose manifest is not in the bucket, or cannot be read now; None if it is there."""
    try:
        webhook.commits.check(commit)
    except UnfitManifest as error:
        return refuse(422, str(error), now_s)
    except TooSoon as error:  # not logged: a machine may ask without end
        return refuse(503, f"{error}; retry later", now_s, (("retry-after", str(RETRY_S)),))
    except ExternalError as error:
        log.warning("a commit of run %s could not be checked: %s", commit.run, error)
        why = "the bucket cannot be read now, so it is unknown whether the manifest is there; retry later"
        return refuse(503, why, now_s, (("retry-after", str(RETRY_S)),))
    return None


def _store(webhook: WebhookContext, name: str, body: bytes, now_s: int) -> Response:
    from prime_train.control_plane import store_calls

    if name == store_calls.ABOUT:
        policy, unusable = _policy(webhook)
        about = store_calls.About(
            webhook.providers,
            webhook.bucket_url,
            webhook.public_url,
            webhook.watches,
            __version__,
            webhook.run_secrets,
            policy,
            unusable,
        )
        return Response(200, store_calls.packed(store_calls.ABOUT_GIVES, about))
    if name == store_calls.OPENING:
        opening = store_calls.Opening(webhook.bucket_keys, _operators(webhook))
        return Response(200, store_calls.packed(store_calls.OPENING_GIVES, opening))
    if name not in {*store_calls.STORE_METHODS, store_calls.OFFERS}:
        return refuse(404, "the store has no such method", now_s)
    try:
        if name == store_calls.OFFERS:
            (hardware,) = store_calls.OFFERS_TAKES.validate_json(body)
            return Response(200, store_calls.packed(store_calls.OFFERS_GIVES, webhook.offers.told(hardware)))
        return Response(200, store_calls.carry_out(webhook.store, name, body, webhook.policy), wakes=name in WAKING)
    except ValidationError as error:
        return refuse(422, describe(error), now_s)
    except NotNow as error:
        return refuse(503, str(error), now_s, (("retry-after", str(error.delay_s)),))
    except (store_calls.TooLarge, store_calls.NotAllowed, UsageError) as error:
        return refuse(422, str(error), now_s)


def _policy(webhook: WebhookContext) -> "tuple[InForce | None, str]":
    """Return the operator's policy for clients, and why it cannot be used now: what they launch is then refused, and nothing is rented."""
    try:
        return (webhook.policy() if webhook.policy is not None else None), ""
    except UsageError as error:
        return None, str(error)


def _launching(webhook: WebhookContext, call: LaunchCall | GithubCall, now_s: int) -> Response:
    from prime_train.control_plane.webhook import launching

    if isinstance(call, GithubCall):
        return launching.github_call(webhook, call, now_s)
    return launching.launch_call(webhook, call, now_s, _store)


def _market(webhook: WebhookContext, now_s: int) -> Response:
    body = webhook.market.body(now_s)
    if body is None:
        return refuse(503, "the figures are not known now; retry later", now_s, (("retry-after", str(RETRY_S)),))
    # A cache on the way would answer whoever asks for this path, signed or not.
    return Response(200, body, headers=(("cache-control", "no-store"),))


def _look(webhook: WebhookContext, notice: NoticeCall, now_s: int) -> Response:
    """Make the run due whose machine the notice is about; if it names none, every run with a machine of that provider."""
    woken: list[str] = []
    if notice.wakes and not webhook.is_noticed(notice.event):
        woken = [run.run_id for run in webhook.store.list_runs() if any(_is_about(notice, attempt) for attempt in run.attempts)]
        for run_id in woken:
            webhook.store.wake(run_id, now_s)
        webhook.notice(notice.event)
    return Response(200, json.dumps({"woken": len(woken)}).encode(), wakes=bool(woken))


def _is_about(notice: NoticeCall, attempt: Attempt) -> bool:
    if attempt.ended_s is not None or attempt.offer.provider != notice.provider or attempt.pod_id is None:
        return False
    return not notice.pod_id or attempt.pod_id == f"{notice.provider}/{notice.pod_id}"


def _operators(webhook: WebhookContext) -> PodKeys | None:
    """Return temporary keys for the operator; None if none can be issued, for example because the role is missing: the operator then needs
    keys in their own environment."""
    try:
        return webhook.issue_credentials("", 0) if webhook.issue_credentials is not None else None
    except PermanentError:
        if webhook.issues_credentials_at_start:
            raise
        return None


def _is_current(record: RunRecord | None, call: BootstrapCall | KeysCall | Commit) -> TypeGuard[RunRecord]:
    return record is not None and record.lease.open and (record.lease.attempt, record.lease.identity) == (call.attempt, call.identity)


def _bootstrap(webhook: WebhookContext, record: RunRecord | None, call: BootstrapCall, now_s: int) -> Response:
    if not _is_current(record, call):
        return reply(Outcome.FENCED, Order.NONE, "", HEARTBEAT_S, 0, now_s)
    missing = [name for name in record.run.spec.secrets if name not in webhook.secrets]
    if missing:
        message = f"the control plane does not provide {', '.join(missing)}: not set there, or not listed in {VARIABLE}"
        return refuse(503, message, now_s, (("retry-after", str(RETRY_S)),))
    try:
        job = _job(webhook, record.run, call, now_s)
    except ExternalError:
        return _no_keys_now(now_s)
    return Response(200, job.as_json().encode())


def _keys(webhook: WebhookContext, record: RunRecord | None, call: KeysCall, now_s: int) -> Response:
    """Return new temporary keys for the current attempt; a fenced attempt gets none."""
    if not _is_current(record, call):
        return reply(Outcome.FENCED, Order.NONE, "", HEARTBEAT_S, 0, now_s)
    if webhook.issue_credentials is None:
        return refuse(404, "this control plane's keys for machines do not expire, so there are no new ones", now_s)
    try:
        return Response(200, webhook.issue_credentials(record.run.run_id, call.attempt, _shares(record.run)).model_dump_json().encode())
    except ExternalError:
        return _no_keys_now(now_s)


def _no_keys_now(now_s: int) -> Response:
    return refuse(503, "keys to the bucket are not available now; retry later", now_s, (("retry-after", str(RETRY_S)),))


def _job(webhook: WebhookContext, run: Run, call: BootstrapCall, now_s: int) -> Bootstrap:
    attempt = call.attempt
    spec = in_force(run.spec, run.current_attempt.offer) if run.current_attempt is not None else run.spec
    spec = after_rollback(spec) if run.has_gone_back else spec
    hours, flush_s = spec.budget.hours, flush_from_s(run)
    save_in_s, spent_in_s = agent_limits_s(run, now_s)
    issue = webhook.issue_credentials
    return Bootstrap(
        run=run.run_id,
        attempt=attempt,
        spec=spec,
        bucket_url=webhook.bucket_url,
        bucket_mark=webhook.bucket_mark,
        bucket_keys=webhook.bucket_keys,
        keys=issue(run.run_id, attempt, _shares(run)) if issue is not None and webhook.issues_credentials_at_start else None,
        code_key=None if spec.trainer.code.repo else code_key(run.run_id, run.revision),
        code_sha256=run.code_sha256,
        commit=run.commit,
        origin_url=origin_url(run),
        resume=run.resume,
        secrets={name: webhook.secrets[name] for name in spec.secrets},
        train_s_max=None if hours is None else max(0, int(hours * 3600) - training_s(run, now_s)),
        deadline_in_s=None if flush_s is None else max(1, flush_s - now_s),
        save_in_s=save_in_s,
        spent_in_s=spent_in_s,
        last_cause=_last_cause(run, attempt),
        best_step=run.best_step,
        step_slow_s=run.step_slow_s,
        now_s=now_s,
        identity=call.identity,
        trained=run.trained_step is not None and run.resume is not None,
        after_done=run.after_done,
        after_failed=run.after_failed,
        started_from=run.lineage.places if run.lineage is not None else "",
    )


def _shares(run: Run) -> str:
    """Return the run whose blobs the machines of this run may read, because it was started from them; empty if there is none."""
    return run.lineage.blobs_of if run.lineage is not None else ""


def _last_cause(run: Run, attempt: int) -> Cause | None:
    """Return the cause of the newest earlier attempt that had a heartbeat; a launch that was refused says nothing about the trainer."""
    return next((a.cause for a in reversed(run.attempts) if a.number < attempt and a.first_heartbeat_s is not None), None)
