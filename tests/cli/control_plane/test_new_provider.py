"""A provider that prime-train does not have is added as one package and one row, and every command works with
it. The contract of all providers is in `tests/contracts`.
"""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.advice import Call, Operation, Option
from prime_train.app.home import Home
from prime_train.aws import doctor
from prime_train.market.ranking import rank
from prime_train.providers.configured import lacking
from prime_train.providers.kinds import PROVIDERS
from prime_train.runs.run import Run, RunState
from prime_train.spec.access_run_secrets import is_allowed
from prime_train.spec.causes import Cause
from prime_train.spec.reader import read_text
from prime_train.spec.schema import schema_text
from prime_train.spec.spec import HardwareSpec
from tests import builders as b
from tests.cli import new_provider
from tests.cli.new_provider.server import API_KEY, Meadow
from tests.cli.shell import CONFIG, Shell
from tests.waiting import await_true

ROOT = Path(__file__).resolve().parents[3]
LONG = CONFIG.replace("--steps 20", "--steps 400 --step-seconds 0.02").replace("steps: 20", "steps: 400")


@pytest.fixture(name="meadow")
def _meadow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Meadow]:
    """Return the provider's server, whose machines find its package as the command does."""
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join((str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])))
    )
    with Meadow(tmp_path / "meadow") as meadow:
        yield meadow
        for machine in meadow.alive:
            meadow.end(machine.id)
        assert meadow.violations == []


@pytest.fixture
def shell(tmp_path: Path, meadow: Meadow, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Return the command with the provider's row, and with its key."""
    monkeypatch.setitem(PROVIDERS, new_provider.NAME, new_provider.ROW)
    for name, value in {new_provider.KEY: API_KEY, new_provider.URL: meadow.url}.items():
        monkeypatch.setenv(name, value)
    return replace(Shell(tmp_path), program=(sys.executable, "-m", "tests.cli.new_provider"))


def test_it_is_one_package_of_at_most_360_lines_and_one_row() -> None:
    package = Path(new_provider.__file__).parent
    files = [file for file in package.iterdir() if file.name != "__pycache__"]
    assert sum(len(file.read_text().splitlines()) for file in files) <= 360
    assert new_provider.NAME not in PROVIDERS
    module, _, name = new_provider.ROW.implementation.partition(":")
    assert (module, getattr(new_provider, name)) == (new_provider.__name__, new_provider.MeadowProvider)
    product = [file for folder in ("src", "agent", "lambdas") for file in (ROOT / folder).rglob("*.py")]
    assert product
    assert [file for file in product if new_provider.NAME in file.read_text(encoding="utf-8").lower()] == []


def the_run(shell: Shell) -> Run:
    (run,) = Home.of(shell.env).store().list_runs()
    return run


def committed(shell: Shell) -> int:
    """Return the newest step that the control plane has committed."""
    record = Home.of(shell.env).store().load(the_run(shell).run_id)
    return record.lease.committed_step if record is not None else 0


def test_a_run_is_rented_there_and_moves_to_a_new_machine_when_its_own_is_taken_away(
    shell: Shell, meadow: Meadow
) -> None:
    config = shell.config(LONG)
    with shell.started("serve", "--port", "0", "--interval", "0.2", until="renting from meadow"):
        shell.ok("run", config, "--without-rehearsal")
        await_true("a checkpoint is durable", lambda: committed(shell) >= 10)
        taken = the_run(shell).attempts[-1]
        provider, _, pod_id = str(taken.pod_id).partition("/")
        assert (provider, taken.offer.offer_id) == (new_provider.NAME, "clover")
        meadow.end(pod_id)
        await_true("the run is over", lambda: the_run(shell).is_over)
    run = the_run(shell)
    assert (run.state, run.spec.hardware.provider, len(run.attempts)) == (
        RunState.SUCCEEDED,
        new_provider.NAME,
        2,
    )
    assert run.attempts[1].resumed_step >= 10
    assert meadow.alive == []
    assert meadow.host.list() == []
    assert Home.of(shell.env).local_pods().list() == []


def test_its_machines_are_found_and_a_dry_run_says_what_it_would_cost(shell: Shell) -> None:
    found = json.loads(shell.ok("find", "--params", "1B", "--json"))
    assert {row["offer"]["provider"] if "offer" in row else row["provider"] for row in found["machines"]} == {
        new_provider.NAME
    }
    output = shell.ok("run", shell.config(), "--dry-run")
    assert "launch on meadow clover (1 x H100_80GB, spot)" in output


def test_a_machine_that_failed_before_comes_last_everywhere_with_the_reason(shell: Shell) -> None:
    store = Home.of(shell.env).store()
    dry = HardwareSpec(gpus=("H100_80GB",), disk_gib=1)
    offer = rank(Home.of(shell.env).providers().pods.offers(dry), dry).best[0]
    failed = replace(
        b.new_attempt(1, RunState.FAILED), offer=offer, pod_id="meadow/m-1", cause=Cause.PREFLIGHT_FAILED
    )
    now_s = store.now_s()
    store.create(
        Run(
            "before",
            b.spec(),
            created_s=now_s,
            state=RunState.FAILED,
            attempts=(replace(failed, fenced_s=now_s - 3600),),
            attempt=1,
        )
    )
    why = "machine clover-7 of meadow: machine unfit, last 1 h ago; until 2"
    output = one_line(shell.ok("run", shell.config(), "--dry-run"))
    assert "launch on meadow thistle" in output
    assert f"comes last 1 offer: {why}" in output
    found = one_line(shell.ok("find", "--params", "1B"))
    assert f"comes last 1 offer: {why}" in found
    assert "the only machine that did not fail before and fits" in found
    assert "but it comes last because of the machine" in found
    rows = json.loads(shell.ok("find", "--params", "1B", "--json"))["machines"]
    assert [(row["offer_id"], row["excluded"] and row["excluded"]["axis"]) for row in rows] == [
        ("thistle", None),
        ("clover", "machine"),
    ]
    asked = json.loads(shell.ok("run", shell.config(), "--dry-run", "--json"))["offers"]
    assert [(row["offer_id"], row["excluded"] and row["excluded"]["name"]) for row in asked] == [
        ("thistle", None),
        ("clover", "clover-7"),
    ]


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_without_its_key_it_is_reported_what_to_do_and_nothing_is_rented(
    shell: Shell, meadow: Meadow
) -> None:
    config = shell.config(CONFIG.replace("disk_gib: 1", "disk_gib: 1, provider: meadow"))
    lacks = shell.run("run", config, "--dry-run", **{new_provider.KEY: ""})
    assert (lacks.returncode, "provider meadow is not set up here; set MEADOW_KEY" in lacks.stderr) == (
        4,
        True,
    ), lacks.stderr
    wrong = shell.run("run", config, "--dry-run", **{new_provider.KEY: "knock-knock"})
    assert (wrong.returncode, "the meadow does not know this key" in wrong.stderr) == (4, True), wrong.stderr
    assert meadow.made == 0


def test_its_wallet_is_the_one_that_is_watched(shell: Shell, meadow: Meadow) -> None:
    (account,) = Home.of(shell.env).providers().accounts
    funds = account.funds()
    assert funds is not None
    assert (account.provider, funds.balance_usd) == (new_provider.NAME, meadow.balance_usd)


def test_doctor_asks_for_its_key_where_it_is_chosen_and_runs_never_get_it(shell: Shell) -> None:
    chosen = {"PRIME_TRAIN_PROVIDER": new_provider.NAME}
    assert lacking(chosen) == (new_provider.KEY,)
    assert lacking({**chosen, new_provider.KEY: "k"}) == ()
    secret = {"PRIME_TRAIN_MASTER_KEY": "ab" * 32, **chosen}

    def call(operation: Operation, *options: Option) -> Call:
        return Call(operation, options=options)

    assert str(doctor.wrong_secret(secret, call)).startswith(f"the secret lacks {new_provider.KEY}; ")
    assert not doctor.wrong_secret({**secret, new_provider.KEY: "k"}, call)
    assert not is_allowed(new_provider.KEY, ["*"])


def test_a_config_can_name_it_and_editors_know_it(shell: Shell) -> None:
    right = "name: a\ntrainer: {command: x}\nbudget: {usd: 1}\nhardware: {provider: meadow}\n"
    assert read_text(right, "a.yaml").findings == ()
    (finding,) = read_text(right.replace("meadow", "medow"), "a.yaml").findings
    assert finding.fix == "did you mean meadow?"
    provider = json.loads(schema_text())["$defs"]["HardwareSpec"]["properties"]["provider"]["anyOf"][0]
    assert (new_provider.NAME in provider["enum"], "meadow is the meadow." in provider["description"]) == (
        True,
        True,
    )
