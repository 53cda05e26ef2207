"""The kill matrix with machines rented from Prime Intellect and trained on by prime-rl: each loss ends as
designed, with its cause in the run's history, and no machine stays paid.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.runs.ledger import totals
from prime_train.runs.run import Run, RunState
from prime_train.spec.causes import Cause
from tests.e2e.plane import MATRIX_ROW
from tests.e2e.prime_plane import HEALTH, TWO_GPU_MACHINE, prime_plane
from tests.exhaustive import some_of
from tests.fakes.http import LoseResponse
from tests.fakes.nvml import Driver
from tests.fakes.prime import End, Plan, needs_sshd
from tests.waiting import await_true

pytestmark = [
    pytest.mark.slow,
    needs_sshd,
    pytest.mark.skipif(sys.platform != "linux", reason="machines for rent have Linux"),
]

Note = Callable[[str, object], None]


def causes(run: Run) -> list[Cause | None]:
    return [attempt.cause for attempt in run.attempts]


def noted(record: Note, point: str, run: Run) -> None:
    spent = totals(run, run.ended_s or 0)
    row = {
        "point": f"prime: {point}",
        "attempts": len(run.attempts),
        "ended by": ", ".join(cause.value for cause in causes(run) if cause is not None),
        "control plane started": "1",
        "paid s": spent.paid_s,
        "recomputed s": spent.recomputed_s,
        "detection s": spent.detection_s,
    }
    record(MATRIX_ROW, json.dumps(row))


@pytest.mark.parametrize("seen_as", some_of([End.TERMINATED, End.MISSING], one_in=2))
def test_a_machine_that_is_taken_away_without_notice(
    seen_as: End, tmp_path: Path, record_property: Note
) -> None:
    with prime_plane(tmp_path, {"FAKE_RL_WAITS": f"9@{tmp_path / 'taken'}"}) as here:
        run_id = here.launch()
        here.fake.preempt(here.await_step(run_id, 8).pod_id, seen_as)
        (tmp_path / "taken").touch()
        run = here.await_success(run_id)
        assert causes(run) == [Cause.PREEMPTED, Cause.FINISHED]
        assert run.attempts[1].resumed_step >= 5
        noted(record_property, f"preempted, seen as {seen_as.value}", run)


@pytest.mark.exhaustive
def test_a_machine_whose_installation_fails(tmp_path: Path, record_property: Note) -> None:
    with prime_plane(tmp_path) as here:
        here.fake.plan = Plan(install_failure="cuda driver mismatch")
        run_id = here.launch()
        here.fake.await_requests("POST", "/pods/")
        here.fake.plan = Plan()
        run = here.await_success(run_id)
        assert causes(run) == [Cause.BOOT_FAILED, Cause.FINISHED]
        assert run.attempts[0].offer.offer_id != run.attempts[1].offer.offer_id
        noted(record_property, "installation fails", run)


@pytest.mark.parametrize("after_bytes", some_of([3000, 0, 9000], one_in=3))
def test_a_connection_that_drops_while_the_agent_is_brought(
    after_bytes: int, tmp_path: Path, record_property: Note
) -> None:
    with prime_plane(tmp_path) as here:
        here.fake.cut_ssh(after_bytes=after_bytes, times=2)
        run = here.await_success(here.launch())
        assert here.fake.ssh_cuts == 2
        assert causes(run) == [Cause.FINISHED]
        noted(record_property, f"SSH cut after {after_bytes} bytes", run)


@pytest.mark.exhaustive
def test_a_machine_that_comes_dearer_than_it_was_offered(tmp_path: Path, record_property: Note) -> None:
    with prime_plane(tmp_path) as here:
        here.fake.plan = Plan(usd_per_hour=2.0)
        run_id = here.launch(hardware={"open_files_min": 1024, "disk_gib": 1, "usd_per_hour_max": 1.0})
        here.fake.await_requests("POST", "/pods/")
        here.fake.plan = Plan()
        run = here.await_success(run_id)
        assert causes(run) == [Cause.NO_CAPACITY, Cause.FINISHED]
        assert "terminated" in run.attempts[0].detail
        noted(record_property, "dearer than offered", run)


def test_a_create_call_that_takes_effect_and_is_answered_by_silence_is_one_machine(
    tmp_path: Path, record_property: Note
) -> None:
    with prime_plane(tmp_path) as here:
        here.fake.fail(LoseResponse(), method="POST", path="/pods/")
        run = here.await_success(here.launch())
        assert causes(run) == [Cause.FINISHED]
        assert len(here.fake.world.pods) == 1
        noted(record_property, "create answered by silence", run)


@pytest.mark.exhaustive
def test_a_wallet_that_runs_dry(tmp_path: Path, record_property: Note) -> None:
    # The wallet is looked at twice a minute; then there is no more to wait for.
    with prime_plane(tmp_path, {"FAKE_RL_STEP_S": "3", "FAKE_RL_HURRIES": str(tmp_path / "enough")}) as here:
        run_id = here.launch()
        here.await_step(run_id, 6)
        here.fake.balance_usd = 0.1
        await_true("it waits for money", lambda: here.run(run_id).state is RunState.QUEUED)
        await_true("its machine is given back", lambda: not here.fake.alive)
        assert here.fake.balance_usd > 0
        (tmp_path / "enough").touch()
        here.fake.balance_usd = 100.0
        run = here.await_success(run_id)
        assert causes(run) == [Cause.NO_FUNDS, Cause.FINISHED]
        assert "funds" in here.kinds(run_id)
        noted(record_property, "wallet is running empty", run)


@pytest.mark.exhaustive
def test_a_checkpoint_of_which_only_the_orchestrator_has_saved_its_half(
    tmp_path: Path, record_property: Note
) -> None:
    with prime_plane(tmp_path, {"FAKE_RL_DIES": "save@10", "FAKE_RL_ONCE": str(tmp_path / "died")}) as here:
        run = here.await_success(here.launch())
        assert [cause for cause in causes(run) if cause is not Cause.FINISHED] == [Cause.TRAINER_ERROR]
        assert run.attempts[1].resumed_step == 5
        noted(record_property, "only the orchestrator saved", run)


@pytest.mark.parametrize(
    ("death", "cause"),
    some_of(
        [("masked@8", Cause.TRAINER_ERROR), ("disk@8", Cause.DISK_FULL), ("hang@8", Cause.STALLED)], one_in=3
    ),
)
def test_a_death_of_prime_rl_is_named(
    death: str, cause: Cause, tmp_path: Path, record_property: Note
) -> None:
    with prime_plane(tmp_path, {"FAKE_RL_DIES": death, "FAKE_RL_ONCE": str(tmp_path / "died")}) as here:
        # Long enough that a busy machine's step is not taken for one that hangs.
        run = here.await_success(
            here.launch(health=HEALTH | {"stall_s": 20 if cause is Cause.STALLED else HEALTH["stall_s"]})
        )
        assert causes(run) == [cause, Cause.FINISHED]
        assert run.attempts[1].resumed_step == 5
        noted(record_property, death.partition("@")[0], run)


@pytest.mark.parametrize(
    ("death", "idle", "cause"),
    some_of(
        [("vllm@8", ("gpu0",), Cause.INFERENCE_FAILED), ("hang@8", ("gpu0", "gpu1"), Cause.GPU_IDLE)],
        one_in=2,
    ),
    ids=["inference dead, trainer waits", "hang with idle GPUs"],
)
def test_gpus_that_do_nothing_are_named_with_the_step(
    death: str,
    idle: tuple[str, ...],
    cause: Cause,
    driver: Driver,
    tmp_path: Path,
    record_property: Note,
    request: pytest.FixtureRequest,
) -> None:
    with prime_plane(
        tmp_path, {"FAKE_RL_DIES": death, "FAKE_RL_ONCE": str(tmp_path / "died")}, driver=driver
    ) as here:
        # Where all GPUs do nothing, it is not for inference to be named.
        run_id = here.launch(
            hardware=TWO_GPU_MACHINE, health=HEALTH | {"inference_idle_s": 3 if len(idle) == 1 else 60}
        )
        here.await_step(run_id, 7)
        await_true("it has died", (tmp_path / "died").exists)
        driver.says(**{f"{gpu}_{figure}": 0 for gpu in idle for figure in ("util", "used")})
        await_true("it is replaced", lambda: here.run(run_id).attempt == 2)
        driver.says(**{f"{gpu}_{figure}": None for gpu in idle for figure in ("util", "used")})
        run = here.await_success(run_id)
        assert causes(run) == [cause, Cause.FINISHED]
        assert "step 7" in run.attempts[0].detail
        noted(record_property, request.node.callspec.id, run)


def test_nothing_of_an_account_that_is_not_ours_is_touched(tmp_path: Path) -> None:
    with prime_plane(tmp_path) as here:
        run_id = here.launch()
        pod = here.await_step(run_id, 6)
        theirs = replace(
            pod,
            pod_id="theirs",
            machine=None,
            order=pod.order.model_copy(
                update={"pod": pod.order.pod.model_copy(update={"name": "pt-theirs-abcde-e1-00000000"})}
            ),
        )
        here.fake.world.pods["theirs"] = theirs
        await_true(f"{run_id} is over", lambda: here.run(run_id).is_over)
        await_true("only theirs is left", lambda: [alive.pod_id for alive in here.fake.alive] == ["theirs"])
        assert not here.fake.requests_to("DELETE", "/pods/theirs")
        del here.fake.world.pods["theirs"]
