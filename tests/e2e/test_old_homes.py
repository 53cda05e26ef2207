"""Homes that older commits left while a run was training, taken over by today's version: see
`tests/homes`.
"""

import time
from pathlib import Path

import pytest

from prime_train.buckets.folder import FolderBucket
from prime_train.buckets.keys import RECORDS
from prime_train.checkpoints.lookup import Found
from prime_train.runs.run import Run, RunState
from prime_train.runs.sealed_record import unsealed
from prime_train.stores.sqlite.store import SqliteStore
from tests.cli import shell
from tests.exhaustive import some_of
from tests.homes import COMMITS, OldHome
from tests.waiting import await_true

RENAMED = ("7cf6cf55", "1ab17549", "e7fda226")
"""The commits whose homes, and no later ones, have a form of their own; those after them only lack fields."""
FORMS = (*RENAMED, *(commit for commit in COMMITS if commit not in RENAMED))


@pytest.fixture(params=COMMITS)
def old(request: pytest.FixtureRequest) -> OldHome:
    return OldHome.of(request.param)


def only_run(home: Path) -> Run:
    """Return the home's run, read with a store of its own."""
    store = SqliteStore(home / "control.sqlite")
    try:
        (run,) = store.list_runs()
        return run
    finally:
        store.close()


def test_everything_that_an_old_home_stored_is_read(old: OldHome, tmp_path: Path) -> None:
    home = tmp_path / "home"
    old.put(home)
    store = SqliteStore(home / "control.sqlite")
    assert store.unreadable() == []
    (run,) = store.list_runs()
    record = store.load(run.run_id)
    assert record is not None
    assert (run.state, run.spec.checkpoints.sentinel, run.spec.trainer.code.folder) == (
        RunState.TRAINING,
        "COMPLETE",
        ".",
    )
    assert record.lease.heartbeat is not None
    assert record.lease.committed_step >= 60
    assert [event.kind for event in store.history(run.run_id)][:2] == ["launching", "booting"]
    assert store.watch().last_sweep_s is not None
    store.close()


def test_the_records_that_an_old_home_wrote_to_its_bucket_are_read(old: OldHome) -> None:
    master = old.files["master.key"]
    records = [data for name, data in old.files.items() if name.startswith(f"bucket/{RECORDS}")]
    assert records
    for data in records:
        found = unsealed(data, master)
        assert found is not None
        assert found[0].spec.checkpoints.sentinel == "COMPLETE"


def test_the_config_of_a_run_is_read_from_the_bucket_of_an_old_home_without_its_store(
    old: OldHome, tmp_path: Path
) -> None:
    (name,) = (name for name in old.files if name.endswith("/spec.json"))
    (tmp_path / "bucket").mkdir()
    bucket = FolderBucket(tmp_path / "bucket")
    bucket.put(name.removeprefix("bucket/"), old.files[name])
    spec, lineage = Found(name.split("/")[2], "", bucket, None, 0).launched
    assert spec is not None
    assert (spec.checkpoints.sentinel, lineage) == ("COMPLETE", None)


@pytest.mark.slow
@pytest.mark.parametrize("commit", some_of(FORMS, one_in=2))
def test_a_run_of_an_old_home_goes_on_from_its_checkpoint_and_ends(commit: str, tmp_path: Path) -> None:
    old, at = OldHome.of(commit), shell.Shell(tmp_path)
    old.put(at.home, int(time.time()))
    before = only_run(at.home)
    with at.started("serve", "--port", "0", "--interval", "1", until="serving "):
        await_true("the run is over", lambda: only_run(at.home).is_over, every_s=0.5)
    run = only_run(at.home)
    assert run.state is RunState.SUCCEEDED, at.output
    assert run.run_id == before.run_id
    assert [attempt.number for attempt in run.attempts] == [1, 2]
    assert run.attempts[1].resumed_step >= 60, at.output
