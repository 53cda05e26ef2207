"""What a run is expected to cost on each machine, with the reasons, is the same in `find`, a dry run and a
pull request.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from prime_train.configs.loader import load_configs
from prime_train.github.commands.config_section import block
from prime_train.launch.review import offers_for, review
from prime_train.planning.offered import offered
from prime_train.runs.forecast import Forecast
from prime_train.runs.offer import Offer
from prime_train.runs.run import Attempt, RunState
from prime_train.spec.causes import Cause
from prime_train.spec.reader import read_config
from prime_train.stores.sqlite.store import SqliteStore
from tests import builders as b
from tests.cli.estimates.test_find import row
from tests.cli.inside import Inside
from tests.cli.shell import Shell
from tests.fakes.prime import FakePrime

ROOT = Path(__file__).parents[3]
ROWS = (
    row("H100_80GB", 2, 2.9, spot=True, place="FIN-01"),
    row("H100_80GB", 2, 4.6),
    row("A100_80GB", 2, 2.5, spot=True),
)
SPOT_WHY = "$17 to the end: 5.2 h of training (estimated) at $2.90/h, 0.5 losses expected, 29 min each"
STEADY_WHY = "$25 to the end: 5.2 h of training (estimated) at $4.60/h, hardly any losses expected"


@pytest.fixture(name="fake", scope="module")
def _fake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakePrime]:
    with FakePrime(tmp_path_factory.mktemp("prime"), machines=False) as fake:
        fake.rows = ROWS
        yield fake


@pytest.fixture(name="env")
def _env(fake: FakePrime) -> dict[str, str]:
    return {"PRIME_API_KEY": fake.api_key, "PRIME_API_BASE_URL": fake.url, "COLUMNS": "140"}


@pytest.fixture(name="shell")
def _shell(tmp_path: Path) -> Shell:
    """A folder with a config that fits three machines: a fast one, its on-demand twin, and one that is slower
    than it is cheap.
    """
    shell = Inside(tmp_path)
    text = (ROOT / "configs/qwen3-4b-lora.yaml").read_text().replace("[L40S_48GB]", "[A100_80GB, H100_80GB]")
    shutil.copytree(ROOT / "configs/qwen3-4b-lora", tmp_path / "configs/qwen3-4b-lora")
    (tmp_path / "configs/lora.yaml").write_text(text)
    return shell


def said(shell: Shell, *args: str, env: Mapping[str, str]) -> str:
    done = shell.run(*args, **env)
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


def _lost(number: int, at_s: int) -> Attempt:
    """Return an attempt whose spot machine was preempted half an hour after the order."""
    offer, end_s = Offer("prime", "s", 2.9, spot=True), at_s + 1800
    attempt = b.new_attempt(number, RunState.QUEUED, offer=offer, launched_s=at_s, cause=Cause.PREEMPTED)
    attempt = replace(attempt, first_heartbeat_s=at_s + 300, first_step_s=at_s + 1500)
    return replace(attempt, last_sign_s=end_s, fenced_s=end_s, ended_s=end_s)


def test_find_a_dry_run_and_a_pull_request_give_the_same_figures(
    shell: Shell, env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dry, found = (
        said(shell, "run", "configs/lora.yaml", "--dry-run", env=env),
        said(shell, "find", "configs/lora.yaml", env=env),
    )
    for text in (dry, found):
        assert SPOT_WHY in text
        assert (
            "based on losses and start times are assumptions, because no machine of this account was seen yet"
            in text
        )
    assert f"expected {SPOT_WHY}" in dry
    assert STEADY_WHY in dry
    assert dry.index(STEADY_WHY) < dry.index("A100_80GB, spot): $")
    assert "saving the config saves every 31 min" in dry

    monkeypatch.chdir(tmp_path)
    (loaded,) = load_configs([Path("configs/lora.yaml")], env)
    reviewed = review(
        loaded, offers_for(partial(offered, env), loaded, None), before={}, after=loaded.sources
    )
    comment = "\n".join(block(loaded.file, reviewed)).replace("\\", "")
    rows = [line for line in comment.splitlines() if line.startswith("| 2x ")]
    assert [row.split(" | ")[:4:3] for row in rows[:2]] == [
        ["| 2x H100_80GB spot", "$17"],
        ["| 2x H100_80GB on-demand", "$25"],
    ]
    order = [comment.index(why) for why in (SPOT_WHY, STEADY_WHY)]
    assert order == sorted(order)
    assert (
        "Losses and start times are assumptions, because the control plane's store cannot be read here."
        in comment
    )
    assert "Saving: the config saves every 31 min" in comment


def test_machines_are_found_although_the_runs_cannot_be_read(shell: Shell, env: dict[str, str]) -> None:
    shell.home.mkdir(parents=True)
    (shell.home / "control.sqlite").write_text("this is no database")
    found = said(shell, "find", "configs/lora.yaml", env=env)
    assert "assumptions, because the control plane's store cannot be read here" in found


def test_what_the_account_has_seen_changes_what_is_rented_and_how_it_is_explained(
    shell: Shell, env: dict[str, str]
) -> None:
    shell.home.mkdir(parents=True)
    store = SqliteStore(shell.home / "control.sqlite")
    now_s = store.now_s()
    lost = [_lost(number, now_s - number * 3600) for number in range(1, 31)]
    assert store.create(replace(b.run(RunState.STOPPED), attempts=tuple(lost), attempt=30))
    dry = json.loads(said(shell, "run", "configs/lora.yaml", "--dry-run", "--json", env=env))
    assert [(one["gpu"], one["spot"]) for one in dry["offers"]] == [
        ("H100_80GB", False),
        ("H100_80GB", True),
        ("A100_80GB", True),
    ]
    assert dry["offers"][1]["to_the_end"]["losses_per_hour"] > 1
    assert (
        dry["based_on"]
        == "losses and start times as seen on 30 machines of this account, together with assumptions"
    )
    assert "take 2x H100 on-demand" in said(shell, "find", "configs/lora.yaml", env=env)


def test_without_a_number_of_steps_every_face_takes_that_of_finished_runs_and_names_them(
    shell: Shell, env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/train.py").write_text("print('trains')\n")
    (tmp_path / "configs/own.yaml").write_text(
        "name: own\ntrainer: {command: python train.py, code: {folder: src}}\nbudget: {usd: 90}\nhardware: "
        "{provider: prime}\n"
    )
    faces = (
        ("run", "configs/own.yaml", "--dry-run", "--json"),
        ("find", "--model", "Qwen/Qwen3-8B", "--lora", "--json"),
    )
    before = [json.loads(said(shell, *args, env=env))["length"] for args in faces]
    assert "no finished run is like it: 10 hours of training are assumed" in before[0]
    assert before[1].startswith("100,000,000 tokens are assumed")
    cost = json.loads(said(shell, "cost", "configs/own.yaml", "--json", env=env))
    assert cost["length"] == before[0]
    store, spec = SqliteStore(shell.home / "control.sqlite"), read_config(tmp_path / "configs/own.yaml").spec
    assert spec is not None
    forecast = Forecast(family="prime_rl: Qwen/Qwen3-8B lora", batch_tokens=1e6)
    for run_id, steps in (("own-a", 100), ("own-b", 300)):
        assert store.create(
            replace(b.run(RunState.SUCCEEDED, run_id=run_id, spec=spec, best_step=steps), forecast=forecast)
        )
    after = [json.loads(said(shell, *args, env=env))["length"] for args in faces]
    for found, amounts in zip(
        after, ("200 steps: the median of 2", "200,000,000 tokens: the median of 2"), strict=True
    ):
        assert found.startswith(f"{amounts} finished runs of the same")
        assert "own-a" in found
        assert "own-b" in found
    cost = json.loads(said(shell, "cost", "configs/own.yaml", "--step-s", "36", "--json", env=env))
    assert cost["length"] == after[0]
    assert cost["machines"][0]["to_the_end"]["training_hours"] == pytest.approx(2.0)
    assert f"length {after[0]}" in said(shell, "run", "configs/own.yaml", "--dry-run", env=env)
    given = json.loads(said(shell, "cost", "configs/own.yaml", "--steps", "50", "--json", env=env))
    assert given["length"] == ""
    tokens = json.loads(
        said(shell, "find", "--model", "Qwen/Qwen3-8B", "--lora", "--tokens", "5M", "--json", env=env)
    )
    assert (tokens["length"], tokens["job"]["tokens"]) == ("", 5e6)
