"""`prime-train memory` and `prime-train cost` as a user sees them: at 80 columns, as JSON, and with missing
data.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_train.runs.offer import Offer
from prime_train.runs.run import RunState
from prime_train.spec.reader import read_config
from prime_train.stores.sqlite.store import SqliteStore
from tests.cli.documented import check
from tests.cli.estimates.test_find import ROWS
from tests.cli.inside import Inside
from tests.cli.shell import Shell
from tests.core.given import a_run
from tests.fakes.hub import QWEN3_8B, FakeHub
from tests.fakes.prime import FakePrime
from tests.rules.test_memory_and_hardware import CONFIG, TOML


class Command:
    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.code, self.out, self.err = -1, "", ""

    def __call__(self, *args: str, **env: str) -> str:
        done = self.shell.run(*args, **{"COLUMNS": "80"} | env)
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        return self.out

    def json(self, *args: str, **env: str) -> Any:
        found = json.loads(self(*args, "--json", **env))
        check(args[0], found)
        return found

    @property
    def words(self) -> str:
        return " ".join(self.out.split())


@pytest.fixture(name="shell")
def _shell(tmp_path: Path) -> Shell:
    return Inside(tmp_path)


@pytest.fixture(name="command")
def _command(shell: Shell) -> Command:
    (shell.here / "run.yaml").write_text(CONFIG.format(folder="."))
    (shell.here / "rl.toml").write_text(TOML)
    return Command(shell)


# ------------------------------------------------------------------------------------------------------------
# memory


def test_memory_is_shown_by_phase_with_its_formulas_and_whether_it_fits(command: Command) -> None:
    command("memory", "run.yaml")
    assert command.code == 0, command.err
    assert max(map(len, command.out.splitlines())) <= 80
    phases = [
        line.split()[0]
        for line in command.out.splitlines()
        if line.startswith(("loss", "backward", "optimizer step"))
    ]
    assert phases == ["loss", "backward", "optimizer"]
    assert "weights 4.0B x 4 B" in command.words
    assert "H100_80GB: 78 GiB for the trainer: it fits" in command.words
    assert "of cache at 144 KiB a token" in command.words


def test_memory_that_does_not_fit_leaves_with_1(command: Command) -> None:
    output = command.json("memory", "run.yaml", "--gpu", "RTX4090_24GB")
    assert command.code == 1
    assert (output["fits"], output["kinds"][0]["trainer"]) == (False, "no")
    peak = output["trainer"]["phases_gib"][output["trainer"]["peak_phase"]]
    assert sum(peak.values()) == pytest.approx(output["trainer"]["peak_gib"])
    assert output["trainer"]["band_gib"][0] < output["trainer"]["peak_gib"] < output["trainer"]["band_gib"][1]


def test_on_a_single_gpu_the_trainer_has_what_the_server_leaves(command: Command) -> None:
    file = command.shell.here / "run.yaml"
    file.write_text(file.read_text().replace("count: 2", "count: 1"))
    command("memory", "run.yaml")
    assert command.code == 1
    assert "H100_80GB: 12 GiB for the trainer beside the server's 0.85: it does not fit" in command.words


def test_memory_of_a_model_alone_and_of_a_trainers_own_config(command: Command) -> None:
    command("memory", "--model", "Qwen/Qwen3-30B-A3B", "--gpus", "8", "--lora", "--gpu", "H200_141GB")
    assert command.code == 0, command.err
    assert "of adapters x 4 B) / 8 GPUs" in command.words
    command("memory", "rl.toml")
    assert command.code == 0, command.err
    assert "--gpu H100_80GB" in command.words


def test_the_shape_of_a_model_nobody_knows_is_requested_at_the_hub_only_on_demand(command: Command) -> None:
    new = replace(QWEN3_8B, id="somebody/new")
    with FakeHub(new) as hub:
        output = command.json(
            "memory", "--model", "somebody/new", "--hub", "--gpu", "H200_141GB", HF_ENDPOINT=hub.url
        )
        assert output["model"] == {"name": "new", "params": 8_190_735_360, "guessed": False}
        command("memory", "--model", "somebody/other", "--hub", HF_ENDPOINT=hub.url)
        assert (command.code, "does not exist" in command.err) == (1, True)
        command("memory", "--model", "somebody/new", HF_ENDPOINT=hub.url)
        assert (command.code, "--hub" in command.err) == (2, True)


@pytest.mark.parametrize(
    ("args", "output"),
    [
        (("memory",), "no config and no model was given"),
        (("memory", "nope.yaml"), "cannot be read as a config"),
        (("memory", "--model", "mystery-model"), "is unknown"),
        (("memory", "--model", "7B", "--gpu", "H100"), "does not contain the memory of a GPU"),
        (("cost", "rl.toml", "--usd-per-hour", "5"), "contains no machine"),
        (("cost", "run.yaml", "--usd-per-hour", "5", "--tokens", "many"), "is not a number of tokens"),
        (("cost", "nope.yaml", "--usd-per-hour", "5"), "cannot be read as a config"),
    ],
)
def test_what_is_missing_is_reported_with_what_to_do(
    command: Command, args: tuple[str, ...], output: str
) -> None:
    command(*args)
    assert command.code == 2
    assert output in command.err
    assert "fix:" in command.err


# ------------------------------------------------------------------------------------------------------------
# cost


def test_a_cost_is_shown_line_by_line_with_what_the_budget_means(command: Command) -> None:
    command("cost", "run.yaml", "--usd-per-hour", "5")
    assert command.code == 0, command.err
    assert max(map(len, command.out.splitlines())) <= 80
    for name in ("provisioning", "set-up", "training", "saving", "upload", "losses", "total"):
        assert f"\n{name}" in command.out
    assert "estimated from published speeds" in command.words
    assert "Budget: enough: $100.00" in command.words


def test_a_step_time_that_is_given_is_reported_as_given(command: Command) -> None:
    (machine,) = command.json("cost", "run.yaml", "--usd-per-hour", "5", "--step-s", "36", "--on-demand")[
        "machines"
    ]
    training = next(line for line in machine["full"]["lines"] if line["name"] == "training")
    assert training["usd"] == pytest.approx([10, 10])
    assert training["why"] == "200 steps of 36 s, as given"
    assert machine["step"] == {"known": "given", "why": "as given", "seconds": [36, 36]}
    assert machine["budget"].startswith("enough")


def test_an_earlier_run_of_the_same_config_tells_how_long_a_step_takes(command: Command) -> None:
    spec = read_config(command.shell.here / "run.yaml").spec
    run = a_run(RunState.TRAINING)
    assert spec is not None
    assert run.current_attempt is not None
    rented = Offer("prime", "a", 5.0, spot=True, gpu="H100_80GB", gpu_count=2)
    attempt = replace(
        run.current_attempt, offer=rented, first_step_s=1000, last_sign_s=1990, last_step=100, resumed_step=0
    )
    command.shell.home.mkdir()
    assert SqliteStore(command.shell.home / "control.sqlite").create(
        replace(run, spec=spec, attempts=(attempt,))
    )

    command("cost", "run.yaml", "--usd-per-hour", "5")
    assert "measured in an earlier run" in command.words


def test_looking_makes_no_home(command: Command) -> None:
    command("cost", "run.yaml", "--usd-per-hour", "5")
    assert not command.shell.home.exists()


@pytest.fixture(name="fake")
def _fake(tmp_path: Path) -> Iterator[FakePrime]:
    with FakePrime(tmp_path / "prime", machines=False) as fake:
        fake.rows = tuple(row.model_copy(update={"gpuCount": 2}) for row in ROWS)
        yield fake


def test_offers_of_now_are_requested_unless_a_price_is_given_and_are_in_the_order_of_a_launch(
    command: Command, fake: FakePrime
) -> None:
    env = {"HOME": str(command.shell.here), "PRIME_API_KEY": fake.api_key, "PRIME_API_BASE_URL": fake.url}
    output = command.json("cost", "run.yaml", **env)
    assert command.code == 0, command.err
    to_the_end = [machine["full"]["usd_expected"] for machine in output["machines"]]
    assert to_the_end == sorted(to_the_end)
    assert {machine["gpu"] for machine in output["machines"]} == {"H100_80GB"}
    assert output["prices"] == ""
    asked = len(fake.requests)
    command.json("cost", "run.yaml", "--usd-per-hour", "5", **env)
    assert len(fake.requests) == asked > 0


# ------------------------------------------------------------------------------------------------------------
# settings in scripts, and in commands alone

VERL = """\
MODEL=${MODEL:-Qwen/Qwen3-4B}
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\
    actor_rollout_ref.model.path=$MODEL data.train_batch_size=64 trainer.n_gpus_per_node=8 \\
    actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \\
    trainer.save_freq=20 trainer.total_training_steps=100 "$@"
"""
RUN = """\
name: x
trainer:
  kind: {kind}
  command: {command}
hardware: {{provider: prime, gpus: [H100_80GB], count: 8}}
budget: {{usd: 1000}}
"""


def test_memory_and_cost_of_a_run_that_a_shell_script_starts(command: Command) -> None:
    (command.shell.here / "go.sh").write_text(VERL)
    (command.shell.here / "verl.yaml").write_text(RUN.format(kind="verl", command="bash go.sh"))
    alone, run = command.json("memory", "go.sh"), command.json("memory", "verl.yaml")
    assert alone["model"]["name"] == run["model"]["name"] == "Qwen3-4B"
    assert alone["trainer"] == run["trainer"]
    assert run["trainer"]["gpus"] == 8
    assert "100 steps of" in command("cost", "verl.yaml", "--usd-per-hour", "20")


def test_memory_of_a_script_of_ones_own_is_assumed_from_what_its_command_says(command: Command) -> None:
    own = "python train.py --model Qwen/Qwen3-8B --lora --seq-len 2048"
    (command.shell.here / "own.yaml").write_text(RUN.format(kind="command", command=own))
    found = command.json("memory", "own.yaml")
    assert found["model"]["name"] == "Qwen3-8B"
    assert (found["trainer"]["method"], found["trainer"]["seq_len"]) == ("lora", 2048)
    assert "its code is not read" in " ".join(found["trainer"]["assumed"])
    (command.shell.here / "own.yaml").write_text(RUN.format(kind="command", command="python train.py"))
    command("memory", "own.yaml")
    assert "does not say which model is trained" in command.err


def test_a_script_that_trains_nothing_known_says_so(command: Command) -> None:
    (command.shell.here / "other.sh").write_text("ls -l\n")
    command("memory", "other.sh")
    assert "cannot be read as a config" in command.err
    assert "starts no training" in command("validate", "other.sh")
