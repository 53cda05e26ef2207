"""The watcher reads the newest checkpoints of runs that train back from the bucket, a little at a time."""

from dataclasses import replace

import pytest

from prime_train.buckets.keys import blob_key
from prime_train.checkpoints.hashing import digest_of
from prime_train.checkpoints.manifest import Chunk, Manifest, ManifestFile
from prime_train.errors import TemporaryError
from prime_train.runs.wire import Phase
from prime_train.watch import read_back as part
from tests import builders as b
from tests.reconcile.ports import Outside

CONTENTS = [bytes([number]) * 100 for number in range(4)]


def training(*, reads_back: bool = True) -> Outside:
    """Return a run that trains, with a committed checkpoint of four chunks."""
    w = Outside().trains(step=12)
    w.world = replace(w.world, reads_back=reads_back)
    files = []
    for number, data in enumerate(CONTENTS):
        chunk = Chunk(digest=digest_of(data), size=len(data), stored=len(data))
        w.bucket.objects[blob_key(b.RUN_ID, chunk.digest)] = data
        files.append(ManifestFile(path=f"part-{number}", size=len(data), chunks=(chunk,)))
    manifest = Manifest(
        run=b.RUN_ID,
        attempt=1,
        identity=w.identity(1),
        step=10,
        created_s=w.now_s,
        folder="step_10",
        files=tuple(files),
    )
    w.bucket.objects[manifest.key] = manifest.to_json()
    w.store.commit(b.commit(10, attempt=1, key=manifest.key), w.now_s)
    return w


def sweeps(w: Outside, times: int) -> list[str]:
    """Let the run train on for some minutes, and return the alerts of damage."""
    for _ in range(times):
        w.after(part.EVERY_S).heartbeat(phase=Phase.TRAIN, step=13)
        w.sweep()
    return [alert.text for alert in w.reported.alerts if alert.kind == "damaged"]


def damage(w: Outside, number: int) -> None:
    key = blob_key(b.RUN_ID, digest_of(CONTENTS[number]))
    w.bucket.objects[key] = w.bucket.objects[key][:-1] + b"?"


def test_damage_in_the_newest_checkpoint_is_told_once_while_the_run_trains() -> None:
    w = training()
    assert sweeps(w, 2) == []
    w.world.read_back.clear()
    damage(w, 2)
    (text,) = sweeps(w, 5)
    assert "part-2 has a different content" in text
    assert "step 10" in text


def test_a_sweep_reads_no_more_than_its_share_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "SWEEP_BYTES_MAX", 150)
    w = training()
    damage(w, 3)
    assert sweeps(w, 3) == []
    assert [one.chunks for one in w.world.read_back.values()] == [3]
    assert len(sweeps(w, 1)) == 1


def test_where_reading_costs_money_nothing_is_read_unless_it_is_wanted() -> None:
    w = training(reads_back=False)
    damage(w, 0)
    assert sweeps(w, 5) == []


def test_a_bucket_that_does_not_answer_stops_no_sweep() -> None:
    w = training()
    w.fail["bucket"] = TemporaryError("the bucket is away")
    damage(w, 0)
    assert sweeps(w, 2) == []
    assert "ReadBackFailed" in w.received
    del w.fail["bucket"]
    assert len(sweeps(w, 1)) == 1


def described(w: Outside, number: int) -> Manifest:
    """Commit a checkpoint of which a machine says that it has this many small chunks."""
    files = []
    for at in range(number):
        data = b"%d" % at
        chunk = Chunk(digest=digest_of(data), size=len(data), stored=len(data))
        files.append(ManifestFile(path=f"part-{at}", size=len(data), chunks=(chunk,)))
    manifest = Manifest(
        run=b.RUN_ID,
        attempt=1,
        identity=w.identity(1),
        step=11,
        created_s=w.now_s,
        folder="step_11",
        files=tuple(files),
    )
    w.bucket.objects[manifest.key] = manifest.to_json()
    w.store.commit(b.commit(11, attempt=1, key=manifest.key), w.now_s)
    return manifest


def test_a_checkpoint_whose_chunks_are_all_missing_is_left_after_the_first_one() -> None:
    w = training()
    described(w, 40_000)
    asked: list[str] = []
    read = w.bucket.read
    w.bucket.read = lambda key: asked.append(key) or read(key)  # type: ignore[method-assign,func-returns-value]  # counts the calls
    (text,) = sweeps(w, 3)
    assert "part-0 is missing of step 11" in text
    assert len(set(asked)) == 1
    (state,) = w.world.read_back.values()
    assert state.next_s > w.now_s + part.EVERY_S, "it is not looked at again at once"


def test_a_sweep_makes_no_more_calls_than_its_share_whatever_sizes_a_machine_declares() -> None:
    w = training()
    described(w, 1000)
    for at in range(1000):
        w.bucket.objects[blob_key(b.RUN_ID, digest_of(b"%d" % at))] = b"%d" % at
    assert sweeps(w, 1) == []
    (state,) = w.world.read_back.values()
    assert 0 < state.chunks <= part.LOOK_CHUNKS_MAX
