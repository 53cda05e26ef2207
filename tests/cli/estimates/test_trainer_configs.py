"""`prime-train memory` and `cost` of configs for AReaL, axolotl and LLaMA-Factory, alone and named by a run's
command.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.documented import check
from tests.cli.inside import Inside
from tests.rules.test_trainer_plans import AREAL, AXOLOTL, LLAMA_FACTORY

FILES = {"lf.yaml": LLAMA_FACTORY, "ax.yml": AXOLOTL, "ar.yaml": AREAL}
COMMANDS = {
    "lf.yaml": "llamafactory-cli train lf.yaml",
    "ax.yml": "axolotl train ax.yml",
    "ar.yaml": "python3 rl.py --config ar.yaml scheduler.type=local",
}
RUN = """\
name: tune
trainer:
  kind: {kind}
  command: {command}
  code: {{folder: .}}
  {steps}
hardware: {{gpus: [H100_80GB], count: {count}, spot: prefer, usd_per_hour_max: 3}}
budget: {{usd: 100}}
"""


@pytest.fixture(name="shell")
def _shell(tmp_path: Path) -> Inside:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return Inside(tmp_path)


def run_config(
    shell: Inside, name: str, *, steps: str = "steps: 500", more: str = "", count: int = 8
) -> None:
    kind = "command" if name == "ar.yaml" else "hf"
    command = f"{COMMANDS[name]}{more}"
    (shell.here / "run.yaml").write_text(RUN.format(kind=kind, command=command, steps=steps, count=count))


def answer(shell: Inside, *args: str) -> Any:
    done = shell.run(*args, "--json")
    assert done.returncode == 0, done.stderr
    check(args[0], json.loads(done.stdout))
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("name", "model"), [("lf.yaml", "Qwen3-4B"), ("ax.yml", "Llama-3.2-1B"), ("ar.yaml", "Qwen2.5-1.5B")]
)
def test_a_trainers_own_file_has_an_estimate_of_its_memory(shell: Inside, name: str, model: str) -> None:
    found = answer(shell, "memory", name, "--gpu", "H100_80GB")
    assert (found["model"]["name"], found["fits"]) == (model, True)
    assert 5 < found["trainer"]["peak_gib"] < 30
    # One sequence at a time is not what the file says, but what is asked.
    assert answer(shell, "memory", name, "--micro-batch", "8")["trainer"]["micro_batch"] == 8


@pytest.mark.parametrize("name", list(FILES))
def test_a_run_of_such_a_file_has_a_cost_and_a_fit(shell: Inside, name: str) -> None:
    run_config(shell, name)
    assert answer(shell, "memory", "run.yaml")["kinds"][0]["trainer"] == "yes"
    usd = answer(shell, "cost", "run.yaml")["machines"][0]["full"]["usd"]
    assert 0 < usd[0] < usd[1]


def test_the_command_changes_what_the_file_says(shell: Inside) -> None:
    run_config(shell, "lf.yaml", more=" lora_rank=64 per_device_train_batch_size=4", count=1)
    trainer = answer(shell, "memory", "run.yaml")["trainer"]
    assert trainer["micro_batch"] == 4
    run_config(shell, "ax.yml", more=" --micro-batch-size 16", count=1)
    assert answer(shell, "memory", "run.yaml")["trainer"]["micro_batch"] == 16


def test_the_steps_of_the_file_are_those_of_the_run(shell: Inside) -> None:
    (shell.here / "lf.yaml").write_text(LLAMA_FACTORY + "max_steps: 200\n")
    run_config(shell, "lf.yaml", steps="")
    done = shell.run("cost", "run.yaml")
    assert "200 steps" in done.stdout, done.stderr


def test_a_model_that_nobody_knows_is_named_with_what_to_do(shell: Inside) -> None:
    (shell.here / "lf.yaml").write_text(
        LLAMA_FACTORY.replace("Qwen/Qwen3-4B-Instruct-2507", "acme/unheard-of")
    )
    done = shell.run("memory", "lf.yaml")
    assert done.returncode == 2
    assert "'acme/unheard-of', which is unknown" in done.stderr
    assert "--model 7B" in done.stderr
    assert answer(shell, "memory", "lf.yaml", "--model", "7B")["trainer"]["method"] == "lora"
