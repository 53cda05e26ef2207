"""Calls by the holders of launch keys: a few methods of the store, each limited to the runs of the key's own
repository.

A run that is launched is made anew from what the client sent, so that a key decides nothing but its spec, its
code and what is known of the job. What the client says of the repository and the person does not count. To
stop a run, the client's change is read for its wish only.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from prime_train.advice import Call, Operation, Option, SettingAdvice
from prime_train.buckets.keys import code_key, is_run_id
from prime_train.errors import PermanentError, TemporaryError
from prime_train.runs.change import requested
from prime_train.runs.launch_ids import is_id_of
from prime_train.runs.launch_key import (
    SESSION_S,
    LaunchRight,
    is_actor,
    launch_token,
    right_of,
    row_for_job,
    session_name,
)
from prime_train.runs.launched_run import unfit_to_launch
from prime_train.runs.run import DesiredState, Run
from prime_train.runs.store import Store
from prime_train.runs.wire import LaunchKeyGiven
from prime_train.stores import remote_calls as store_calls
from prime_train.text.invocations import command
from prime_train.webhook.bodies import describe
from prime_train.webhook.requests import GithubCall, LaunchCall, Response
from prime_train.webhook.responses import Refused, busy
from prime_train.webhook.state import WebhookContext

StoreCarriedOut = Callable[[WebhookContext, str, bytes, int], Response]
UNLIMITED = frozenset({"now_s", store_calls.ABOUT, store_calls.OFFERS})
STOPS = frozenset({DesiredState.STOP, DesiredState.CANCEL})


def launch_call(
    webhook: WebhookContext, call: LaunchCall, now_s: int, carried_out: StoreCarriedOut
) -> Response:
    """Return the response to a call with a launch key. `carried_out`: carries out a call of the store as for
    the operator. Raises ExternalError if the store does not answer.
    """
    right = right_of(webhook.store.watch().launch_keys, call.key, now_s)
    if isinstance(right, str):
        raise Refused(
            403, f"{right}; ask the operator for another one: {command(Call(Operation.CREATE_LAUNCH_KEY))}"
        )
    if call.name in UNLIMITED:
        return carried_out(webhook, call.name, call.body, now_s)
    try:
        arguments = _takes(call.name).validate_json(call.body)
        match call.name:
            case "create":
                body = store_calls.packed(_takes("create"), (_launched(webhook, right, arguments[0], now_s),))
                return carried_out(webhook, "create", body, now_s)
            case "save":
                return _given("save", _stopped(webhook.store, right, arguments[0].run, now_s), wakes=True)
            case "load":
                record = webhook.store.load(arguments[0])
                return _given("load", record if record is not None and _is_of(right, record.run) else None)
            case "list_runs":
                return _given(
                    "list_runs",
                    store_calls.fitting([run for run in webhook.store.list_runs() if _is_of(right, run)]),
                )
            case "history":
                record = webhook.store.load(arguments[0])
                return _given(
                    "history",
                    webhook.store.history(arguments[0])
                    if record is not None and _is_of(right, record.run)
                    else [],
                )
            case store_calls.CODE_URL:
                return Response(
                    200, store_calls.packed(store_calls.CODE_URL_GIVES, _code_url(webhook, right, *arguments))
                )
            case _:
                raise Refused(403, f"a launch key does not permit the call {call.name}")
    except ValidationError as error:
        raise Refused(422, describe(error)) from error


def github_call(webhook: WebhookContext, call: GithubCall, now_s: int) -> Response:
    """Return a launch key for a token that GitHub has signed for a job, if a row trusts this job. Raises
    ExternalError if the store or GitHub's keys cannot be read now.
    """
    if webhook.github_claims is None:
        raise Refused(404, "this control plane cannot verify tokens of GitHub")
    try:
        claims = webhook.github_claims(call.token, webhook.public_url)
    except PermanentError as error:
        raise Refused(401, str(error)) from error
    except TemporaryError as error:
        raise busy(f"GitHub's keys cannot be read now: {error}") from error
    row, actor = row_for_job(webhook.store.watch().launch_keys, claims, now_s), str(claims.get("actor", ""))
    if row is None or not is_actor(actor):
        where = (
            f"{claims.get('repository')}, environment {claims.get('environment') or '(none)'}, "
            f"{claims.get('ref')}"
        )
        making = command(Call(Operation.CREATE_LAUNCH_KEY, options=(Option(SettingAdvice.GITHUB_OIDC),)))
        raise Refused(403, f"no launch key trusts this job ({where:.200}): {making}")
    given = LaunchKeyGiven(
        launch_key=launch_token(webhook.masters[0], session_name(row, actor, now_s + SESSION_S))
    )
    return Response(200, given.model_dump_json().encode(), headers=(("cache-control", "no-store"),))


def _takes(name: str) -> Any:
    if name == store_calls.CODE_URL:
        return store_calls.CODE_URL_TAKES
    if name not in store_calls.STORE_METHODS:
        raise Refused(403, "the store has no such method")
    return store_calls.STORE_METHODS[name].takes


def _given(name: str, value: object, *, wakes: bool = False) -> Response:
    return Response(200, store_calls.packed(store_calls.STORE_METHODS[name].gives, value), wakes=wakes)


def _is_of(right: LaunchRight, run: Run) -> bool:
    return run.origin is not None and run.origin.repository.lower() == right.repository.lower()


def _launched(webhook: WebhookContext, right: LaunchRight, sent: Run, now_s: int) -> Run:
    spec = sent.spec
    if not is_run_id(sent.run_id) or not sent.run_id.startswith(f"{spec.name}-"):
        raise Refused(403, f"run_id: {sent.run_id[:60]!r} is not an id of {spec.name}")
    _check_id(right, sent.run_id)
    if sent.origin is None:
        raise Refused(
            403,
            f"a launch key launches from GitHub only: use {command(Call(Operation.LAUNCH_FROM_GITHUB))}, or "
            "the action launch",
        )
    if sent.lineage is not None:
        raise Refused(403, "a launch key cannot start a run from another run's checkpoint; the operator can")
    if right.usd_max is not None and not spec.budget.usd <= right.usd_max:
        raise Refused(
            403, f"budget.usd is {spec.budget.usd:g}, and this launch key permits {right.usd_max:g} at most"
        )
    if spec.trainer.code.repo is None and not sent.code_sha256:
        raise Refused(403, "the code of the run was not uploaded")
    unfit = unfit_to_launch(sent, right.repository, webhook.store.list_runs())
    if unfit:
        raise Refused(403, "; ".join(unfit))
    origin = replace(sent.origin, repository=right.repository, actor=right.actor)
    return Run(
        sent.run_id,
        spec,
        created_s=now_s,
        next_check_s=now_s,
        commit=sent.commit,
        origin=origin,
        forecast=sent.forecast,
        probe=sent.probe,
        code_sha256=sent.code_sha256,
    )


def _stopped(store: Store, right: LaunchRight, wanted: Run, now_s: int) -> bool:
    """Request that the run stops, if that is what the client wants. Return False if the run has changed
    meanwhile.
    """
    record = store.load(wanted.run_id)
    if record is None or not _is_of(right, record.run):
        raise Refused(403, f"this launch key has no run {wanted.run_id[:60]!r}")
    if wanted.desired not in STOPS:
        raise Refused(403, "a launch key may stop a run, and change nothing else of it")
    if record.run.version + 1 != wanted.version or record.run.is_over:
        return False
    return store.save(requested(record.run, wanted.desired, now_s))


def _check_id(right: LaunchRight, run_id: str) -> None:
    """Raise Refused for an id that is not of the key's repository: it may be that of another one's coming
    run.
    """
    if not is_id_of(run_id, right.repository):
        why = (
            "use the version of prime-train that the control plane has"
            if is_run_id(run_id)
            else "it is no id of a run"
        )
        raise Refused(403, f"{run_id[:60]!r} is not an id of a run of {right.repository}: {why}")


def _code_url(webhook: WebhookContext, right: LaunchRight, run_id: str, size_bytes: int) -> str:
    """Return the URL to which the code of a new run, of that size, may be uploaded for some minutes; empty
    for a bucket that is a folder.
    """
    _check_id(right, run_id)
    if not is_run_id(run_id) or webhook.store.load(run_id) is not None:
        raise Refused(403, f"{run_id[:60]!r} is not the id of a new run")
    return webhook.code_url(code_key(run_id), size_bytes) if webhook.code_url is not None else ""
