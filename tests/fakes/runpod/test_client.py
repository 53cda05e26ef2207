"""RunPod's own Python client, unchanged, with the fake: the interpreter $RUNPOD_PYTHON, which has `runpod` installed.

The client knows only GraphQL, so that what it sees and ends are pods that were rented by REST.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from prime_train.adapters.pods_runpod import RunPodClient, RunPodPods, Settings
from prime_train.core.offers import rank
from prime_train.core.spec import HardwareSpec
from prime_train.ports import PermanentError
from tests.fakes.runpod import ACCOUNT_ID, FakeRunPod
from tests.tools import TOOLS, program

PYTHON = program("runpod-python", TOOLS / "runpod" / "bin" / "python")
CLIENT_S_MAX = 120.0
NAME = "pt-tiny-1-e1"
HARDWARE = HardwareSpec(gpus=("RTX4090",))
pytestmark = pytest.mark.skipif(not PYTHON, reason="there is no Python with RunPod's client in $RUNPOD_PYTHON or in build/tools/runpod")


def seen(fake: FakeRunPod, home: Path, expression: str) -> Any:
    """Return what an expression of the client's functions gives."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "RUNPOD_API_BASE_URL": fake.url, "RUNPOD_API_KEY": fake.api_key}
    script = f"import json, os, runpod; runpod.api_key = os.environ['RUNPOD_API_KEY']; print(json.dumps({expression}))"
    ran = subprocess.run(
        [str(PYTHON), "-c", script], env=environment, capture_output=True, text=True, timeout=CLIENT_S_MAX, check=False, cwd=home
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def test_the_client_sees_and_ends_what_was_rented(tmp_path: Path) -> None:
    with FakeRunPod() as fake:
        pods = RunPodPods(RunPodClient(Settings(fake.api_key, fake.url)), lambda connection, ticket: None)
        pod = pods.create(NAME, rank(pods.offers(HARDWARE), HARDWARE).best[0], HARDWARE)
        calls = ("get_user()", "get_gpus()", f"get_pod({pod.pod_id!r})", "get_pods()", f"terminate_pod({pod.pod_id!r})")
        user, kinds, one, listed, _ = seen(fake, tmp_path, f"[{', '.join(f'runpod.{call}' for call in calls)}]")
        assert user["id"] == ACCOUNT_ID
        assert {kind["id"] for kind in kinds} == {kind.id for kind in fake.kinds}
        assert (one["name"], one["desiredStatus"], one["costPerHr"]) == (NAME, "RUNNING", pod.usd_per_hour)
        assert [each["id"] for each in listed] == [pod.pod_id]
        assert pods.get(pod.pod_id) is None
        assert not fake.alive
        assert fake.violations == []


def test_the_client_and_the_adapter_are_refused_alike(tmp_path: Path) -> None:
    with FakeRunPod() as fake:
        fake.terms.graphql_refusal = "this key may not do that"
        with pytest.raises(PermanentError, match="this key may not do that"):
            RunPodClient(Settings(fake.api_key, fake.url)).myself()
        with pytest.raises(AssertionError, match="this key may not do that"):
            seen(fake, tmp_path, "runpod.get_user()")
