import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.buckets.folder import FolderBucket
from prime_train.errors import TemporaryError
from prime_train.providers.memory import MemoryPods
from prime_train.runs.run import Change, RunState
from prime_train.stores.memory import MemoryStore
from prime_train.watch.context import Context, SweepResult
from prime_train.watch.watcher import Watcher
from prime_train.webhook.server.serve import Server
from tests import builders as b
from tests.server.calling import await_true, call
from tests.webhook.calls import MASTER, NOW_S, ask, heartbeat, held, stored, webhook

FOREVER_S = 1000.0


class Clock:
    """The server's time, set by the test."""

    def __init__(self) -> None:
        self.now_s = NOW_S

    def __call__(self) -> int:
        return self.now_s


class Sweeps:
    """Counts the sweeps, and allows waiting for the next one."""

    def __init__(self) -> None:
        self.seen: list[SweepResult] = []

    def __call__(self, result: SweepResult) -> None:
        self.seen.append(result)

    def await_number(self, count: int) -> None:
        await_true(lambda: len(self.seen) >= count)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sweeps() -> Sweeps:
    return Sweeps()


def world(store: MemoryStore, tmp_path: Path) -> Context:
    return Context(
        store, FolderBucket(tmp_path / "bucket", make=True), MemoryPods(), MASTER, "http://nowhere"
    )


@pytest.fixture
def watching(tmp_path: Path, clock: Clock, sweeps: Sweeps) -> Iterator[tuple[MemoryStore, threading.Event]]:
    """Start a watcher that has nothing to do for a long time; its first sweep is done."""
    store, poke = MemoryStore(), threading.Event()
    watcher = Watcher(world(store, tmp_path), poke, clock, FOREVER_S, sweeps)
    watcher.start()
    sweeps.await_number(1)
    yield store, poke
    watcher.stop()


def test_news_wakes_the_watcher(watching: tuple[MemoryStore, threading.Event], sweeps: Sweeps) -> None:
    _, poke = watching

    poke.set()

    sweeps.await_number(2)


def test_a_run_is_looked_at_when_its_moment_comes(
    watching: tuple[MemoryStore, threading.Event], clock: Clock, sweeps: Sweeps
) -> None:
    store, _ = watching
    store.create(b.run(RunState.QUEUED, next_check_s=NOW_S + 50))

    clock.now_s = NOW_S + 50

    sweeps.await_number(2)
    assert sweeps.seen[1].looked_at == (b.RUN_ID,)


def test_without_anything_to_do_it_still_sweeps_each_interval(
    tmp_path: Path, clock: Clock, sweeps: Sweeps
) -> None:
    watcher = Watcher(world(MemoryStore(), tmp_path), threading.Event(), clock, 0.05, sweeps)
    watcher.start()

    sweeps.await_number(3)
    watcher.stop()


def test_a_group_of_news_is_few_sweeps(watching: tuple[MemoryStore, threading.Event], sweeps: Sweeps) -> None:
    _, poke = watching

    for _ in range(1000):
        poke.set()
    sweeps.await_number(2)

    assert len(sweeps.seen) <= 4


class Failing(MemoryStore):
    """A store that fails as often as configured."""

    def __init__(self, failures: list[Exception]) -> None:
        super().__init__()
        self.failures = failures

    def due(self, now_s: int, limit: int) -> list[str]:
        if self.failures and limit > 1:
            raise self.failures.pop()
        return super().due(now_s, limit)


def test_a_failed_sweep_is_reported_counted_and_followed_by_another(
    tmp_path: Path, clock: Clock, sweeps: Sweeps, caplog: pytest.LogCaptureFixture
) -> None:
    store = Failing([TemporaryError("the disk is full"), RuntimeError("a bug")])
    watcher = Watcher(world(store, tmp_path), threading.Event(), clock, 0.05, sweeps)

    watcher.start()
    sweeps.await_number(1)
    watcher.stop()

    assert watcher.failures == 2
    bug, full = caplog.records[:2]
    assert bug.exc_info is not None
    assert "a bug" in bug.getMessage()
    assert "the disk is full" in full.getMessage()


def test_a_watcher_stops_in_mid_rest_and_leaves_no_thread(
    tmp_path: Path, clock: Clock, sweeps: Sweeps
) -> None:
    watcher = Watcher(world(MemoryStore(), tmp_path), threading.Event(), clock, FOREVER_S, sweeps)
    watcher.start()
    sweeps.await_number(1)

    watcher.stop()

    assert "watcher" not in [thread.name for thread in threading.enumerate()]


def test_a_watcher_that_was_never_started_can_be_stopped(tmp_path: Path, clock: Clock) -> None:
    Watcher(world(MemoryStore(), tmp_path), threading.Event(), clock).stop()


def test_an_interval_of_nothing_is_refused(tmp_path: Path, clock: Clock) -> None:
    with pytest.raises(ValueError, match="above 0 s"):
        Watcher(world(MemoryStore(), tmp_path), threading.Event(), clock, 0.0)


def test_a_heartbeat_with_news_is_decided_upon_at_once(tmp_path: Path, clock: Clock) -> None:
    store = MemoryStore()
    of = held()
    stored(store, replace(of, run=replace(of.run, next_check_s=NOW_S + 500)))
    with Server(webhook(store), clock=clock) as server:
        server.watch(world(store, tmp_path), interval_s=FOREVER_S)

        status, _ = call(
            server.url,
            ask("exit", heartbeat(8, exit={"cause": "import_error", "detail": "no module named torch"})),
        )

        assert status == 200
        await_true(lambda: _state(store) is RunState.FAILED)


def _state(store: MemoryStore) -> RunState:
    there = store.load(b.RUN_ID)
    assert there is not None
    return there.run.state


def test_a_save_between_two_sweeps_is_found(
    watching: tuple[MemoryStore, threading.Event], sweeps: Sweeps
) -> None:
    store, _ = watching
    run = b.run(RunState.QUEUED, next_check_s=None)
    store.create(run)

    assert store.save(Change(replace(run, version=run.version + 1, next_check_s=NOW_S)))

    sweeps.await_number(2)
