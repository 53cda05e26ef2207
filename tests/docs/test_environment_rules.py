"""The commands of docs/aws.md that set a repository up: a key is never in an environment that any branch
could use.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from prime_train.runs.signing import market_key
from prime_train.stores.memory import MemoryStore
from prime_train.webhook.server.serve import Server
from tests.webhook.calls import webhook

ROOT = Path(__file__).parents[2]
KEY = "5e" * 32


def carried_out(folder: Path, **env: str) -> list[dict[str, str]]:
    (block,) = [
        one
        for one in re.findall(r"```sh\n(.*?)```", (ROOT / "docs/aws.md").read_text(), re.DOTALL)
        if "gh secret set" in one
    ]
    (folder / "bin").mkdir()
    (folder / "bin" / "gh").symlink_to(ROOT / "tests/fakes/gh")
    reported = folder / "told"
    path = os.pathsep.join(
        (str(folder / "bin"), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))
    )
    with Server(webhook(MemoryStore(), bytes.fromhex(KEY))) as plane:
        reaching = {
            "PRIME_TRAIN_STORE": plane.url,
            "PRIME_TRAIN_MASTER_KEY": KEY,
            "PRIME_TRAIN_HOME": str(folder / "home"),
        }
        given = {**os.environ, "PATH": path, "GH_TOLD": str(reported), **reaching, **env}
        subprocess.run(["bash", "-euc", block], env=given, cwd=folder, check=True, capture_output=True)
    return [json.loads(line) for line in reported.read_text().splitlines()]


@pytest.mark.parametrize(("name", "rule"), [("gpu", "reviewers"), ("gpu-watch", "deployment_branch_policy")])
def test_the_rule_of_an_environment_is_there_before_its_key(name: str, rule: str, tmp_path: Path) -> None:
    reported = carried_out(tmp_path)
    (put,) = [
        at
        for at, one in enumerate(reported)
        if one["method"] == "PUT" and one["name"].endswith(f"/environments/{name}")
    ]
    (secret,) = [at for at, one in enumerate(reported) if one["noun"] == "secret" and one["env"] == name]
    assert rule in json.loads(reported[put]["body"])
    assert (put < secret, reported[secret]["body"]) == (True, KEY)
    if name == "gpu-watch":
        (branch,) = [
            at
            for at, one in enumerate(reported)
            if one["name"].endswith("/gpu-watch/deployment-branch-policies")
        ]
        assert (put < branch < secret, reported[branch]["body"]) == (True, "name=main")


def test_the_repository_itself_gets_only_keys_that_rent_nothing(tmp_path: Path) -> None:
    reported = carried_out(tmp_path)
    here = {one["name"]: one["body"] for one in reported if one["noun"] == "secret" and not one["env"]}
    assert here == {"PRIME_TRAIN_MARKET_KEY": market_key(bytes.fromhex(KEY))}


def test_where_github_keeps_no_rules_no_key_is_brought(tmp_path: Path) -> None:
    reported = carried_out(tmp_path, GH_NO_RULES="1")
    assert [one for one in reported if one["body"] == KEY] == []
