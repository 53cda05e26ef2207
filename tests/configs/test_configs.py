"""The configs that ship can be launched as far as that can be checked from here, and report what must be
filled in.
"""

import json
import re
import shlex
from pathlib import Path

import pytest

from prime_train.checks.validate import check_configs
from prime_train.configs.loader import load_configs
from prime_train.planning.new_configs.ready_configs import ready_names
from prime_train.runs.offer import Offer, variant_of
from prime_train.spec.config_format import flags
from prime_train.spec.reader import read_config
from prime_train.spec.spec import RunSpec
from prime_train.trainers.of_spec import trainer_for
from prime_train.trainers.prime_rl.install import UV_ARCHIVES
from tests.cli.inside import Inside

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "configs").rglob("*.yaml"))
PRESETS = {
    "areal-1gpu-1h",
    "areal-1gpu-3h",
    "areal-1gpu-fast",
    "areal-1gpu-full",
    "hf-sft",
    "torchtitan-llama3-8b",
    "trl-grpo",
    "trm-arc1",
    "trm-arc1-1gpu",
}
MEMORY = re.compile(r"#   prime-train (memory .+): ([0-9.]+) GiB")
WANTED = {
    "demo",
    "m7c-125m",
    "trm-arc2",
    "areal-gsm8k",
    "qwen3-4b-full",
    "qwen3-4b-lora",
    "qwen3-8b-full",
    "qwen3-8b-lora",
}


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
    assert set(ready_names()) == PRESETS


PIPED = re.compile(r"(?:curl|wget)\b[^|\n]*\|\s*(?:env\s+(?:\S+=\S*\s+)*)?(?:sudo\s+)?(?:ba|z|da)?sh\b")
"""A program from the network that a shell runs unseen."""


@pytest.mark.parametrize("folder", ["actions", "agent", "configs", "docs", "examples", "lambdas", "src"])
def test_nothing_that_ships_runs_a_program_from_the_network_unseen(folder: str) -> None:
    files = [
        path
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".yaml", ".yml", ".md", ".sh", ".py", ".toml"}
    ]
    found = {
        path.relative_to(ROOT).as_posix()
        for path in files
        if PIPED.search(path.read_text(encoding="utf-8", errors="replace"))
    }
    assert found == set()
    assert PIPED.search("curl -LsSf --retry 3 https://example.org/install.sh | env UV_NO_MODIFY_PATH=1 sh")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_uv_comes_in_the_version_of_the_agent_and_by_its_hash(path: Path) -> None:
    for command in spec_of(path).setup:
        if re.search(r"\buv==|pip install[^&|]*\buv\b", command):
            assert f"uv=={UV_ARCHIVES.rpartition('/')[2]} --hash=sha256:" in command
            assert "--require-hashes" in command


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_is_wrong_with_it(path: Path) -> None:
    (loaded,) = load_configs([path.relative_to(ROOT)])
    assert loaded.subject is not None
    found, _ = check_configs([loaded])
    assert found == ()
    assert spec_of(path).name == path.stem


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_a_machine_gets_holds_what_is_run_on_it(path: Path) -> None:
    spec = spec_of(path)
    folder = ROOT / spec.trainer.code.folder
    assert folder.is_dir()
    if spec.trainer.prime_rl is not None:
        assert (folder / spec.trainer.prime_rl.config).is_file()
    if path.stem == "m7c-125m":
        return  # its code is in the repository that it is copied into
    own = [
        word
        for word in shlex.split(spec.trainer.command)
        if word.endswith((".py", ".sh")) and "/" not in word.removeprefix("configs/")
    ]
    assert all((folder / word).is_file() for word in own)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_its_command_can_be_read_by_a_shell_with_and_without_a_checkpoint(path: Path) -> None:
    for spec in in_every_variant(spec_of(path)):
        _check_command(spec)


def _check_command(spec: RunSpec) -> None:
    trainer = trainer_for(spec)
    for step, folder in ((None, None), (777, "/w/checkpoints/step_777")):
        line = trainer.command(spec, checkpoints="/w/checkpoints", resume_step=step, resume_folder=folder)
        words = shlex.split(line)
        assert words
        assert ("777" in line) == (step is not None)


@pytest.mark.parametrize("path", [path for path in FILES if path.stem in PRESETS], ids=lambda path: path.stem)
def test_the_memory_that_a_preset_names_is_what_the_estimator_says_and_fits(
    path: Path, tmp_path: Path
) -> None:
    named = MEMORY.findall(path.read_text(encoding="utf-8"))
    assert bool(named) != (spec_of(path).trainer.kind == "trm"), "the estimator knows language models"
    shell = Inside(tmp_path)
    for line, peak_gib in named:
        estimate = json.loads(shell.ok(*line.split(), "--json"))
        assert f"{estimate['trainer']['peak_gib']:.1f}" == peak_gib
        assert estimate["fits"]


@pytest.mark.parametrize("path", [path for path in FILES if path.stem in PRESETS], ids=lambda path: path.stem)
def test_a_preset_can_be_launched_from_an_empty_folder_and_a_step_is_the_same_in_every_variant(
    path: Path, tmp_path: Path
) -> None:
    shell = Inside(tmp_path)
    shell.ok("init", "--preset", path.stem, "--name", "mine", "--budget", "3", "--yes")
    assert ": ok" in shell.ok("validate", "configs/mine.yaml")
    read = read_config(tmp_path / "configs" / "mine.yaml").spec
    assert read is not None
    assert (read.name, read.budget.usd) == ("mine", 3)
    assert len({sequences_of(spec) for spec in in_every_variant(read)}) == 1


def in_every_variant(spec: RunSpec) -> list[RunSpec]:
    return [spec.variant(number) for number in range(len(spec.hardware.variants))] or [spec]


def sequences_of(spec: RunSpec) -> int:
    """Return the sequences of a step of TRL's scripts; 0 for others, whose batch does not depend on the
    number of GPUs.
    """
    given = dict(flags(spec.trainer.command))
    batch, times = given.get("per_device_train_batch_size"), given.get("gradient_accumulation_steps")
    return int(batch) * int(times) * spec.hardware.count if batch and times else 0


def test_the_pilot_is_tried_for_50_steps_and_resumed_from_a_file() -> None:
    pilot = spec("m7c-125m")
    assert pilot.smoke is not None
    assert pilot.smoke.steps == 50
    assert pilot.trainer.progress.kind == "csv"
    line = trainer_for(pilot).command(
        pilot, checkpoints="/w/out", resume_step=500, resume_folder="/w/out/checkpoint_step500.pt"
    )
    assert line.endswith("--resume /w/out/checkpoint_step500.pt")
    assert "FILL IN" not in (ROOT / "configs" / "m7c-125m.yaml").read_text()


def test_a_step_of_the_pilot_is_the_same_on_every_gpu_it_may_get() -> None:
    pilot = spec("m7c-125m")
    sizes = {
        (one.environment["MICRO_BATCH"], one.environment["ACCUMULATE"]) for one in in_every_variant(pilot)
    }
    assert sizes == {("64", "4"), ("32", "8"), ("16", "16")}
    assert {int(batch) * int(times) for batch, times in sizes} == {256}
    for one in in_every_variant(pilot):
        assert '--micro-batch "$MICRO_BATCH"' in one.trainer.command
        assert one.smoke is not None
        assert '--micro-batch "$MICRO_BATCH"' in one.smoke.command
    assert {
        variant_of(Offer("", "", 0.0, False, kind, 1), pilot.hardware) for kind in pilot.hardware.gpus
    } == {0, 1, 2}


def test_trm_needs_two_datasets_exactly_and_is_not_put_where_it_may_be_lost() -> None:
    trm = spec("trm-arc2")
    first = trm.verification[0]
    assert (first.path, first.exactly) == ("data/**/dataset.json", 2)
    assert trm.hardware.spot == "never"
    assert (trm.trainer.kind, trm.outputs) == ("trm", ("checkpoints/evaluator_*/**",))
    line = trainer_for(trm).command(
        trm, checkpoints="/w/c", resume_step=500, resume_folder="/w/c/weights_500"
    )
    assert "++load_checkpoint=/w/c/weights_500/checkpoint.pt" in line
    assert "checkpoint_every_eval=True" in line


def test_areal_recovers_by_itself_and_is_stopped_where_it_learns_nothing() -> None:
    areal = spec("areal-gsm8k")
    assert areal.trainer.kind == "areal"
    line = trainer_for(areal).command(areal, checkpoints="/w/c", resume_step=None, resume_folder=None)
    assert "recover.mode=on" in line
    assert areal.health.zero_reward_steps == 10


def test_areal_on_one_card_fits_every_gpu_it_may_get(tmp_path: Path) -> None:
    shell = Inside(tmp_path)
    found = json.loads(shell.ok("memory", str(ROOT / "configs" / "areal-gsm8k.yaml"), "--json"))
    assert found["fits"]
    assert [variant.count for variant in spec("areal-gsm8k").hardware.variants] == [1, 1]
