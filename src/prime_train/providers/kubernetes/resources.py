"""Amounts of processors, memory, disk and GPUs, as nodes have them and pods request them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from prime_train.providers.kubernetes.models import PodSpec

GPU = "nvidia.com/gpu"
CPU, MEMORY, DISK, PODS = "cpu", "memory", "ephemeral-storage", "pods"
GIB = 2**30
_QUANTITY = re.compile(
    r"([+-]?[0-9]{1,30}(?:\.[0-9]{0,30})?)(?:[eE]([+-]?[0-9]{1,2})|([numkMGTPE]|[KMGTPE]i)?)"
)
_FACTORS = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_FACTORS |= {f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGTPE", start=1)}
Resources = dict[str, float]
COUNTED = (GPU, CPU, MEMORY, DISK, PODS)


def quantity(given: object) -> float | None:
    """Return a quantity of Kubernetes, such as 500m, 16Gi or 1e3, as a number; None if it is not valid."""
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        return None
    found = _QUANTITY.fullmatch(str(given))
    if found is None:
        return None
    return float(found[1]) * (10.0 ** int(found[2]) if found[2] else _FACTORS.get(found[3] or "", 1.0))


def amounts(given: Mapping[str, Any]) -> Resources:
    """Return the counted resources; what cannot be read counts as none."""
    return {name: quantity(given.get(name)) or 0.0 for name in COUNTED}


@dataclass(frozen=True)
class Need:
    """What one machine requests of a node."""

    gpus: int
    cpus: float
    memory_bytes: float
    disk_bytes: float

    def requests(self) -> Resources:
        return {GPU: self.gpus, CPU: self.cpus, MEMORY: self.memory_bytes, DISK: self.disk_bytes, PODS: 1}


def requested(spec: PodSpec) -> Resources:
    """Return what a pod keeps of its node: the sum of its containers and of those that run beside them, or
    the largest of those that run before.
    """
    beside = [
        each
        for each in spec.initContainers
        if isinstance(each, dict) and each.get("restartPolicy") == "Always"
    ]
    before = [
        each
        for each in spec.initContainers
        if isinstance(each, dict) and each.get("restartPolicy") != "Always"
    ]
    total = dict.fromkeys(COUNTED, 0.0) | {PODS: 1.0}
    for each in (*_requests([*spec.containers, *beside]), amounts(spec.overhead)):
        total = plus(total, each)
    for each in _requests(before):
        total = {name: max(total[name], each[name]) for name in total}
    return total


def plus(one: Resources, other: Resources) -> Resources:
    return {name: one[name] + other[name] for name in one}


def minus(one: Resources, other: Resources) -> Resources:
    return {name: one[name] - other[name] for name in one}


def times(free: Resources, need: Resources) -> int:
    """Return how many times the need fits into what is free."""
    # Sums of thousandths of a processor are not exact.
    return max(
        0, int(min((free[name] / amount + 1e-6 for name, amount in need.items() if amount > 0), default=0))
    )


def _requests(containers: Iterable[object]) -> Iterator[Resources]:
    for container in containers:
        resources = container.get("resources") if isinstance(container, dict) else None
        if not isinstance(resources, dict):
            continue
        limits, requests = resources.get("limits"), resources.get("requests")
        # What is limited and not requested is requested up to its limit.
        yield amounts(
            {
                **(limits if isinstance(limits, dict) else {}),
                **(requests if isinstance(requests, dict) else {}),
            }
        )
