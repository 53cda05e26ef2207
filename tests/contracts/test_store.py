"""The contract of every store. A new adapter is one more row in STORES."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.breaker import Breaker, State, Watch
from prime_train.runs.forecast import Forecast, StepEstimate
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.run import (
    CHECK_S_MAX,
    Ancestor,
    Change,
    DesiredState,
    Distrusted,
    DrainReason,
    Figures,
    Lease,
    Lineage,
    NotificationRecord,
    Origin,
    Orphan,
    Probe,
    Run,
    RunState,
    Severity,
    Totals,
)
from prime_train.runs.store import LeaseReply, LeaseStatus, RunRecord, Store
from prime_train.runs.wire import Deletions, JobExit, Order, Outcome, Phase
from prime_train.spec.causes import Cause
from prime_train.stores.dynamo.store import DynamoStore
from prime_train.stores.memory import MemoryStore
from prime_train.stores.remote import RemoteStore
from prime_train.stores.sqlite.store import SqliteStore
from prime_train.webhook.server.serve import Server
from prime_train.webhook.state import WebhookContext
from tests.buckets import no_bucket
from tests.builders import (
    RUN_ID,
    T0_S,
    alert,
    commit,
    heartbeat,
    history_event,
    lease,
    new_attempt,
    offer,
    spec,
)
from tests.builders import run as a_run
from tests.fakes import dynamo

MASTER = b"m" * 32
THREADS = 16
TURNS = 50
TRIES_MAX = 100_000

run = partial(a_run, from_elsewhere=True)
"""A run that was launched from elsewhere: the remote store marks every run so that is stored through it."""

Opened = Callable[[Path], AbstractContextManager[Store]]


@contextmanager
def memory(_folder: Path) -> Iterator[Store]:
    yield MemoryStore()


@contextmanager
def sqlite(folder: Path) -> Iterator[Store]:
    store = SqliteStore(folder / "store.sqlite")
    try:
        yield store
    finally:
        store.close()


@contextmanager
def remote(folder: Path) -> Iterator[Store]:
    """Return a remote store, reached through its webhook."""
    with (
        sqlite(folder) as there,
        Server(
            WebhookContext(there, (MASTER,), secrets={}, bucket_url="file:///bucket", bucket=no_bucket)
        ) as server,
    ):
        yield RemoteStore(server.url, MASTER)


STORES: dict[str, Opened | None] = {"memory": memory, "sqlite": sqlite, "remote": remote, "dynamo": None}
"""The kinds of stores. None: on a server that all tests share."""
EXAMPLES = {"sqlite": 40, "remote": 8, "dynamo": 3}
SLOW_TURNS = 5


def opener(request: pytest.FixtureRequest, kind: str) -> Opened:
    """Return a function that opens an empty store of that kind. The server is started for the first test that
    needs it.
    """
    opened = STORES[kind]
    if opened is not None:
        return opened
    server = request.getfixturevalue("ministack")
    return lambda _folder: dynamo.store(server)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opener(request, request.param)(tmp_path) as opened:
        yield opened


def loaded(store: Store, run_id: str = RUN_ID) -> RunRecord:
    record = store.load(run_id)
    assert record is not None
    return record


def change(record: RunRecord, **changes: Any) -> Change:
    """Return the next version of the run with these fields changed."""
    return Change(replace(record.run, version=record.run.version + 1, **changes))


def leased(record: RunRecord, **changes: Any) -> Change:
    """Return the next version of run and lease with these fields of the lease changed."""
    after = replace(record.lease, version=record.lease.version + 1, **changes)
    return replace(change(record), lease=after, lease_version=record.lease.version)


def put(store: Store, of: Run | None = None, **lease_changes: Any) -> RunRecord:
    """Store a run with the lease that fits it, before its first heartbeat."""
    of = of if of is not None else run(RunState.TRAINING)
    assert store.create(replace(of, version=1))
    fresh = lease(of, **({"seq": 0, "heartbeat": None, "heartbeat_s": None} | lease_changes))
    assert store.save(Change(replace(of, version=2), fresh, lease_version=0))
    return loaded(store, of.run_id)


# ------------------------------------------------------------------------------------------------------------
# time


def test_the_store_says_what_time_it_is(store: Store) -> None:
    before_s = time.time()
    told_s = [store.now_s() for _ in range(3)]
    assert sorted(told_s) == told_s
    assert before_s - 2 <= told_s[0] <= time.time() + 2


def test_a_check_further_away_than_any_can_be_is_due(store: Store) -> None:
    """For example one written by a watcher whose clock was an hour ahead."""
    for run_id, ahead_s in (("late", 3600), ("soon", CHECK_S_MAX), ("later", 86_400), ("overdue", -5)):
        store.create(run(run_id=run_id, next_check_s=T0_S + ahead_s))
    assert store.due(T0_S, 9) == ["overdue", "late", "later"]
    assert store.due(T0_S, 1) == ["overdue"]


# ------------------------------------------------------------------------------------------------------------
# create and load


def test_a_new_run_is_loaded_as_it_was_created_with_a_closed_lease(store: Store) -> None:
    new = run()
    assert store.create(new)
    assert store.load(new.run_id) == RunRecord(new, Lease(run_id=new.run_id))


def test_a_run_that_exists_is_not_created_again(store: Store) -> None:
    store.create(run())
    assert not store.create(run(RunState.TRAINING, commit="another"))
    assert loaded(store).run == run()


def test_an_unknown_run_has_nothing(store: Store) -> None:
    store.create(run(run_id="other"))
    assert store.load(RUN_ID) is None
    assert store.history(RUN_ID) == []


def test_runs_are_listed_newest_first(store: Store) -> None:
    for run_id, created_s in (("b", 20), ("old", 10), ("new", 30), ("a", 20)):
        store.create(run(run_id=run_id, created_s=created_s))
    assert [listed.run_id for listed in store.list_runs()] == ["new", "a", "b", "old"]
    assert store.list_runs()[0] == run(run_id="new", created_s=30)


def full_run() -> Run:
    """Return a run in which no field has its default value."""
    full_spec = spec(
        trainer={
            "code": {"repo": "https://example.org/a/b", "ref": "main"},
            "progress": {"kind": "regex", "pattern": r"step=(?P<step>\d+)"},
        },
        budget={"hours": 2.5},
        hardware={"gpus": ["H100_80GB", "A100_80GB"], "count": 8, "usd_per_hour_max": 20.0},
        setup=["pip install -e ."],
        verification=[{"path": "data/**/*.json", "exactly": 2, "size_min": "1 MB"}],
        smoke={"command": "python train.py --steps 1", "steps": 1},
        health={"log_rules": [{"pattern": "NaN", "cause": "not_finite"}]},
        wandb={"project": "tiny", "entity": "us"},
        environment={"MODE": "ünïcode \N{SNOWMAN} \x00 \u2028"},
        secrets=["HF_TOKEN"],
    )
    lost = new_attempt(
        1,
        RunState.QUEUED,
        offer=offer(gpu="H100_80GB", gpu_count=8, region="eu", machine="m-1", host="h-1", data_center="eu-1"),
        durable_step=8,
        resumed_step=3,
        resumed_attempt=0,
        not_finite_since=11,
        best_step_before=5,
        timed_steps=7,
        timed_s=35.5,
        timed_spread_s=0.5,
        gpu_peak_mib=62_000.5,
        gpu_mib=81_559.0,
        deleted=Deletions(folders=2, local_bytes=11),
        evidence_requested_s=T0_S + 400,
    )
    return Run(
        from_elsewhere=True,
        run_id=RUN_ID,
        spec=full_spec,
        created_s=T0_S,
        state=RunState.DRAINING,
        version=3,
        attempt=2,
        commit="0123abc",
        code_sha256="ab" * 32,
        revision=3,
        cleanup_s=T0_S + 14_000,
        archived=True,
        deleted=Deletions(checkpoints=3, newest_step=7, chunk_bytes=2**40, local=1, local_bytes=5),
        deleted_told_s=T0_S + 10_300,
        deleted_tracked=Deletions(checkpoints=1, output_bytes=9),
        origin=Origin(
            "acme/train",
            "0123abc",
            "configs/tiny.yaml",
            "key",
            7,
            42,
            "ann",
            "https://github.com/acme/train/actions/runs/1",
            "lr",
            "main",
        ),
        lineage=Lineage((Ancestor("other-1", 8), Ancestor("first-1", 4)), "first-1"),
        forecast=Forecast(
            (StepEstimate("H100_80GB", 8, 4.5, 9.0),),
            50,
            None,
            12.5,
            3e10,
            1.6e10,
            "prime_rl: Qwen/Qwen3-8B lora",
            environment="math",
            batch_tokens=1e6,
        ),
        probe=Probe("tiny", 10, 60.0),
        attempts=(lost, new_attempt(2, RunState.DRAINING)),
        folded=Totals(1, 2, 3, 4, 5, 6, 7, 8, 9, 0.1 + 0.2, 1e-9),
        resume=ResumePoint(step=8, attempt=1, key="runs/tiny-1/manifests/000000000008-e1.json"),
        resume_chosen=False,
        desired=DesiredState.STOP,
        drain=DrainReason.USER,
        drain_s=T0_S + 10_500,
        next_check_s=T0_S + 10_600,
        not_before_s=T0_S + 700,
        backoffs=2,
        distrusted=(Distrusted(12, 1, 2, "bad magic number"),),
        resume_failures=1,
        unresumable="no checkpoint could be loaded",
        step_asked=8,
        finite_limit=9,
        rollbacks=1,
        went_back_attempt=2,
        rolls_back=True,
        began=Figures(9.5, 1e-6),
        renewed_attempt=1,
        trained_step=8,
        after_done=1,
        after_failed="publish failed: it ended with code 3",
        excluded=("offer-1", "offer-2"),
        preempted_s=(T0_S + 5, T0_S + 6),
        strikes=(Cause.STALLED, Cause.SILENT),
        best_step=12,
        durable_step=8,
        step_slow_s=1.25,
        notices=(NotificationRecord(AlertKind.BUDGET, T0_S + 9),),
        orphans=(
            Orphan(
                "pod-9", "pt-tiny-1-e1", T0_S + 8, T0_S + 7, times=3, created_s=T0_S + 1, usd_per_hour=1.5
            ),
        ),
        why="the user asked",
        cause=Cause.PREEMPTED,
        ended_s=T0_S + 11_000,
        turn=7,
    )


def full_lease() -> Lease:
    last = heartbeat(
        7,
        attempt=2,
        phase=Phase.EXITED,
        step_age_s=3,
        step_slow_s=0.3,
        saving=True,
        preempting=True,
        sick=Cause.GPU_OOM,
        sick_detail="CUDA out of memory",
        evidence=True,
        uploaded_step=8,
        gpu_util_pct=99.5,
        gpu_mem_mib=70_000.0,
        disk_free_gib=12.5,
        loss=-1e-300,
        reward=0.0,
        note="ünïcode",
        news=True,
        exit=JobExit(cause=Cause.KILLED, detail="killed", code=-9, log_tail="last\nwords\n"),
    )
    order = {
        "order": Order.DRAIN,
        "order_reason": "user",
        "committed_step": 8,
        "committed_key": "runs/tiny-1/manifests/x.json",
    }
    order["identity"] = "0123456789abcdef"
    return Lease(
        run_id=RUN_ID,
        attempt=2,
        open=True,
        version=5,
        seq=7,
        heartbeat_s=T0_S + 10_400,
        heartbeat=last,
        **order,  # type: ignore[arg-type]
    )


def test_a_run_with_everything_filled_in_is_loaded_as_it_was_saved(store: Store) -> None:
    full = RunRecord(full_run(), full_lease())
    plain = RunRecord(a_run(run_id="plain", created_s=0), Lease(run_id="plain"))
    for complete, bare in ((full.run, plain.run), (full.lease, plain.lease)):
        same = [
            field.name
            for field in fields(complete)
            if getattr(complete, field.name) == getattr(bare, field.name)
        ]
        assert not same, f"fill these in, so that they are tested: {same}"
    store.create(replace(full.run, version=2))
    assert store.save(Change(full.run, full.lease, lease_version=0))
    assert store.load(RUN_ID) == full
    assert store.list_runs() == [full.run]


def test_a_number_without_end_does_not_make_a_run_unreadable(store: Store) -> None:
    endless = run(RunState.TRAINING, step_slow_s=float("inf"), folded=Totals(usd=float("inf")))
    store.create(endless)
    assert loaded(store).run == endless


# ------------------------------------------------------------------------------------------------------------
# save


def test_a_saved_run_is_loaded_and_its_lease_stays(store: Store) -> None:
    before = put(store)
    assert store.save(change(before, state=RunState.DRAINING, best_step=20))
    assert store.load(RUN_ID) == RunRecord(
        replace(before.run, version=3, state=RunState.DRAINING, best_step=20), before.lease
    )


def test_of_two_saves_from_the_same_version_one_is_lost_as_a_whole(store: Store) -> None:
    before = put(store)
    first = leased(before, order=Order.DRAIN)
    second = replace(leased(before, open=False), events=(history_event(),), alerts=(alert(),))
    assert store.save(first)
    assert not store.save(second)
    assert store.load(RUN_ID) == RunRecord(first.run, first.lease or before.lease)
    assert (store.history(RUN_ID), store.outbox(9)) == ([], [])


def test_a_run_that_was_never_created_is_not_saved(store: Store) -> None:
    assert not store.save(Change(run(version=2), events=(history_event(),), alerts=(alert(),)))
    assert store.load(RUN_ID) is None
    assert (store.history(RUN_ID), store.outbox(9)) == ([], [])


def test_a_heartbeat_in_between_makes_a_fence_lose_and_nothing_of_it_is_written(store: Store) -> None:
    seen = put(store)
    store.heartbeat(heartbeat(1), T0_S + 70)
    fence = replace(leased(seen, open=False), events=(history_event(),), alerts=(alert(),))
    assert not store.save(fence)
    assert loaded(store).run == seen.run
    assert loaded(store).lease.open
    assert (store.history(RUN_ID), store.outbox(9)) == ([], [])


def test_a_commit_in_between_makes_a_fence_lose(store: Store) -> None:
    seen = put(store)
    store.commit(commit(5), T0_S + 70)
    assert not store.save(leased(seen, open=False))


def test_a_heartbeat_in_between_does_not_disturb_a_save_without_a_lease(store: Store) -> None:
    seen = put(store)
    store.heartbeat(heartbeat(1), T0_S + 70)
    assert store.save(change(seen, best_step=11))
    assert (loaded(store).run.best_step, loaded(store).lease.seq) == (11, 1)


# ------------------------------------------------------------------------------------------------------------
# wake and due


def test_a_woken_run_is_due_now_and_a_save_under_way_is_lost(store: Store) -> None:
    seen = put(store, run(RunState.TRAINING, next_check_s=T0_S + 900))
    store.wake(RUN_ID, T0_S + 100)
    assert store.due(T0_S + 100, 9) == [RUN_ID]
    assert not store.save(change(seen))
    assert loaded(store).run == replace(seen.run, version=seen.run.version + 1, next_check_s=T0_S + 100)


@pytest.mark.parametrize("next_check_s", [0, 50])
def test_waking_a_run_that_is_overdue_does_not_put_it_back(store: Store, next_check_s: int) -> None:
    store.create(run(next_check_s=next_check_s))
    store.wake(RUN_ID, 100)
    assert loaded(store).run == run(next_check_s=next_check_s, version=2)


def test_a_run_with_nothing_left_to_do_can_be_woken(store: Store) -> None:
    store.create(run(RunState.STOPPED))
    store.wake(RUN_ID, 100)
    assert loaded(store).run.next_check_s == 100


def test_what_was_woken_is_saved_from_the_version_that_woke_it(store: Store) -> None:
    store.create(run(next_check_s=500))
    store.wake(RUN_ID, 100)
    assert store.save(change(loaded(store), next_check_s=700))
    assert store.due(699, 9) == []
    assert loaded(store).run.next_check_s == 700


def test_waking_an_unknown_run_does_nothing(store: Store) -> None:
    store.wake(RUN_ID, 100)
    assert store.load(RUN_ID) is None
    assert store.due(100, 9) == []


def test_due_runs_come_most_overdue_first_and_not_more_than_requested(store: Store) -> None:
    for run_id, next_check_s in (
        ("soon", 31),
        ("b", 20),
        ("never", None),
        ("now", 30),
        ("first", 0),
        ("a", 20),
    ):
        store.create(run(run_id=run_id, next_check_s=next_check_s))
    assert store.due(30, 9) == ["first", "a", "b", "now"]
    assert store.due(30, 2) == ["first", "a"]
    assert store.due(31, 9)[-1] == "soon"


# ------------------------------------------------------------------------------------------------------------
# heartbeats


def test_a_heartbeat_is_kept_with_the_time_it_arrived(store: Store) -> None:
    before = put(store)
    assert store.heartbeat(heartbeat(3, step=12), T0_S + 70) == LeaseReply(Outcome.OK)
    expected = replace(
        before.lease,
        version=before.lease.version + 1,
        seq=3,
        heartbeat_s=T0_S + 70,
        heartbeat=heartbeat(3, step=12),
    )
    assert store.load(RUN_ID) == RunRecord(before.run, expected)


def test_a_heartbeat_reported_twice_changes_nothing_the_second_time(store: Store) -> None:
    put(store)
    store.heartbeat(heartbeat(3), T0_S + 70)
    once = loaded(store)
    assert store.heartbeat(heartbeat(3), T0_S + 90).outcome is Outcome.REPEATED
    assert store.heartbeat(heartbeat(2, step=99), T0_S + 90).outcome is Outcome.REPEATED
    assert loaded(store) == once


def test_a_heartbeat_that_arrives_after_the_last_one_does_not_undo_it(store: Store) -> None:
    put(store)
    last = heartbeat(9, phase=Phase.EXITED, exit=JobExit(cause=Cause.FINISHED, code=0), news=True)
    store.heartbeat(last, T0_S + 70)
    assert store.heartbeat(heartbeat(8, news=True), T0_S + 71).outcome is Outcome.REPEATED
    assert loaded(store).lease.heartbeat == last


@pytest.mark.parametrize("attempt", [1, 3])
def test_a_heartbeat_of_another_attempt_is_fenced(store: Store, attempt: int) -> None:
    before = put(store, run(RunState.TRAINING, attempt=2))
    assert store.heartbeat(heartbeat(3, attempt=attempt, news=True), T0_S + 70) == LeaseReply(Outcome.FENCED)
    assert loaded(store) == before


def test_a_heartbeat_is_fenced_once_the_lease_is_closed(store: Store) -> None:
    store.save(leased(put(store), open=False))
    fenced = loaded(store)
    assert store.heartbeat(heartbeat(1, news=True), T0_S + 70) == LeaseReply(Outcome.FENCED)
    assert loaded(store) == fenced


def test_a_heartbeat_of_an_unknown_run_is_fenced(store: Store) -> None:
    put(store)
    assert store.heartbeat(heartbeat(1, run="unknown", news=True), T0_S + 70) == LeaseReply(Outcome.FENCED)
    assert store.load("unknown") is None


def test_the_first_heartbeat_of_the_next_attempt_is_accepted(store: Store) -> None:
    put(store)
    store.heartbeat(heartbeat(9), T0_S + 70)
    store.save(leased(loaded(store), attempt=2, seq=0, heartbeat=None, heartbeat_s=None))
    assert store.heartbeat(heartbeat(1, attempt=2), T0_S + 80).outcome is Outcome.OK
    assert store.heartbeat(heartbeat(10), T0_S + 80).outcome is Outcome.FENCED


def test_an_order_comes_with_every_answer_until_it_is_taken_back(store: Store) -> None:
    put(store)
    store.commit(commit(5), T0_S + 60)
    store.save(leased(loaded(store), order=Order.EVIDENCE, order_reason="stalled"))
    assert store.heartbeat(heartbeat(1), T0_S + 70) == LeaseReply(
        Outcome.OK, Order.EVIDENCE, "stalled", committed_step=5
    )
    assert store.heartbeat(heartbeat(1), T0_S + 71) == LeaseReply(
        Outcome.REPEATED, Order.EVIDENCE, "stalled", committed_step=5
    )
    store.save(leased(loaded(store), order=Order.NONE, order_reason=""))
    assert store.heartbeat(heartbeat(2), T0_S + 72) == LeaseReply(Outcome.OK, committed_step=5)


def test_only_an_accepted_heartbeat_with_news_wakes_the_run(store: Store) -> None:
    before = put(store, run(RunState.TRAINING, next_check_s=T0_S + 900))
    store.heartbeat(heartbeat(1), T0_S + 70)
    assert loaded(store).run == before.run
    store.heartbeat(heartbeat(2, news=True), T0_S + 75)
    woken = loaded(store).run
    assert woken == replace(before.run, version=before.run.version + 1, next_check_s=T0_S + 75)
    store.heartbeat(heartbeat(2, news=True), T0_S + 60)
    assert loaded(store).run == woken


def test_a_heartbeat_with_news_does_not_put_back_a_run_that_is_overdue(store: Store) -> None:
    before = put(store, run(RunState.TRAINING, next_check_s=T0_S + 50))
    assert store.heartbeat(heartbeat(1, news=True), T0_S + 70) == LeaseReply(Outcome.OK)
    assert store.heartbeat(heartbeat(1, news=True), T0_S + 40).outcome is Outcome.REPEATED
    assert loaded(store).run == replace(before.run, version=before.run.version + 1)


def test_a_heartbeat_with_news_wakes_a_run_with_nothing_left_to_do(store: Store) -> None:
    put(store, run(RunState.TRAINING, next_check_s=None))
    store.heartbeat(heartbeat(1, news=True), T0_S + 70)
    assert store.due(T0_S + 70, 9) == [RUN_ID]


def test_many_heartbeats_at_once_are_answered_one_by_one_in_order(store: Store) -> None:
    put(store, run(RunState.TRAINING, next_check_s=T0_S + 900))
    put(
        store,
        run(RunState.TRAINING, attempt=2, run_id="second", next_check_s=T0_S + 900),
        order=Order.DRAIN,
        order_reason="user",
    )
    message = [
        heartbeat(2),
        heartbeat(1),
        heartbeat(2),
        heartbeat(3, news=True),
        heartbeat(1, run="second", attempt=2),
        heartbeat(2, run="second"),
        heartbeat(1, run="none"),
    ]
    answers = store.heartbeats(message, T0_S + 70)
    names = [answer.outcome.value for answer in answers]
    assert names == ["ok", "repeated", "repeated", "ok", "ok", "fenced", "fenced"]
    assert answers[4] == LeaseReply(Outcome.OK, Order.DRAIN, "user")
    assert loaded(store).lease.seq == 3
    assert store.due(T0_S + 70, 9) == [RUN_ID]
    assert store.heartbeats([], T0_S + 70) == []


# ------------------------------------------------------------------------------------------------------------
# commits


def test_a_higher_step_is_committed(store: Store) -> None:
    before = put(store)
    assert store.commit(commit(5), T0_S + 70) == LeaseReply(Outcome.OK, committed_step=5)
    assert store.commit(commit(9), T0_S + 70) == LeaseReply(Outcome.OK, committed_step=9)
    expected = replace(
        before.lease, version=before.lease.version + 2, committed_step=9, committed_key=commit(9).key
    )
    assert store.load(RUN_ID) == RunRecord(before.run, expected)


@pytest.mark.parametrize("step", [0, 4, 5])
def test_a_step_that_is_not_higher_was_committed_before(store: Store, step: int) -> None:
    put(store)
    store.commit(commit(5), T0_S + 70)
    once = loaded(store)
    assert store.commit(commit(step), T0_S + 71) == LeaseReply(Outcome.REPEATED, committed_step=5)
    assert loaded(store) == once


def test_a_twin_with_the_same_number_is_neither_heard_nor_can_it_commit(store: Store) -> None:
    put(store, identity="1" * 16)
    for other in ("2" * 16, ""):
        assert store.heartbeat(heartbeat(1, identity=other), T0_S).outcome is Outcome.FENCED
        assert store.heartbeat(heartbeat(1, identity=other, news=True), T0_S).outcome is Outcome.FENCED
        assert store.commit(commit(90, identity=other), T0_S).outcome is Outcome.FENCED
    assert (loaded(store).lease.seq, loaded(store).lease.committed_step) == (0, 0)
    assert store.heartbeat(heartbeat(1, identity="1" * 16), T0_S).outcome is Outcome.OK
    assert store.heartbeat(heartbeat(1, identity="1" * 16), T0_S).outcome is Outcome.REPEATED
    assert store.commit(commit(90, identity="1" * 16), T0_S).outcome is Outcome.OK
    assert store.commit(commit(90, identity="1" * 16), T0_S).outcome is Outcome.REPEATED
    assert store.commit(commit(90, identity="2" * 16), T0_S).outcome is Outcome.FENCED
    assert loaded(store).lease.identity == "1" * 16


def test_a_commit_of_another_attempt_or_a_closed_lease_or_an_unknown_run_is_fenced(store: Store) -> None:
    put(store, run(RunState.TRAINING, attempt=2))
    assert store.commit(commit(5, attempt=1), T0_S + 70) == LeaseReply(Outcome.FENCED)
    assert store.commit(commit(5, attempt=3), T0_S + 70) == LeaseReply(Outcome.FENCED)
    assert store.commit(commit(5, run="unknown"), T0_S + 70) == LeaseReply(Outcome.FENCED)
    store.save(leased(loaded(store), open=False))
    assert store.commit(commit(5, attempt=2), T0_S + 70) == LeaseReply(Outcome.FENCED)
    assert loaded(store).lease.committed_step == 0


# ------------------------------------------------------------------------------------------------------------
# lease_statuses


def test_the_life_signs_of_open_leases_are_reported_with_the_limit_of_their_spec(store: Store) -> None:
    put(store)
    put(store, run(RunState.BOOTING, run_id="boots", spec=spec(health={"overdue_s": 45})))
    put(store, run(RunState.STOPPED, run_id="over"))
    store.create(run(run_id="waits"))
    store.heartbeat(heartbeat(1), T0_S + 70)
    assert store.lease_statuses() == [
        LeaseStatus("boots", 1, None, 45),
        LeaseStatus(RUN_ID, 1, T0_S + 70, 90),
    ]


def test_a_limit_that_changes_in_the_spec_changes_in_the_life_signs(store: Store) -> None:
    before = put(store)
    store.save(change(before, spec=spec(health={"overdue_s": 120})))
    assert [lease_status.overdue_s for lease_status in store.lease_statuses()] == [120]


# --------------------------------------------------------------------------------------------- history,
# outbox, watchers' memory


def test_history_is_reported_in_the_order_it_was_written(store: Store) -> None:
    put(store)
    put(store, run(RunState.TRAINING, run_id="other"))
    lines = [
        history_event("later", at_s=9),
        history_event("earlier", at_s=3, step=7, data={"cause": "stalled", "ü": "\N{SNOWMAN}"}),
        history_event("same"),
    ]
    store.save(replace(change(loaded(store)), events=tuple(lines[:2])))
    store.save(replace(change(loaded(store, "other")), events=(history_event(run_id="other"),)))
    store.save(replace(change(loaded(store)), events=(lines[2], lines[2])))
    assert store.history(RUN_ID) == [*lines, lines[2]]


def test_alerts_wait_oldest_first_until_they_are_marked_as_sent(store: Store) -> None:
    put(store)
    alerts = [alert("c"), alert("a", severity=Severity.ERROR, attempt=4), alert("b")]
    store.save(replace(change(loaded(store)), alerts=tuple(alerts[:2])))
    store.save(replace(change(loaded(store)), alerts=(alerts[2],)))
    assert store.outbox(9) == alerts
    assert store.outbox(2) == alerts[:2]
    store.mark_sent("a")
    assert store.outbox(9) == [alerts[0], alerts[2]]


def test_an_alert_with_a_known_key_is_not_reported_again(store: Store) -> None:
    put(store)
    store.save(replace(change(loaded(store)), alerts=(alert("a"), alert("a", title="again"))))
    store.save(replace(change(loaded(store)), alerts=(alert("a", title="again"),)))
    assert store.outbox(9) == [alert("a")]
    store.mark_sent("a")
    store.mark_sent("a")
    store.mark_sent("never heard of")
    store.save(replace(change(loaded(store)), alerts=(alert("a"),)))
    assert store.outbox(9) == []


def test_an_alert_waits_for_the_notifiers_that_are_not_done_with_it_and_for_no_other(store: Store) -> None:
    put(store)
    store.save(replace(change(loaded(store)), alerts=(alert("a"), alert("b"), alert("c"))))
    both = ("log", "slack")
    assert store.mark_sent("a", "log", among=both)
    assert store.mark_sent("a", "log", among=both)
    assert store.mark_sent("b", "slack", among=both)
    assert store.outbox(9) == [alert("a"), alert("b"), alert("c")]
    assert store.outbox(9, lacking="log") == [alert("b"), alert("c")]
    assert store.outbox(1, lacking="slack") == [alert("a")]
    assert store.outbox(1, lacking="log") == [alert("b")]
    assert store.outbox(9, lacking="a new one") == [alert("a"), alert("b"), alert("c")]
    assert not store.mark_sent("a", "slack", among=both)
    assert not store.mark_sent("c")
    assert store.outbox(9) == [alert("b")]
    assert not store.mark_sent("a", "log", among=both)
    assert not store.mark_sent("b", among=("slack",))
    assert not store.mark_sent("never heard of", "log", among=both)
    assert store.outbox(9) == store.outbox(9, lacking="log") == []
    store.save(replace(change(loaded(store)), alerts=(alert("a"),)))
    assert store.outbox(9) == []


def test_one_watcher_at_a_time_may_send_an_alert_by_a_notifier(store: Store) -> None:
    put(store)
    store.save(replace(change(loaded(store)), alerts=(alert("a"), alert("b"))))
    assert store.claim("a", "log", "one", now_s=100, until_s=160)
    assert not store.claim("a", "log", "two", now_s=159, until_s=200)
    assert store.claim("a", "slack", "two", now_s=100, until_s=160)
    assert store.claim("b", "log", "two", now_s=100, until_s=160)
    assert store.claim("a", "log", "one", now_s=150, until_s=210), "its own claim is renewed"
    assert not store.claim("a", "log", "two", now_s=209, until_s=300)
    assert store.claim("a", "log", "two", now_s=210, until_s=300), "a claim ends by itself"
    assert store.claim("a", "log", "two", now_s=220, until_s=220)
    assert store.claim("a", "log", "one", now_s=220, until_s=300), "it was given up"


def test_what_a_notifier_is_done_with_cannot_be_claimed_for_it(store: Store) -> None:
    put(store)
    store.save(replace(change(loaded(store)), alerts=(alert("a"),)))
    assert not store.claim("never heard of", "log", "one", now_s=100, until_s=160)
    assert store.claim("a", "log", "one", now_s=100, until_s=160)
    store.mark_sent("a", "log", among=("log", "slack"))
    assert not store.claim("a", "log", "one", now_s=100, until_s=160)
    assert not store.claim("a", "log", "two", now_s=500, until_s=560)
    assert store.claim("a", "slack", "two", now_s=500, until_s=560)
    store.mark_sent("a", "slack", among=("log", "slack"))
    assert not store.claim("a", "slack", "two", now_s=500, until_s=560)


def test_an_alert_of_no_run_waits_like_any_other_and_is_reported_once(store: Store) -> None:
    put(store)
    store.save(replace(change(loaded(store)), alerts=(alert("a"),)))
    store.enqueue_alert(alert("orphan", run_id="nobody"))
    store.enqueue_alert(alert("orphan", run_id="nobody", title="again"))
    store.enqueue_alert(alert("a", title="again"))
    assert store.outbox(9) == [alert("a"), alert("orphan", run_id="nobody")]
    assert not store.mark_sent("orphan")
    store.enqueue_alert(alert("orphan", run_id="nobody"))
    assert store.outbox(9) == [alert("a")]


def test_the_watchers_memory_is_kept_by_the_first_who_writes_it(store: Store) -> None:
    assert store.watch() == Watch()
    assert not store.save_watch(Watch(version=2), version=1)
    inbound = Breaker(State.HALF_OPEN, since_s=3, failing_s=2, works_since_s=3)
    first = Watch(
        version=1,
        last_sweep_s=1,
        inbound=inbound,
        fell_s={RUN_ID: 2},
        members=frozenset({RUN_ID, "other"}),
        providers={"prime": inbound},
    )
    assert store.save_watch(first, version=0)
    assert not store.save_watch(Watch(version=1, last_sweep_s=9), version=0)
    assert store.watch() == first
    assert store.save_watch(Watch(version=2), version=1)
    assert store.watch() == Watch(version=2)


# ------------------------------------------------------------------------------------------------------------
# together


def count(store: Store, turns: int) -> None:
    """Increase a number in the run, again after each lost save."""
    for _ in range(turns):
        for _ in range(TRIES_MAX):
            record = loaded(store)
            if store.save(
                replace(change(record, backoffs=record.run.backoffs + 1), events=(history_event(),))
            ):
                break
        else:
            raise AssertionError("never won")


def test_threads_that_count_together_lose_no_update(store: Store) -> None:
    store.create(run())
    failed: list[BaseException] = []

    turns = SLOW_TURNS if isinstance(store, RemoteStore | DynamoStore) else TURNS

    def turn() -> None:
        try:
            count(store, turns)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=turn) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert loaded(store).run.backoffs == THREADS * turns
    assert len(store.history(RUN_ID)) == THREADS * turns


def test_threads_that_send_heartbeats_together_are_each_answered_for_their_own_run(store: Store) -> None:
    runs = [f"r{number}" for number in range(8)]
    for run_id in runs:
        put(store, run(RunState.TRAINING, run_id=run_id))
    verdicts: dict[str, list[Outcome]] = {run_id: [] for run_id in runs}

    def turn(run_id: str) -> None:
        for seq in range(1, TURNS + 1):
            verdicts[run_id] += [
                answer.outcome
                for answer in store.heartbeats(
                    [heartbeat(seq, run=run_id), heartbeat(seq, run=run_id)], T0_S + seq
                )
            ]

    threads = [threading.Thread(target=turn, args=(run_id,)) for run_id in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(received == [Outcome.OK, Outcome.REPEATED] * TURNS for received in verdicts.values())
    assert [loaded(store, run_id).lease.seq for run_id in runs] == [TURNS] * 8


# -------------------------------------------------------------------------------------------------------
# against the memory store

RUN_IDS = ("a", "b", "c")
NOTIFIERS = ("log", "slack")
SECONDS = st.integers(0, 6)
NAMES = st.sampled_from(RUN_IDS)


class AgainstMemory(RuleBasedStateMachine):
    """Any calls in any order: a store gives the same answers as the memory store, and has the same content
    afterwards.
    """

    open_store: Callable[[], AbstractContextManager[Store]]

    @initialize()
    def opened(self) -> None:
        self.model = MemoryStore()
        self.opening = type(self).open_store()
        self.store = self.opening.__enter__()

    def teardown(self) -> None:
        if hasattr(self, "opening"):
            self.opening.__exit__(None, None, None)

    @rule(run_id=NAMES, created_s=SECONDS, next_check_s=st.none() | SECONDS)
    def create(self, run_id: str, created_s: int, next_check_s: int | None) -> None:
        new = run(run_id=run_id, created_s=created_s, next_check_s=next_check_s)
        assert self.store.create(new) == self.model.create(new)

    @rule(
        run_id=NAMES,
        ahead=st.sampled_from([1, 1, 1, 0, 2]),
        state=st.sampled_from(RunState),
        next_check_s=st.none() | SECONDS,
        overdue_s=st.sampled_from([60, 90]),
        lines=st.lists(st.text(max_size=3), max_size=2),
        keys=st.lists(st.sampled_from("xyz"), max_size=2),
        fence=st.none()
        | st.tuples(
            st.integers(0, 3), st.booleans(), st.sampled_from(Order), st.sampled_from([0, 0, 0, -1, 1])
        ),
    )
    def save(
        self,
        run_id: str,
        ahead: int,
        state: RunState,
        next_check_s: int | None,
        overdue_s: int,
        lines: list[str],
        keys: list[str],
        fence: tuple[int, bool, Order, int] | None,
    ) -> None:
        record = self.model.load(run_id) or RunRecord(run(run_id=run_id), Lease(run_id))
        after = replace(
            record.run, version=record.run.version + ahead, state=state, next_check_s=next_check_s
        )
        after = replace(after, spec=spec(health={"overdue_s": overdue_s}))
        new = Change(
            after,
            events=tuple(history_event(line, run_id=run_id) for line in lines),
            alerts=tuple(alert(key, run_id=run_id, text=str(after.version)) for key in keys),
        )
        if fence is not None:
            attempt, is_open, order, off = fence
            fresh = Lease(
                run_id, attempt, is_open, record.lease.version + 1, order=order, order_reason=order.value
            )
            new = replace(new, lease=fresh, lease_version=record.lease.version + off)
        assert self.store.save(new) == self.model.save(new)

    @rule(run_id=NAMES, now_s=SECONDS)
    def wake(self, run_id: str, now_s: int) -> None:
        self.store.wake(run_id, now_s)
        self.model.wake(run_id, now_s)

    @rule(
        message=st.lists(
            st.builds(
                heartbeat,
                st.integers(1, 6),
                run=NAMES,
                attempt=st.integers(1, 3),
                step=st.integers(0, 9),
                news=st.booleans(),
            ),
            max_size=4,
        ),
        now_s=SECONDS,
    )
    def heartbeats(self, message: list[Any], now_s: int) -> None:
        assert self.store.heartbeats(message, now_s) == self.model.heartbeats(message, now_s)

    @rule(wanted=st.builds(commit, st.integers(0, 6), run=NAMES, attempt=st.integers(1, 3)), now_s=SECONDS)
    def commit(self, wanted: Any, now_s: int) -> None:
        assert self.store.commit(wanted, now_s) == self.model.commit(wanted, now_s)

    @rule(
        key=st.sampled_from("xyz"),
        notifier=st.none() | st.sampled_from(NOTIFIERS),
        among=st.lists(st.sampled_from(NOTIFIERS), max_size=2),
    )
    def mark_sent(self, key: str, notifier: str | None, among: list[str]) -> None:
        assert self.store.mark_sent(key, notifier, among=among) == self.model.mark_sent(
            key, notifier, among=among
        )

    @rule(
        key=st.sampled_from("xyz"),
        notifier=st.sampled_from(NOTIFIERS),
        owner=st.sampled_from(["one", "two"]),
        now_s=SECONDS,
        for_s=st.integers(0, 3),
    )
    def claim(self, key: str, notifier: str, owner: str, now_s: int, for_s: int) -> None:
        claims = [
            of.claim(key, notifier, owner, now_s=now_s, until_s=now_s + for_s)
            for of in (self.store, self.model)
        ]
        assert claims[0] == claims[1]

    @rule(key=st.sampled_from("xyz"), run_id=NAMES)
    def enqueue_alert(self, key: str, run_id: str) -> None:
        self.store.enqueue_alert(alert(key, run_id=run_id))
        self.model.enqueue_alert(alert(key, run_id=run_id))

    @rule(ahead=st.sampled_from([0, 0, 1]), last_sweep_s=st.none() | SECONDS)
    def save_watch(self, ahead: int, last_sweep_s: int | None) -> None:
        read = self.model.watch()
        new = replace(read, version=read.version + 1, last_sweep_s=last_sweep_s)
        version = read.version + ahead
        assert self.store.save_watch(new, version=version) == self.model.save_watch(new, version=version)

    @invariant()
    def both_know_the_same(self) -> None:
        for run_id in RUN_IDS:
            assert self.store.load(run_id) == self.model.load(run_id)
            assert self.store.history(run_id) == self.model.history(run_id)
        assert self.store.list_runs() == self.model.list_runs()
        assert self.store.due(3, 2) == self.model.due(3, 2)
        assert self.store.lease_statuses() == self.model.lease_statuses()
        assert self.store.outbox(2) == self.model.outbox(2)
        for notifier in NOTIFIERS:
            assert self.store.outbox(2, lacking=notifier) == self.model.outbox(2, lacking=notifier)
        assert self.store.watch() == self.model.watch()


@pytest.mark.parametrize("kind", [kind for kind in STORES if kind != "memory"])
def test_whatever_is_called_a_store_answers_as_the_memory_store_does(
    kind: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    opens = opener(request, kind)

    class Machine(AgainstMemory):
        @staticmethod
        def open_store() -> AbstractContextManager[Store]:
            return opens(tmp_path_factory.mktemp("model"))

    few = settings(
        max_examples=EXAMPLES[kind],
        stateful_step_count=30,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Machine, settings=few)
