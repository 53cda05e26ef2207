"""The rights that a control plane needs in a cluster, as in the Role of docs/kubernetes.md."""

from collections.abc import Iterator
from dataclasses import dataclass

from prime_train.adapters.pods_kubernetes.client import KubernetesClient


@dataclass(frozen=True)
class Right:
    """A right in the namespace, or with `everywhere` in all of the cluster. `is_own`: on the namespace itself."""

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
