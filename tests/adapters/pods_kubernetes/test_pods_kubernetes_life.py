"""One pod at a time: what is created for it, what it is reported as, and what its agent finds."""

import base64
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_train.buckets.keys import pod_name
from prime_train.errors import LimitReached, NoCapacity, PermanentError, TemporaryError
from prime_train.providers.install.agent_bundle import BRING_UP
from prime_train.providers.kubernetes.client import KubernetesClient
from prime_train.providers.kubernetes.exec_plugin import Login
from prime_train.providers.kubernetes.kubeconfig import Cluster
from prime_train.providers.kubernetes.manifests import DISK_FOLDER, FILES, PART_BYTES_MAX, Agent, job_name
from prime_train.providers.kubernetes.models import KubernetesJob, KubernetesPod
from prime_train.providers.kubernetes.settings import KubernetesSettings, Pool
from prime_train.providers.kubernetes.statuses import status_of
from prime_train.providers.rental.account_check import AccountWords, InFile, Owner
from prime_train.runs.verdict import PodStatus
from prime_train.spec.spec import HardwareSpec
from tests.adapters.pods_kubernetes.kubernetes_pods import (
    HARDWARE,
    JOBS,
    PYTHON,
    SETTINGS,
    client_of,
    first,
    pods_of,
    rent,
)
from tests.adapters.rental_apis.shared import NAME, TICKET, raised, seen
from tests.fakes.http import ALWAYS, Response
from tests.fakes.kubernetes import TOKEN, FakeKubernetes, failure

# ------------------------------------------------------------------------------------------------------------
# what is created


def test_a_job_makes_one_pod_whatever_becomes_of_it(fake: FakeKubernetes) -> None:
    pod = rent(pods_of(fake))
    spec = fake.job_of(pod.pod_id)["spec"]
    assert (spec["completions"], spec["parallelism"], spec["backoffLimit"], spec["podReplacementPolicy"]) == (
        1,
        1,
        0,
        "Failed",
    )
    assert [rule["action"] for rule in spec["podFailurePolicy"]["rules"]] == ["FailJob"]
    template = spec["template"]["spec"]
    assert template["restartPolicy"] == "Never"
    assert template["automountServiceAccountToken"] is False
    (container,) = template["containers"]
    assert container["command"][:4] == [PYTHON, "-I", "-m", "prime_agent.main"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    assert container["resources"]["requests"] == {
        "cpu": "32000m",
        "memory": str(128 * 2**30),
        "ephemeral-storage": str(50 * 2**30),
    }
    assert {"name": "shm", "emptyDir": {"medium": "Memory"}} in template["volumes"]


def test_settings_reach_the_job(fake: FakeKubernetes) -> None:
    given = {
        "labels": {"team": "a"},
        "annotations": {"note": "b"},
        "image": "ghcr.io/me/train@sha256:" + "0" * 64,
        "image_pull_secrets": ["pull"],
        "service_account": "trainer",
        "priority_class": "low",
        "runtime_class": "nvidia",
        "pod_security_context": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "security_context": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "storage_class": "fast",
        "node_selector": {"topology.kubernetes.io/region": "us-east5"},
        "tolerations": [{"key": "team", "value": "other"}],
        "hours_max": 2,
        "grace_s": 30,
        "cpus_per_gpu": 2,
    }
    pod = rent(pods_of(fake, KubernetesSettings.model_validate(given)))
    job = fake.job_of(pod.pod_id)
    template = job["spec"]["template"]["spec"]
    assert job["metadata"]["labels"]["team"] == job["spec"]["template"]["metadata"]["labels"]["team"] == "a"
    assert job["metadata"]["annotations"]["note"] == "b"
    assert job["spec"]["activeDeadlineSeconds"] == 7200
    assert template["containers"][0]["image"] == given["image"]
    assert template["containers"][0]["resources"]["requests"] == {"cpu": "16000m", "memory": str(128 * 2**30)}
    assert (
        template["serviceAccountName"],
        template["priorityClassName"],
        template["terminationGracePeriodSeconds"],
    ) == (
        "trainer",
        "low",
        30,
    )
    assert "automountServiceAccountToken" not in template
    assert template["runtimeClassName"] == "nvidia"
    assert template["securityContext"] == given["pod_security_context"]
    assert template["containers"][0]["securityContext"] == given["security_context"]
    assert template["imagePullSecrets"] == [{"name": "pull"}]
    assert template["nodeSelector"] == given["node_selector"]
    claim = template["volumes"][1]["ephemeral"]["volumeClaimTemplate"]["spec"]
    assert (claim["storageClassName"], claim["resources"]["requests"]["storage"]) == ("fast", "50Gi")
    assert {"key": "team", "operator": "Equal", "value": "other"} in template["tolerations"]


def test_a_job_without_such_settings_names_no_runtime_and_no_security_context(fake: FakeKubernetes) -> None:
    template = fake.job_of(rent(pods_of(fake)).pod_id)["spec"]["template"]["spec"]
    assert not {"runtimeClassName", "securityContext"} & (template.keys() | template["containers"][0].keys())


def test_a_machine_without_gpus_needs_no_runtime_for_them(fake: FakeKubernetes) -> None:
    hardware = HardwareSpec(disk_gib=1)
    pods = pods_of(fake, SETTINGS.model_copy(update={"runtime_class": "nvidia"}))
    plain = next(offer for offer in pods.offers(hardware) if not offer.gpu)
    job = fake.job_of(pods.create(NAME, plain, hardware).pod_id)
    assert "runtimeClassName" not in job["spec"]["template"]["spec"]


def test_the_image_of_the_config_comes_before_that_of_the_settings(fake: FakeKubernetes) -> None:
    image = "ghcr.io/me/train@sha256:" + "1" * 64
    pod = rent(pods_of(fake), hardware=HARDWARE.model_copy(update={"image": image}))
    assert fake.job_of(pod.pod_id)["spec"]["template"]["spec"]["containers"][0]["image"] == image


def test_kueue_starts_a_job_that_waits_in_its_queue_for_as_long_as_the_run_allows(
    fake: FakeKubernetes,
) -> None:
    pods = pods_of(fake, SETTINGS.model_copy(update={"queue": "team-a"}))
    pod = rent(pods)
    job = fake.job_of(pod.pod_id)
    assert (job["spec"]["suspend"], job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]) == (
        True,
        "team-a",
    )
    fake.advance(86_400)
    assert seen(pods, pod) is PodStatus.PENDING
    job["spec"]["suspend"] = False
    assert seen(pods, pod) is PodStatus.ACTIVE


@pytest.mark.parametrize("attempt", [1, 999_999_999])
def test_names_of_jobs_are_short_enough_for_labels_and_differ(attempt: int) -> None:
    names = {
        job_name(f"{pod_name('r' * 47 + end, attempt, '0123456789abcdef')}-{mark}")
        for end in "ab"
        for mark in ("11111111", "2222")
    }
    assert len(names) == 4
    assert max(map(len, names)) <= 63


def test_a_machine_of_a_run_with_the_longest_name_is_found_by_it(fake: FakeKubernetes) -> None:
    pods, name = pods_of(fake), pod_name("r" * 48, 999_999_999, "0123456789abcdef")
    pod = rent(pods, name)
    assert [each.name for each in pods.list()] == [name]
    assert rent(pods, name).pod_id == pod.pod_id


def test_a_job_of_somebody_else_is_not_taken_for_ours(fake: FakeKubernetes) -> None:
    pods = pods_of(fake)
    pod = rent(pods)
    fake.job_of(pod.pod_id)["metadata"]["annotations"]["prime-train/name"] = "pt-other-e1"
    assert "does not say that it was made for" in str(raised(lambda: rent(pods)))


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (failure(403, "Forbidden", "jobs is forbidden: exceeded quota: few"), LimitReached, "ResourceQuota"),
        (
            failure(403, "Forbidden", 'User "pt" cannot create resource "jobs"'),
            PermanentError,
            "docs/kubernetes.md",
        ),
        (
            failure(404, "NotFound", 'namespaces "training" not found', name="training"),
            PermanentError,
            "create it",
        ),
        (failure(422, "Invalid", "spec is invalid"), PermanentError, "spec is invalid"),
        (failure(409, "Conflict", "try again"), TemporaryError, "try again"),
        (Response(404, b"<html>"), TemporaryError, "not by Kubernetes"),
        (Response(302), PermanentError, "redirect"),
        (failure(500, "InternalError", "a webhook failed"), TemporaryError, "webhook"),
    ],
)
def test_a_refusal_of_a_job_says_what_to_do(
    fake: FakeKubernetes, answer: Response, kind: type[Exception], words: str
) -> None:
    fake.fail(answer, method="POST", path=JOBS)
    error = raised(lambda: rent(pods_of(fake)))
    assert type(error) in (kind, *kind.__subclasses__())
    assert words in str(error)
    assert not fake.jobs


def test_an_offer_without_room_or_above_the_limit_is_not_rented(fake: FakeKubernetes) -> None:
    pods = pods_of(fake)
    offer = first(pods)
    cheap = HARDWARE.model_copy(update={"usd_per_hour_max": 3.9})
    with pytest.raises(NoCapacity, match="above hardware"):
        pods.create(NAME, offer, cheap)
    with pytest.raises(NoCapacity, match="no room"):
        pods.create(NAME, replace(offer, offer_id="H100_80GB-SXM5@mars:8"), HARDWARE)
    assert not fake.jobs


# ------------------------------------------------------------------------------------------------------------
# the agent


def test_the_agents_files_come_in_secrets_of_allowed_size_and_belong_to_the_job(fake: FakeKubernetes) -> None:
    wheel = bytes(range(256)) * 8000
    agent = Agent(
        "", (("prime_train-1-py3-none-any.whl", wheel), ("runtime.txt", b"pins")), "0123456789abcdef"
    )
    pods = pods_of(fake, agent=lambda: agent, bring_up=lambda: b"script")
    pod = rent(pods)
    pods.put_agent(pod, TICKET)
    files = {
        name: base64.b64decode(data) for each in fake.secrets.values() for name, data in each["data"].items()
    }
    assert b"".join(files[name] for name in sorted(files) if name.startswith("wheel.")) == wheel
    assert (files["wheel-name"], files["runtime.txt"], files["bring_up.sh"]) == (
        b"prime_train-1-py3-none-any.whl",
        b"pins",
        b"script",
    )
    sizes = [
        sum(len(base64.b64decode(data)) for data in each["data"].values()) for each in fake.secrets.values()
    ]
    assert max(sizes) <= PART_BYTES_MAX
    assert {each["metadata"]["ownerReferences"][0]["uid"] for each in fake.secrets.values()} == {
        pod.pod_id.partition(".")[2]
    }
    assert [each.ticket for each in fake.started] == [TICKET]
    pods.terminate(pod.pod_id)
    assert (fake.secrets, fake.pods, fake.jobs) == ({}, {}, {})


def test_the_script_puts_the_agent_together_and_becomes_it(tmp_path: Path) -> None:
    wheel = bytes(range(256)) * 8000
    agent = Agent(
        "", (("prime_train-1-py3-none-any.whl", wheel), ("runtime.txt", b"pins")), "0123456789abcdef"
    )
    files, disk, tools = (tmp_path / name for name in ("files", "workspace", "tools"))
    for folder in (files, disk, tools):
        folder.mkdir()
    for part in agent.secrets:
        for name, data in part.items():
            (files / name).write_bytes(data)
    (tools / "uv").write_text(
        """#!/bin/sh
for last; do :; done
if [ "$1" = venv ]; then
  mkdir -p "$last/bin" && printf '#!/bin/sh\\necho "$$ $*"\\n' >"$last/bin/python" && chmod +x "$last/bin/python"
fi
"""
    )
    (tools / "uv").chmod(0o755)
    words = [
        str(files) if word == FILES else str(disk) if word == DISK_FOLDER else word
        for word in agent.command()
    ]
    words = [
        word.replace(f"{FILES}/$(POD_UID).json", f"{files}/uid.json").replace(
            f"{FILES}/bring_up.sh", str(BRING_UP)
        )
        for word in words
    ]
    environment = {"PATH": f"{tools}:/usr/bin:/bin", "HOME": str(tmp_path)}
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as process:
        said, _ = process.communicate(timeout=60)
        # The same process, so that a signal to the container reaches the agent.
        expected = f"{process.pid} -I -m prime_agent.main --ticket {files}/uid.json --disk {disk}/attempt"
    assert said.splitlines()[-1] == expected
    (found,) = disk.glob(".prime-train/files-*/prime_train-1-py3-none-any.whl")
    assert found.read_bytes() == wheel


def test_the_ticket_is_in_no_job(fake: FakeKubernetes) -> None:
    pods = pods_of(fake)
    pods.put_agent(rent(pods), TICKET)
    assert TICKET.key not in str(fake.jobs) + str(fake.pods)
    assert all(TICKET.key not in request.target for request in fake.requests)


def test_a_pod_that_was_made_for_another_version_of_the_agent_is_not_used(fake: FakeKubernetes) -> None:
    pod = rent(pods_of(fake, agent=lambda: Agent("", (), "0" * 16)))
    with pytest.raises(PermanentError, match="another version"):
        pods_of(fake, agent=lambda: Agent("", (), "1" * 16)).put_agent(pod, TICKET)
    assert not fake.secrets


def test_an_agent_that_was_put_in_part_is_put_completely(fake: FakeKubernetes) -> None:
    pods = pods_of(fake, agent=lambda: Agent("", (("a.whl", b"x" * PART_BYTES_MAX * 2),), "0" * 16))
    pod = rent(pods)
    fake.fail(Response(503), method="POST", path="/secrets$", first=2)
    with pytest.raises(TemporaryError):
        pods.put_agent(pod, TICKET)
    assert not fake.started
    pods.put_agent(pod, TICKET)
    pods.put_agent(pod, TICKET)
    assert len(fake.started) == 1


# ------------------------------------------------------------------------------------------------------------
# its statuses


@pytest.mark.parametrize(
    ("event", "status"),
    [
        (lambda fake, pod_id: None, PodStatus.ACTIVE),
        (FakeKubernetes.lose_node, PodStatus.UNKNOWN),
        (FakeKubernetes.disrupt, PodStatus.UNKNOWN),
        (lambda fake, pod_id: fake.end_container(pod_id, 0), PodStatus.GONE),
        (lambda fake, pod_id: fake.end_container(pod_id, 137), PodStatus.GONE),
        (FakeKubernetes.forget, None),
    ],
)
def test_only_a_container_that_has_ended_is_gone(
    fake: FakeKubernetes, event: Callable[[FakeKubernetes, str], Any], status: PodStatus | None
) -> None:
    fake.plan.end_s = 60
    pods = pods_of(fake)
    pod = rent(pods)
    pods.put_agent(pod, TICKET)
    event(fake, pod.pod_id)
    assert seen(pods, pod) is status
    assert [each.pod_id for each in pods.list()] == ([] if status in (None, PodStatus.GONE) else [pod.pod_id])


def test_an_ended_machine_has_the_time_of_its_end(fake: FakeKubernetes) -> None:
    pods = pods_of(fake)
    pod = rent(pods)
    fake.advance(600)
    fake.end_container(pod.pod_id, 1)
    fake.advance(600)
    found = pods.get(pod.pod_id)
    assert found is not None
    assert found.ended_s == pod.created_s + 600


def test_a_job_that_is_being_deleted_is_gone_only_when_its_pod_has_ended(fake: FakeKubernetes) -> None:
    fake.plan.end_s = 60
    pods = pods_of(fake)
    pod = rent(pods)
    pods.terminate(pod.pod_id)
    assert seen(pods, pod) is PodStatus.UNKNOWN
    fake.advance(61)
    assert pods.get(pod.pod_id) is None


def test_a_pod_whose_job_is_gone_is_not_gone_and_is_ended_by_itself(fake: FakeKubernetes) -> None:
    pods = pods_of(fake)
    pod = rent(pods)
    del fake.jobs[pod.pod_id.partition(".")[0]]
    assert seen(pods, pod) is PodStatus.UNKNOWN
    assert [each.pod_id for each in pods.list()] == [pod.pod_id]
    pods.terminate(pod.pod_id)
    assert pods.get(pod.pod_id) is None


def test_a_pod_that_fits_on_no_node_is_broken_unless_nodes_may_be_added(fake: FakeKubernetes) -> None:
    pool = Pool(name="h100", node_selector={"pool": "h100"}, gpu="H100_80GB", gpus_per_node=8)
    for settings, status in (
        (SETTINGS, PodStatus.BROKEN),
        (SETTINGS.model_copy(update={"pools": (pool,)}), PodStatus.PENDING),
    ):
        pods = pods_of(fake, settings)
        offers = [
            offer
            for offer in pods.offers(HARDWARE)
            if offer.offer_id.startswith("pool/") is bool(settings.pools)
        ]
        fake.plan.boot_s = 10
        pod = pods.create(f"pt-{status.value}-e1", offers[0], HARDWARE)
        for node in fake.nodes.values():
            node["status"]["allocatable"]["nvidia.com/gpu"] = "0"
        fake.advance(20)
        assert seen(pods, pod) is PodStatus.PENDING
        fake.advance(400)
        assert seen(pods, pod) is status


def test_two_pods_of_one_job_are_never_taken_for_one_machine() -> None:
    metadata = {"name": "a", "uid": "u"}
    pod = KubernetesPod.model_validate(
        {"metadata": metadata, "spec": {"nodeName": "n"}, "status": {"phase": "Running"}}
    )
    job = KubernetesJob.model_validate({"metadata": metadata, "spec": {}})
    assert status_of(job, [pod], 0) == (PodStatus.ACTIVE, "")
    found = status_of(job, [pod, pod], 0)
    assert found is not None
    assert found[0] is PodStatus.UNKNOWN


# ------------------------------------------------------------------------------------------------------------
# the rest


@pytest.mark.parametrize(
    "pod_id", ["../secrets.u", "a/b.u", "a.b/c", "", "x" * 300, "a b.u", "a%2fb.u", "A.u", "a.u?x", "a."]
)
def test_no_id_becomes_a_part_of_a_url_that_it_must_not(fake: FakeKubernetes, pod_id: str) -> None:
    pods = pods_of(fake)
    assert pods.get(pod_id) is None
    pods.terminate(pod_id)
    assert not fake.requests


def test_another_job_with_the_name_of_one_that_was_ended_is_not_ended_for_it(fake: FakeKubernetes) -> None:
    pods = pods_of(fake)
    first_one = rent(pods)
    pods.terminate(first_one.pod_id)
    second_one = rent(pods)
    pods.terminate(first_one.pod_id)
    assert pods.get(first_one.pod_id) is None
    assert seen(pods, second_one) is PodStatus.ACTIVE


def test_in_another_cluster_no_machine_is_taken_for_gone(fake: FakeKubernetes, tmp_path: Any) -> None:
    client = client_of(fake)
    owner = Owner(
        lambda: [client.namespace_uid()], InFile(tmp_path / "memory"), AccountWords("Kubernetes", "X")
    )
    pods = pods_of(fake, client=client, owner=owner)
    pod = rent(pods)
    with FakeKubernetes() as other:
        other.namespaces["training"] = "00000000-another"
        elsewhere = client_of(other)
        owner = Owner(
            lambda: [elsewhere.namespace_uid()], InFile(tmp_path / "memory"), AccountWords("Kubernetes", "X")
        )
        moved = pods_of(other, client=elsewhere, owner=owner)
        with pytest.raises(PermanentError, match="another account"):
            moved.get(pod.pod_id)
        with pytest.raises(PermanentError, match="another account"):
            moved.terminate(pod.pod_id)


def test_a_login_that_has_ended_is_renewed_once(fake: FakeKubernetes) -> None:
    asked: list[bool] = []

    def login(anew: bool) -> Login:
        asked.append(anew)
        return Login(TOKEN if any(asked) else "old")

    client = KubernetesClient(Cluster(fake.url, "training", login=login), pause_s=0.0)
    assert client.jobs("a=b") == []
    assert asked == [False, True]
    fake.fail(failure(401, "Unauthorized"), times=ALWAYS)
    assert "check the kubeconfig's user" in str(raised(lambda: client.jobs("a=b")))


def test_lists_of_many_pages_are_complete_or_an_error(fake: FakeKubernetes) -> None:
    pods = pods_of(fake)
    small = HardwareSpec(gpus=("H100",), count=1, disk_gib=1)
    rented = {rent(pods, f"pt-many-e{number}", small).pod_id for number in range(1, 6)}
    fake.limits.page = 2
    assert {pod.pod_id for pod in pods.list()} == rented
    fake.fail(failure(410, "Expired", "too old"), method="GET", path=JOBS, first=2)
    with pytest.raises(TemporaryError, match="too old"):
        pods.list()
