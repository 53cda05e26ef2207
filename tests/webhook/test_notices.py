"""Notices of a provider: which runs they wake, and that nothing else follows from them."""

from dataclasses import replace

import pytest

from prime_train.errors import TemporaryError
from prime_train.providers.kinds import notice_secrets
from prime_train.runs.run import Change, Run, RunState
from prime_train.spec.access_run_secrets import is_allowed
from prime_train.stores.memory import MemoryStore
from prime_train.webhook.requests import Request
from prime_train.webhook.state import WebhookContext
from tests import builders as b
from tests.buckets import no_bucket
from tests.webhook.calls import MASTER, NOTICE_SECRET, NOW_S, handle, notice, stored, webhook

LATER_S = NOW_S + 600


def training(store: MemoryStore, run_id: str, pod_id: str, provider: str = "vast") -> None:
    """Store a run that trains on this machine, and is next looked at later."""
    run = b.run(RunState.TRAINING, attempt=1)
    attempt = replace(run.attempts[0], pod_id=pod_id, offer=replace(run.attempts[0].offer, provider=provider))
    run = replace(run, run_id=run_id, attempts=(attempt,), next_check_s=LATER_S)
    stored(store, replace(b.record(run), run=run))


@pytest.fixture(name="store")
def _store() -> MemoryStore:
    store = MemoryStore()
    training(store, "mine", "vast/20000001")
    training(store, "other", "vast/20000002")
    training(store, "elsewhere", "runpod/20000001", "runpod")
    return store


def due(store: MemoryStore) -> set[str]:
    return set(store.due(NOW_S, 10))


@pytest.mark.parametrize(
    ("sent", "woken"),
    [
        (notice(), {"mine"}),
        (notice(data={"instance_id": 20000002}), {"other"}),
        (notice(data={"instance_id": "20000002", "your_bid": 0.4}), {"other"}),
        (notice(notif_type="instance_stopped", subject="Instance 20000002 was stopped"), {"other"}),
        (notice(subject="You have been outbid", data=None, data_truncated=True), {"mine", "other"}),
        (notice(subject="Your Instance #99 Has Been Outbid"), set()),
        (notice(notif_type="low_credit", subject="Warning"), set()),
        (notice(notif_type="webhook_test"), set()),
        (notice(data={"instance_id": True}, subject=None), {"mine", "other"}),
    ],
)
def test_a_notice_wakes_the_run_whose_machine_it_is_about(
    store: MemoryStore, sent: Request, woken: set[str]
) -> None:
    before = {run.run_id: run for run in store.list_runs()}
    response = handle(webhook(store), sent)
    assert (response.status, response.wakes) == (200, bool(woken))
    assert due(store) == woken
    for run in store.list_runs():
        was = before[run.run_id]
        # Nothing else is concluded from a notice.
        assert run == (replace(was, version=run.version, next_check_s=NOW_S) if run.run_id in woken else was)


def test_a_notice_that_is_sent_again_wakes_nobody_a_second_time(store: MemoryStore) -> None:
    context = webhook(store)
    assert handle(context, notice()).wakes
    store.save(_looked_at(store, "mine"))
    again = handle(context, notice())
    assert (again.status, again.wakes, due(store)) == (200, False, set())


def test_a_notice_that_could_not_be_carried_out_is_taken_the_next_time(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = webhook(store)
    with monkeypatch.context() as broken:
        broken.setattr(store, "list_runs", _unavailable)
        assert handle(context, notice()).status == 503  # which Vast.ai repeats
    assert handle(context, notice()).wakes
    assert due(store) == {"mine"}


def test_without_a_secret_there_is_no_such_path() -> None:
    context = WebhookContext(
        MemoryStore(), (MASTER,), secrets={}, bucket_url="file:///bucket", bucket=no_bucket
    )
    assert handle(context, notice()).status == 404


def test_the_secrets_are_of_the_control_plane_alone() -> None:
    given = {"PRIME_TRAIN_VAST_WEBHOOK_SECRET": f" {NOTICE_SECRET} ,,old", "VAST_API_KEY": "k"}
    assert notice_secrets(given) == (NOTICE_SECRET, "old")
    assert not is_allowed("PRIME_TRAIN_VAST_WEBHOOK_SECRET", ("*", "PRIME_*"))


def _unavailable() -> list[Run]:
    raise TemporaryError("the store is away")


def _looked_at(store: MemoryStore, run_id: str) -> Change:
    record = store.load(run_id)
    assert record is not None
    return Change(replace(record.run, version=record.run.version + 1, next_check_s=LATER_S))
