"""What a machine costs is told without an account, from a dated catalogue, which says its age; an account's
offers take its place.
"""

import json
import re
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from prime_train.configs.loader import load_configs
from prime_train.github.commands.config_section import block
from prime_train.launch.review import offers_for, review
from prime_train.planning.offered import offered
from tests.cli.estimates.test_find import row
from tests.cli.inside import Inside
from tests.cli.shell import Shell
from tests.fakes.prime import FakePrime

ROOT = Path(__file__).parents[3]
AGE = re.compile(r"prices of 2026-\d\d-\d\d to 2026-\d\d-\d\d, up to \d+ days old; without an account")


@pytest.fixture(name="shell")
def _shell(tmp_path: Path) -> Shell:
    shell = Inside(tmp_path)
    shutil.copytree(ROOT / "configs/qwen3-4b-lora", tmp_path / "configs/qwen3-4b-lora")
    (tmp_path / "configs/lora.yaml").write_text((ROOT / "configs/qwen3-4b-lora.yaml").read_text())
    return shell


def answer(shell: Shell, *args: str, **env: str) -> Any:
    done = shell.run(*args, "--json", HOME=str(shell.here), **env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_find_and_cost_answer_with_the_same_machine_and_the_age_of_the_prices(shell: Shell) -> None:
    found, cost = answer(shell, "find", "configs/lora.yaml"), answer(shell, "cost", "configs/lora.yaml")
    for one in (found, cost):
        assert AGE.fullmatch(one["prices"]), one["prices"]
    best = cost["machines"][0]
    assert found["recommended"] == best["offer_id"] == "list:runpod:L40S_48GB:PCIe:2x:community"
    assert found["machines"][0]["usd_expected"] == best["full"]["usd_expected"]
    assert not shell.home.exists()


def test_the_headline_question_has_an_answer_without_an_account(shell: Shell) -> None:
    done = shell.run("find", "--model", "Qwen/Qwen3-8B", "--gpus", "2", HOME=str(shell.here))
    words = " ".join(done.stdout.split())
    assert done.returncode == 0, done.stderr
    assert "take 2x H200 on-demand in community at $7.18/h from runpod" in words
    assert AGE.search(words), words


def test_a_pull_request_shows_the_age_above_the_prices(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shell.here)
    (loaded,) = load_configs([Path("configs/lora.yaml")], {})
    comment = "\n".join(
        block(
            loaded.file,
            review(loaded, offers_for(partial(offered, {}), loaded, None), before={}, after=loaded.sources),
        )
    )
    comment = comment.replace("\\", "")
    assert re.search(f"{AGE.pattern[1:]}: what is free now", comment), comment
    assert comment.index("without an account") < comment.index("| 2x L40S_48GB on-demand")


def test_offers_of_an_account_take_the_place_of_the_catalogue(shell: Shell, tmp_path: Path) -> None:
    with FakePrime(tmp_path / "prime", machines=False) as fake:
        fake.rows = (row("L40S_48GB", 2, 9.9),)
        env = {"PRIME_API_KEY": fake.api_key, "PRIME_API_BASE_URL": fake.url}
        found, cost = (
            answer(shell, "find", "configs/lora.yaml", **env),
            answer(shell, "cost", "configs/lora.yaml", **env),
        )
    assert (found["prices"], cost["prices"]) == ("", "")
    assert [one["usd_per_hour"] for one in (*found["machines"], *cost["machines"])] == [9.9, 9.9]


def test_a_launch_never_sees_the_catalogue(shell: Shell) -> None:
    done = shell.run(
        "run", "configs/lora.yaml", "--set", "hardware.provider=runpod", "--dry-run", HOME=str(shell.here)
    )
    assert done.returncode != 0
    assert "RUNPOD_API_KEY" in done.stderr + done.stdout
    assert "list:" not in done.stdout


def test_a_provider_without_list_prices_is_priced_at_the_most_that_the_config_allows(shell: Shell) -> None:
    file = shell.here / "configs/lora.yaml"
    file.write_text(file.read_text().replace("hardware:\n", "hardware:\n  provider: prime\n"))
    done = shell.run("cost", "configs/lora.yaml", HOME=str(shell.here))
    assert done.returncode == 1
    assert "no list prices of these providers are known; without an account" in done.stderr
    file.write_text(file.read_text().replace("hardware:\n", "hardware:\n  usd_per_hour_max: 2.5\n"))
    cost = answer(shell, "cost", "configs/lora.yaml")
    assert cost["prices"].startswith("the highest price that the config allows, $2.50/h")
    assert [one["usd_per_hour"] for one in cost["machines"]] == [2.5]
