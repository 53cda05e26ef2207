"""What the tests of the provider Kubernetes share."""

from pathlib import Path
from typing import Any

from prime_train.providers.kubernetes.client import KubernetesClient
from prime_train.providers.kubernetes.exec_plugin import Login
from prime_train.providers.kubernetes.kubeconfig import Cluster
from prime_train.providers.kubernetes.manifests import Agent
from prime_train.providers.kubernetes.pods import KubernetesPods
from prime_train.providers.kubernetes.settings import KubernetesSettings
from prime_train.providers.rental.account_check import AccountWords, InFile, Owner
from prime_train.providers.rental.pod_names import PodMark
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod
from prime_train.spec.spec import HardwareSpec
from tests.adapters.rental_apis import shared
from tests.adapters.rental_apis.shared import NAME
from tests.adapters.rented_days import Days, Pushed, world_of
from tests.fakes.kubernetes import TOKEN, FakeKubernetes, Machine

HARDWARE = HardwareSpec(gpus=("H100",), count=8, disk_gib=50)
SETTINGS = KubernetesSettings(
    usd_per_gpu_hour={"H100_80GB": 2.5, "A100": 1.5, "L4_24GB": 0.6}, spot_usd_per_gpu_hour={"H100_80GB": 0.5}
)
JOBS = "/apis/batch/v1/namespaces/training/jobs"
PODS, NODES = "/api/v1/namespaces/training/pods", "/api/v1/nodes"
PYTHON = "/opt/agent/bin/python"
KubernetesDays = Days[FakeKubernetes, Machine]


def client_of(fake: FakeKubernetes, **options: Any) -> KubernetesClient:
    return KubernetesClient(
        Cluster(fake.url, "training", login=lambda anew: Login(TOKEN)), **{"pause_s": 0.0, **options}
    )


def pods_of(fake: FakeKubernetes, settings: KubernetesSettings = SETTINGS, **options: Any) -> KubernetesPods:
    client = options.pop("client", None) or client_of(fake)
    return KubernetesPods(client, settings, **{"agent": lambda: Agent(PYTHON), **options})


def guarded(fake: FakeKubernetes, folder: Path, **options: Any) -> KubernetesPods:
    """Return the pods of a new process, which compares the namespace with the one in the folder."""
    client = client_of(fake)
    words = AccountWords("Kubernetes", "X")
    return pods_of(
        fake,
        client=client,
        **{"owner": Owner(lambda: [client.namespace_uid()], InFile(folder / "memory"), words), **options},
    )


def days_of(fake: FakeKubernetes, folder: Path) -> KubernetesDays:
    """Return days in which a pod that is deleted takes a minute to end. Their calls are those that other
    tests compare with the description, which takes most of the time.
    """
    fake.is_checked = False
    fake.plan.end_s = 60.0
    pushed = Pushed(fake)
    fake.on_start = pushed.add
    pods = pods_of(fake, client=client_of(fake, clock=fake.now_s, wall=fake.now_s), mark=PodMark("11111111"))
    return Days(fake, "kubernetes", world_of("kubernetes", pods, folder), pushed)


def first(pods: KubernetesPods, hardware: HardwareSpec = HARDWARE) -> Offer:
    return shared.first(pods, hardware)


def rent(pods: KubernetesPods, name: str = NAME, hardware: HardwareSpec = HARDWARE) -> Pod:
    return pods.create(name, first(pods, hardware), hardware)
