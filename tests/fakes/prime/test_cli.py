"""Prime's own command line, unchanged, with the fake: $PRIME_CLI, or where `make tools` installs it, in an
environment of its own.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from prime_train.providers.prime.settings import PrimeSettings, read_settings
from tests.fakes.prime import SPOT, ApiKey, FakePrime, Plan, SshForm, Team
from tests.tools import TOOLS, program

PROGRAM = program("prime-cli", TOOLS / "prime-cli" / "bin" / "prime")
CLI_S_MAX = 120.0
pytestmark = pytest.mark.skipif(
    not PROGRAM, reason="there is no command line of Prime's in $PRIME_CLI or in build/tools: make tools"
)

Prime = Callable[..., str]


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakePrime]:
    with FakePrime(tmp_path / "fake", machines=False) as running:
        yield running


@pytest.fixture
def prime(fake: FakePrime, tmp_path: Path) -> Prime:
    """Return a function that runs it and returns its output."""
    known = {
        "PRIME_API_KEY": fake.api_key,
        "PRIME_API_BASE_URL": fake.url,
        "PRIME_DISABLE_VERSION_CHECK": "1",
    }
    plain = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "NO_COLOR": "1", "COLUMNS": "200"}

    def run(*words: str, code: int = 0, env: Mapping[str, str] | None = None) -> str:
        reported = {**plain, **known, **(env or {})}
        ran = subprocess.run(
            [str(PROGRAM), *words],
            env=reported,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CLI_S_MAX,
            check=False,
        )
        assert ran.returncode == code, ran.stdout + ran.stderr
        return ran.stdout

    return run


def listed(prime: Prime) -> Any:
    return json.loads(prime("pods", "list", "--output", "json"))["pods"]


def created(prime: Prime, fake: FakePrime, **settings: Mapping[str, str]) -> str:
    """Create a pod of the spot row, and return its id."""
    offers = json.loads(prime("availability", "list", "--output", "json"))["gpu_resources"]
    (short_id,) = [offer["id"] for offer in offers if offer["cloud_id"] == SPOT.cloudId]
    words = (
        "--id",
        short_id,
        "--name",
        "pt-run-e1",
        "--disk-size",
        "100",
        "--image",
        "ubuntu_22_cuda_12",
        "--yes",
    )
    found = re.search(r"Successfully created pod (\w+)", prime("pods", "create", *words, **settings))
    assert found is not None
    return found[1]


def test_it_lists_what_can_be_had(prime: Prime) -> None:
    offers = json.loads(prime("availability", "list", "--output", "json"))["gpu_resources"]
    assert [(offer["gpu_type"], offer["price_value"], offer["is_spot"]) for offer in offers] == [
        ("A100 80GB (Spot)", 0.62, True),
        ("A100 80GB", 1.64, None),
        ("H100 80GB (Spot)", 9.20, True),
    ]
    assert json.loads(prime("availability", "gpu-types", "--output", "json"))["gpu_types"] == [
        "A100_80GB",
        "H100_80GB",
    ]


def test_it_sees_a_pod_through_its_life(prime: Prime, fake: FakePrime) -> None:
    fake.plan = Plan(provision_s=60, install_s=60)
    pod_id = created(prime, fake)
    seen = []
    for _ in range(3):
        seen.append([pod["status"] for pod in listed(prime) if pod["id"] == pod_id])
        fake.advance(60)
    assert seen == [["PROVISIONING"], ["INSTALLING"], ["ACTIVE"]]
    status = json.loads(prime("pods", "status", pod_id, "--output", "json"))
    assert (status["status"], status["ssh"], status["cost_per_hour"]) == (
        "ACTIVE",
        "root@127.0.0.1 -p 9",
        0.62,
    )
    prime("pods", "terminate", pod_id, "--yes")
    assert listed(prime) == []
    (row,) = json.loads(prime("pods", "history", "--output", "json"))["history"]
    assert (row["id"], row["total_cost"]) == (pod_id, pytest.approx(0.62 * 120 / 3600, abs=1e-6))


def test_it_rents_for_a_team_and_reads_its_wallet(prime: Prime, fake: FakePrime) -> None:
    fake.add_team(Team("team-1"), balance_usd=42.0)
    pod_id = created(prime, fake, env={"PRIME_TEAM_ID": "team-1"})
    assert fake.pod(pod_id).order.team_id == "team-1"
    assert (
        json.loads(prime("wallet", "--output", "json", env={"PRIME_TEAM_ID": "team-1"}))["balance_usd"]
        == 42.0
    )


def test_it_lists_who_is_of_a_team(prime: Prime, fake: FakePrime) -> None:
    fake.add_team(Team("team-1"))
    members = json.loads(prime("teams", "members", "--team-id", "team-1", "--output", "json"))["members"]
    assert [member["userId"] for member in members] == ["user-1"]


def test_a_pod_without_an_ssh_line_has_an_address_and_ports_for_it(prime: Prime, fake: FakePrime) -> None:
    fake.plan = Plan(ssh_form=SshForm.NULLS)
    status = json.loads(prime("pods", "status", created(prime, fake), "--output", "json"))
    assert (status["ssh"], status["ip"]) == ("N/A", "127.0.0.1")


def test_terminating_a_pod_twice_is_quiet(prime: Prime, fake: FakePrime) -> None:
    pod_id = created(prime, fake)
    for _ in range(2):
        prime("pods", "terminate", pod_id, "--yes")
    assert listed(prime) == []


def test_it_is_reported_that_the_account_may_have_no_more_pods(prime: Prime, fake: FakePrime) -> None:
    fake.terms.instances_max = 0
    offers = json.loads(prime("availability", "list", "--output", "json"))["gpu_resources"]
    words = (
        "--id",
        offers[0]["id"],
        "--name",
        "one",
        "--disk-size",
        "100",
        "--image",
        "ubuntu_22_cuda_12",
        "--yes",
    )
    assert "Maximum number of instances reached. Limit: 0" in prime("pods", "create", *words, code=1)


def test_it_and_we_read_a_context_alike(prime: Prime, fake: FakePrime, tmp_path: Path) -> None:
    fake.add_team(Team("team-1"), balance_usd=42.0)
    fake.world.api_keys["pit_of_the_context"] = ApiKey()
    known = {"api_key": "pit_of_the_context", "team_id": "team-1", "base_url": f"{fake.url}/api/v1"}
    (tmp_path / ".prime" / "environments").mkdir(parents=True)
    (tmp_path / ".prime" / "config.json").write_text(
        json.dumps({"api_key": "pit_unknown", "team_id": "team-2"})
    )
    (tmp_path / ".prime" / "environments" / "work.json").write_text(json.dumps(known))
    context = {"PRIME_CONTEXT": "work"}
    cleared = {"PRIME_API_KEY": "", "PRIME_API_BASE_URL": "", **context}
    assert json.loads(prime("wallet", "--output", "json", env=cleared))["balance_usd"] == 42.0
    assert read_settings(context, tmp_path) == PrimeSettings("pit_of_the_context", "team-1", fake.url)


def test_it_tells_why_it_was_refused(prime: Prime, fake: FakePrime) -> None:
    assert "Pod not found" in prime("pods", "terminate", "unknown", "--yes", code=1)
    assert "unauthorized" in prime("pods", "list", code=1, env={"PRIME_API_KEY": "pit_unknown"})
