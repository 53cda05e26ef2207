"""The configs that ship can be launched as far as that can be checked from here, and report what must be filled in."""

import shlex
from pathlib import Path

import pytest

from prime_train.configs.loader import load_configs
from prime_train.configs.parsing import read_config
from prime_train.core.spec import RunSpec
from prime_train.rules import judge
from prime_train.trainers import trainer_for

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "configs").glob("*.yaml"))
WANTED = {"demo", "m7c-125m", "trm-arc2", "areal-gsm8k", "qwen3-4b-full", "qwen3-4b-lora", "qwen3-8b-full", "qwen3-8b-lora"}


def spec_of(path: Path) -> RunSpec:
    spec = read_config(path).spec
    assert spec is not None
    return spec


def spec(name: str) -> RunSpec:
    return spec_of(ROOT / "configs" / f"{name}.yaml")


@pytest.fixture(autouse=True)
def _from_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to the folder from which configs are launched, to which their paths are relative."""
    monkeypatch.chdir(ROOT)


def test_every_kind_of_training_has_one() -> None:
    assert {path.stem for path in FILES} >= WANTED


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_is_wrong_with_it(path: Path) -> None:
    (loaded,) = load_configs([path.relative_to(ROOT)])
    assert loaded.subject is not None
    assert judge(loaded.subject, loaded.findings) == ()
    assert spec_of(path).name == path.stem


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_a_machine_gets_holds_what_is_run_on_it(path: Path) -> None:
    spec = spec_of(path)
    folder = ROOT / spec.trainer.tree.folder
    assert folder.is_dir()
    if spec.trainer.prime_rl is not None:
        assert (folder / spec.trainer.prime_rl.config).is_file()
    own = [word for word in shlex.split(spec.trainer.command) if word.endswith((".py", ".sh")) and "/" not in word.removeprefix("configs/")]
    assert all((folder / word).is_file() for word in own)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_its_command_can_be_read_by_a_shell_with_and_without_a_checkpoint(path: Path) -> None:
    spec = spec_of(path)
    trainer = trainer_for(spec)
    for step, folder in ((None, None), (500, "/w/checkpoints/step_500")):
        line = trainer.command(spec, checkpoints="/w/checkpoints", resume_step=step, resume_folder=folder)
        words = shlex.split(line)
        assert words
        assert ("500" in line) == (step is not None)


def test_the_pilot_is_tried_for_50_steps_and_resumed_from_a_file() -> None:
    pilot = spec("m7c-125m")
    assert pilot.smoke is not None
    assert pilot.smoke.steps == 50
    assert pilot.trainer.progress.kind == "csv"
    line = trainer_for(pilot).command(pilot, checkpoints="/w/checkpoints", resume_step=500, resume_folder="/w/checkpoints/step_500")
    assert line.endswith("--resume /w/checkpoints/step_500/checkpoint.pt")
    assert "'out/checkpoint_step{step}.pt'" in line


def test_trm_needs_two_datasets_exactly_and_is_not_put_where_it_may_be_lost() -> None:
    trm = spec("trm-arc2")
    first = trm.verification[0]
    assert (first.path, first.exactly) == ("data/**/dataset.json", 2)
    assert trm.hardware.spot == "never"
    assert "+load_checkpoint={checkpoint}/checkpoint" in trm.trainer.resume


def test_areal_recovers_by_itself_and_is_stopped_where_it_learns_nothing() -> None:
    areal = spec("areal-gsm8k")
    assert "recover.mode=auto" in areal.trainer.command
    assert areal.health.zero_reward_steps == 10
