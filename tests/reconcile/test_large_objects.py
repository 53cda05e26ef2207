"""A machine writes what it likes into its run's part of the bucket; neither its size nor its form holds up a
watcher or another run.
"""

import tracemalloc
from dataclasses import replace
from itertools import count

import pytest

from prime_train.buckets.keys import attempt_results_key, manifest_key, record_key, results_key
from prime_train.buckets.port import GET_BYTES_MAX
from prime_train.checkpoints import read_manifests as manifests
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.read_manifests import read_manifests
from prime_train.outputs.results.numbers import NUMBERS_MAX
from prime_train.outputs.results.write import PIECE_BYTES_MAX, pull_results
from prime_train.runs.run import Origin, RunState
from prime_train.text.line_pieces import LINE_CHARS_MAX, lines_in
from prime_train.watch import attempt_records
from tests import builders as b
from tests.reconcile.ports import Outside
from tests.reconcile.test_results import finished, streamed, written

REPO, CONFIG = "acme/models", "configs/a.yaml"
LARGE = "x" * (GET_BYTES_MAX + 1)


def test_other_figures_in_every_row_are_not_all_kept_in_memory() -> None:
    w = Outside().with_identities().trains()
    numbers = count()
    for piece in range(1, 4):
        rows = (
            f"step,time_s,{','.join(f'n{next(numbers)}' for _ in range(900))}\n1,1,{','.join(['1'] * 900)}\n"
            for _ in range(60)
        )
        streamed(w, b.RUN_ID, "".join(rows), piece=piece)
    tracemalloc.start()
    finished(w)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert next(numbers) > 150_000
    assert len(written(w)) == NUMBERS_MAX
    assert peak_bytes < 40 * 2**20


def test_an_object_larger_than_any_agent_writes_keeps_no_run_from_its_results() -> None:
    w = Outside().with_identities().trains()
    streamed(w, b.RUN_ID, "step,time_s,loss\n1,1,3.5\n")
    streamed(w, b.RUN_ID, LARGE, piece=2)
    streamed(w, b.RUN_ID, "9,9,1.5\n" + "y" * PIECE_BYTES_MAX, piece=3)
    w.bucket.objects[attempt_results_key(b.RUN_ID, 1, w.identity(1))] = LARGE.encode()
    finished(w)
    assert written(w) == {"loss": 3.5}


def test_a_base_run_with_an_object_of_any_size_leaves_pull_requests_their_comparison() -> None:
    w = Outside()
    for run_id, branch, pull, base in (("base-1", "main", None, ""), ("head-1", "topic", 7, "main")):
        origin = Origin(REPO, "a" * 40, CONFIG, "1", branch=branch, pull=pull, base=base)
        w.store.create(replace(b.run(RunState.QUEUED, run_id=run_id), origin=origin))
        w.trains(run_id)
        streamed(w, run_id, "step,time_s,loss\n1,1,3.5\n")
        streamed(w, run_id, LARGE, piece=2)
        finished(w, run_id)
        del w.bucket.objects[results_key(run_id)]  # as if the bucket had not answered at its end
    comparison = pull_results(w.store, lambda: w.bucket, w.run("head-1")).comparison
    assert comparison is not None
    assert comparison.base is not None
    assert comparison.base.run == "base-1"


def manifest(step: int, *, files: int = 1) -> Manifest:
    chunk = {"digest": f"blake3-{step:064x}", "size": 1, "stored": 1}
    listed = [{"path": f"{n:06d}", "size": 1, "chunks": [chunk]} for n in range(files)]
    return Manifest.model_validate(
        {
            "run": b.RUN_ID,
            "attempt": 1,
            "step": step,
            "created_s": 1,
            "folder": f"step_{step}",
            "files": listed,
        }
    )


def test_manifests_of_any_number_and_size_are_read_up_to_a_limit_the_newest_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    w = Outside()
    for step in range(1, 9):
        w.bucket.objects[manifest_key(b.RUN_ID, step, 1)] = manifest(step, files=100).to_json()
    size = len(w.bucket.objects[manifest_key(b.RUN_ID, 1, 1)])
    monkeypatch.setattr(manifests, "MANIFESTS_BYTES_MAX", 3 * size + 10)
    assert [one.step for one in read_manifests(w.bucket, b.RUN_ID)] == [8, 7, 6]


def test_a_record_larger_than_any_watcher_writes_keeps_no_control_plane_from_its_start() -> None:
    w = Outside().with_identities().trains()
    run = w.run()
    w.bucket.objects[record_key(b.RUN_ID, run.attempt, run.turn + 5)] = LARGE.encode()
    attempt_records.catch_up_all(w.store, w.bucket, b"master", b.T0_S)
    assert w.run() == run


def test_a_text_without_line_breaks_takes_no_memory() -> None:
    pieces = [b"x" * 2**20] * 64
    tracemalloc.start()
    lines = list(lines_in([*pieces, b"\nnext\xff\n", b"last"]))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [len(line) for line in lines[:1]] == [LINE_CHARS_MAX]
    assert lines[1:] == ["next\ufffd", "last"]
    assert peak_bytes < 16 * 2**20
