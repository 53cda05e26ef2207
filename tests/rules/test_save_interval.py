"""Whether the interval of checkpoints is known, for each way in which scripts save and are told how often."""

from pathlib import Path

import pytest

from prime_train.checks.validate import validate
from prime_train.spec.finding import Finding

STEPS = 'pattern: "ckpt-{step}.pt"'
GROUP = 'pattern: "model_{step}.pt", also: ["optim_{step}_rank*.pt"]'
EPOCHS = 'pattern: "checkpoint-{epoch}.pth"'
BOTH = 'pattern: "epoch={epoch}-step={step}.ckpt"'
FIXED = "pattern: last.pt"


def found(folder: Path, checkpoints: str, options: str, *, spot: str = "") -> dict[str, Finding]:
    """Return the findings on a script of 1000 steps, or epochs, with these options, by their codes."""
    (folder / "train.py").write_text("")
    (folder / "run.yaml").write_text(
        f"name: x\ntrainer:\n  command: 'python train.py {options}'\n  steps: 1000\n  resume: ''\n  code: "
        f"{{folder: {folder}}}\n"
        f"checkpoints: {{folder: out, {checkpoints}}}\n"
        f"hardware: {{provider: prime, gpus: [H100_80GB]{spot}}}\nbudget: {{usd: 10}}\n"
    )
    return {finding.code: finding for finding in validate([folder / "run.yaml"], {"CI": "1"}).findings}


@pytest.mark.parametrize("checkpoints", [STEPS, GROUP, EPOCHS, BOTH, FIXED])
def test_an_interval_in_the_config_is_known_for_every_unit(tmp_path: Path, checkpoints: str) -> None:
    assert "RE501" in found(tmp_path, checkpoints, "")
    assert "RE508" in found(tmp_path, checkpoints, "", spot=", spot: only")
    assert (
        not {"RE501", "RE508"}
        & found(tmp_path, f"{checkpoints}, every_steps: 100", "", spot=", spot: only").keys()
    )


@pytest.mark.parametrize(
    ("checkpoints", "options"),
    [
        *(
            (STEPS, one)
            for one in (
                "--save_steps 100",
                "--save-steps=100",
                "--ckpt_every 100",
                "--save-every 100",
                "--save_interval=1_000",
            )
        ),
        *(
            (STEPS, one)
            for one in (
                "--save_every_n_steps 100",
                "--checkpoint-frequency 100",
                "train.save_interval=100",
                "+save_every=100",
            )
        ),
        *((GROUP, one) for one in ("--save_every 100", "--snapshot_freq 100")),
        *(
            (EPOCHS, one)
            for one in (
                "--save_freq 5",
                "--save-period=1",
                "--save_every_n_epochs 2",
                "--checkpoint_epochs 2",
                "--save_epochs 1",
            )
        ),
        *((BOTH, one) for one in ("--every_n_train_steps 50", "--save_step_frequency 100")),
        *((FIXED, one) for one in ("--save_every 100", "--save_epoch_freq 1", "--checkpointing_steps 10")),
    ],
)
def test_an_interval_on_the_command_line_is_known(tmp_path: Path, checkpoints: str, options: str) -> None:
    assert not {"RE501", "RE508"} & found(tmp_path, checkpoints, options).keys()
    assert not {"RE501", "RE508"} & found(tmp_path, checkpoints, options, spot=", spot: only").keys()


@pytest.mark.parametrize(
    ("checkpoints", "options"),
    [
        (STEPS, "--save_steps auto"),
        (STEPS, "--save_steps 0"),
        (STEPS, "--save_epochs 1"),
        (EPOCHS, "--save_steps 100"),
        (STEPS, "--save_total_limit 3"),
        (STEPS, "--steps 100"),
    ],
)
def test_a_number_that_is_no_interval_of_these_checkpoints_is_none(
    tmp_path: Path, checkpoints: str, options: str
) -> None:
    assert "RE501" in found(tmp_path, checkpoints, options)


def test_an_interval_of_epochs_is_asked_for_in_epochs(tmp_path: Path) -> None:
    assert "as many epochs" in found(tmp_path, EPOCHS, "")["RE501"].fix
    assert "trainer's interval" in found(tmp_path, STEPS, "")["RE501"].fix


def test_an_interval_on_the_command_line_that_is_longer_than_the_run_is_warned_of(tmp_path: Path) -> None:
    finding = found(tmp_path, STEPS, "--save_every 1001")["RE502"]
    assert (finding.line, finding.message) == (
        3,
        "a checkpoint every 1001 steps in a run of 1000 steps: none before the end",
    )
    assert (
        "every 2000 epochs in a run of 1000 epochs"
        in found(tmp_path, EPOCHS, "--save_freq 2000")["RE502"].message
    )
    assert "RE502" not in found(tmp_path, STEPS, "--save_every 1000")
