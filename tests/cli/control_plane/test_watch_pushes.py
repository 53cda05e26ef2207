"""Agents that are installed on machines beside a watcher that ends soon."""

import sys
import time

import pytest

from prime_train.app.home import Home
from prime_train.errors import PermanentError
from prime_train.providers.install.background import BackgroundPusher
from prime_train.providers.port import SshAddress
from prime_train.runs.run import Run, RunState
from prime_train.runs.wire import Ticket
from prime_train.spec.causes import Cause
from prime_train.watch.agent_installs import report_failed
from tests import builders as b
from tests.cli.shell import Shell
from tests.fakes.prime import FakePrime, needs_sshd
from tests.reconcile.ports import Outside

CONNECTION = SshAddress("pod-1", "root", "127.0.0.1", 9)


def failed(error: Exception, attempt: int = 1) -> BackgroundPusher:
    """Return a permanently failed push to the run's machine."""

    def refuse(connection: SshAddress, ticket: Ticket) -> None:
        raise error

    pushes = BackgroundPusher(refuse)
    pushes(CONNECTION, Ticket(run=b.RUN_ID, attempt=attempt, url="http://127.0.0.1:1", key="0123abcd"))
    pushes.wait()
    return pushes


def booting() -> Outside:
    """Return a run whose machine is ready and has no agent."""
    outside = Outside()
    outside.settle()
    assert outside.run().state is RunState.BOOTING
    return outside


def test_a_run_leaves_the_machine_that_cannot_have_its_agent_at_once() -> None:
    w = booting()
    pushes = failed(PermanentError("there is no flock on this machine"))
    report_failed(w.world, pushes)

    (attempt,) = w.run().attempts
    assert (attempt.cause, attempt.ended_s) == (Cause.PREFLIGHT_FAILED, w.now_s)
    assert "there is no flock on this machine" in [alert.text for alert in w.store.outbox(9)][-1]
    assert w.pods.list() == []


def test_a_failure_on_one_machine_is_none_of_the_next_one() -> None:
    w = booting()
    report_failed(w.world, failed(PermanentError("no Python")))
    w.after(600)
    w.settle()
    before = w.run()
    assert (before.state, before.attempt) == (RunState.BOOTING, 2)
    report_failed(w.world, failed(PermanentError("no Python")))
    assert w.run() == before


def test_what_no_adapter_should_raise_is_raised() -> None:
    w = booting()
    with pytest.raises(KeyError):
        report_failed(w.world, failed(KeyError("a bug")))
    assert w.run().state is RunState.BOOTING


@needs_sshd
@pytest.mark.skipif(sys.platform != "linux", reason="machines for rent have Linux")
def test_a_single_look_stays_until_the_agent_is_there(shell: Shell) -> None:
    with FakePrime(shell.here / "prime") as fake:
        env = {
            "PRIME_API_KEY": fake.api_key,
            "PRIME_API_BASE_URL": fake.url,
            "PRIME_TRAIN_POD_PYTHON": sys.executable,
        }
        with shell.started("serve", "--port", "0", "--no-watch", until="renting from prime", **env):
            store = Home.of(shell.env).store()
            hardware = {"gpus": ["A100"], "provider": "prime", "disk_gib": 50}
            store.create(
                Run("rented-1", b.spec(hardware=hardware, budget={"usd": 500.0}), created_s=int(time.time()))
            )
            done = shell.run("watch", "--once", **env)
        assert done.returncode == 0, done.stderr
        assert "rented-1 PutAgent" in done.stdout
        (pod,) = fake.alive
        disk = fake.home_of(pod.pod_id)
        assert disk is not None
        assert (disk / ".prime-train" / "rented-1-e1" / "pid").exists()
