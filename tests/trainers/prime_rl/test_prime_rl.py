"""prime-rl's command line, when its checkpoints are complete, and the meaning of its exit."""

import os
import shlex
import subprocess

import pytest

from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec
from prime_train.trainers.of_spec import FileInfo, classify, trainer_for
from prime_train.trainers.prime_rl.conventions import SHIPPED
from prime_train.trainers.prime_rl.trainer import BROADCAST, PORT
from tests.builders import spec
from tests.trainers.prime_rl.prime_rl_spec import FOLDER, prime_rl_spec

NOW_S = 10_000
WORK = "/disk/my work"
WHOLE = (
    ("orchestrator/progress.pt", 9_000.0),
    ("trainer/__0_0.distcp", 9_001.0),
    ("trainer/__1_0.distcp", 9_002.0),
    ("trainer/.metadata", 9_003.0),
)


def words(
    made: RunSpec | None = None, *, step: int | None = None, variables: dict[str, str] | None = None
) -> list[str]:
    """Return the launcher's arguments after the shell has parsed the line, from its own name on."""
    made = made or prime_rl_spec()
    checkpoints = f"{WORK}/{made.checkpoints.folder}"
    folder = None if step is None else f"{checkpoints}/step_{step}"
    line = trainer_for(made).command(made, checkpoints=checkpoints, resume_step=step, resume_folder=folder)
    assert line.startswith("exec env PATH=")
    shown = line.replace("exec ", 'printf "%s\\n" ', 1)
    plain = {name: value for name, value in os.environ.items() if name not in (PORT, BROADCAST)}
    message = subprocess.run(
        ["/bin/sh", "-c", shown], env=plain | (variables or {}), capture_output=True, text=True, check=True
    ).stdout
    return message.splitlines()[2:]


def test_a_first_start_names_the_run_and_never_resumes_or_cleans() -> None:
    message = words()
    assert message[:8] == ["uv", "run", "--no-sync", "--project", "../prime-rl", "rl", "@", "rl.toml"]
    assert message[8:] == [
        *(
            "--run.name",
            "tiny",
            "--run.dir",
            "tiny",
            "--output-dir",
            f"{WORK}/outputs",
            "--max-steps",
            "20",
            "--monitors.file",
        ),
    ]


def test_a_resume_names_its_step() -> None:
    assert words(step=12)[-2:] == ["--resume.step", "12"]


def test_the_output_folder_is_the_one_whose_checkpoints_are_looked_at() -> None:
    message = words(prime_rl_spec(part={"output": "a/b", "run_name": "r.1"}))
    assert message[message.index("--output-dir") + 1] == f"{WORK}/a/b"


def test_how_often_it_saves_and_the_tracker_are_the_specs() -> None:
    message = shlex.join(
        words(prime_rl_spec(checkpoints={"every_steps": 5}, wandb={"project": "my p", "entity": "e"}))
    )
    assert "--ckpt.interval 5" in message
    assert "--monitors.wandb.project 'my p' --monitors.wandb.entity e" in message


def test_overrides_come_as_they_are_and_before_ours() -> None:
    message = words(prime_rl_spec(part={"overrides": ["--x.note", "a b; $(rm)"]}))
    assert message[8:11] == ["--x.note", "a b; $(rm)", "--run.name"]


def test_heartbeats_are_requested_where_somebody_listens() -> None:
    assert not [word for word in words() if "heartbeat" in word]
    message = words(variables={PORT: "4711"})
    assert message[-4:] == [
        *("--trainer.heartbeat.url", "http://127.0.0.1:4711/hb/trainer"),
        *("--orchestrator.heartbeat.url", "http://127.0.0.1:4711/hb/orchestrator"),
    ]


def test_the_way_of_broadcasting_can_be_changed_for_one_launch() -> None:
    assert words(step=3, variables={BROADCAST: "filesystem"})[-4:] == [
        "--weight-broadcast.type",
        "filesystem",
        "--resume.step",
        "3",
    ]


def test_all_attempts_are_one_run_of_the_tracker() -> None:
    made = prime_rl_spec()
    first, second = (
        trainer_for(made).environment(made, attempt=attempt, run_id="tiny-1") for attempt in (1, 2)
    )
    assert first["PRL_RUN_ID"] == second["PRL_RUN_ID"] == "tiny-1"
    assert (first["PYTHONUNBUFFERED"], first["OMP_NUM_THREADS"], first["NEVER_CLEAN"]) == ("1", "1", "1")
    assert "CUDA_VISIBLE_DEVICES" not in first


def complete(*files: tuple[str, float]) -> bool:
    made = prime_rl_spec()
    return trainer_for(made).is_complete(
        made, [FileInfo(path, 10, mtime_s) for path, mtime_s in files], NOW_S
    )


def test_a_checkpoint_of_two_halves_is_complete_once_the_trainers_metadata_is_there() -> None:
    assert complete(*WHOLE)
    assert not complete(*WHOLE[:3])


@pytest.mark.parametrize("missing", range(4))
def test_without_any_one_kind_of_file_it_is_not(missing: int) -> None:
    rest = [row for number, row in enumerate(WHOLE) if number != missing]
    # Of two shards one may be missing by its name alone: what `.metadata` needs is read from the files.
    assert complete(*rest) is (missing in (1, 2))


def test_what_the_orchestrator_alone_has_saved_is_never_complete() -> None:
    assert not complete(("orchestrator/progress.pt", 1.0))
    assert not complete(("orchestrator/progress.pt", 1.0), ("trainer/.metadata", 2.0))


def test_a_half_that_is_written_again_is_waited_for() -> None:
    assert not complete(*WHOLE[1:], ("orchestrator/progress.pt", 9_990.0))
    assert not complete(*WHOLE[:3], ("trainer/.metadata", 9_001.5))


@pytest.mark.parametrize(
    ("code", "step", "honest"), [(0, 20, 0), (0, 19, 1), (0, 0, 1), (1, 20, 1), (-9, 3, -9)]
)
def test_code_0_before_the_last_step_is_a_crash(code: int, step: int, honest: int) -> None:
    assert trainer_for(prime_rl_spec()).exit_code(prime_rl_spec(), code=code, step=step) == honest


def test_other_kinds_end_as_they_say() -> None:
    made = spec(trainer={"steps": 20})
    assert trainer_for(made).exit_code(made, code=0, step=3) == 0
    assert trainer_for(made).log_files(made) == ()


def test_the_cause_is_looked_for_in_its_own_logs_first() -> None:
    made = prime_rl_spec()
    requested = trainer_for(made)
    trainer, inference, orchestrator = requested.log_files(made)
    assert trainer == f"{FOLDER}/logs/latest/trainer.log"
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    output = ["ERROR Error: Trainer failed with exit code 1", "ERROR Terminating all processes..."]
    rules = requested.log_rules(made)
    assert (
        classify(
            requested.last_lines(made, {trainer: [oom], orchestrator: ["INFO bye"]}, output), rules, code=1
        )[0]
        is Cause.GPU_OOM
    )
    assert classify(requested.last_lines(made, {inference: [oom]}, output), rules, code=1) == (
        Cause.INFERENCE_OOM,
        f"inference.log: {oom}",
    )


@pytest.mark.parametrize(
    ("paths", "begun"),
    [
        ((SHIPPED,), False),
        ((), False),
        (("trainer/__0_0.distcp",), True),
        (("trainer/__0_0.distcp", SHIPPED), True),
    ],
)
def test_steps_wait_for_the_trainers_half_of_a_checkpoint_only(paths: tuple[str, ...], begun: bool) -> None:
    spec = prime_rl_spec()
    assert trainer_for(spec).is_begun(spec, [FileInfo(path, 1, 0.0) for path in paths]) is begun
