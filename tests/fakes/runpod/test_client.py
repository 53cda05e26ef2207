"""RunPod's own Python client, unchanged, with the fake: the interpreter $RUNPOD_PYTHON, which has `runpod`
installed.

The client knows only GraphQL, and the adapter rents on demand, looks and ends by REST: each sees and ends
what the other one has rented.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from prime_train.errors import PermanentError
from prime_train.market.ranking import rank
from prime_train.providers.runpod.client import RunPodClient
from prime_train.providers.runpod.pods import RunPodPods
from prime_train.providers.runpod.settings import RunPodSettings
from prime_train.runs.verdict import PodStatus
from prime_train.spec.spec import HardwareSpec
from tests.fakes.runpod import ACCOUNT_ID, RTX4090, SECURE, FakeRunPod
from tests.tools import TOOLS, program

PYTHON = program("runpod-python", TOOLS / "runpod" / "bin" / "python")
CLIENT_S_MAX = 120.0
NAME = "pt-tiny-1-e1"
HARDWARE = HardwareSpec(gpus=("RTX4090",))
pytestmark = pytest.mark.skipif(
    not PYTHON,
    reason="there is no Python with RunPod's client in $RUNPOD_PYTHON or in build/tools: make tools",
)


def seen(fake: FakeRunPod, home: Path, expression: str) -> Any:
    """Return what an expression of the client's functions gives."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "RUNPOD_API_BASE_URL": fake.url,
        "RUNPOD_API_KEY": fake.api_key,
    }
    script = (
        "import json, os, runpod; runpod.api_key = os.environ['RUNPOD_API_KEY']; "
        f"print(json.dumps({expression}))"
    )
    ran = subprocess.run(
        [str(PYTHON), "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=CLIENT_S_MAX,
        check=False,
        cwd=home,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def pods_of(fake: FakeRunPod) -> RunPodPods:
    return RunPodPods(RunPodClient(RunPodSettings(fake.api_key, fake.url)), lambda connection, ticket: None)


def test_the_client_sees_and_ends_what_was_rented(tmp_path: Path) -> None:
    with FakeRunPod() as fake:
        pods = pods_of(fake)
        pod = pods.create(NAME, rank(pods.offers(HARDWARE), HARDWARE).best[0], HARDWARE)
        calls = (
            "get_user()",
            "get_gpus()",
            f"get_pod({pod.pod_id!r})",
            "get_pods()",
            f"terminate_pod({pod.pod_id!r})",
        )
        user, kinds, one, listed, _ = seen(
            fake, tmp_path, f"[{', '.join(f'runpod.{call}' for call in calls)}]"
        )
        assert user["id"] == ACCOUNT_ID
        assert {kind["id"] for kind in kinds} == {kind.id for kind in fake.kinds}
        assert (one["name"], one["desiredStatus"], one["costPerHr"]) == (NAME, "RUNNING", pod.usd_per_hour)
        assert [each["id"] for each in listed] == [pod.pod_id]
        assert pods.get(pod.pod_id) is None
        assert not fake.alive
        assert fake.violations == []


def test_the_adapter_sees_and_ends_what_the_client_has_rented(tmp_path: Path) -> None:
    with FakeRunPod() as fake:
        order = (
            f"{NAME!r}, 'ubuntu:22.04', {RTX4090.id!r}, cloud_type='SECURE', "
            "container_disk_in_gb=20, "
            f"ports='22/tcp', env={{'A': 'b'}}"
        )
        (made,) = seen(fake, tmp_path, f"[runpod.create_pod({order})]")
        assert (made["imageName"], made["env"]) == ("ubuntu:22.04", ["A=b"])
        pods = pods_of(fake)
        (pod,) = pods.list()
        assert (pod.pod_id, pod.name, pod.status, pod.usd_per_hour) == (
            made["id"],
            NAME,
            PodStatus.ACTIVE,
            fake.pod(made["id"]).usd,
        )
        stopped, one = seen(
            fake, tmp_path, f"[runpod.stop_pod({pod.pod_id!r}), runpod.get_pod({pod.pod_id!r})]"
        )
        assert (stopped["desiredStatus"], one["desiredStatus"]) == ("EXITED", "EXITED")
        assert [each.status for each in pods.list()] == [PodStatus.BROKEN]
        pods.terminate(pod.pod_id)
        assert seen(fake, tmp_path, "runpod.get_pods()") == []
        assert not fake.alive
        assert fake.violations == []


def test_the_client_and_the_adapter_read_the_same_prices(tmp_path: Path) -> None:
    with FakeRunPod() as fake:
        kind = seen(fake, tmp_path, f"runpod.get_gpu({RTX4090.id!r}, 2)")
        client = RunPodClient(RunPodSettings(fake.api_key, fake.url))
        (row,) = [row for row in client.gpus(SECURE, 2) if isinstance(row, dict) and row["id"] == RTX4090.id]
        assert (kind["memoryInGb"], kind["securePrice"], kind["communityPrice"]) == (
            row["memory"],
            *row["price"].values(),
        )
        assert kind["lowestPrice"]["minimumBidPrice"] == client.bids(SECURE, 2)[RTX4090.id]


def test_the_client_is_told_that_nothing_is_left(tmp_path: Path) -> None:
    with FakeRunPod() as fake:
        fake.stock[(RTX4090.id, SECURE, RTX4090.places[SECURE][0])] = 0
        with pytest.raises(AssertionError, match="There are no longer any instances available"):
            seen(
                fake,
                tmp_path,
                f"runpod.create_pod({NAME!r}, 'ubuntu:22.04', {RTX4090.id!r}, cloud_type='SECURE')",
            )
        assert not fake.pods


def test_the_client_and_the_adapter_are_refused_alike(tmp_path: Path) -> None:
    with FakeRunPod() as fake:
        fake.terms.graphql_refusal = "this key may not do that"
        with pytest.raises(PermanentError, match="this key may not do that"):
            RunPodClient(RunPodSettings(fake.api_key, fake.url)).myself()
        with pytest.raises(AssertionError, match="this key may not do that"):
            seen(fake, tmp_path, "runpod.get_user()")
