"""A job or a laptop needs no provider's key: what is for rent is told by the control plane, or else the
catalogue's prices are shown.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from prime_train.runs.signing import market_key
from tests.cli.estimates.test_find import row
from tests.cli.gha.job import GOOD, Job
from tests.cli.gha.test_gha_earlier_runs import commented
from tests.cli.shell import Shell
from tests.fakes.http import Response, ScriptedServer
from tests.fakes.prime import FakePrime
from tests.webhook.calls import MASTER

H100 = GOOD.replace("usd_per_hour_max: 2", "gpus: [H100_80GB]")
CATALOGUE = "what is free now, and what it costs now, is not known."


@pytest.fixture(name="plane", scope="module")
def _plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Return the variables that lead to a control plane that has a provider's key, with its market key and
    its master key.
    """
    shell = Shell(tmp_path_factory.mktemp("plane"))
    with FakePrime(tmp_path_factory.mktemp("prime"), machines=False) as fake:
        fake.rows = (row("H100_80GB", 1, 2.9, spot=True), row("H100_80GB", 1, 4.6))
        keys = {"PRIME_API_KEY": fake.api_key, "PRIME_API_BASE_URL": fake.url}
        with shell.started("serve", "--port", "0", "--no-watch", until="serving ", **keys):
            found = dict(line.split("=", 1) for line in shell.ok("key", "--show").splitlines())
            yield found | {
                "PRIME_TRAIN_MARKET_KEY": market_key(bytes.fromhex(found["PRIME_TRAIN_MASTER_KEY"]))
            }


def test_a_pull_request_is_priced_by_the_control_planes_offers(job: Job, plane: dict[str, str]) -> None:
    reader = {name: value for name, value in plane.items() if name != "PRIME_TRAIN_MASTER_KEY"}
    found = commented(job, {}, {"configs/small.yaml": H100}, **reader)
    assert ("| $2.90 |" in found.text, "| $4.60 |" in found.text, CATALOGUE in found.text) == (
        True,
        True,
        False,
    )
    assert found.warnings == ""


def test_a_control_plane_without_the_providers_of_a_config_leaves_list_prices(
    job: Job, plane: dict[str, str]
) -> None:
    reader = {name: value for name, value in plane.items() if name != "PRIME_TRAIN_MASTER_KEY"}
    elsewhere = H100.replace("disk_gib: 1,", "disk_gib: 1, provider: runpod,")
    found = commented(job, {}, {"configs/small.yaml": elsewhere}, **reader)
    assert ("$2.90" in found.text, CATALOGUE in found.text, found.warnings) == (False, True, "")


def test_offers_that_cannot_be_read_are_told_once_and_list_prices_shown(job: Job) -> None:
    key = market_key(MASTER)
    with ScriptedServer(Response(200, b"{}"), Response(503, b"{}", headers={"retry-after": "60"})) as there:
        files = {"configs/small.yaml": H100, "configs/other.yaml": H100.replace("name: small", "name: other")}
        found = commented(job, {}, files, PRIME_TRAIN_STORE=there.url, PRIME_TRAIN_MARKET_KEY=key)
        assert [request.path for request in there.requests] == ["/v1/market", "/v1/store/offers"]
    assert found.warnings.count("the control plane's offers could not be read") == 1
    assert CATALOGUE in found.text


def test_a_dry_run_of_a_job_names_the_machine_that_the_control_plane_would_rent(
    job: Job, plane: dict[str, str]
) -> None:
    job.commit({"configs/small.yaml": H100}, "change")
    did = job.run(
        "launch",
        "workflow_dispatch",
        {"inputs": {}, "ref": "refs/heads/main"},
        PRIME_TRAIN_INPUT_CONFIG="configs/small.yaml",
        PRIME_TRAIN_INPUT_DRY_RUN="true",
        **{name: value for name, value in plane.items() if name != "PRIME_TRAIN_MARKET_KEY"},
    )
    assert did.code == 0, did.log
    assert "A launch would request" in did.summary
    assert "at $2.90 an hour" in did.summary


def test_a_laptop_without_a_providers_key_sees_what_the_control_plane_would_rent(
    plane: dict[str, str], tmp_path: Path
) -> None:
    shell = Shell(tmp_path)
    reaching = {name: value for name, value in plane.items() if name != "PRIME_TRAIN_MARKET_KEY"}
    (tmp_path / "train.py").write_text("print(1)\n")
    config = str(shell.write("small.yaml", H100))
    for words in (
        ("run", config, "--dry-run"),
        ("cost", config),
        ("find", "--model", "Qwen/Qwen3-0.6B", "--gpus", "1"),
    ):
        done = shell.run(*words, **reaching)
        assert done.returncode == 0, done.stderr
        assert ("2.90" in done.stdout, "list price" in done.stdout) == (True, False), done.stdout
