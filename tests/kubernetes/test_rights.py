"""The rights of docs/kubernetes.md are all that the provider needs on a real control plane, for a machine
from its Job to its end.
"""

from pathlib import Path

import yaml

from prime_train.providers.kubernetes.provider import KubernetesProvider
from prime_train.providers.port import Pods, ProviderContext, SshAddress
from prime_train.runs.verdict import PodStatus
from prime_train.runs.wire import Ticket
from prime_train.spec.spec import HardwareSpec
from tests.kubernetes.cluster import ROOT, Cluster
from tests.waiting import await_true

NAME, USER = "pt-tiny-1-e1-a01234567", "control-plane"
HARDWARE = HardwareSpec(gpus=("H100_80GB",), disk_gib=1)
TICKET = Ticket(run="tiny-1", attempt=1, url="http://127.0.0.1:1", key="0123abcd")
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def token_with_the_roles_of_the_page(cluster: Cluster, namespace: str) -> str:
    """Return the token of a service account with the Role and the ClusterRole of docs/kubernetes.md."""
    blocks = (ROOT / "docs" / "kubernetes.md").read_text().split("```yaml\n")
    role, cluster_role = yaml.safe_load_all(
        next(block for block in blocks if "kind: Role" in block).partition("```")[0]
    )
    role["metadata"]["namespace"] = namespace
    cluster_role["metadata"]["name"] = f"{cluster_role['metadata']['name']}-{namespace}"
    there, admin = f"/api/v1/namespaces/{namespace}/serviceaccounts", cluster.admin
    admin.post(there, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": USER}})
    admin.post(f"{RBAC}/namespaces/{namespace}/roles", role)
    admin.post(f"{RBAC}/clusterroles", cluster_role)
    subjects = [{"kind": "ServiceAccount", "name": USER, "namespace": namespace}]
    for kind, path, of in (
        ("RoleBinding", f"{RBAC}/namespaces/{namespace}/rolebindings", role),
        ("ClusterRoleBinding", f"{RBAC}/clusterrolebindings", cluster_role),
    ):
        reference = {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": of["kind"],
            "name": of["metadata"]["name"],
        }
        metadata = {"name": of["metadata"]["name"]}
        body = {
            "apiVersion": role["apiVersion"],
            "kind": kind,
            "metadata": metadata,
            "subjects": subjects,
            "roleRef": reference,
        }
        admin.post(path, body)
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600},
    }
    return str(admin.post(f"{there}/{USER}/token", request)["status"]["token"])


def installs_nothing(connection: SshAddress, ticket: Ticket) -> None:
    raise AssertionError(f"{connection} is no machine to log in to")


def provider(cluster: Cluster, folder: Path, namespace: str, token: str) -> KubernetesProvider:
    kubeconfig = cluster.kubeconfig(folder / "kubeconfig", token=token, namespace=namespace)
    # An agent that stays until it is told to end.
    agent = folder / "agent"
    agent.write_text("#!/bin/sh\ntrap 'exit 143' TERM\nwhile :; do sleep 1 & wait; done\n")
    agent.chmod(0o755)
    environment = {
        "PRIME_TRAIN_KUBERNETES": f'{{kubeconfig: "{kubeconfig}"}}',
        "PRIME_TRAIN_POD_PYTHON": str(agent),
    }
    context = ProviderContext(
        folder,
        environment,
        b"m" * 32,
        install=installs_nothing,
        public_key=lambda: "",
        unreachable_reason=lambda: "",
    )
    return KubernetesProvider(context)


def status(pods: Pods, pod_id: str) -> PodStatus | None:
    found = pods.get(pod_id)
    return found.status if found is not None else None


def test_a_machine_lives_and_ends_with_the_rights_of_the_page_alone(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    cluster.machine(gpus=1, shared=[tmp_path])
    own = provider(cluster, tmp_path, namespace, token_with_the_roles_of_the_page(cluster, namespace))
    assert own.missing_rights() == ()
    pods = own.pods()
    offer = next(offer for offer in pods.offers(HARDWARE) if offer.gpu == "H100_80GB")
    pod = pods.create(NAME, offer, HARDWARE)
    assert pods.create(NAME, offer, HARDWARE).pod_id == pod.pod_id
    await_true("the pod has a node", lambda: status(pods, pod.pod_id) is PodStatus.ACTIVE, every_s=0.1)
    assert [each.pod_id for each in pods.list()] == [pod.pod_id]
    pods.put_agent(pod, TICKET)
    pods.put_agent(pod, TICKET)

    def phase() -> str:
        return str(cluster.admin.items(f"/api/v1/namespaces/{namespace}/pods")[0]["status"]["phase"])

    await_true("the container runs", lambda: phase() == "Running", every_s=0.1)
    # An eviction: the Job fails, and makes no second pod.
    cluster.evict(
        namespace, cluster.admin.items(f"/api/v1/namespaces/{namespace}/pods")[0]["metadata"]["name"]
    )
    await_true("the evicted pod has ended", lambda: status(pods, pod.pod_id) is PodStatus.GONE, every_s=0.1)

    def reasons() -> set[str]:
        (job,) = cluster.admin.items(f"/apis/batch/v1/namespaces/{namespace}/jobs")
        return {
            condition["reason"]
            for condition in job["status"].get("conditions", ())
            if condition["type"] == "Failed"
        }

    await_true("the Job has failed", reasons, every_s=0.1)
    assert reasons() == {"PodFailurePolicy"}
    assert all(
        each["status"]["phase"] == "Failed"
        for each in cluster.admin.items(f"/api/v1/namespaces/{namespace}/pods")
    )
    pods.terminate(pod.pod_id)
    await_true("the machine is gone", lambda: pods.get(pod.pod_id) is None, every_s=0.1)
    await_true(
        "its Secrets are gone",
        lambda: not cluster.admin.items(f"/api/v1/namespaces/{namespace}/secrets"),
        every_s=0.1,
    )
