"""A drill of each provider from the terminal: it rents one machine, sees its checkpoint, ends it, and gives
it back whatever happens.
"""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.documented import check
from tests.cli.shell import Shell
from tests.e2e.rentals import PROVIDERS, USUAL, Rented
from tests.fakes.compare import compared, played
from tests.fakes.http import Response
from tests.fakes.kubernetes import TOKEN, FakeKubernetes
from tests.fakes.lambda_cloud import error
from tests.fakes.prime import needs_sshd
from tests.fakes.runpod import problem
from tests.waiting import HANG_S

pytestmark = [
    pytest.mark.slow,
    needs_sshd,
    pytest.mark.skipif(sys.platform != "linux", reason="machines for rent have Linux"),
]

STEPS = ["look", "rent", "install", "heartbeat", "checkpoint", "loss", "give back"]
PRIVATE = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}|[\w.]+@[\w.]+|ssh-ed25519 \S+|PRIVATE KEY")


def settings(rented: Rented) -> dict[str, str]:
    return {**rented.settings, "PRIME_TRAIN_POD_PYTHON": sys.executable}


def drill(shell: Shell, name: str, rented: Rented, *options: str) -> subprocess.CompletedProcess[str]:
    return shell.run("drill", name, "--yes", "--usd-max", "2", *options, **settings(rented))


def record(shell: Shell, name: str) -> dict[str, Any]:
    (path,) = shell.here.glob(f"drill-{name}-*.json")
    return dict(json.loads(path.read_text()))


def outcomes(found: dict[str, Any]) -> dict[str, str]:
    return {one["step"]: one["outcome"] for one in found["steps"]}


def stopped_at(found: dict[str, Any]) -> tuple[str, str]:
    """Return the step that failed, and the reason."""
    ((step, text),) = [(one["step"], one["text"]) for one in found["steps"] if one["outcome"] == "failed"]
    return step, text


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_drill_tries_a_provider_from_its_offers_to_the_end_of_a_machine(name: str, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with PROVIDERS[name](tmp_path, USUAL[name]) as rented:
        done = drill(shell, name, rented)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        assert not rented.alive()
    found = record(shell, name)
    assert outcomes(found) == dict.fromkeys(STEPS, "done")
    assert "no machine is left" in done.stdout
    assert "belief" in done.stdout
    assert found["loss"]["told_s"] is not None
    assert not [one for one in found["known_answers"] if one["verdict"] == "differs"]
    text = json.dumps(found)
    assert [
        secret for secret in rented.settings.values() if not secret.startswith("http") and secret in text
    ] == []
    assert PRIVATE.findall(text) == []
    # What the fake answered to the whole drill is what it answers to the calls of one.
    assert list(compared(name, found["answers"], played(name))) == []


def test_a_drill_that_finds_nothing_for_rent_orders_nothing(tmp_path: Path) -> None:
    with PROVIDERS["runpod"](tmp_path, USUAL["runpod"]) as rented:
        rented.fake.kinds = ()
        done = drill(Shell(tmp_path), "runpod", rented)
        assert (done.returncode, rented.fake.requests_to("POST", "/v2/pods")) == (4, [])
    assert "no machine for rent" in done.stderr


def test_a_drill_asks_for_more_dollars_if_the_cheapest_machine_costs_more(tmp_path: Path) -> None:
    with PROVIDERS["prime"](tmp_path, USUAL["prime"]) as rented:
        done = drill(Shell(tmp_path), "prime", rented, "--usd-max", "1")
        assert (done.returncode, rented.fake.requests_to("POST", "/pods/")) == (4, [])
    assert "$1.66/h" in done.stderr
    assert "--usd-max 1.39" in done.stderr


def test_nobody_pays_for_a_drill_unasked(tmp_path: Path) -> None:
    with PROVIDERS["runpod"](tmp_path, USUAL["runpod"]) as rented:
        done = Shell(tmp_path).run("drill", "runpod", **settings(rented))
        assert (done.returncode, rented.fake.requests_to("POST", "/v2/pods")) == (2, [])
    assert "--yes" in done.stderr


def test_a_drill_whose_payment_is_refused_says_so_at_once(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with PROVIDERS["runpod"](tmp_path, USUAL["runpod"]) as rented:
        refusal = problem(402, "Payment Required", "insufficient balance to deploy this pod")
        rented.fake.fail(refusal, method="POST", path="^/v2/pods$", times=100)
        done = drill(shell, "runpod", rented)
        assert (done.returncode, len(rented.fake.requests_to("POST", "/v2/pods"))) == (3, 1)
    step, text = stopped_at(record(shell, "runpod"))
    assert (step, "insufficient balance" in text) == ("rent", True)
    assert "no machine is left" in done.stdout


def test_a_drill_gives_up_after_three_machines_that_are_gone_before_they_are_rented(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with PROVIDERS["lambda"](tmp_path, USUAL["lambda"]) as rented:
        taken = error(
            400,
            "instance-operations/launch/insufficient-capacity",
            "Not enough capacity to fulfill launch request.",
        )
        rented.fake.fail(taken, method="POST", path="launch$", times=100)
        done = drill(shell, "lambda", rented)
        # A further one may have been ordered before the control plane of the drill had ended.
        assert (
            done.returncode,
            len(rented.fake.requests_to("POST", "/api/v1/instance-operations/launch")) in (3, 4),
        ) == (3, True)
    step, text = stopped_at(record(shell, "lambda"))
    assert (step, "Not enough capacity" in text) == ("rent", True)


def test_a_machine_that_never_boots_is_given_back_when_the_time_is_over(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with PROVIDERS["vast"](tmp_path, USUAL["vast"]) as rented:
        rented.fake.plan.boot_s = 1e9
        done = drill(shell, "vast", rented, "--minutes", "0.1")
        assert (done.returncode, rented.alive(), len(rented.fake.instances)) == (3, [], 1)
    found = record(shell, "vast")
    assert stopped_at(found)[0] in ("install", "heartbeat")
    assert outcomes(found)["give back"] == "done"


def test_a_machine_that_is_lost_in_the_middle_ends_the_drill_and_no_other_one_is_kept(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with PROVIDERS["prime"](tmp_path, USUAL["prime"]) as rented:
        command = ["drill", "prime", "--yes", "--usd-max", "2"]
        with shell.started(*command, until="rent    ", **settings(rented)) as process:
            rented.take(rented.alive()[0].id)
            assert process.wait(HANG_S) == 3
        assert not rented.alive()
    found = record(shell, "prime")
    assert stopped_at(found)[0] in ("install", "heartbeat", "checkpoint")
    assert outcomes(found)["give back"] == "done"


def test_a_provider_that_fails_to_end_the_machine_is_asked_again(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with PROVIDERS["runpod"](tmp_path, USUAL["runpod"]) as rented:
        rented.fake.fail(Response(500, b""), method="DELETE", times=5)
        done = drill(shell, "runpod", rented, "--json")
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        assert not rented.alive()
    found = record(shell, "runpod")
    assert [500, 500] in [one["earlier"] for one in found["answers"] if one["method"] == "DELETE"]
    assert any("500" in one["what"] and one["verdict"] == "seen" for one in found["known_answers"])
    printed = json.loads(done.stdout)
    check("drill", printed, complete=True)
    assert (printed["left"], Path(printed["record"]).name) == (
        [],
        next(shell.here.glob("drill-runpod-*.json")).name,
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_drill_that_is_interrupted_gives_its_machine_back(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    shell = Shell(tmp_path)
    with PROVIDERS["lambda"](tmp_path, USUAL["lambda"]) as rented:
        with shell.started("drill", "lambda", "--yes", until="rent    ", **settings(rented)) as process:
            process.send_signal(number)
            assert process.wait(HANG_S) == code
        assert not rented.alive()
        assert "no machine is left" in shell.output
    found = record(shell, "lambda")
    assert (found["interrupted"], outcomes(found)["give back"]) == (True, "done")


def test_what_a_killed_drill_has_left_is_given_back_by_the_next_one(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with PROVIDERS["lambda"](tmp_path, USUAL["lambda"]) as rented:
        with shell.started("drill", "lambda", "--yes", until="rent    ", **settings(rented)) as process:
            process.kill()
            process.wait(HANG_S)
        assert len(rented.alive()) == 1
        done = drill(shell, "lambda", rented, "--usd-max", "0.01")
        assert "an earlier drill has left" in done.stderr
        assert not rented.alive()


def test_an_answer_that_is_not_as_it_is_known_to_be_is_named(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with PROVIDERS["vast"](tmp_path, USUAL["vast"]) as rented:
        rented.fake.is_checked = False
        shown = rented.fake.show_user

        def changed(request: Any) -> Any:
            return {**shown(request), "balance": "a lot"}

        rented.fake.routes = tuple(
            type(route)(route.method, route.template, lambda fake, request: changed(request))
            if "users" in route.template
            else route
            for route in rented.fake.routes
        )
        done = drill(shell, "vast", rented)
        assert (done.returncode, rented.alive()) == (1, [])
    assert "differs: GET /api/v0/users/current/: 200: balance: text, not number" in done.stdout


def test_where_machines_could_not_reach_the_drill_nobody_is_asked(tmp_path: Path) -> None:
    given = {"RUNPOD_API_KEY": "rpa_test", "RUNPOD_API_BASE_URL": "https://runpod.invalid"}
    done = Shell(tmp_path).run("drill", "runpod", "--yes", **given)
    assert (done.returncode, "PRIME_TRAIN_URL" in done.stderr) == (4, True)
    done = Shell(tmp_path).run(
        "drill", "runpod", "--yes", **given, PRIME_TRAIN_URL="https://train.example.org"
    )
    assert (done.returncode, "PRIME_TRAIN_BUCKET" in done.stderr) == (4, True)


@pytest.mark.parametrize(
    ("name", "why"), [("local", "rents nothing"), ("ssh", "are not rented"), ("lamda", "lambda")]
)
def test_where_nothing_is_rented_there_is_no_drill(name: str, why: str, tmp_path: Path) -> None:
    done = Shell(tmp_path).run("drill", name, "--yes")
    assert (done.returncode, why in done.stderr) == (2, True)


def test_on_kubernetes_a_drill_takes_the_same_way_and_leaves_no_job(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with FakeKubernetes(running=True) as fake:
        user = {"name": "me", "user": {"token": TOKEN}}
        context = {"name": "here", "context": {"cluster": "here", "user": "me", "namespace": "training"}}
        cluster = {"name": "here", "cluster": {"server": fake.url}}
        kubeconfig = {
            "clusters": [cluster],
            "users": [user],
            "contexts": [context],
            "current-context": "here",
        }
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
        given = {"kubeconfig": str(tmp_path / "kubeconfig"), "usd_per_gpu_hour": {"L4_24GB": 0.6}}
        (tmp_path / "kubernetes.yaml").write_text(yaml.safe_dump(given))
        environment = {
            "PRIME_TRAIN_KUBERNETES": str(tmp_path / "kubernetes.yaml"),
            "PRIME_TRAIN_POD_PYTHON": "/opt/agent/bin/python",
        }
        # The pods of the fake start no agent, so no heartbeat comes.
        done = shell.run("drill", "kubernetes", "--yes", "--minutes", "0.05", **environment)
        assert (done.returncode, fake.jobs) == (3, {}), f"{done.stdout}\n{done.stderr}"
    found = record(shell, "kubernetes")
    assert (
        outcomes(found)["rent"],
        stopped_at(found)[0] in ("install", "heartbeat"),
        outcomes(found)["give back"],
    ) == (
        "done",
        True,
        "done",
    )
    assert TOKEN not in json.dumps(found)
    assert "no machine is left" in done.stdout
