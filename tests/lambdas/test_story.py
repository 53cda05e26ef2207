"""A run launched by an operator who has an address and a key; the functions rent, lose a machine, and bring
the run to its end.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from prime_train.runs.run import Run, RunState
from prime_train.spec.causes import Cause
from tests.e2e.plane import is_left_alone
from tests.e2e.prime_plane import HEALTH, STEPS, write_run
from tests.fakes.prime import needs_sshd
from tests.lambdas.deployed import STACK, Deployed, deployed, output, prime_train
from tests.waiting import await_true

pytestmark = [
    pytest.mark.slow,
    needs_sshd,
    pytest.mark.skipif(sys.platform != "linux", reason="machines for rent have Linux"),
]

WATCHED_EACH_S = 2.0


@contextmanager
def watched(here: Deployed) -> Iterator[None]:
    """Invoke the watcher more often than its schedule would, because a test cannot wait for minutes."""
    ended = threading.Event()

    def call() -> None:
        while not ended.wait(WATCHED_EACH_S):
            here.watch(news=True)

    thread = threading.Thread(target=call)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def run_of(here: Deployed, run_id: str) -> Run:
    record = here.store.load(run_id)
    assert record is not None
    return record.run


@pytest.mark.exhaustive
def test_a_run_survives_the_loss_of_its_machine(tmp_path: Path) -> None:
    with deployed(tmp_path / "aws") as here:
        _trained(here, tmp_path)
        words = output(here.env, "destroy", "--stack", STACK, "--yes")
        assert f"kept: table {here.outputs['Table']}" in words
        assert f"kept: bucket {here.outputs['Bucket']}" in words
        assert prime_train(here.env, "doctor", "--stack", STACK).returncode == 1


def _trained(here: Deployed, tmp_path: Path) -> None:
    """Follow the run from the launch to the end."""
    # the run must not be over before its machine is taken, however long that takes on a busy machine
    taken = tmp_path / "taken"
    with watched(here):
        config = write_run(
            tmp_path, {"FAKE_RL_WAITS": f"10@{taken}"}, health=HEALTH | {"overdue_s": 10, "silence_s": 30}
        )
        output(here.operator, "run", str(config))
        (run,) = here.store.list_runs()

        def has_saved() -> bool:
            record = here.store.load(run.run_id)
            return record is not None and record.lease.committed_step >= 5

        await_true("a checkpoint is durable", has_saved)
        refused = prime_train(here.env, "destroy", "--stack", STACK, "--yes")
        assert (refused.returncode, run.run_id in refused.stderr) == (2, True)
        (pod,) = here.fake.alive
        here.fake.preempt(pod.pod_id)
        taken.touch()
        await_true("it is over", lambda: run_of(here, run.run_id).is_over)
        await_true("no machine is left", lambda: not here.fake.alive)
        await_true(
            "nothing is left to do", lambda: is_left_alone(run_of(here, run.run_id), here.store.now_s())
        )
        ended = run_of(here, run.run_id)
        assert (ended.state, ended.durable_step) == (RunState.SUCCEEDED, STEPS), ended.why
        assert [attempt.cause for attempt in ended.attempts] == [Cause.PREEMPTED, Cause.FINISHED]
        assert ended.attempts[1].resumed_step >= 5
        assert run.run_id in output(here.operator, "status")
