"""Vast's own Python client, unchanged, with the fake: the interpreter $VAST_PYTHON, which has `vastai`
installed.

It sees and ends what the adapter has rented, and the adapter sees what it has rented. Where its requests are
worded otherwise than the description wants it, as those that search, rent and destroy, nothing is checked
with the description.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prime_train.market.ranking import rank
from prime_train.providers.rental.rate_limit import RequestPace
from prime_train.providers.vast.client import VastClient
from prime_train.providers.vast.pods import VastPods
from prime_train.providers.vast.settings import VastSettings
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.spec.spec import HardwareSpec
from tests.fakes.vast import ACCOUNT_ID, FakeVast
from tests.fakes.vast.asks import asks
from tests.fakes.vast.server import DAY_S, PAGE_MAX
from tests.tools import TOOLS, program

PYTHON = program("vast-python", TOOLS / "vastai" / "bin" / "python")
CLIENT_S_MAX = 120.0
NAME = "pt-tiny-1-e1"
HARDWARE = HardwareSpec(gpus=("RTX4090",))
NOT_HERE = "there is no Python with Vast.ai's client in $VAST_PYTHON or in build/tools: make tools"
pytestmark = pytest.mark.skipif(not PYTHON, reason=NOT_HERE)


@pytest.fixture(name="fake")
def _fake() -> Iterator[FakeVast]:
    with FakeVast(running=True) as fake:
        yield fake
        assert fake.violations == []


def seen(fake: FakeVast, home: Path, expression: str) -> Any:
    """Return what an expression of the client gives."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "VAST_URL": fake.url}
    script = (
        "import json\nfrom vastai import VastAI\nvast "
        "= "
        f"VastAI(api_key={fake.api_key!r})\nprint(json.dumps({expression}))"
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


def client_of(fake: FakeVast) -> VastClient:
    return VastClient(VastSettings(fake.api_key, fake.url), pace=RequestPace("Vast.ai", {}))


def pods_of(fake: FakeVast) -> VastPods:
    return VastPods(client_of(fake), lambda connection, ticket: None)


def rented(pods: VastPods) -> Pod:
    return pods.create(NAME, rank(pods.offers(HARDWARE), HARDWARE).best[0], HARDWARE)


def test_the_client_sees_what_was_rented_and_changes_it(fake: FakeVast, tmp_path: Path) -> None:
    pods = pods_of(fake)
    pod = rented(pods)
    calls = (
        "change_bid(id=ID, price=0.5)",
        "label_instance(id=ID, label='pt-other-2-e1')",
        "attach_ssh(ID, ssh_key='ssh-ed25519 AAAA')",
    )
    called = ", ".join(
        f"vast.{call.replace('ID', pod.pod_id)}"
        for call in ("show_user()", "show_instances()", *calls, "show_instances()")
    )
    user, (before,), *answers, (after,) = seen(fake, tmp_path, f"[{called}]")
    assert (user["id"], user["balance"]) == (ACCOUNT_ID, fake.balance_usd)
    assert (before["id"], before["label"], before["actual_status"]) == (int(pod.pod_id), NAME, "running")
    assert before["dph_total"] == pod.usd_per_hour
    assert [answer["success"] for answer in answers] == [True] * 3
    assert (after["label"], after["dph_base"]) == ("pt-other-2-e1", 0.5)
    assert [(each.name, each.usd_per_hour) for each in pods.list()] == [("pt-other-2-e1", after["dph_total"])]
    assert "ssh-ed25519 AAAA" in client_of(fake).ssh_keys(pod.pod_id)


def test_an_instance_that_the_client_stops_has_ended_for_the_adapter(fake: FakeVast, tmp_path: Path) -> None:
    pods = pods_of(fake)
    pod = rented(pods)
    _, (stopped,) = seen(fake, tmp_path, f"[vast.stop_instance(id={pod.pod_id}), vast.show_instances()]")
    assert (stopped["intended_status"], stopped["actual_status"]) == ("stopped", "exited")
    assert [each.status for each in pods.list()] == [PodStatus.BROKEN]
    _, (started,) = seen(fake, tmp_path, f"[vast.start_instance(id={pod.pod_id}), vast.show_instances()]")
    assert (started["intended_status"], started["actual_status"]) == ("running", "running")


def test_the_client_reads_a_list_of_several_pages_as_the_adapter_does(fake: FakeVast, tmp_path: Path) -> None:
    pods = pods_of(fake)
    (ask,) = [ask for ask in asks(fake.hosts) if (ask.host.id, ask.count) == (1001, 1)]
    for number in range(PAGE_MAX + 1):
        fake.rented(ask, {"image": "ubuntu:22.04", "label": f"pt-many-{number}-e1"}, ACCOUNT_ID)
    listed = seen(fake, tmp_path, "vast.show_instances()")
    assert len(listed) == PAGE_MAX + 1
    assert [str(each["id"]) for each in listed] == [pod.pod_id for pod in pods.list()]


def test_the_client_and_the_adapter_read_the_same_charges(fake: FakeVast, tmp_path: Path) -> None:
    pods = pods_of(fake)
    pod = rented(pods)
    fake.advance(3600)
    pods.terminate(pod.pod_id)  # so that it costs no more between the two readings
    last_s = int(fake.now_s()) + 1
    (row,) = seen(
        fake, tmp_path, f"vast.show_invoices_v1(charges=True, charge_type=['instance'], end_date={last_s})"
    )["results"]
    (charge,) = client_of(fake).charges(last_s - 7 * DAY_S, last_s)
    assert (row["source"], row["metadata"]["label"]) == (f"instance-{pod.pod_id}", NAME)
    assert (charge.pod_id, charge.label) == (pod.pod_id, NAME)
    assert row["amount"] == charge.amount == pytest.approx(pod.usd_per_hour, abs=0.01)


def test_the_client_and_the_adapter_are_offered_the_same(fake: FakeVast, tmp_path: Path) -> None:
    offers = pods_of(fake).offers(HARDWARE)
    fake.is_checked = False
    searched = (
        "vast.search_offers(query='gpu_name=RTX_4090 num_gpus=1 direct_port_count>=1', type='bid', "
        "order='dph_total')"
    )
    rows = seen(fake, tmp_path, searched)
    assert {(row["gpu_name"], row["num_gpus"]) for row in rows} == {("RTX 4090", 1)}
    assert [row["min_bid"] for row in rows] == [0.2, 0.22], "the cheapest first"
    assert len([offer for offer in offers if offer.spot]) == len(rows)


def test_the_client_sees_and_ends_what_was_rented(fake: FakeVast, tmp_path: Path) -> None:
    pods = pods_of(fake)
    pod = rented(pods)
    fake.is_checked = False
    calls = ("show_instance", "destroy_instance", "show_instance")
    one, _, gone = seen(fake, tmp_path, f"[{', '.join(f'vast.{call}(id={pod.pod_id})' for call in calls)}]")
    assert (one["label"], one["actual_status"], one["dph_total"]) == (NAME, "running", pod.usd_per_hour)
    assert gone is None
    assert pods.get(pod.pod_id) is None
    assert not fake.alive


def test_the_adapter_sees_and_ends_what_the_client_has_rented(fake: FakeVast, tmp_path: Path) -> None:
    fake.is_checked = False
    found, made = seen(
        fake,
        tmp_path,
        "[(offers := vast.search_offers(query='gpu_name=RTX_4090 num_gpus=1 direct_port_count>=1', "
        "type='bid')), "
        f"vast.create_instance(id=offers[0]['id'], image='ubuntu:22.04', disk=20, label={NAME!r}, "
        "price=0.3)]",
    )
    assert {row["gpu_name"] for row in found} == {"RTX 4090"}
    pods = pods_of(fake)
    (pod,) = pods.list()
    assert (pod.pod_id, pod.name) == (str(made["new_contract"]), NAME)
    pods.terminate(pod.pod_id)
    assert not fake.alive


def test_the_client_is_refused_what_somebody_else_has_taken(fake: FakeVast, tmp_path: Path) -> None:
    fake.is_checked = False
    fake.stock = {ask.id: 0 for ask in asks(fake.hosts)}
    assert seen(fake, tmp_path, "vast.search_offers(query='gpu_name=RTX_4090', type='bid')") == []
    with pytest.raises(AssertionError, match="404 Client Error"):
        seen(fake, tmp_path, "vast.create_instance(id=100101, image='ubuntu:22.04', price=0.3)")
    assert not fake.instances
