"""Something is killed at every point that matters, and the run ends as if nothing had happened."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from prime_train.buckets.keys import blob_prefix, parse_manifest_key
from prime_train.checkpoints.manifest import missing_blobs
from prime_train.checkpoints.read_manifests import read_manifests
from prime_train.checkpoints.restore import restore
from prime_train.demo.train import load_checkpoint, load_corpus
from prime_train.runs.ledger import totals
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.run import RunState
from tests.e2e.cases import Case, On, cases
from tests.e2e.lambda_functions import Functions, functions
from tests.e2e.lambda_plane import LAMBDA_CONFIG, LambdaPlane, lambda_plane
from tests.e2e.plane import CONFIG, MATRIX_ROW, STEPS, Plane, plane, write_config
from tests.e2e.points import LOSE_FIRST, POINTS
from tests.exhaustive import some_of
from tests.waiting import HANG_S


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the hash of the weights after an uninterrupted run of the same command without prime-train."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    command = [
        sys.executable,
        "-m",
        "prime_train.demo.train",
        "--steps",
        str(STEPS),
        "--save-every",
        "25",
        "--out",
        str(folder),
        "--batch-size",
        "16",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=HANG_S)
    return str(json.loads((folder / "final.json").read_text())["sha256"])


def test_each_point_is_tried_and_every_role_and_victim_is_on_both_kinds_of_control_plane() -> None:
    tried = [case for case in cases(both=False) if case.point in POINTS]
    assert sorted(case.point.name for case in tried) == sorted(point.name for point in POINTS)
    for on in {case.on for case in tried}:
        points = [case.point for case in tried if case.on is on]
        assert {point.role for point in points} == {point.role for point in POINTS}
        assert {point.victim for point in points} == {point.victim for point in POINTS}


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Functions]:
    """Return one deployment for all points on functions, because a deployment takes as long as a run."""
    with functions(tmp_path_factory.mktemp("deployment")) as it:
        yield it


@contextmanager
def placed(case: Case, folder: Path, request: pytest.FixtureRequest) -> Iterator[Plane | LambdaPlane]:
    points = [LOSE_FIRST, case.point] if case.point.needs else [case.point]
    if case.on is On.PROCESSES:
        with plane(folder, points, watcher="watcher" in (case.point.role, case.point.victim)) as processes:
            yield processes
    else:
        with lambda_plane(request.getfixturevalue("deployment"), folder, points) as lambdas:
            yield lambdas


@pytest.mark.slow
@pytest.mark.parametrize("case", some_of(cases(), one_in=18), ids=str)
def test_the_run_ends_as_if_nothing_had_happened(
    case: Case,
    reference: str,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    request: pytest.FixtureRequest,
) -> None:
    config = write_config(
        tmp_path, CONFIG if case.on is On.PROCESSES else LAMBDA_CONFIG, step_s=case.point.step_s
    )
    with placed(case, tmp_path, request) as here:
        run_id = here.launch(config)
        try:
            run = here.await_end(run_id)
            assert (tmp_path / "fired" / case.point.name).exists(), (
                "the point was never reached: nothing was taken away"
            )
            assert run.state is RunState.SUCCEEDED, run.why
            assert final_hash(here, run_id) == reference
            no_durable_step_was_lost(here, run_id)
            only_one_attempt_committed_at_a_time(here, run_id)
            assert sum(a.ended_s is None for a in run.attempts) == 0
        except AssertionError as error:
            raise AssertionError(f"{error}\n{here.evidence()}") from error
        record_property(MATRIX_ROW, figures(case, here, run_id))


def final_hash(here: Plane | LambdaPlane, run_id: str) -> str:
    """Return the hash that the trainer itself printed for the weights of its last checkpoint, restored from
    the bucket's newest manifest.
    """
    sizes = {stat.key: stat.size for stat in here.bucket.list(blob_prefix(run_id))}
    newest = max(read_manifests(here.bucket, run_id), key=lambda m: (m.step, m.attempt))
    assert newest.step == STEPS
    assert not missing_blobs(newest, sizes)
    return weights_hash(here, run_id, newest.key)


def weights_hash(here: Plane | LambdaPlane, run_id: str, key: str) -> str:
    """Restore a checkpoint from the bucket, and return the hash of its weights as loaded by the trainer's own
    code.
    """
    place = parse_manifest_key(run_id, key)
    assert place is not None
    into = here.folder / "restored"
    restore(here.bucket, run_id, ResumePoint(step=place[0], attempt=place[1], key=key), into)
    return load_checkpoint(into, place[0], len(load_corpus()[2])).digest()


def no_durable_step_was_lost(here: Plane | LambdaPlane, run_id: str) -> None:
    """Check that an attempt never restores less than what was confirmed as committed to an earlier one."""
    run = here.run(run_id)
    for earlier, later in zip(run.attempts, run.attempts[1:], strict=False):
        assert later.resumed_step >= earlier.durable_step, (
            f"attempt {later.number} resumed from {later.resumed_step}, durable was {earlier.durable_step}"
        )


def only_one_attempt_committed_at_a_time(here: Plane | LambdaPlane, run_id: str) -> None:
    """Check that no attempt has a checkpoint committed after its fence, and that steps never decrease."""
    lines = here.history(run_id)
    resumed = [line.step for line in lines if line.kind == "resume_chosen"]
    assert resumed == sorted(resumed)
    attempts = [line.attempt for line in lines]
    assert attempts == sorted(attempts)


def figures(case: Case, here: Plane | LambdaPlane, run_id: str) -> str:
    """Return a row of the table that is printed at the end of the test run (see conftest.py)."""
    run = here.run(run_id)
    spent = totals(run, run.ended_s or 0)
    causes = [a.cause.value for a in run.attempts if a.cause is not None]
    row = {
        "point": str(case),
        "attempts": len(run.attempts),
        "ended by": ", ".join(causes),
        "control plane started": here.started,
        "paid s": spent.paid_s,
        "recomputed s": spent.recomputed_s,
        "detection s": spent.detection_s,
    }
    return json.dumps(row)
