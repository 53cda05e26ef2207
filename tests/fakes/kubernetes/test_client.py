"""Kubernetes' own Python client, unchanged, with the fake: the interpreter $KUBERNETES_PYTHON, which has
`kubernetes` installed.

The client makes the same calls as the adapter, and reads what they return into its own classes, which refuse
objects without what the API requires of them.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from prime_train.providers.kubernetes.pods import KubernetesPods
from prime_train.runs.verdict import Pod
from tests.adapters.pods_kubernetes.kubernetes_pods import client_of, pods_of, rent
from tests.adapters.rental_apis.shared import TICKET
from tests.fakes.kubernetes import TOKEN, FakeKubernetes
from tests.tools import TOOLS, program

PYTHON = program("kubernetes-python", TOOLS / "kubernetes-client" / "bin" / "python")
CLIENT_S_MAX = 120.0
NOT_HERE = "there is no Python with Kubernetes' client in $KUBERNETES_PYTHON or in build/tools: make tools"
pytestmark = pytest.mark.skipif(not PYTHON, reason=NOT_HERE)

PROGRAM = """
import json, sys
from kubernetes import client, config
from kubernetes.client.rest import ApiException
config.load_kube_config(sys.argv[1])
batch, core, rights = client.BatchV1Api(), client.CoreV1Api(), client.AuthorizationV1Api()
of_job = "batch.kubernetes.io/controller-uid="

def refused(call, *given, **more):
    try:
        call(*given, **more)
    except ApiException as error:
        status = json.loads(error.body)
        return [error.status, status["reason"], status.get("details", {}).get("name", "")]

def names(found):
    return [each.metadata.name for each in found.items]

name, uid = sys.argv[2].split(".")
"""


@pytest.fixture(name="fake")
def _fake() -> Iterator[FakeKubernetes]:
    with FakeKubernetes() as fake:
        yield fake
        assert fake.violations == []


@pytest.fixture(name="pods")
def _pods(fake: FakeKubernetes) -> KubernetesPods:
    return pods_of(fake)


@pytest.fixture(name="pod")
def _pod(pods: KubernetesPods) -> Pod:
    return rent(pods)


def asked(fake: FakeKubernetes, folder: Path, pod: Pod, program: str) -> dict[str, Any]:
    """Return what a program of the client says about a machine, whose Job is `name`."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "it", "user": "me"}}],
        "clusters": [{"name": "it", "cluster": {"server": fake.url}}],
        "users": [{"name": "me", "user": {"token": TOKEN}}],
    }
    (folder / "config").write_text(yaml.safe_dump(content))
    command = [str(PYTHON), "-c", PROGRAM + program, str(folder / "config"), pod.pod_id]
    done = subprocess.run(command, capture_output=True, text=True, timeout=CLIENT_S_MAX, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout))


JOBS = """
job = batch.read_namespaced_job(name, "training")
copy = client.ApiClient().sanitize_for_serialization(job)
copy["metadata"] = {"name": "copy", "annotations": job.metadata.annotations, "labels": job.metadata.labels}
del copy["status"]
made = batch.create_namespaced_job("training", copy)
again = refused(batch.create_namespaced_job, "training", copy)
first = batch.list_namespaced_job("training", limit=1)
second = batch.list_namespaced_job("training", limit=1, _continue=first.metadata._continue)
mine = batch.list_namespaced_job("training", label_selector="app.kubernetes.io/managed-by=prime-train")
other = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="another"))
kept = refused(batch.delete_namespaced_job, "copy", "training", body=other)
batch.delete_namespaced_job("copy", "training", body=client.V1DeleteOptions(propagation_policy="Foreground"))
print(json.dumps({
    "policy": job.spec.pod_failure_policy.rules[0].action, "same": made.spec.template.to_dict() == job.spec.template.to_dict(),
    "again": again, "pages": [names(first), names(second), second.metadata._continue], "mine": names(mine), "kept": kept,
    "gone": refused(batch.read_namespaced_job, "copy", "training"),
}))
"""


def test_the_client_reads_makes_lists_and_deletes_the_same_jobs(
    fake: FakeKubernetes, pods: KubernetesPods, pod: Pod, tmp_path: Path
) -> None:
    job = pod.pod_id.partition(".")[0]
    assert asked(fake, tmp_path, pod, JOBS) == {
        "policy": "FailJob",
        "same": True,
        "again": [409, "AlreadyExists", "copy"],
        "pages": [[job], ["copy"], None],
        "mine": [job, "copy"],
        "kept": [409, "Conflict", "copy"],
        "gone": [404, "NotFound", "copy"],
    }
    assert [each.pod_id for each in pods.list()] == [pod.pod_id]


MACHINE = """
(pod,) = core.list_namespaced_pod("training", label_selector=of_job + uid).items
everywhere = core.list_pod_for_all_namespaces(field_selector="status.phase!=Succeeded,status.phase!=Failed")
node = next(each for each in core.list_node().items if each.metadata.name == pod.spec.node_name)
print(json.dumps({
    "phase": pod.status.phase, "waits": bool(pod.status.container_statuses[0].state.waiting),
    "condition": [[each.type, each.status] for each in pod.status.conditions], "everywhere": names(everywhere) == [pod.metadata.name],
    "gpus": node.status.allocatable["nvidia.com/gpu"],
    "namespace": core.read_namespace("training").metadata.uid, "nowhere": refused(core.read_namespace, "other"),
}))
"""


def test_the_client_reads_a_machine_as_the_adapter_does(
    fake: FakeKubernetes, pod: Pod, tmp_path: Path
) -> None:
    assert asked(fake, tmp_path, pod, MACHINE) == {
        "phase": "Pending",
        "waits": True,
        "condition": [["PodScheduled", "True"]],
        "everywhere": True,
        "gpus": "8",
        "namespace": client_of(fake).namespace_uid(),
        "nowhere": [404, "NotFound", "other"],
    }


SECRET = """
job = batch.read_namespaced_job(name, "training")
(pod,) = core.list_namespaced_pod("training", label_selector=of_job + uid).items
wanted = [each.secret.name for volume in pod.spec.volumes if volume.projected for each in volume.projected.sources]
owner = client.V1OwnerReference(api_version="batch/v1", kind="Job", name=name, uid=job.metadata.uid)
made = [core.create_namespaced_secret("training", client.V1Secret(
    metadata=client.V1ObjectMeta(name=each, owner_references=[owner]), string_data=None, data={"a": "Yg=="})) for each in wanted]
again = refused(core.create_namespaced_secret, "training", client.V1Secret(metadata=client.V1ObjectMeta(name=wanted[0]), data={}))
(ended,) = core.list_namespaced_pod("training", label_selector=of_job + uid).items
print(json.dumps({
    "owners": [each.metadata.owner_references[0].uid == uid for each in made], "again": again[:2],
    "ended": [ended.status.phase, ended.status.container_statuses[0].state.terminated.exit_code],
}))
batch.delete_namespaced_job(name, "training", body=client.V1DeleteOptions(propagation_policy="Foreground"))
"""


def test_a_container_starts_with_the_secrets_of_its_job_and_they_are_deleted_with_it(
    fake: FakeKubernetes, pods: KubernetesPods, pod: Pod, tmp_path: Path
) -> None:
    found = asked(fake, tmp_path, pod, SECRET)
    assert found == {"owners": [True], "again": [409, "AlreadyExists"], "ended": ["Failed", 2]}, (
        "without a ticket it ends"
    )
    assert pods.get(pod.pod_id) is None
    assert fake.secrets == {}


ENDED = """
(pod,) = core.list_namespaced_pod("training", label_selector=of_job + uid).items
other = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="another"))
kept = refused(core.delete_namespaced_pod, pod.metadata.name, "training", body=other)
core.delete_namespaced_pod(pod.metadata.name, "training", body=client.V1DeleteOptions(preconditions={"uid": pod.metadata.uid}))
job = batch.read_namespaced_job(name, "training")
review = client.V1SelfSubjectAccessReview(spec=client.V1SelfSubjectAccessReviewSpec(
    resource_attributes=client.V1ResourceAttributes(verb="list", resource="nodes")))
print(json.dumps({
    "phase": pod.status.phase, "kept": kept[:2], "left": names(core.list_namespaced_pod("training", label_selector=of_job + uid)),
    "gone": refused(core.delete_namespaced_pod, pod.metadata.name, "training"),
    "job": [[each.type, each.reason] for each in job.status.conditions], "failed": job.status.failed,
    "may": rights.create_self_subject_access_review(review).status.allowed, "nodes": refused(core.list_node),
}))
"""


def test_the_client_ends_a_pod_and_is_told_what_it_may_not_do(
    fake: FakeKubernetes, pods: KubernetesPods, pod: Pod, tmp_path: Path
) -> None:
    pods.put_agent(pod, TICKET)
    fake.limits.refused.add(("list", "nodes"))
    found = asked(fake, tmp_path, pod, ENDED)
    assert found.pop("gone")[:2] == [404, "NotFound"]
    assert found == {
        "phase": "Running",
        "kept": [409, "Conflict"],
        "left": [],
        "job": [["Failed", "BackoffLimitExceeded"]],
        "failed": 1,
        "may": False,
        "nodes": [403, "Forbidden", ""],
    }
