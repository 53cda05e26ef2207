"""Kubernetes' own Python client, unchanged, with the fake: the interpreter $KUBERNETES_PYTHON, which has `kubernetes` installed."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.adapters.pods_kubernetes.kubernetes_pods import pods_of, rent
from tests.adapters.rental_apis.shared import TICKET
from tests.fakes.kubernetes import TOKEN, FakeKubernetes
from tests.tools import TOOLS, program

PYTHON = program("kubernetes-python", TOOLS / "kubernetes-client" / "bin" / "python")
CLIENT_S_MAX = 120.0
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="there is no Python with Kubernetes' client in $KUBERNETES_PYTHON or in build/tools/kubernetes-client"
)

PROGRAM = """
import json, sys
from kubernetes import client, config
from kubernetes.client.rest import ApiException
config.load_kube_config(sys.argv[1])
batch, core = client.BatchV1Api(), client.CoreV1Api()
name = sys.argv[2]
job = batch.read_namespaced_job(name, "training")
pods = core.list_namespaced_pod("training", label_selector=f"batch.kubernetes.io/controller-uid={job.metadata.uid}", limit=1)
copy = client.ApiClient().sanitize_for_serialization(job)
copy["metadata"] = {"name": "copy", "annotations": job.metadata.annotations, "labels": job.metadata.labels}
del copy["status"]
made = batch.create_namespaced_job("training", copy)
try:
    batch.create_namespaced_job("training", copy)
    again = 0
except ApiException as error:
    again = error.status
listed = [each.metadata.name for each in batch.list_namespaced_job("training", limit=1).items]
nodes = [each.metadata.name for each in core.list_node().items]
batch.delete_namespaced_job("copy", "training", body=client.V1DeleteOptions(propagation_policy="Foreground"))
try:
    batch.read_namespaced_job("copy", "training")
    gone = 0
except ApiException as error:
    gone = error.status
print(json.dumps({
    "policy": job.spec.pod_failure_policy.rules[0].action,
    "phase": pods.items[0].status.phase, "node": pods.items[0].spec.node_name,
    "same": made.spec.template.to_dict() == job.spec.template.to_dict(), "again": again, "listed": listed,
    "nodes": len(nodes), "gone": gone,
}))
"""


def asked(fake: FakeKubernetes, folder: Path, *words: str) -> dict[str, Any]:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "it", "user": "me"}}],
        "clusters": [{"name": "it", "cluster": {"server": fake.url}}],
        "users": [{"name": "me", "user": {"token": TOKEN}}],
    }
    (folder / "config").write_text(yaml.safe_dump(content))
    command = [str(PYTHON), "-c", PROGRAM, str(folder / "config"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=CLIENT_S_MAX, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout))


def test_the_official_client_sees_what_the_provider_made_and_makes_the_same(tmp_path: Path) -> None:
    with FakeKubernetes() as fake:
        pods = pods_of(fake)
        pod = rent(pods)
        pods.put_agent(pod, TICKET)
        found = asked(fake, tmp_path, pod.pod_id.partition(".")[0])
        assert found == {
            "policy": "FailJob",
            "phase": "Running",
            "node": "h100-spot",
            "same": True,
            "again": 409,
            "listed": [pod.pod_id.partition(".")[0]],
            "nodes": len(fake.nodes),
            "gone": 404,
        }
        assert [each.pod_id for each in pods.list()] == [pod.pod_id]
        assert fake.violations == []
