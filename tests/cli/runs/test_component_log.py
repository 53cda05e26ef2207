"""`prime-train logs --component`: the log of a trainer's inference server, from the run's machine."""

from dataclasses import replace

import pytest

from prime_train.runs.run import RunState
from prime_train.spec.spec import RunSpec
from prime_train.stores.sqlite.store import SqliteStore
from tests import builders as b
from tests.cli.shell import Shell

POD = "local-0123456789abcdef"
PRIME_RL = {"kind": "prime_rl", "steps": 9, "prime_rl": {"config": "rl.toml", "ref": "559b4477"}}
AREAL = {"kind": "areal", "command": "python3 gsm8k_rl.py", "steps": 9}


def training(shell: Shell, trainer: dict[str, object]) -> None:
    spec = RunSpec.model_validate({"name": "tiny", "trainer": trainer, "budget": {"usd": 5}})
    shell.home.mkdir()
    run = replace(b.run(RunState.TRAINING), spec=spec)
    assert SqliteStore(shell.home / "control.sqlite").create(
        replace(run, attempts=(replace(run.attempts[0], pod_id=POD),))
    )


@pytest.mark.parametrize(
    ("trainer", "component", "path"),
    [
        (PRIME_RL, "inference", "outputs/tiny/logs/latest/inference.log"),
        (AREAL, "rollout", "checkpoints/areal/logs/areal/tiny/run/rollout.log"),
    ],
)
def test_the_servers_own_log_is_shown(
    shell: Shell, trainer: dict[str, object], component: str, path: str
) -> None:
    training(shell, trainer)
    log = shell.home / "pods" / POD / "disk" / "work" / path
    log.parent.mkdir(parents=True)
    log.write_text("one\ntwo\n\r 1%\r 99%\nready\n")
    shown = shell.ok("logs", "tiny", "--component", component, "--lines", "3")
    assert shown.splitlines() == [f"--- {log}", "two", " 99%", "ready"]


def test_a_part_that_the_trainer_does_not_have_and_a_log_that_is_not_there_are_told(shell: Shell) -> None:
    training(shell, PRIME_RL)
    done = shell.run("logs", "tiny", "--component", "rollout")
    assert (done.returncode, "has no component 'rollout'" in done.stderr, "inference" in done.stderr) == (
        2,
        True,
        True,
    )
    (shell.home / "pods" / POD / "disk").mkdir(parents=True)
    assert "has a log of inference now" in shell.run("logs", "tiny", "--component", "inference").stderr
    assert (
        "can be combined with --lines only"
        in shell.run("logs", "tiny", "--component", "inference", "-f").stderr
    )
