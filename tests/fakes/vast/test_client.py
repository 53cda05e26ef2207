"""Vast's own Python client, unchanged, with the fake: the interpreter $VAST_PYTHON, which has `vastai` installed.

It sees and ends what the adapter has rented, and the adapter sees what it has rented. Its requests have more fields than the description
knows, so that they are not checked.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prime_train.adapters.pods_vast import Pace, Settings, VastClient, VastPods
from prime_train.core.offers import rank
from prime_train.core.spec import HardwareSpec
from tests.fakes.vast import ACCOUNT_ID, FakeVast
from tests.tools import TOOLS, program

PYTHON = program("vast-python", TOOLS / "vastai" / "bin" / "python")
CLIENT_S_MAX = 120.0
NAME = "pt-tiny-1-e1"
HARDWARE = HardwareSpec(gpus=("RTX4090",))
pytestmark = pytest.mark.skipif(not PYTHON, reason="there is no Python with Vast.ai's client in $VAST_PYTHON or in build/tools/vastai")


@pytest.fixture(name="fake")
def _fake() -> Iterator[FakeVast]:
    with FakeVast(running=True) as fake:
        fake.is_checked = False
        yield fake


def seen(fake: FakeVast, home: Path, expression: str) -> Any:
    """Return what an expression of the client gives."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "VAST_URL": fake.url}
    script = f"import json\nfrom vastai import VastAI\nvast = VastAI(api_key={fake.api_key!r})\nprint(json.dumps({expression}))"
    ran = subprocess.run(
        [str(PYTHON), "-c", script], env=environment, capture_output=True, text=True, timeout=CLIENT_S_MAX, check=False, cwd=home
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def pods_of(fake: FakeVast) -> VastPods:
    client = VastClient(Settings(fake.api_key, fake.url), pace=Pace({}))
    return VastPods(client, lambda connection, ticket: None)


def test_the_client_sees_and_ends_what_was_rented(fake: FakeVast, tmp_path: Path) -> None:
    pods = pods_of(fake)
    pod = pods.create(NAME, rank(pods.offers(HARDWARE), HARDWARE).best[0], HARDWARE)
    calls = ("show_user()", f"show_instance(id={pod.pod_id})", "show_instances()", f"change_bid(id={pod.pod_id}, price=0.5)")
    user, one, listed, _ = seen(fake, tmp_path, f"[{', '.join(f'vast.{call}' for call in calls)}]")
    assert user["id"] == ACCOUNT_ID
    assert (one["label"], one["actual_status"], one["dph_total"]) == (NAME, "running", pod.usd_per_hour)
    assert [each["id"] for each in listed] == [int(pod.pod_id)]
    assert fake.instance(pod.pod_id).bid_usd == 0.5
    seen(fake, tmp_path, f"vast.destroy_instance(id={pod.pod_id})")
    assert pods.get(pod.pod_id) is None
    assert not fake.alive


def test_the_adapter_sees_and_ends_what_the_client_has_rented(fake: FakeVast, tmp_path: Path) -> None:
    found, made = seen(
        fake,
        tmp_path,
        "[(offers := vast.search_offers(query='gpu_name=RTX_4090 num_gpus=1 direct_port_count>=1', type='bid')), "
        f"vast.create_instance(id=offers[0]['id'], image='ubuntu:22.04', disk=20, label={NAME!r}, price=0.3)]",
    )
    assert {row["gpu_name"] for row in found} == {"RTX 4090"}
    pods = pods_of(fake)
    (pod,) = pods.list()
    assert (pod.pod_id, pod.name) == (str(made["new_contract"]), NAME)
    pods.terminate(pod.pod_id)
    assert not fake.alive
