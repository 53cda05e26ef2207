"""A namespace of a fake Kubernetes cluster, with a stock of machines of each offer set by the test."""

from collections.abc import Mapping

from prime_train.http import READ_S
from prime_train.providers.kubernetes.client import KubernetesClient
from prime_train.providers.kubernetes.exec_plugin import Login
from prime_train.providers.kubernetes.kubeconfig import Cluster
from prime_train.providers.kubernetes.manifests import Agent
from prime_train.providers.kubernetes.pods import KubernetesPods
from prime_train.providers.kubernetes.settings import KubernetesSettings
from tests.fakes.kubernetes import EXAMPLES, TOKEN, FakeKubernetes

SETTINGS = KubernetesSettings(
    usd_per_gpu_hour={"H100_80GB": 2.5, "A100": 1.5, "L4_24GB": 0.6},
    spot_usd_per_gpu_hour={"H100_80GB": 0.5},
    usd_per_hour=0.8,
)
PYTHON = "/opt/agent/bin/python"


def client_of(fake: FakeKubernetes, *, read_s: float = READ_S) -> KubernetesClient:
    return KubernetesClient(
        Cluster(fake.url, "training", login=lambda anew: Login(TOKEN)), read_s=read_s, pause_s=0.01
    )


class KubernetesAccount:
    """A namespace. Each kind of offer is one node here, so its stock is what the node has left."""

    def __init__(self) -> None:
        self.fake = FakeKubernetes(running=True)
        self.fake.__enter__()

    def pods(self, stock: Mapping[str, int], boot_s: int) -> KubernetesPods:
        pods = KubernetesPods(client_of(self.fake), SETTINGS, agent=lambda: Agent(PYTHON))
        for offer_id, count in stock.items():
            place, _, gpus = offer_id.rpartition(":")
            name = {
                "H100_80GB-SXM5-spot@us-east5": "h100-spot",
                "H100_80GB-SXM5@us-east5": "h100",
                "L4_24GB@us-east5": "l4",
            }[place]
            self.fake.nodes[name]["status"]["allocatable"]["nvidia.com/gpu"] = str(count * int(gpus))
        if not stock:
            for node in EXAMPLES:
                self.fake.nodes[node["metadata"]["name"]]["status"]["allocatable"] = dict(
                    node["status"]["allocatable"]
                )
        self.fake.plan.boot_s = boot_s
        return pods

    def agents(self, pod_id: str) -> int:
        """Return how many agents were started on the machine."""
        uid = self.fake.pod_of(pod_id)["metadata"]["uid"]
        return sum(each.pod_uid == uid and each.ticket is not None for each in self.fake.started)

    def close(self) -> None:
        self.fake.__exit__(None, None, None)
        assert self.fake.violations == []
