"""Scripts of many shapes, run: how each saves, reports and resumes is recognised, and proven, or it is said
what could not be.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from prime_train.rehearsal.conclusions import Certainty, conclusions
from prime_train.rehearsal.rehearsal import Rehearsal
from prime_train.rehearsal.trial import Outcome, progress_of
from prime_train.rehearsal.written_config import folder_of
from prime_train.trainers.progress import reader_for
from tests.rehearsal.rehearsals import SCRIPTS, rehearsed
from tests.rehearsal.test_file_watch import forget_the_kernel


@dataclass(frozen=True)
class Expected:
    """What a rehearsal must find. `line`, `step`: a line, and the step that it reports. `beside`: pairs of a
    path and a kind.
    """

    folder: str
    pattern: str
    counts: str
    resume: str
    also: tuple[str, ...] = ()
    sentinel: str = ""
    width: int = 0
    every: int = 0
    is_renamed: bool = False
    deletes: bool = False
    beside: frozenset[tuple[str, str]] = frozenset()
    line: str = ""
    step: int = 0
    saves_on_stop: bool = False


PROVEN = {
    "files_of_one_number": Expected(
        "base_checkpoints/d4",
        "model_{step}.pt",
        "step",
        "--resume_from_step {step}",
        also=("meta_{step}.json", "optim_{step}_rank*.pt"),
        width=6,
        every=15,
        line="step 00119/00150 (79.33%) | loss: 0.677826 | lrm: 1.00 | dt: 40.12ms | tok/sec: 12,345",
        step=120,
    ),
    "folders_and_latest": Expected(
        "ckpts",
        "global_step{step}",
        "step",
        "--load ckpts",
        sentinel="mp_rank_00_model_states.pt",
        every=20,
        beside=frozenset({("ckpts/latest", "pointer")}),
        line=" iteration      115/     200 | consumed samples:         1840 | elapsed time per iteration (ms): "
        "40.3 | learning rate: 1.500E-04 | lm loss: 3.862126E-01 |",
        step=115,
    ),
    "folders_renamed_and_link": Expected(
        "workspace/run",
        "step{step}",
        "step",
        "",
        every=15,
        is_renamed=True,
        beside=frozenset({("workspace/run/latest", "link")}),
        line="[step=131/150,epoch=1]",
        step=131,
    ),
    "archive_of_environment_steps": Expected(
        "logs/models",
        "rl_model_{step}_steps.zip",
        "step",
        "",
        also=("rl_model_vecnormalize_{step}_steps.pkl", "rl_model_replay_buffer_{step}_steps.pkl"),
        every=512,
        line="|    total_timesteps | 1152     |",
        step=1152,
    ),
    "pair_by_prefix": Expected(
        "logs/44k",
        "G_{step}.pth",
        "step",
        "",
        also=("D_{step}.pth",),
        every=20,
        line="2026-11-27 21:08:42,574\t44k\tINFO\tLosses: [1.9, 0.5], step: 104, lr: 0.0001",
        step=105,
    ),
    "numbered_and_absolute_pointer": Expected(
        "work_dirs/retina",
        "iter_{step}.pth",
        "step",
        "--resume",
        every=15,
        beside=frozenset({("work_dirs/retina/last_checkpoint", "pointer")}),
        line="11/27 21:25:19 - mmengine - INFO - Iter(train) [   115/150]  base_lr: 1.0e-02 lr: 9.9e-03  "
        "eta: 0:00:05  time: 0.0402  data_time: 0.0012  memory: 123  loss: 1.8400  loss_cls: 0.31",
        step=115,
    ),
    "distributed_folder": Expected(
        "outputs/checkpoint",
        "step-{step}",
        "step",
        "",
        sentinel=".metadata",
        every=20,
        line="[rank1]:\x1b[36m[titan] 2026-11-27 21:10:43,123 - root - INFO - \x1b[31mstep: 105  "
        "\x1b[32mloss:  1.3900  \x1b[34mtps: 1,234",
        step=105,
    ),
    "description_first": Expected(
        "results/1986/save", "step_{step}", "step", "", sentinel="model.ckpt", every=1500
    ),
    "metric_in_name": Expected(
        "runs/*",
        "epoch={epoch}-val_loss=*.ckpt",
        "epoch",
        "--ckpt {checkpoint}",
        every=1,
        deletes=True,
        line="epoch 11: train_loss 0.5894 val_loss 0.6483",
        step=12,
    ),
    "bare_numbers": Expected(
        "checkpoints",
        "{step}",
        "step",
        "",
        sentinel="state.pkl",
        width=6,
        every=20,
        deletes=True,
        beside=frozenset({("checkpoints/last/weights.npz", "copy"), ("checkpoints/last/state.pkl", "copy")}),
        line="Training:  56%|#####     | 112/200 [00:04<00:03, 24.9it/s]",
        step=112,
    ),
    "saves_on_stop": Expected(
        ".",
        "model.pt",
        "",
        "{checkpoint}",
        is_renamed=True,
        line="{'global_step': 117, 'loss': 0.01709, 'lr': 0.0001}",
        step=117,
        saves_on_stop=True,
    ),
    "yaml_config": Expected(
        "artifacts",
        "ckpt_{step}.pkl",
        "step",
        "resume_from={checkpoint}",
        every=20,
        line='{"_step": 117, "train/loss": 0.02, "_runtime": 4.7}',
        step=117,
    ),
    "says_nothing": Expected("save", "step_{step}", "step", "", every=20, is_renamed=True),
}


@pytest.mark.parametrize("name", PROVEN)
def test_a_script_is_recognised_and_its_resume_is_proven(name: str, tmp_path: Path) -> None:
    expected = PROVEN[name]

    found = rehearsed(name, tmp_path)

    saves, resumed = found.saves, found.resumed
    assert resumed is not None, [(one.arguments, one.outcome, one.line) for one in found.tries]
    assert found.is_proven, found.again
    assert (folder_of(found), saves.pattern, saves.also) == (expected.folder, expected.pattern, expected.also)
    assert (saves.counts, saves.sentinel, saves.width) == (expected.counts, expected.sentinel, expected.width)
    assert saves.is_renamed == expected.is_renamed
    assert not expected.every or saves.every == expected.every
    assert (saves.kept is not None and not saves.is_in_place) == expected.deletes
    assert {(one.path, one.kind) for one in saves.beside} == expected.beside
    assert resumed.arguments == expected.resume
    assert found.saved_on_stop == expected.saves_on_stop
    assert step_read(found, expected.line) == (expected.step or None)
    assert {file.name for file in tmp_path.iterdir()} == {file.name for file in SCRIPTS.glob(f"{name}.*")}


@pytest.mark.parametrize("name", ["folders_and_latest", "bare_numbers"])
def test_a_script_is_proven_where_the_kernel_tells_nothing_of_files(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_the_kernel(monkeypatch)

    found = rehearsed(name, tmp_path)

    assert found.is_proven, [(one.arguments, one.outcome, one.line) for one in found.tries]
    assert found.resumed is not None
    assert found.resumed.arguments == PROVEN[name].resume
    assert (found.saves.pattern, found.saves.sentinel) == (PROVEN[name].pattern, PROVEN[name].sentinel)
    assert {(one.path, one.kind) for one in found.saves.beside} == PROVEN[name].beside


def step_read(found: Rehearsal, line: str) -> int | None:
    """Return the step that an agent with the config of this rehearsal reads in a line."""
    if found.progress is None:
        return None
    read = reader_for(progress_of(found.progress), epochs=found.saves.counts == "epoch").read(line)
    return read.step if read is not None else None


NOT_PROVEN = {
    "counts_anew": Outcome.COUNTED_ANEW,
    "ignores_its_flag": Outcome.STARTED_OVER,
    "by_environment": Outcome.STARTED_OVER,
}


@pytest.mark.parametrize("name", NOT_PROVEN)
def test_a_script_that_does_not_resume_is_said_not_to(name: str, tmp_path: Path) -> None:
    found = rehearsed(name, tmp_path)

    assert not found.is_proven
    assert NOT_PROVEN[name] in {one.outcome for one in found.tries}
    assert found.resumed is None
    assert len(found.saves.numbers) >= 3
    assert not found.saved_on_stop


def test_a_script_that_saves_at_its_end_alone_has_nothing_to_resume_from(tmp_path: Path) -> None:
    found = rehearsed("only_at_the_end", tmp_path)

    assert (found.saves.pattern, len(found.saves.saves)) == ("final_model.pkl", 1)
    assert not found.tries
    assert "only once, at its end" in found.why_open


def test_a_script_that_saves_nothing_is_not_said_to_have_a_checkpoint(tmp_path: Path) -> None:
    found = rehearsed("never_saves", tmp_path)

    said = {one.topic: one for one in conclusions(found)}
    assert said["checkpoint"].certainty is Certainty.UNKNOWN
    assert said["progress"].certainty is Certainty.UNKNOWN
    assert not found.saves.saves


def test_a_script_that_saves_too_seldom_is_made_to_save_sooner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prime_train.rehearsal.observe.UNSAVED_S", 2.0)

    found = rehearsed("slow_pieces", tmp_path)

    assert found.lowered is not None
    assert found.lowered.option == "--save-every"
    assert found.is_proven, found.again
    assert found.was_hit
    assert (found.saves.folder, found.saves.pattern) == ("exp", "state.ckpt")
    assert found.resumed is not None
    assert found.resumed.arguments == "--resume auto"


def test_a_script_that_saves_all_the_time_is_stopped_after_a_few_saves(tmp_path: Path) -> None:
    found = rehearsed("saves_all_the_time", tmp_path)

    assert found.is_proven, found.again
    assert (found.saves.pattern, found.saves.every) == ("at_{step}.pkl", 2)
    assert len(found.saves.saves) < 100
    assert found.was_hit
