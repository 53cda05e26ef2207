"""`prime-train stop` of several runs, and of all."""

import json
from pathlib import Path

import pytest

from prime_train.app.home import Home
from prime_train.clock import wall_s
from prime_train.runs.change import change
from prime_train.runs.decision import Finish
from prime_train.runs.run import RunState
from prime_train.runs.store import Store
from tests.builders import run, spec
from tests.cli.inside import Inside
from tests.cli.shell import Shell
from tests.cli.terminal import terminal
from tests.fakes import dynamo
from tests.fakes.s3_servers import S3Server

NAMES = ("first", "second", "third")


def filled(shell: Shell) -> Store:
    store = Home(shell.home, {}).store()
    for name in NAMES:
        assert store.create(
            run(run_id=f"{name}-aaaaa", spec=spec(name=name), created_s=wall_s(), next_check_s=wall_s())
        )
    return store


def end(store: Store, run_id: str) -> None:
    record = store.load(run_id)
    assert record is not None
    assert store.save(
        change(record.run, record.lease, Finish(RunState.STOPPED, None, "stopped by the user"), wall_s())
    )


def wants(shell: Shell) -> dict[str, str]:
    rows = json.loads(Inside(shell.here).ok("status", "--json"))
    return {row["name"]: row["desired"] for row in rows}


@pytest.fixture
def shell(tmp_path: Path) -> Inside:
    return Inside(tmp_path)


def test_one_run_that_cannot_be_stopped_keeps_none_of_the_others(shell: Inside) -> None:
    end(filled(shell), "second-aaaaa")
    done = shell.run("stop", "first", "second", "none", "third")
    assert done.returncode == 2
    assert wants(shell) == {"first": "stop", "second": "run", "third": "stop"}
    assert "run second-aaaaa is stopped: stop is not possible" in done.stderr
    assert "there is no run none" in done.stderr
    assert "2 of 4 runs could not be asked to stop" in done.stderr
    assert done.stdout.count("is saving and stopping") == 2


def test_a_table_is_served_by_the_functions_so_nobody_is_asked_to_serve_it(
    shell: Inside, ministack: S3Server
) -> None:
    keys = {
        "AWS_ACCESS_KEY_ID": ministack.access_key,
        "AWS_SECRET_ACCESS_KEY": ministack.secret_key,
        "AWS_REGION": ministack.region,
    }
    with dynamo.store(ministack) as store:
        assert store.create(
            run(run_id="first-aaaaa", spec=spec(name="first"), created_s=wall_s(), next_check_s=wall_s())
        )
        table = {"PRIME_TRAIN_STORE": f"dynamodb://{store.table_name}", "PRIME_TRAIN_MASTER_KEY": "5e" * 32}
        done = shell.run("stop", "first", **keys, **table, AWS_ENDPOINT_URL=ministack.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert "is saving and stopping" in done.stdout
    assert "no control plane serves" not in done.stdout


def test_all_runs_are_stopped_without_a_terminal_only_where_that_was_agreed_to(shell: Inside) -> None:
    end(filled(shell), "third-aaaaa")
    done = shell.run("stop", "--all")
    assert done.returncode == 2
    assert "confirmation is needed, but this is not a terminal\n  fix: add --yes" in done.stderr
    assert set(wants(shell).values()) == {"run"}
    output = shell.ok("stop", "--all", "--yes", "--now")
    assert "first-aaaaa: queued, step 0, $0.00 of $5.00" in output
    assert "second-aaaaa: is ending at once" in output
    assert "third" not in output
    assert wants(shell) == {"first": "cancel", "second": "cancel", "third": "run"}


def test_stopping_all_where_none_is_active_is_no_error(shell: Inside) -> None:
    assert shell.ok("stop", "--all", "--yes") == "no run is active\n"


@pytest.mark.parametrize(
    "words", [(), ("first", "--all"), ("--all", "--machine", "x"), ("first", "--machine", "x")]
)
def test_runs_or_all_of_them_or_a_machine_are_named(shell: Inside, words: tuple[str, ...]) -> None:
    filled(shell)
    done = shell.run("stop", *words)
    assert done.returncode == 2
    assert "give either runs, or --all, or --machine" in done.stderr
    assert set(wants(shell).values()) == {"run"}


def test_on_a_terminal_the_runs_are_named_and_nothing_happens_without_a_yes(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    filled(shell)
    with terminal(shell, "stop", "--all") as shown:
        shown.answer("Stop these 3 runs? [y/N]", "n")
        assert shown.end() == 2
        assert all(f"{name}-aaaaa: queued" in shown.seen for name in NAMES)
    assert set(wants(shell).values()) == {"run"}
    with terminal(shell, "stop", "--all") as shown:
        shown.answer("Stop these 3 runs? [y/N]", "y")
        assert shown.end() == 0
    assert set(wants(shell).values()) == {"stop"}


def test_a_run_that_ends_while_the_user_is_queried_is_no_error(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    store = filled(shell)
    with terminal(shell, "stop", "--all") as shown:
        shown.expect("Stop these 3 runs?")
        end(store, "second-aaaaa")
        shown.type("y")
        assert shown.end() == 0
        assert "second-aaaaa: already stopped" in shown.seen
    assert wants(shell) == {"first": "stop", "second": "run", "third": "stop"}
