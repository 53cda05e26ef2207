"""The port `Provider` on Kubernetes. There is no account to watch, and nothing is reached by SSH."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

from prime_train.errors import TemporaryError
from prime_train.http import is_loopback
from prime_train.providers.kubernetes.client import KubernetesClient
from prime_train.providers.kubernetes.kubeconfig import embedded, find_cluster
from prime_train.providers.kubernetes.manifests import Agent
from prime_train.providers.kubernetes.offers import PROVIDER
from prime_train.providers.kubernetes.pods import KubernetesPods, all_pods
from prime_train.providers.kubernetes.settings import (
    POD_PYTHON,
    SETTINGS,
    TITLE,
    KubernetesSettings,
    read_settings,
)
from prime_train.providers.port import Portable, Provider, ProviderContext
from prime_train.providers.rental.account_check import AccountWords, InFile, InStore, Owner
from prime_train.providers.rental.pod_names import PodMark
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod
from prime_train.spec.spec import HardwareSpec

NAMESPACE_UID = "PRIME_TRAIN_KUBERNETES_NAMESPACE"
WORDS = AccountWords(TITLE, NAMESPACE_UID)


@dataclass(frozen=True)
class Right:
    """A right that a control plane needs, as in the Role of docs/kubernetes.md: in the namespace, or with
    `everywhere` in all of the cluster. `is_own`: on the namespace itself.
    """

    verb: str
    group: str
    resource: str
    everywhere: bool = False
    is_own: bool = False


NEEDED = (
    *(Right(verb, "batch", "jobs") for verb in ("create", "get", "list", "delete")),
    *(Right(verb, "", "pods") for verb in ("list", "delete")),
    Right("create", "", "secrets"),
    Right("get", "", "namespaces", is_own=True),
)
FOR_NODES = (Right("list", "", "nodes", everywhere=True), Right("list", "", "pods", everywhere=True))
"""Rights without which only pools can be offered."""


def missing(client: KubernetesClient, *, has_pools: bool) -> Iterator[str]:
    """Yield the rights that the caller lacks, in words."""
    for right in (*NEEDED, *(() if has_pools else FOR_NODES)):
        name = client.namespace if right.is_own else ""
        if not client.may(right.verb, right.group, right.resource, everywhere=right.everywhere, name=name):
            where = "the whole cluster" if right.everywhere else f"namespace {client.namespace}"
            yield f"{right.verb} {right.resource} in {where}"


class KubernetesProvider(Provider):
    """Jobs in a namespace of a cluster."""

    def __init__(self, context: ProviderContext) -> None:
        self._context = context

    def pods(self) -> KubernetesPods:
        return self._pods

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        return KubernetesPods(self._client, self._settings, agent=Agent).offers(hardware)

    def all_pods(self) -> Sequence[Pod]:
        return list(all_pods(self._client))

    def account_name(self) -> str:
        return f"namespace {self._client.namespace} at {urlsplit(self._client.url).netloc}"

    def missing_rights(self) -> Sequence[str]:
        return tuple(missing(self._client, has_pools=bool(self._settings.pools)))

    def portable(self) -> Portable:
        """Return the settings with the kubeconfig in them, and in that the contents of the files it names.
        Raises PermanentError if the credential in the kubeconfig is only to be had on this machine.
        """
        kubeconfig = embedded(self._settings, self._context.environment)
        kept = self._settings.model_dump(
            mode="json", exclude_defaults=True, exclude={"kubeconfig", "context"}
        )
        host = urlsplit(kubeconfig["clusters"][0]["cluster"]["server"]).hostname or ""
        # In one line: what masks secrets in a log masks each of their lines, such as `spot: true`.
        return Portable(
            {SETTINGS: json.dumps({**kept, "kubeconfig": kubeconfig}, separators=(",", ":"))}, (host,)
        )

    def unreachable_reason(self) -> str:
        """Return why pods could not reach this control plane; empty if they could, or if the cluster runs on
        this machine.
        """
        return "" if is_loopback(self._client.url) else self._context.unreachable_reason()

    @cached_property
    def _pods(self) -> KubernetesPods:
        context = self._context
        memory = (
            InStore(context.store(), PROVIDER)
            if context.store is not None
            else InFile(context.root / "kubernetes-namespace")
        )
        return KubernetesPods(
            self._client,
            self._settings,
            agent=self._agent,
            bring_up=_bring_up,
            mark=PodMark.of(context.master),
            owner=Owner(self._names, memory, WORDS, named=context.environment.get(NAMESPACE_UID, "").strip()),
            closed=self.unreachable_reason() if context.may_rent else "",
        )

    def _names(self) -> Iterator[str]:
        """Yield the name of what the machines belong to: the namespace's uid."""
        uid = self._client.namespace_uid()
        if not uid:
            raise TemporaryError(
                f"the cluster has no namespace {self._client.namespace}; check that the kubeconfig is of the "
                "same cluster"
            )
        yield f"namespace:{uid}"

    def _agent(self) -> Agent:
        python = self._context.environment.get(POD_PYTHON, "").strip()
        if python:
            return Agent(python)
        # An image that has the agent needs neither its files nor what the package of those imports.
        from prime_train.providers.install.agent_bundle import pack

        parcel = pack()
        return Agent("", tuple(parcel.files.items()), parcel.digest)

    @cached_property
    def _settings(self) -> KubernetesSettings:
        return read_settings(self._context.environment)

    @cached_property
    def _client(self) -> KubernetesClient:
        cluster = find_cluster(self._settings, self._context.environment)
        return KubernetesClient(cluster, witness=self._context.witness)


def _bring_up() -> bytes:
    from prime_train.providers.install.agent_bundle import BRING_UP

    return BRING_UP.read_bytes()
