"""Each pitfall of prime-rl, and that prime-train avoids it."""

import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from prime_agent.checkpoints.uploader import Uploader
from prime_train.buckets.open import open_bucket
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.restore import restore
from prime_train.runs.resume_point import ResumePoint
from prime_train.spec.causes import Cause
from prime_train.trainers.component_heartbeats import component_of
from prime_train.trainers.of_spec import fired, trainer_for
from prime_train.trainers.prime_rl.stale_outputs import broadcasts_to_remove
from prime_train.trainers.prime_rl.trainer import COMPONENTS
from tests.agent.checkpoints.saving import NOW_S, newest, point_of
from tests.builders import RUN_ID
from tests.fakes.http import HttpFake, Request, Response
from tests.fakes.prime_rl.running import Machine
from tests.trainers.prime_rl.prime_rl_spec import prime_rl_spec


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "disk")


def uploader(machine: Machine, *, known: ResumePoint | None = None, attempt: int = 1) -> Uploader:
    return Uploader(
        bucket=open_bucket((machine.disk.parent / "bucket").as_uri(), make=True),
        spec=machine.spec,
        run_id=RUN_ID,
        attempt=attempt,
        work=machine.work,
        stage=machine.disk / "stage",
        known=known,
        clock=lambda: NOW_S,
        monotonic_s=lambda: 0.0,
    )


def shipped(made: Uploader) -> Manifest:
    (local,) = made.scan(NOW_S)
    manifest = made.upload(local, cancelled=lambda: False)
    made.committed(manifest, NOW_S)
    return manifest


def test_a_run_that_ends_well_has_made_all_its_steps_and_saved_the_last(machine: Machine) -> None:
    ended = machine.launch()
    assert ended.code == 0
    assert machine.made() == list(range(1, 21))
    assert shipped(uploader(machine)).step == 20


def test_after_a_crash_the_newest_folder_is_only_the_orchestrators_and_is_not_uploaded(
    machine: Machine,
) -> None:
    ended = machine.launch(dies="oom@14")
    assert (ended.code, machine.cause(ended)) == (1, Cause.GPU_OOM)
    assert sorted(path.name for path in machine.checkpoints.iterdir()) == ["step_10", "step_15", "step_5"]
    assert not (machine.checkpoints / "step_15" / "trainer").exists()
    assert [local.step for local in uploader(machine).scan(NOW_S)] == [10]


def test_a_naive_resume_dies_of_that_half_and_a_named_step_does_not(machine: Machine) -> None:
    machine.launch(dies="oom@14")
    naive = machine.launch_as(machine.line(None) + " --resume")
    assert naive.code == 1
    assert machine.cause(naive) is Cause.BAD_CHECKPOINT
    machine.tidy(10)
    assert machine.launch(10).code == 0
    assert machine.made()[13:] == list(range(11, 21))


def test_a_save_that_was_cut_off_is_not_uploaded_and_moved_aside(machine: Machine) -> None:
    machine.launch(dies="save@15")
    assert (machine.checkpoints / "step_15" / "trainer" / "__0_0.distcp").exists()
    assert [local.step for local in uploader(machine).scan(NOW_S)] == [10]
    assert "checkpoints/step_15" in [move.source for move in machine.tidy(10)]


def test_a_shard_that_is_shorter_than_its_metadata_says_makes_no_checkpoint(machine: Machine) -> None:
    machine.launch(dies="oom@14")
    (machine.checkpoints / "step_10" / "trainer" / "__1_0.distcp").unlink()
    assert [local.step for local in uploader(machine).scan(NOW_S)] == [5]
    shard = machine.checkpoints / "step_5" / "trainer" / "__0_0.distcp"
    shard.write_bytes(shard.read_bytes()[:100])
    assert uploader(machine).scan(NOW_S) == []


def test_another_machine_goes_on_from_the_bucket_with_nothing_but_the_two_halves(
    machine: Machine, tmp_path: Path
) -> None:
    machine.launch(dies="oom@14")
    manifest = shipped(uploader(machine))
    other = Machine(tmp_path / "other")
    bucket = open_bucket((tmp_path / "bucket").as_uri(), make=True)
    restore(bucket, RUN_ID, point_of(manifest), other.checkpoints)
    assert other.tidy(10) == ()
    assert other.launch(10).code == 0
    assert other.made() == list(range(11, 21))
    other_shipped = uploader(other, known=point_of(manifest), attempt=2)
    assert shipped(other_shipped).step == 20
    found = newest(bucket)
    assert found is not None
    assert found.step == 20


def test_checkpoints_beyond_the_resumed_step_are_not_removed_by_it_but_moved_by_us(machine: Machine) -> None:
    machine.launch()
    machine.launch(10)
    assert (machine.checkpoints / "step_15" / "orchestrator").exists()
    moved = [move.source for move in machine.tidy(5)]
    assert moved == [
        "broadcasts",
        "checkpoints/step_10",
        "checkpoints/step_15",
        "checkpoints/step_20",
        "logs/latest",
    ]
    assert machine.launch(5).code == 0


def test_what_it_saves_again_after_a_resume_is_uploaded_though_it_lay_there_before(machine: Machine) -> None:
    machine.launch()
    machine.tidy(10)
    made = uploader(
        machine, known=ResumePoint(step=10, attempt=1, key="runs/tiny-1/manifests/none.json"), attempt=2
    )
    assert made.disregard_present() == ()
    machine.launch(10, dies="oom@17")
    assert [local.step for local in made.scan(NOW_S)] == [15]


@pytest.mark.parametrize("name", ["step_10.tmp", "step_10_2"])
def test_names_that_end_its_scanner_are_moved_before_it_is_launched(machine: Machine, name: str) -> None:
    machine.launch(dies="oom@12")
    machine.tidy(10)
    (machine.run / "rollouts" / name).mkdir()
    (machine.checkpoints / name).mkdir()
    if name == "step_10.tmp":
        dead = machine.launch(10)
        assert (dead.code, machine.cause(dead)) == (1, Cause.BAD_CHECKPOINT)
    machine.tidy(10, attempt=3)
    assert machine.launch(10).code == 0


def test_the_logs_of_an_older_launch_are_not_read_for_one_that_never_wrote_its_own(machine: Machine) -> None:
    machine.launch(dies="oom@12")
    moved = machine.tidy(10)
    assert "logs/latest" in [move.source for move in moved]
    (machine.work / "rl.toml").write_text("max_async_level = 2\n")
    assert machine.cause(machine.launch(10)) is Cause.BAD_CONFIG


def test_a_folder_that_holds_a_run_is_refused_and_never_cleaned(machine: Machine) -> None:
    machine.launch(dies="oom@3")
    assert machine.launch().code == 1
    assert machine.launch_as(machine.line(None) + " --clean").code == 1
    machine.tidy(None)
    assert machine.launch().code == 0


def test_a_bare_resume_without_a_checkpoint_starts_over_which_is_noticed_and_a_named_step_fails(
    machine: Machine,
) -> None:
    over = machine.launch_as(machine.line(None) + " --resume", dies="oom@3")
    stops = [
        rule
        for line in over.lines
        if (rule := fired(line, machine.rules, resumed=True)) is not None and rule.stop
    ]
    assert [rule.cause for rule in stops] == [Cause.RESUME_IGNORED]
    missing = machine.launch(10)
    assert (missing.code, machine.cause(missing)) == (1, Cause.BAD_CHECKPOINT)


def test_code_0_before_the_last_step_is_distinguished_from_success_by_the_step(machine: Machine) -> None:
    ended = machine.launch(dies="masked@7")
    assert ended.code == 0
    code = trainer_for(machine.spec).exit_code(machine.spec, code=ended.code, step=max(machine.made()))
    assert (code, machine.cause(ended, code=code)) == (1, Cause.TRAINER_ERROR)
    assert machine.cause(ended) is Cause.FINISHED


@pytest.mark.parametrize(
    ("dies", "cause"),
    [
        ("inference_oom@0", Cause.INFERENCE_OOM),
        ("nccl@0", Cause.WEIGHT_BROADCAST),
        ("not_ready@0", Cause.INFERENCE_FAILED),
        ("gated@0", Cause.ACCESS_DENIED),
        ("empty@7", Cause.EMPTY_BATCHES),
        ("disk@8", Cause.DISK_FULL),
    ],
)
def test_a_death_that_only_a_log_of_its_own_tells_of_has_its_cause(
    machine: Machine, dies: str, cause: Cause
) -> None:
    ended = machine.launch(dies=dies)
    assert (ended.code, machine.cause(ended)) == (1, cause)


def test_a_setting_that_was_removed_is_a_wrong_configuration(machine: Machine) -> None:
    (machine.work / "rl.toml").write_text("[wandb]\nproject = 'p'\n")
    ended = machine.launch()
    assert (ended.code, machine.cause(ended)) == (1, Cause.BAD_CONFIG)


def test_without_nccl_the_broadcast_cannot_fail(machine: Machine) -> None:
    env = {"PRIME_TRAIN_WEIGHT_BROADCAST": "filesystem"}
    line = " ".join(f"{name}={value}" for name, value in env.items())
    assert machine.launch_as(f"export {line}; {machine.line(None)}", dies="nccl@0").code == 0


def test_a_checkpoint_that_it_removes_while_it_is_looked_at_does_no_harm(tmp_path: Path) -> None:
    machine = Machine(
        tmp_path / "disk",
        prime_rl_spec(checkpoints={"every_steps": 5}, part={"overrides": ["--ckpt.keep-last", "2"]}),
    )
    machine.launch()
    assert sorted(path.name for path in machine.checkpoints.iterdir()) == ["step_15", "step_20"]
    made = uploader(machine)
    (local,) = made.scan(NOW_S)
    shutil.rmtree(machine.checkpoints / "step_20")
    assert made.scan(NOW_S) == [local]
    assert sorted(path.name for path in local.path.iterdir()) == ["orchestrator", "trainer"]


def test_broadcasts_of_saved_steps_pile_up_until_they_are_removed(machine: Machine) -> None:
    machine.launch()
    folder = machine.run / "broadcasts"
    assert {"step_5", "step_10", "step_15"} <= {path.name for path in folder.iterdir()}
    for name in broadcasts_to_remove([path.name for path in folder.iterdir()], 20):
        shutil.rmtree(folder / name)
    assert sorted(path.name for path in folder.iterdir()) == ["step_19", "step_20"]


class Listener(HttpFake):
    """A server that receives heartbeats."""

    def respond(self, request: Request) -> Response:
        return Response(204)

    @property
    def heartbeats(self) -> dict[str, int]:
        """Return the number of heartbeats of each component."""
        with self.lock:
            return dict(Counter(str(component_of(request.path, COMPONENTS)) for request in self._requests))


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener() as server:
        yield server


def test_each_step_of_each_component_is_a_heartbeat(machine: Machine, listener: Listener) -> None:
    assert machine.launch(port=listener.port).code == 0
    assert listener.heartbeats == {"trainer": 20, "orchestrator": 20}


@pytest.mark.parametrize("dies", ["hang@7", "vllm@7"])
def test_one_that_hangs_lives_on_without_steps_and_leaves_when_it_is_told_to(
    machine: Machine, listener: Listener, dies: str
) -> None:
    with machine.launched(port=listener.port, dies=dies) as process:
        listener.await_state(
            lambda: listener.heartbeats.get("trainer") == 6, "the trainer's last heartbeat before it hangs"
        )
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 1
    assert listener.heartbeats["trainer"] == 6
    assert max(machine.made()) == 6
