"""The provider as a control plane uses it: by its row of the registry, with its settings, mark, namespace and
rights.
"""

import json
from pathlib import Path

import pytest
import yaml

from prime_train.errors import PermanentError
from prime_train.market.ranking import rank
from prime_train.providers.kinds import PROVIDERS
from prime_train.providers.kubernetes.provider import FOR_NODES, NEEDED, KubernetesProvider
from prime_train.providers.kubernetes.settings import read_settings
from prime_train.providers.look import look
from prime_train.providers.port import ProviderContext, SshAddress
from prime_train.spec.spec import HardwareSpec
from tests.adapters.pods_kubernetes.kubernetes_pods import HARDWARE, PYTHON
from tests.adapters.rental_apis.shared import NAME, TICKET, Pushed
from tests.fakes.kubernetes import TOKEN, FakeKubernetes

ROOT = Path(__file__).resolve().parents[3]
POOL = {
    "name": "h100",
    "node_selector": {"pool": "h100"},
    "gpu": "H100_80GB",
    "gpus_per_node": 8,
    "usd_per_gpu_hour": 2,
}


def environment(fake: FakeKubernetes, **settings: object) -> dict[str, str]:
    kubeconfig = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "it", "user": "me", "namespace": "training"}}],
        "clusters": [{"name": "it", "cluster": {"server": fake.url}}],
        "users": [{"name": "me", "user": {"token": TOKEN}}],
    }
    return {
        "PRIME_TRAIN_KUBERNETES": json.dumps({"kubeconfig": kubeconfig, **settings}),
        "PRIME_TRAIN_POD_PYTHON": PYTHON,
    }


def plane(fake: FakeKubernetes, root: Path, master: bytes = b"m", **settings: object) -> KubernetesProvider:
    root.mkdir()
    context = ProviderContext(
        root,
        environment(fake, **settings),
        master,
        install=Pushed(),
        public_key=lambda: "",
        unreachable_reason=lambda: "this machine cannot be reached",
    )
    return KubernetesProvider(context)


def test_two_control_planes_share_a_namespace_and_see_only_their_own_machines(
    fake: FakeKubernetes, tmp_path: Path
) -> None:
    assert (
        PROVIDERS["kubernetes"].implementation
        == f"{KubernetesProvider.__module__}:{KubernetesProvider.__name__}"
    )
    ours, theirs = (plane(fake, tmp_path / name, name.encode()) for name in ("ours", "theirs"))
    offer = rank(ours.offers(HARDWARE), HARDWARE).best[0]
    pod = ours.pods().create(NAME, offer, HARDWARE)
    ours.pods().put_agent(pod, TICKET)
    other = theirs.pods().create(NAME, rank(theirs.offers(HARDWARE), HARDWARE).best[0], HARDWARE)
    assert [each.ticket for each in fake.started] == [TICKET]
    assert [each.pod_id for each in ours.pods().list()] == [pod.pod_id]
    assert [each.pod_id for each in theirs.pods().list()] == [other.pod_id]
    assert [each.pod_id for each in ours.all_pods()] == [pod.pod_id, other.pod_id]
    address: SshAddress | None = ours.connection(pod.pod_id)
    assert (ours.account(), address, ours.unreachable_reason()) == (None, None, "")
    assert fake.namespaces["training"] in (tmp_path / "ours" / "kubernetes-namespace").read_text()


def test_the_agent_that_is_installed_is_the_running_one(fake: FakeKubernetes, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    given = {**environment(fake), "PRIME_TRAIN_POD_PYTHON": ""}
    context = ProviderContext(
        tmp_path / "home", given, b"m", install=Pushed(), public_key=lambda: "", unreachable_reason=lambda: ""
    )
    pods = KubernetesProvider(context).pods()
    pod = pods.create(NAME, rank(pods.offers(HARDWARE), HARDWARE).best[0], HARDWARE)
    pods.put_agent(pod, TICKET)
    assert [each.ticket for each in fake.started] == [TICKET]
    command = fake.pod_of(pod.pod_id)["spec"]["containers"][0]["command"]
    assert command[:3] == ["/bin/sh", "/var/run/prime-train/bring_up.sh", "first"]


def test_a_look_says_what_there_is_and_which_rights_are_missing(fake: FakeKubernetes) -> None:
    found = look("kubernetes", environment(fake), HardwareSpec(disk_gib=1))
    assert (found.account, found.pods) == (f"namespace training at 127.0.0.1:{fake.port}", 0)
    assert found.cheapest is not None
    fake.limits.refused = {("create", "secrets"), ("list", "nodes"), ("get", "namespaces")}
    with pytest.raises(PermanentError) as caught:
        look("kubernetes", environment(fake), HardwareSpec(disk_gib=1))
    words = (
        "the right to create secrets in namespace training, get namespaces in namespace training, list nodes "
        "in the whole cluster"
    )
    assert words in str(caught.value)


def test_a_user_who_sees_only_a_namespace_gets_the_pools_of_the_settings(
    fake: FakeKubernetes, tmp_path: Path
) -> None:
    fake.limits.refused = {("list", "nodes")}
    with pytest.raises(PermanentError, match="cannot list resource"):
        plane(fake, tmp_path / "without").offers(HARDWARE)
    provider = plane(fake, tmp_path / "with", pools=[POOL])
    assert [offer.offer_id for offer in provider.offers(HARDWARE)] == ["pool/h100:8"]
    assert provider.missing_rights() == ()


def test_the_page_has_the_role_that_the_provider_needs() -> None:
    text = (ROOT / "docs" / "kubernetes.md").read_text()
    blocks = text.split("```yaml\n")[1:]
    role, cluster_role = yaml.safe_load_all(
        next(block for block in blocks if "kind: Role" in block).partition("```")[0]
    )

    def rights(of: dict[str, object]) -> set[tuple[str, str, str]]:
        rules = of["rules"]
        assert isinstance(rules, list)
        return {
            (verb, group, resource)
            for rule in rules
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }

    assert rights(role) == {(right.verb, right.group, right.resource) for right in NEEDED}
    assert rights(cluster_role) == {(right.verb, right.group, right.resource) for right in FOR_NODES}


def test_the_settings_of_the_page_are_valid(fake: FakeKubernetes, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "kubernetes.md").read_text()
    content = yaml.safe_load(text.split("```yaml\n")[1].partition("```")[0])
    restricted = next(block for block in text.split("```yaml\n") if block.startswith("pod_security_context"))
    assert read_settings({"PRIME_TRAIN_KUBERNETES": restricted.partition("```")[0]}).security_context[
        "capabilities"
    ] == {"drop": ["ALL"]}
    for key in ("kubeconfig", "context"):
        del content[key]
    offers = plane(fake, tmp_path / "home", **content).offers(HARDWARE)
    assert {offer.offer_id: offer.usd_per_hour for offer in offers} == {
        "H100_80GB-SXM5-spot@us-east5:8": 9.6,
        "H100_80GB-SXM5@us-east5:8": 20.0,
        "A100_80GB-SXM4@us-east5:8": 0.0,
        "pool/h100-spot:8": 9.6,
    }
