import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.errors import PermanentError, TemporaryError
from prime_train.runs import ledger
from prime_train.runs.budget import GIVE_BACK_S, GIVE_BACK_SHARE
from prime_train.runs.run import Origin, RunState
from prime_train.runs.store import LeaseReply, Store
from prime_train.runs.wire import (
    PROOF_HEADER,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    Bootstrap,
    Commit,
    Heartbeat,
    Order,
    Refusal,
    Reply,
    attempt_key,
    operator_key,
    prove,
    sign,
)
from prime_train.stores.memory import MemoryStore
from prime_train.stores.sqlite.store import SqliteStore
from prime_train.webhook.agent_calls import HeartbeatCall
from prime_train.webhook.authenticate import METHODS
from prime_train.webhook.bodies import PARSERS
from prime_train.webhook.handling import record
from prime_train.webhook.requests import Request, Response
from prime_train.webhook.responses import Refused
from prime_train.webhook.state import WebhookContext
from tests import builders as b
from tests.buckets import no_bucket
from tests.webhook.calls import (
    ATTEMPT,
    CASES,
    MASTER,
    NEXT_MASTER,
    NOW_S,
    SECRETS,
    Case,
    ask,
    canary,
    commit,
    handle,
    heartbeat,
    held,
    last_heartbeat,
    parse,
    stored,
    webhook,
)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "memory":
        yield MemoryStore()
        return
    sqlite = SqliteStore(tmp_path / "control.sqlite")
    yield sqlite
    sqlite.close()


def reply(response: Response) -> Reply:
    return Reply.model_validate_json(response.body)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_request_gets_its_answer_and_a_refused_one_changes_nothing(case: Case, store: Store) -> None:
    before = stored(store)

    response = handle(webhook(store), case.request)

    assert (response.status, case.message in response.body.decode()) == (case.status, True), response.body
    assert (store.load(b.RUN_ID) != before) is case.changes
    assert len(store.list_runs()) == 1


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.status not in (200, 409)], ids=lambda case: case.name
)
def test_a_refusal_says_what_is_wrong_and_what_time_it_is(case: Case) -> None:
    store = MemoryStore()
    stored(store)

    refusal = Refusal.model_validate_json(handle(webhook(store), case.request).body)

    assert refusal.error
    assert refusal.now_s == NOW_S


def test_a_heartbeat_is_answered_with_the_order_that_waits_and_the_pace_of_the_spec(store: Store) -> None:
    stored(store, held(order=Order.DRAIN, order_reason="budget"))

    message = reply(handle(webhook(store), ask("heartbeat", heartbeat(8))))

    assert (message.order, message.reason, message.heartbeat_s, message.committed_step, message.now_s) == (
        Order.DRAIN,
        "budget",
        11,
        5,
        NOW_S,
    )


def test_a_heartbeat_sent_twice_is_stored_once(store: Store) -> None:
    stored(store)
    here = webhook(store)
    handle(here, ask("heartbeat", heartbeat(8, step=20)))
    once = store.load(b.RUN_ID)

    again = handle(here, ask("heartbeat", heartbeat(8, step=20)))

    assert (again.status, reply(again).outcome) == (200, "repeated")
    assert store.load(b.RUN_ID) == once


def test_an_exit_reported_twice_ends_the_attempt_once(store: Store) -> None:
    stored(store)
    here = webhook(store)

    first, second = handle(here, ask("exit", last_heartbeat(8))), handle(here, ask("exit", last_heartbeat(8)))

    assert (reply(first).outcome, reply(second).outcome) == ("ok", "repeated")
    assert (first.wakes, second.wakes) == (True, False)


@pytest.mark.parametrize(
    ("message", "wakes"),
    [
        (heartbeat(8), False),
        (heartbeat(8, news=True), True),
        (heartbeat(8, preempting=True), True),
        (last_heartbeat(8, news=False), True),
    ],
    ids=["nothing new", "news", "about to be taken away", "the end"],
)
def test_only_news_makes_the_run_due(message: Heartbeat, wakes: bool, store: Store) -> None:
    of = held()
    stored(store, replace(of, run=replace(of.run, next_check_s=NOW_S + 500)))

    response = handle(webhook(store), ask("heartbeat", message))

    assert response.wakes is wakes
    assert store.due(NOW_S, 10) == ([b.RUN_ID] if wakes else [])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_fence_and_nothing_else_is_proven_to_the_attempt_that_asked(case: Case, store: Store) -> None:
    stored(store)
    path, signature = case.request.path, case.request.headers.get(SIGNATURE_HEADER, "")

    response = handle(webhook(store), case.request)

    proofs = [value for name, value in response.headers if name == PROOF_HEADER]
    asked = path.split("/")
    key = attempt_key(MASTER, asked[3], int(asked[4])) if response.status == 409 else ""
    assert proofs == ([prove(key, signature, 409, response.body)] if response.status == 409 else [])


def test_after_the_fence_an_attempt_commits_nothing(store: Store) -> None:
    stored(store, held(open=False))
    before = store.load(b.RUN_ID)

    response = handle(webhook(store), ask("commit", commit(10)))

    assert (response.status, reply(response).outcome) == (409, "fenced")
    assert store.load(b.RUN_ID) == before


def test_both_keys_are_good_while_the_master_key_is_replaced(store: Store) -> None:
    stored(store)
    here = webhook(store, NEXT_MASTER, MASTER)

    by_old, by_new = (
        handle(here, ask("heartbeat", heartbeat(8))),
        handle(here, ask("heartbeat", heartbeat(9), master=NEXT_MASTER)),
    )

    assert (by_old.status, by_new.status) == (200, 200)
    assert handle(webhook(store, NEXT_MASTER), ask("heartbeat", heartbeat(10))).status == 401


def test_a_desk_without_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="master key"):
        WebhookContext(MemoryStore(), (b"",), secrets={}, bucket_url="file:///bucket", bucket=no_bucket)


# ------------------------------------------------------------------------------------------------------------
# bootstrap


def test_the_bootstrap_is_the_complete_job_with_the_named_secrets_only(store: Store) -> None:
    there = stored(store)

    response = handle(webhook(store), ask("bootstrap"))

    job = Bootstrap.model_validate_json(response.body)
    assert (job.run, job.attempt, job.spec, job.bucket_url) == (
        b.RUN_ID,
        ATTEMPT,
        there.run.spec,
        "file:///bucket",
    )
    assert (job.best_step, job.now_s) == (there.run.best_step, NOW_S)
    assert job.secrets == {"HF_TOKEN": SECRETS["HF_TOKEN"]}
    assert SECRETS["OTHER_TOKEN"] not in response.body.decode()


@pytest.mark.parametrize(
    ("fields", "is_changed"),
    [({}, False), ({"rollbacks": 1}, True), ({"went_back_attempt": 1}, True)],
    ids=["never", "older store", "since"],
)
def test_the_arguments_of_a_rollback_stay_in_the_command_also_after_a_person_resumed_the_run(
    store: Store, fields: dict[str, Any], is_changed: bool
) -> None:
    of = held()
    wanted = b.spec(health={"on_divergence": "rollback", "rollback_arguments": "--lr 1e-5"})
    stored(store, replace(of, run=replace(of.run, spec=wanted, **fields)))

    job = Bootstrap.model_validate_json(handle(webhook(store), ask("bootstrap")).body)

    assert job.spec.trainer.command.endswith(" --lr 1e-5") is is_changed


def test_the_bootstrap_says_where_the_run_was_requested(store: Store) -> None:
    of = held()
    stored(
        store,
        replace(
            of, run=replace(of.run, origin=Origin("acme/models", "c0ffee", "configs/a.yaml", "key", pull=7))
        ),
    )

    job = Bootstrap.model_validate_json(handle(webhook(store), ask("bootstrap")).body)

    assert job.origin_url == "https://github.com/acme/models/pull/7"


def test_a_secret_that_is_not_there_is_reported_by_its_name(store: Store) -> None:
    of = held()
    spec = of.run.spec.model_copy(update={"secrets": ("HF_TOKEN", "WANDB_KEY", "S3_KEY")})
    stored(store, replace(of, run=replace(of.run, spec=spec)))

    response = handle(webhook(store), ask("bootstrap"))

    assert response.status == 503
    assert "WANDB_KEY, S3_KEY" in response.body.decode()
    assert SECRETS["HF_TOKEN"] not in response.body.decode()


def test_the_hours_that_lost_attempts_trained_are_taken_off_the_time_left(store: Store) -> None:
    of = held()
    spec = of.run.spec.model_copy(update={"budget": of.run.spec.budget.model_copy(update={"hours": 1.0})})
    stored(store, replace(of, run=replace(of.run, spec=spec)))
    lost_s, this_s = 540, 440  # from each one's first step: to the last sign of life of the one, and to now

    job = Bootstrap.model_validate_json(handle(webhook(store), ask("bootstrap")).body)

    assert job.train_s_max == 3600 - lost_s - this_s


def test_an_agent_is_told_for_how_long_the_dollars_that_are_left_pay_for_its_machine(store: Store) -> None:
    of = held()
    stored(store, of)
    burn, left_usd = (
        of.run.attempts[-1].offer.usd_per_hour / 3600,
        of.run.spec.budget.usd - ledger.spent(of.run, NOW_S).usd,
    )

    job = Bootstrap.model_validate_json(handle(webhook(store), ask("bootstrap")).body)

    assert job.save_in_s is not None
    assert job.spent_in_s is not None
    assert job.save_in_s < job.spent_in_s
    assert (
        job.spent_in_s * burn
        <= left_usd - min(burn * GIVE_BACK_S, of.run.spec.budget.usd * GIVE_BACK_SHARE) + 1e-6
    )


@pytest.mark.parametrize(
    ("code", "key"), [({}, f"runs/{b.RUN_ID}/code.tar.gz"), ({"repo": "https://example.org/a/b"}, None)]
)
def test_a_code_snapshot_is_named_unless_there_is_a_repository(code: dict[str, str], key: str | None) -> None:
    store = MemoryStore()
    stored(store, b.record(b.run(RunState.STARTING, attempt=ATTEMPT, spec=b.spec(trainer={"code": code}))))

    job = Bootstrap.model_validate_json(handle(webhook(store), ask("bootstrap")).body)

    assert job.code_key == key


# ------------------------------------------------------------------------------------------------------------
# a store in trouble


class Troubled(MemoryStore):
    """A store that is available again later."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def heartbeats(self, heartbeats: object, now_s: int) -> list[LeaseReply]:
        raise self.error


@pytest.mark.parametrize(
    ("error", "retry_s"),
    [
        (TemporaryError("busy: /secret/path"), "2"),
        (TemporaryError("throttled", delay_s=30), "30"),
        (PermanentError("damaged"), "2"),
    ],
)
def test_a_store_that_does_not_answer_is_503_with_a_time_to_ask_again(error: Exception, retry_s: str) -> None:
    response = handle(webhook(Troubled(error)), ask("heartbeat", heartbeat(8)))

    assert response.status == 503
    assert ("retry-after", retry_s) in response.headers
    assert "/secret/path" not in response.body.decode()


# -----------------------------------------------------------------------------------------------------------
# mistakes and junk


def test_errors_are_named_together_and_bounded() -> None:
    missing = Refusal.model_validate_json(
        handle(webhook(MemoryStore()), ask("heartbeat", b'{"run":"' + b.RUN_ID.encode() + b'"}')).body
    ).error
    assert "attempt: Field required; seq: Field required" in missing
    body = b'{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"run":"' + b.RUN_ID.encode() + b'"}'
    assert Refusal.model_validate_json(
        handle(webhook(MemoryStore()), ask("heartbeat", body)).body
    ).error.endswith("and 5 more")


def test_a_refusal_repeats_neither_unknown_fields_nor_long_texts() -> None:
    body = heartbeat(8).model_dump(mode="json") | {
        "api_key": "sk-live-12345",
        "note": "sk-live-67890" + "x" * 300,
        "phase": "p" * 5000,
    }

    response = handle(webhook(MemoryStore()), ask("heartbeat", _json(body)))

    assert response.status == 422
    assert b"sk-live" not in response.body
    assert len(response.body) < 1000


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def test_many_parsed_heartbeats_are_answered_in_their_order(store: Store) -> None:
    stored(store)
    here = webhook(store)
    requests = [
        ask("heartbeat", heartbeat(8)),
        ask("heartbeat", heartbeat(9)),
        ask("heartbeat", heartbeat(9)),
        ask("heartbeat", heartbeat(9, attempt=1), attempt=1),
    ]
    calls = [call for request in requests if isinstance(call := parse(here, request), HeartbeatCall)]

    message = [reply(response).outcome.value for response in record(here, calls, NOW_S)]

    assert message == ["ok", "ok", "repeated", "fenced"]


def test_the_canary_comes_back() -> None:
    assert handle(webhook(MemoryStore()), canary("abc")).body == b'{"nonce":"abc"}'


def test_keys_of_a_run_named_canary_are_good_for_that_run_only() -> None:
    assert handle(webhook(MemoryStore()), ask("bootstrap", run="canary", attempt=1)).status == 409
    assert attempt_key(MASTER, "canary", 1) != attempt_key(MASTER, "canary", 2)


PATHS = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        [
            "/v1/canary",
            "/healthz",
            "/v1/runs/tiny-1/2/heartbeat",
            "/v1/runs/tiny-1/2/commit",
            "/v1/runs/tiny-1/2/exit",
            "",
        ]
    ),
    st.builds(
        "/v1/runs/{}/{}/{}".format,
        st.text(max_size=50),
        st.text(max_size=12),
        st.sampled_from(["heartbeat", "exit", "bootstrap"]),
    ),
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        TIMESTAMP_HEADER: st.one_of(st.text(max_size=30), st.integers().map(str)),
        SIGNATURE_HEADER: st.one_of(
            st.text(max_size=80), st.text(min_size=64, max_size=64).map("v1={}".format)
        ),
    },
)


@given(
    method=st.sampled_from(["GET", "POST", "PUT", "", "é"]),
    path=PATHS,
    headers=HEADERS,
    body=st.binary(max_size=300),
)
def test_junk_is_refused_and_never_an_error(
    method: str, path: str, headers: dict[str, str], body: bytes
) -> None:
    with pytest.raises(Refused) as refusal:
        parse(webhook(MemoryStore()), Request(method, path, headers, body, NOW_S))

    assert refusal.value.status in ({405} if path == "/healthz" else {401, 404, 405})


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda some: st.lists(some, max_size=3),
)
FIELDS = st.sampled_from([*Heartbeat.model_fields, *Commit.model_fields, "odd"])


@given(
    verb=st.sampled_from(["heartbeat", "exit", "commit"]),
    changes=st.dictionaries(FIELDS, JSON, max_size=6),
    junk=st.binary(max_size=40),
)
def test_a_signed_body_of_any_content_is_a_call_or_a_refusal(
    verb: str, changes: dict[str, object], junk: bytes
) -> None:
    model: Heartbeat | Commit = commit(10) if verb == "commit" else last_heartbeat(8)
    here = webhook(MemoryStore())
    for body in (
        _json(model.model_dump(mode="json") | changes),
        junk,
        model.model_dump_json().encode() + junk,
    ):
        assert refused_with(here, ask(verb, body)) in (None, 422)


def refused_with(here: WebhookContext, request: Request) -> int | None:
    try:
        parse(here, request)
    except Refused as refusal:
        return refusal.status
    return None


def test_size_is_looked_at_before_anything() -> None:
    with pytest.raises(Refused) as refusal:
        parse(webhook(MemoryStore()), Request("?", "/v1/nothing", {}, b" " * 70_000, NOW_S))
    assert refusal.value.status == 413


def test_every_verb_has_a_method_and_a_parser() -> None:
    assert METHODS.keys() == PARSERS.keys()


@pytest.mark.parametrize(
    ("name", "body"),
    [("wake", f'["{b.RUN_ID}",{10**30}]'), ("due", f"[{2**63},5]"), ("save_watch", f"[{{}},{2**54}]")],
)
def test_a_number_that_no_store_keeps_is_refused_in_a_call_of_the_store(
    name: str, body: str, store: Store
) -> None:
    before = stored(store)
    path, data = f"/v1/store/{name}", body.encode()
    signature = sign(operator_key(MASTER), NOW_S, "POST", path, data)

    response = handle(
        webhook(store),
        Request("POST", path, {TIMESTAMP_HEADER: str(NOW_S), SIGNATURE_HEADER: signature}, data, NOW_S),
    )

    assert (response.status, b"the largest that a store keeps" in response.body) == (422, True)
    assert store.load(b.RUN_ID) == before
