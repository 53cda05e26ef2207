"""Whether a home is served, by which process and at which address: what is reported of it, and what is
refused so that every machine's heartbeats arrive.
"""

import io
import json
import signal
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from prime_train.app.home import Home
from prime_train.clock import wall_s
from prime_train.runs.run import Change, RunState
from prime_train.spec.causes import Cause
from prime_train.status.run_status import RunFacts, status_of
from prime_train.stores.sqlite.store import SqliteStore
from prime_train.terminal.tables import one_run
from tests import builders as b
from tests.cli.inside import Inside
from tests.cli.shell import Shell
from tests.fakes.s3_servers import S3Server
from tests.waiting import HANG_S

LEFT_ALONE = "no control plane serves this home"


@pytest.fixture(name="inside")
def _inside(tmp_path: Path) -> Inside:
    return Inside(tmp_path)


def training(shell: Shell, *run_ids: str) -> None:
    """Store runs whose machines sent a heartbeat a moment ago."""
    shell.home.mkdir(exist_ok=True)
    store = SqliteStore(shell.home / "control.sqlite")
    for run_id in run_ids:
        assert store.create(b.run(run_id=run_id))
        run = b.run(RunState.TRAINING, run_id=run_id, version=2)
        assert store.save(Change(run, lease=b.lease(run, version=1, heartbeat_s=wall_s()), lease_version=0))
    store.close()


def served_before(shell: Shell) -> str:
    """Return the address that machines know; no server listens there now."""
    shell.home.mkdir(exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    Home.of(shell.env).write_serving(url)
    return url


# ------------------------------------------------------------------------------------------------------- the
# address machines know


@pytest.mark.parametrize(
    "options", [("--port", "1"), ("--public-url", "https://train.example.org"), ("--host", "127.0.0.2")]
)
def test_machines_are_not_left_calling_an_address_that_is_not_served(
    shell: Shell, options: tuple[str, ...]
) -> None:
    training(shell, "one", "two", "three")
    url = served_before(shell)
    done = shell.run("serve", *options)
    assert done.returncode == 4
    assert f"3 machines send heartbeats to {url}; if this home is served at " in done.stderr
    assert "they count as silent and are replaced" in done.stderr
    assert "prime-train stop --now RUN for each, then prime-train watch --once" in done.stderr


def test_a_run_that_is_followed_serves_no_other_address_than_machines_know(shell: Shell) -> None:
    training(shell, "one")
    url = served_before(shell)
    done = shell.run("run", shell.config(), "--follow", PRIME_TRAIN_URL="https://train.example.org")
    assert done.returncode == 4
    assert (
        f"1 machine sends heartbeats to {url}; if this home is served at https://train.example.org"
        in done.stderr
    )


def test_any_port_is_the_last_one_while_machines_know_it(shell: Shell) -> None:
    training(shell, "one")
    url = served_before(shell)
    with shell.started("serve", "--port", "0", "--no-watch", until="serving "):
        assert f" at {url}, " in shell.output
    with socket.create_server(("127.0.0.1", int(url.rsplit(":", 1)[1]))):
        done = shell.run("serve", "--port", "0")
    assert done.returncode == 4
    assert "stop the process that listens there, or, if no run has a machine" in done.stderr


def test_where_no_machine_is_any_port_will_do(shell: Shell) -> None:
    url = served_before(shell)
    with shell.started("serve", "--port", "0", "--no-watch", until="serving "):
        assert url not in shell.output


def test_machines_that_nobody_can_hear_any_more_are_ended_without_serving(inside: Inside) -> None:
    """This is the remedy that the refusal names."""
    training(inside, "one")
    served_before(inside)
    inside.ok("stop", "one", "--now")
    inside.ok("watch", "--once")
    assert json.loads(inside.ok("status", "one", "--json"))["state"] == "cancelled"


# ------------------------------------------------------------------------------------------------------------
# nobody serves


@pytest.mark.exhaustive
def test_a_home_that_nobody_serves_says_so(shell: Shell) -> None:
    training(shell, "one")
    for words in ((), ("one",)):
        assert LEFT_ALONE in shell.ok("status", *words)
        json.loads(shell.ok("status", *words, "--json"))
    with shell.started("serve", "--port", "0", "--no-watch", until="serving "):
        for words in ((), ("one",)):
            assert LEFT_ALONE not in shell.ok("status", *words)


def test_runs_that_are_over_need_nobody(inside: Inside) -> None:
    inside.home.mkdir()
    assert SqliteStore(inside.home / "control.sqlite").create(b.run(RunState.FAILED))
    assert LEFT_ALONE not in inside.ok("status") + inside.ok("status", "tiny-1") + inside.ok(
        "diagnose", "tiny-1"
    )


def test_a_diagnosis_promises_nothing_that_nobody_does(inside: Inside) -> None:
    training(inside, "one")
    output = inside.ok("diagnose", "one")
    assert LEFT_ALONE in output
    assert "no machine is replaced, and none is given back" in output
    assert "do: Start one: prime-train serve --background" in output
    assert "it resumes on another machine" not in output
    assert "unserved" in {
        one["kind"] for one in json.loads(inside.ok("diagnose", "one", "--json"))["conclusions"]
    }


# ------------------------------------------------------------------------------------------------------------
# how it stands


def test_the_attempt_that_trains_is_shown_at_its_last_heartbeat_and_commit() -> None:
    text = io.StringIO()
    record = b.record(heartbeat=b.heartbeat(7, step=57), heartbeat_s=b.T0_S, committed_step=50)
    Console(file=text, width=200).print(one_run(status_of(RunFacts(record, b.T0_S + 100)), []))
    (row,) = [line.split() for line in text.getvalue().splitlines() if "local-spot at" in line]
    assert row[row.index("$0.36/h") + 1 :][:3] == ["0", "57", "50"]


def test_a_stop_that_was_requested_is_no_restart() -> None:
    stopped = b.run(
        RunState.STOPPED, attempts=(b.new_attempt(1, RunState.STOPPED, cause=Cause.STOPPED_GRACEFULLY),)
    )
    assert status_of(RunFacts(b.record(stopped), b.T0_S)).restarts == ()
    resumed = replace(b.run(RunState.TRAINING, attempt=2), attempts=(*stopped.attempts, b.new_attempt(2)))
    assert [one.cause for one in status_of(RunFacts(b.record(resumed), b.T0_S)).restarts] == [
        "stopped_gracefully"
    ]


# ------------------------------------------------------------------------------------------------------------
# what is set


def test_an_address_that_secrets_could_not_be_sent_to_is_refused(shell: Shell) -> None:
    done = shell.run("serve", "--public-url", "http://train.example.org")
    assert done.returncode == 2
    assert "http://train.example.org" in done.stderr
    assert "https://" in done.stderr


def test_a_bucket_that_cannot_be_used_is_reported_before_anything_is_rented(
    shell: Shell, ministack: S3Server
) -> None:
    keys = {"AWS_ENDPOINT_URL": ministack.url, "AWS_REGION": ministack.region}
    keys |= {"AWS_ACCESS_KEY_ID": ministack.access_key, "AWS_SECRET_ACCESS_KEY": ministack.secret_key}
    serve = ("serve", "--port", "0", "--no-watch")
    with shell.started(*serve, until="serving ", PRIME_TRAIN_BUCKET="s3://nobody-made-it", **keys):
        reported = shell.output.partition("serving ")[0]
        assert "the bucket s3://nobody-made-it cannot be used now" in reported
        assert "create it, or correct the URL" in reported
    made = ministack.create_bucket("served-from")
    with shell.started(*serve, until="serving ", PRIME_TRAIN_BUCKET=f"s3://{made}", **keys):
        assert "cannot be used" not in shell.output


# ------------------------------------------------------------------------------------------------------------
# following


def test_leaving_a_followed_run_names_who_looks_after_it(shell: Shell) -> None:
    with shell.started("serve", "--port", "0", "--no-watch", until="serving "):
        url = json.loads((shell.home / "serve.json").read_text())["url"]
        follower = Shell(shell.here / "follower")
        follower.here.mkdir()
        env = {"PRIME_TRAIN_HOME": str(shell.home)}
        with follower.started(
            "run", follower.config(), "--follow", until="watches the run", **env
        ) as process:
            process.send_signal(signal.SIGINT)
            assert process.wait(HANG_S) == 130
        assert (
            f"continues, watched by the control plane at {url}. To end it: prime-train stop small-"
            in follower.output
        )
        assert "prime-train serve" not in follower.output
