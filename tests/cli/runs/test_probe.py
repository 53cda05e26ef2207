"""`prime-train probe`: a real short run that is measured, and the estimates before and after it."""

import json
from typing import Any

import pytest

from prime_train.text.formatting import span
from tests.cli.shell import Shell

UNKNOWN = "How long a step takes is not known"
TRAINER = """\
import json, sys, time
for step in range(1, 100_000):
    print(json.dumps({"step": step, "loss": 1 / step}), flush=True)
    time.sleep(0.05)
"""
CONFIG = """\
name: pace
trainer: {command: python train.py, steps: 720000, code: {folder: tree}}
health: {heartbeat_s: 1, overdue_s: 10, silence_s: 20, settle_s: 5}
hardware: {disk_gib: 1}
budget: {usd: 5, hours: 9, deadline: "2099-01-01"}
after: [{name: evaluate, run: "false"}]
outputs: ["*.csv"]
require: ["loss <= 1"]
"""


@pytest.fixture(name="config")
def _config(shell: Shell) -> str:
    shell.write("tree/train.py", TRAINER)
    shell.write("pace.yaml", CONFIG)
    return "pace.yaml"


def cost(shell: Shell, config: str) -> Any:
    return json.loads(shell.ok("cost", config, "--usd-per-hour", "2", "--json"))


def test_a_probe_ends_by_itself_and_makes_the_cost_of_its_config_known(shell: Shell, config: str) -> None:
    assert UNKNOWN in shell.run("cost", config, "--usd-per-hour", "2", COLUMNS="200").stdout

    output = shell.ok("probe", config, "--steps", "20", "--seconds", "1", "--usd", "0.5", "--follow")
    run_id = output.split(" ", 1)[0]
    assert run_id.startswith("pace-probe-")
    assert "it ends once 20 steps were measured, and costs $0.50 at most" in output
    found = json.loads(shell.ok("status", run_id, "--json"))
    assert (found["state"], found["budget_usd"], found["after"]) == ("succeeded", 0.5, None)
    probe = found["probe"]
    assert probe["config"] == "pace"
    assert probe["steps"] >= 20
    assert probe["step_s"] >= 0.05
    assert 0 <= probe["spread_s"] < probe["step_s"]
    words = f"there, all 720,000 steps of pace take {span(probe['hours'] * 3600)} and cost"
    assert words in shell.ok("status", run_id)
    assert probe["hours"] == pytest.approx(720000 * probe["step_s"] / 3600)

    diagnosed = shell.ok("diagnose", run_id)
    assert "measured: " in diagnosed
    assert "interrupted" not in diagnosed
    after = cost(shell, config)
    (machine,), (measured,) = after["machines"], after["measured"]
    assert machine["step"]["known"] == "measured"
    assert machine["step"]["why"] == f"measured in an earlier run: probe {run_id}, {probe['steps']} steps"
    low, high = machine["full"]["usd"]
    assert low < 720000 * probe["step_s"] / 3600 * 2 < high
    assert high / low < 1.6
    assert (measured["run"], measured["is_probe"], measured["seconds"]) == (run_id, True, probe["step_s"])
    assert f"probe {run_id}" in shell.ok("cost", config, "--usd-per-hour", "2")

    planned = json.loads(shell.ok("run", config, "--dry-run", "--json"))
    assert {offer["to_the_end"]["training_hours_known"] for offer in planned["offers"]} == {"measured"}


def test_a_config_is_profiled_by_a_probe_of_a_few_steps(shell: Shell, config: str) -> None:
    done = shell.run("profile", config, "--steps", "5", "--usd", "0.5", "--json")
    assert done.returncode == 0, done.stderr
    assert "it ends once 10 steps were made, and costs $0.50 at most" in done.stderr
    found = json.loads(done.stdout)
    assert found["run"].startswith("pace-probe-")
    assert found["kind"] == "command"
    assert found["steps"] >= 10
    assert found["mean_s"] >= 0.05
    assert "all 720,000 steps of pace take" in found["probe"]
    assert json.loads(shell.ok("status", found["run"], "--json"))["state"] == "succeeded"


def test_a_config_that_cannot_be_launched_is_not_profiled(shell: Shell, config: str) -> None:
    (shell.here / config).write_text(CONFIG.replace("usd: 5", "usd: -5"))
    done = shell.run("profile", config)
    assert (done.returncode, done.stdout) == (1, "")
    assert "budget.usd" in done.stderr or "usd" in done.stderr


def test_a_dry_run_of_a_probe_says_what_the_probe_costs_and_leaves_nothing(shell: Shell, config: str) -> None:
    output = shell.ok("probe", config, "--dry-run")
    assert "launch on local local-spot (spot)" in output
    assert "15 min of training (assumed)" in output
    assert "$2.00: enough for" in output
    assert json.loads(shell.ok("status", "--json")) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--steps", "2"), "steps is 2"),
        (("--usd", "0"), "usd is 0"),
        (("--seconds", "-1"), "seconds is -1"),
        (("--set", "trainer.steps=0"), "trainer.steps"),
        (("--set", "trainer.steps=5"), "trainer.steps is 5: too few steps to measure"),
    ],
)
def test_a_probe_with_a_wrong_value_is_refused_and_nothing_is_launched(
    shell: Shell, config: str, options: tuple[str, ...], message: str
) -> None:
    done = shell.run("probe", config, *options)
    assert done.returncode in (1, 2)
    assert message in done.stdout + done.stderr
    assert json.loads(shell.ok("status", "--json")) == []


def test_a_probe_whose_trainer_fails_says_why(shell: Shell, config: str) -> None:
    shell.write("tree/train.py", "raise ModuleNotFoundError(\"No module named 'flash_attn'\")\n")
    output = shell.run("probe", config, "--follow")
    assert output.returncode == 1
    assert "import error" in output.stdout
    assert "flash_attn" in output.stdout


def test_a_probe_of_a_short_config_measures_the_steps_that_it_has(shell: Shell, config: str) -> None:
    shell.write("tree/train.py", TRAINER.replace("100_000", "9"))
    output = shell.ok("probe", config, "--set", "trainer.steps=8", "--follow")
    assert "it ends once 7 steps were measured" in output
    run_id = output.split(" ", 1)[0]
    assert json.loads(shell.ok("status", run_id, "--json"))["probe"]["steps"] == 7


def test_a_probe_takes_no_other_config_because_it_would_get_that_ones_budget(
    shell: Shell, config: str
) -> None:
    shell.write("tree/train.py", "raise ModuleNotFoundError(\"No module named 'flash_attn'\")\n")
    run_id = shell.run("probe", config, "--follow").stdout.split(" ", 1)[0]
    for more in ((), ("--name", "pace-probe")):
        done = shell.run("resume", run_id, "--config", config, *more)
        assert done.returncode == 2
        assert f"{run_id} is a probe" in done.stderr
        assert f"prime-train probe {config}" in done.stderr
    found = json.loads(shell.ok("status", run_id, "--json"))
    assert (found["state"], found["budget_usd"]) == ("failed", 2.0)


def test_the_cost_of_another_model_is_estimated_although_this_one_was_measured(
    shell: Shell, config: str
) -> None:
    shell.ok("probe", config, "--steps", "20", "--seconds", "1", "--follow")
    assert cost(shell, config)["machines"][0]["step"]["known"] == "measured"
    assert UNKNOWN in shell.run("cost", config, "--usd-per-hour", "2", "--model", "70B", COLUMNS="200").stdout
