"""Kind lightning: Lightning's Trainer."""

from typing import Any

import pytest

from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec
from prime_train.trainers.of_spec import FileInfo, Scattered, classify, trainer_for
from prime_train.trainers.progress import Progress
from prime_train.trainers.registry import TRAINERS
from prime_train.trainers.stale_outputs import Move
from tests.builders import spec

NOW_S = 1_800_000_000
FOLDER = "/disk/tree/checkpoints"


def lightning(**trainer: Any) -> RunSpec:
    return spec(
        trainer={"kind": "lightning", "command": "train.py --out {checkpoints}", **trainer}, checkpoints={}
    )


def line(made: RunSpec, *, step: int | None = None) -> str:
    folder = None if step is None else f"{FOLDER}/step_{step}"
    return trainer_for(made).command(made, checkpoints=FOLDER, resume_step=step, resume_folder=folder)


def files(*names: str, age_s: float = 100.0) -> list[FileInfo]:
    return [FileInfo(name, 10, NOW_S - age_s - later) for later, name in enumerate(names)]


def gathered(*seen: FileInfo) -> list[Scattered]:
    made = lightning()
    gathering = trainer_for(made).gathering(made)
    assert gathering is not None
    return list(gathering.checkpoints(seen, lambda path: b""))


# ------------------------------------------------------------------------------------------------------------
# its command


def test_it_resumes_from_the_gathered_file() -> None:
    assert line(lightning()) == f"python3 train.py --out {FOLDER}"
    assert (
        line(lightning(), step=30)
        == f"python3 train.py --out {FOLDER} --ckpt_path {FOLDER}/step_30/checkpoint.ckpt"
    )
    launched = "torchrun --standalone --nproc-per-node 2 --max-restarts 0 train.py"
    assert line(lightning(workers=2), step=30).startswith(launched)


@pytest.mark.parametrize("resume", ["", "--ckpt_path last", "--step {step}"])
def test_arguments_that_do_not_pass_the_checkpoint_are_an_error_before_the_launch(resume: str) -> None:
    made = lightning(resume=resume)
    (said,) = TRAINERS["lightning"].conflicts(made)
    assert repr(resume) in said
    assert "starts over" in said


@pytest.mark.parametrize("resume", ["--resume {checkpoint}/checkpoint.ckpt", "--from={checkpoint}"])
def test_a_script_may_take_the_checkpoint_by_another_argument(resume: str) -> None:
    made = lightning(resume=resume)
    assert not TRAINERS["lightning"].conflicts(made)


# ------------------------------------------------------------------------------------------------------------
# checkpoints


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("epoch=0-step=4.ckpt", 4),
        ("epoch=0-step=4-v1.ckpt", 4),
        ("step=000120.ckpt", 120),
        ("mnist-step_12-val_loss=0.31.ckpt", 12),
        ("step7.ckpt", 7),
        ("last.ckpt", None),
        ("epoch=3.ckpt", None),
        ("substep=4.ckpt", None),
        ("step=4.ckpt.tmp", None),
        ("step=4.txt", None),
    ],
)
def test_the_step_is_read_from_names_that_contain_it(name: str, step: int | None) -> None:
    expected = [] if step is None else [Scattered(step, {"checkpoint.ckpt": name})]
    assert gathered(*files(name)) == expected


def test_of_two_files_of_one_step_the_later_one_counts() -> None:
    assert gathered(*files("epoch=0-step=4-v1.ckpt", "epoch=0-step=4.ckpt")) == [
        Scattered(4, {"checkpoint.ckpt": "epoch=0-step=4-v1.ckpt"})
    ]


SHARDS = ("__0_0.distcp", "__1_0.distcp")


def test_a_folder_of_shards_is_one_checkpoint() -> None:
    names = [f"epoch=1-step=8.ckpt/{name}" for name in ("meta.pt", ".metadata", *SHARDS)]
    (found,) = gathered(*files(*names))
    assert found.step == 8
    assert found.files == {name.replace("epoch=1-step=8.ckpt", "checkpoint.ckpt"): name for name in names}


@pytest.mark.parametrize("gone", ["meta.pt", ".metadata"])
def test_a_folder_of_shards_is_complete_with_what_is_written_last(gone: str) -> None:
    made = lightning()
    names = [f"checkpoint.ckpt/{name}" for name in ("meta.pt", ".metadata", *SHARDS)]
    assert trainer_for(made).is_complete(made, files(*names), NOW_S)
    assert not trainer_for(made).is_complete(
        made, files(*(name for name in names if not name.endswith(gone))), NOW_S
    )


def test_a_file_that_still_changes_is_not_complete() -> None:
    made = lightning()
    assert trainer_for(made).is_complete(made, files("checkpoint.ckpt"), NOW_S)
    assert not trainer_for(made).is_complete(made, files("checkpoint.ckpt", age_s=0), NOW_S)


# ------------------------------------------------------------------------------------------------------------
# progress


def read(*lines: str, **trainer: Any) -> list[Progress]:
    made = lightning(**trainer)
    reader = trainer_for(made).reader(made)
    return [found for text in lines if (found := reader.read(text)) is not None]


def test_the_steps_of_the_csv_logger_count_from_0() -> None:
    assert read("epoch,step,train_loss", "0,0,2.5", "0,9,1.5") == [Progress(1, 2.5), Progress(10, 1.5)]


def test_a_row_of_an_evaluation_has_no_loss_of_training() -> None:
    assert read("epoch,step,train_loss,val_loss", "0,9,1.5,", "0,9,,1.7") == [Progress(10, 1.5), Progress(10)]


def test_a_loss_of_another_name_is_named_in_the_config() -> None:
    assert read("epoch,step,nll", "0,9,1.5", progress={"loss": "nll"}) == [Progress(10, 1.5)]


def test_progress_may_be_read_from_the_output_instead() -> None:
    pattern = r"step (?P<step>\d+)"
    assert read("step 10", progress={"kind": "regex", "pattern": pattern}) == [Progress(10)]
    assert lightning(progress={"kind": "regex", "pattern": pattern}).trainer.progress.file is None
    assert lightning().trainer.progress.file == "lightning_logs/version_0/metrics.csv"


def test_logs_of_an_earlier_launch_are_moved_aside_so_that_the_next_is_version_0_again() -> None:
    made = lightning()
    stale = trainer_for(made).stale_outputs(made)
    assert stale is not None
    assert stale.folder == "lightning_logs"
    assert stale.to_move(["version_0", "before-attempt-1", "notes.txt"], 4, attempt=2) == [
        Move("version_0", "before-attempt-2/version_0")
    ]


# ------------------------------------------------------------------------------------------------------------
# its end


@pytest.mark.parametrize(
    ("said", "code", "cause"),
    [
        ("[rank: 0] Received SIGTERM: 15", 0, Cause.STOPPED_EARLY),
        (
            "Trying to restore optimizer state but checkpoint contains only the model. This is probably due "
            "to",
            1,
            Cause.BAD_CONFIG,
        ),
        (
            '.{fn}(ckpt_path="last") is set, but there is no last checkpoint available.',
            1,
            Cause.RESUME_IGNORED,
        ),
    ],
)
def test_how_it_ended_is_read_from_its_output(said: str, code: int, cause: Cause) -> None:
    made = lightning()
    assert classify([said], trainer_for(made).log_rules(made), code=code, resumed=True)[0] is cause
