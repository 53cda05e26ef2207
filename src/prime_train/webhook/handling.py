"""Carries out calls: what each changes in the store, and the response to it."""

import json
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeGuard

from pydantic import ValidationError

from prime_train.buckets.keys import code_key
from prime_train.errors import ExternalError, PermanentError, UsageError
from prime_train.runs.budget import agent_limits_s, flush_from_s, training_s
from prime_train.runs.links import origin_url
from prime_train.runs.offer import in_force
from prime_train.runs.resuming.divergence import after_rollback
from prime_train.runs.run import Attempt, Run
from prime_train.runs.store import LeaseReply, RunRecord
from prime_train.runs.wire import Bootstrap, Commit, Nonce, Order, Outcome, PodKeys
from prime_train.spec.access_run_secrets import VARIABLE
from prime_train.spec.causes import Cause
from prime_train.version import __version__
from prime_train.webhook.agent_calls import (
    BootstrapCall,
    Call,
    CanaryCall,
    CommitCall,
    HeartbeatCall,
    KeysCall,
)
from prime_train.webhook.bodies import describe
from prime_train.webhook.commits import TooSoon, UnfitManifest
from prime_train.webhook.notices import NoticeCall
from prime_train.webhook.offers import NotNow
from prime_train.webhook.requests import GithubCall, LaunchCall, MarketCall, Response, StoreCall
from prime_train.webhook.responses import FENCED, HEARTBEAT_S, OK, Refused, busy, reply
from prime_train.webhook.state import WebhookContext

if TYPE_CHECKING:
    from prime_train.spec.policy import InForce

WAKING = frozenset({"create", "save", "wake"})
"""Methods of the store after which a run may need a decision."""

log = logging.getLogger(__name__)


def carry_out(webhook: WebhookContext, call: Call, now_s: int) -> Response:
    """Return the response to a call, after everything it requests is durable. Raises Refused, and
    ExternalError if the store does not answer.
    """
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


def record(webhook: WebhookContext, calls: Sequence[HeartbeatCall], now_s: int) -> list[Response]:
    """Store the heartbeats in one transaction; return the responses in order. Raises the store's errors; then
    none counts as stored.
    """
    answers = webhook.store.heartbeats([call.heartbeat for call in calls], now_s)
    return [answer(webhook, call, one, now_s) for call, one in zip(calls, answers, strict=True)]


def answer(
    webhook: WebhookContext, call: HeartbeatCall | CommitCall, result: LeaseReply, now_s: int
) -> Response:
    """Return the response for the store's answer: 409 for `fenced`, else 200. A machine that was replaced is
    not given the run's pace.
    """
    run, is_news = (
        (call.heartbeat.run, call.heartbeat.news)
        if isinstance(call, HeartbeatCall)
        else (call.commit.run, False)
    )
    outcome = result.outcome
    pace_s = HEARTBEAT_S if outcome == FENCED else result.pace_s or webhook.pace_s(run)
    return reply(
        outcome,
        result.order,
        result.order_reason,
        pace_s,
        result.committed_step,
        now_s,
        is_news and outcome == OK,
    )


def _commit(webhook: WebhookContext, call: CommitCall, now_s: int) -> Response:
    """Commit a manifest that is in the bucket. A replaced attempt is answered `fenced` whatever the bucket
    holds or answers.
    """
    try:
        _check_manifest(webhook, call.commit)
    except Refused:
        if _is_current(webhook.store.load(call.commit.run), call.commit):
            raise
        return reply(Outcome.FENCED, Order.NONE, "", HEARTBEAT_S, 0, now_s)
    return answer(webhook, call, webhook.store.commit(call.commit, now_s), now_s)


def _check_manifest(webhook: WebhookContext, commit: Commit) -> None:
    """Raise Refused for a commit whose manifest is not in the bucket, or cannot be read now."""
    try:
        webhook.commits.check(commit)
    except UnfitManifest as error:
        raise Refused(422, str(error)) from error
    except TooSoon as error:  # not logged: a machine may ask without end
        raise busy(f"{error}; retry later") from error
    except ExternalError as error:
        log.warning("a commit of run %s could not be checked: %s", commit.run, error)
        raise busy(
            "the bucket cannot be read now, so it is unknown whether the manifest is there; retry later"
        ) from error


def _store(webhook: WebhookContext, name: str, body: bytes, now_s: int) -> Response:
    from prime_train.stores import remote_calls as store_calls

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
        raise Refused(404, "the store has no such method")
    try:
        if name == store_calls.OFFERS:
            (hardware,) = store_calls.OFFERS_TAKES.validate_json(body)
            return Response(200, store_calls.packed(store_calls.OFFERS_GIVES, webhook.offers.told(hardware)))
        return Response(
            200, store_calls.carry_out(webhook.store, name, body, webhook.policy), wakes=name in WAKING
        )
    except ValidationError as error:
        raise Refused(422, describe(error)) from error
    except NotNow as error:
        raise Refused(503, str(error), (("retry-after", str(error.delay_s)),)) from error
    except (store_calls.TooLarge, store_calls.NotAllowed, UsageError) as error:
        raise Refused(422, str(error)) from error


def _policy(webhook: WebhookContext) -> "tuple[InForce | None, str]":
    """Return the operator's policy for clients, and why it cannot be used now: what they launch is then
    refused, and nothing is rented.
    """
    try:
        return (webhook.policy() if webhook.policy is not None else None), ""
    except UsageError as error:
        return None, str(error)


def _launching(webhook: WebhookContext, call: LaunchCall | GithubCall, now_s: int) -> Response:
    from prime_train.webhook import launching

    if isinstance(call, GithubCall):
        return launching.github_call(webhook, call, now_s)
    return launching.launch_call(webhook, call, now_s, _store)


def _market(webhook: WebhookContext, now_s: int) -> Response:
    body = webhook.market.body(now_s)
    if body is None:
        raise busy("the figures are not known now; retry later")
    # A cache on the way would answer whoever asks for this path, signed or not.
    return Response(200, body, headers=(("cache-control", "no-store"),))


def _look(webhook: WebhookContext, notice: NoticeCall, now_s: int) -> Response:
    """Make the run due whose machine the notice is about; if it names none, every run with a machine of that
    provider.
    """
    woken: list[str] = []
    if notice.wakes and not webhook.is_noticed(notice.event):
        woken = [
            run.run_id
            for run in webhook.store.list_runs()
            if any(_is_about(notice, attempt) for attempt in run.attempts)
        ]
        for run_id in woken:
            webhook.store.wake(run_id, now_s)
        webhook.notice(notice.event)
    return Response(200, json.dumps({"woken": len(woken)}).encode(), wakes=bool(woken))


def _is_about(notice: NoticeCall, attempt: Attempt) -> bool:
    if attempt.ended_s is not None or attempt.offer.provider != notice.provider or attempt.pod_id is None:
        return False
    return not notice.pod_id or attempt.pod_id == f"{notice.provider}/{notice.pod_id}"


def _operators(webhook: WebhookContext) -> PodKeys | None:
    """Return temporary keys for the operator; None if none can be issued, for example because the role is
    missing: the operator then needs keys in their own environment.
    """
    try:
        return webhook.issue_credentials("", 0) if webhook.issue_credentials is not None else None
    except PermanentError:
        if webhook.issues_credentials_at_start:
            raise
        return None


def _is_current(record: RunRecord | None, call: BootstrapCall | KeysCall | Commit) -> TypeGuard[RunRecord]:
    return (
        record is not None
        and record.lease.open
        and (record.lease.attempt, record.lease.identity) == (call.attempt, call.identity)
    )


def _bootstrap(
    webhook: WebhookContext, record: RunRecord | None, call: BootstrapCall, now_s: int
) -> Response:
    if not _is_current(record, call):
        return reply(Outcome.FENCED, Order.NONE, "", HEARTBEAT_S, 0, now_s)
    missing = [name for name in record.run.spec.secrets if name not in webhook.secrets]
    if missing:
        message = (
            f"the control plane does not provide {', '.join(missing)}: not set there, or not "
            "listed "
            f"in {VARIABLE}"
        )
        raise busy(message)
    try:
        job = _job(webhook, record.run, call, now_s)
    except ExternalError as error:
        raise _no_keys_now() from error
    return Response(200, job.as_json().encode())


def _keys(webhook: WebhookContext, record: RunRecord | None, call: KeysCall, now_s: int) -> Response:
    """Return new temporary keys for the current attempt; a fenced attempt gets none."""
    if not _is_current(record, call):
        return reply(Outcome.FENCED, Order.NONE, "", HEARTBEAT_S, 0, now_s)
    if webhook.issue_credentials is None:
        raise Refused(404, "this control plane's keys for machines do not expire, so there are no new ones")
    try:
        return Response(
            200,
            webhook.issue_credentials(record.run.run_id, call.attempt, _shares(record.run))
            .model_dump_json()
            .encode(),
        )
    except ExternalError as error:
        raise _no_keys_now() from error


def _no_keys_now() -> Refused:
    return busy("keys to the bucket are not available now; retry later")


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
        keys=issue(run.run_id, attempt, _shares(run))
        if issue is not None and webhook.issues_credentials_at_start
        else None,
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
    """Return the run whose blobs the machines of this run may read, because it was started from them; empty
    if there is none.
    """
    return run.lineage.blobs_of if run.lineage is not None else ""


def _last_cause(run: Run, attempt: int) -> Cause | None:
    """Return the cause of the newest earlier attempt that had a heartbeat; a launch that was refused says
    nothing about the trainer.
    """
    return next(
        (a.cause for a in reversed(run.attempts) if a.number < attempt and a.first_heartbeat_s is not None),
        None,
    )
