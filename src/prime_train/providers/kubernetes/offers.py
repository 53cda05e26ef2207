"""What the cluster could run now: kinds of nodes with as many free GPUs as a run needs, and pools that may
add nodes.

An offer is one kind of node in one region with a number of GPUs, such as `H100_80GB-spot@us-east5:8`. Its id
is the same on a later day.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from prime_train.estimate import gpus
from prime_train.providers.kubernetes import labels as l
from prime_train.providers.kubernetes.models import KubernetesPod, Node
from prime_train.providers.kubernetes.resources import (
    CPU,
    DISK,
    GIB,
    GPU,
    MEMORY,
    Need,
    Resources,
    amounts,
    minus,
    requested,
    times,
)
from prime_train.providers.kubernetes.settings import KubernetesSettings, Pool, Toleration
from prime_train.runs.offer import Offer
from prime_train.spec.spec import HardwareSpec

PROVIDER = "kubernetes"
WITHOUT_GPU = "cpu"
POOL = "pool/"
"""How the ids of offers of pools begin."""
EXAMPLE_ID = "H100_80GB-spot@us-east5:8"
SHARE = 0.75
"""Largest part of a node's processors and memory, by its GPUs, that a machine requests: the rest is for what
runs on every node.
"""
VOLUME_GIB_MAX = 65_536
"""Largest volume that is offered if each pod gets one of its own."""
_OFFER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@/-]{0,150}:[0-9]{1,3}")

Expression = dict[str, object]


@dataclass(frozen=True)
class NodeSign:
    """What distinguishes nodes for pods: their label with the kind of GPU, and those of spot nodes and the
    region.
    """

    gpu: tuple[str, str] | None
    spot: tuple[str, str] | None
    region: str

    def expressions(self) -> tuple[Expression, ...]:
        """Return the requirements by which a pod gets such a node."""
        found: list[Expression] = [{"key": l.ARCHITECTURE, "operator": "NotIn", "values": [l.ARM64]}]
        if self.gpu is not None:
            found.append({"key": self.gpu[0], "operator": "In", "values": [self.gpu[1]]})
        if self.spot is not None:
            found.append({"key": self.spot[0], "operator": "In", "values": [self.spot[1]]})
        else:
            found += [
                {"key": key, "operator": "NotIn", "values": [value]} for key, value in l.SPOT_LABELS.items()
            ]
        if self.region:
            found.append({"key": l.REGION, "operator": "In", "values": [self.region]})
        return tuple(found)


@dataclass(frozen=True)
class Free:
    """A node with what is free on it."""

    name: str
    sign: NodeSign
    labels: Mapping[str, str]
    allocatable: Resources
    free: Resources


@dataclass(frozen=True)
class KubernetesMachine:
    """What one offer rents."""

    offer: Offer
    need: Need
    terms: tuple[tuple[Expression, ...], ...]
    """Alternatives of requirements on the node."""
    tolerations: tuple[Toleration, ...]
    slots: int
    """How many of them could run now."""
    volume_gib: int = 0
    """Size of the volume that its pod gets; 0: none, it uses the node's disk."""
    grows: bool = False
    """Whether nodes may have to be added first."""


@dataclass(frozen=True)
class NodeShape:
    """A kind of machine before its number of GPUs is known."""

    gpu: str
    socket: str
    gb: int
    spot: bool
    region: str

    def offer_id(self, count: int) -> str:
        spot, region = "-spot" if self.spot else "", f"@{self.region}" if self.region else ""
        socket = f"-{self.socket}" if self.socket else ""
        return f"{re.sub('[^A-Za-z0-9_]', '_', self.gpu or WITHOUT_GPU)}{socket}{spot}{region}:{count}"


@dataclass(frozen=True)
class Survey:
    """The cluster as it was read: nodes with what is free. `waiting`: the place (an offer's id without its
    number of GPUs) and the requests of each of our own Jobs that has no node yet, and will need one before
    anything new does.
    """

    settings: KubernetesSettings
    nodes: Sequence[Free]
    waiting: Sequence[tuple[str, Resources]] = ()

    def machines(self, hardware: HardwareSpec) -> Iterator[KubernetesMachine]:
        """Yield every machine that a run with this hardware spec could use."""
        pools = {
            pool.name: [node for node in self.nodes if _is_of(node, pool)] for pool in self.settings.pools
        }
        pooled = {node.name for nodes in pools.values() for node in nodes}
        for kind, nodes in self._kinds([node for node in self.nodes if node.name not in pooled]).items():
            for count in counts(hardware):
                if bool(count) == bool(kind.gpu):
                    yield self._of_nodes(kind, nodes, count, hardware)
        for pool in self.settings.pools:
            for count in counts(hardware):
                if bool(count) == bool(pool.gpus_per_node) and count <= pool.gpus_per_node:
                    yield self._of_pool(pool, pools[pool.name], count, hardware)

    def _kinds(self, nodes: Sequence[Free]) -> dict[NodeShape, list[Free]]:
        found: dict[NodeShape, list[Free]] = {}
        for node in nodes:
            gpu = l.gpu_label(node.labels)
            if gpu is None and node.allocatable[GPU]:
                # the kind is unknown, or only parts of GPUs are given out; a pool can name such nodes
                continue
            kind = (
                NodeShape(gpu.kind, gpu.socket, gpu.gb, node.sign.spot is not None, node.sign.region)
                if gpu
                else _without_gpu(node)
            )
            found.setdefault(kind, []).append(node)
        return found

    def _of_nodes(
        self, kind: NodeShape, nodes: Sequence[Free], count: int, hardware: HardwareSpec
    ) -> KubernetesMachine:
        need = self._need(count, [node.allocatable for node in nodes], hardware)
        left, _ = self._left(place_of(kind.offer_id(0)), nodes)
        signs = dict.fromkeys(node.sign for node in nodes)
        return KubernetesMachine(
            self._offer(kind, kind.offer_id(count), count, self._disk_gib(left, need), hardware),
            need,
            tuple(sign.expressions() for sign in signs),
            _tolerations(self.settings.tolerations, kind.spot, bool(count)),
            sum(times(free, need.requests()) for free in left),
            self._volume_gib(hardware),
        )

    def _of_pool(
        self, pool: Pool, nodes: Sequence[Free], count: int, hardware: HardwareSpec
    ) -> KubernetesMachine:
        need = self._need(count, [node.allocatable for node in nodes], hardware)
        place = f"{POOL}{pool.name}"
        left, unplaced = self._left(place, nodes)
        new = max(0, pool.nodes_max - len(nodes)) * (pool.gpus_per_node // count if count else 1)
        kind = NodeShape(pool.gpu, "", gpus.named_gb(pool.gpu), pool.spot, pool.region)
        usd = count * pool.usd_per_gpu_hour if count else pool.usd_per_hour
        disk_gib = (
            VOLUME_GIB_MAX
            if self.settings.storage_class
            else max([pool.disk_gib, *(int(free[DISK] / GIB) for free in left)])
        )
        offer = replace(self._offer(kind, f"{place}:{count}", count, disk_gib, hardware), usd_per_hour=usd)
        term: tuple[Expression, ...] = tuple(
            {"key": key, "operator": "In", "values": [value]} for key, value in pool.node_selector.items()
        )
        tolerations = _tolerations((*self.settings.tolerations, *pool.tolerations), pool.spot, bool(count))
        slots = sum(times(free, need.requests()) for free in left) + max(0, new - unplaced)
        return KubernetesMachine(
            offer, need, (term,), tolerations, slots, self._volume_gib(hardware), grows=True
        )

    def _left(self, place: str, nodes: Sequence[Free]) -> tuple[list[Resources], int]:
        """Return what is free on each node once our own waiting Jobs have got theirs, and how many of these
        fit on none.
        """
        left, unplaced = [dict(node.free) for node in nodes], 0
        for at, requests in self.waiting:
            if at != place:
                continue
            found = next((number for number, free in enumerate(left) if times(free, requests)), None)
            if found is None:
                unplaced += 1
            else:
                left[found] = minus(left[found], requests)
        return left, unplaced

    def _volume_gib(self, hardware: HardwareSpec) -> int:
        return hardware.disk_gib if self.settings.storage_class else 0

    def _need(self, count: int, nodes: Sequence[Resources], hardware: HardwareSpec) -> Need:
        settings = self.settings
        cpus = count * settings.cpus_per_gpu if count else settings.cpus
        memory = (count * settings.memory_gib_per_gpu if count else settings.memory_gib) * GIB
        for node in nodes:
            part = SHARE * (count / node[GPU] if count and node[GPU] >= count else 1.0)
            cpus, memory = min(cpus, node[CPU] * part or cpus), min(memory, node[MEMORY] * part or memory)
        return Need(count, cpus, memory, 0 if settings.storage_class else hardware.disk_gib * GIB)

    def _disk_gib(self, left: Sequence[Resources], need: Need) -> int:
        if self.settings.storage_class:
            return VOLUME_GIB_MAX
        besides = {**need.requests(), DISK: 0.0}
        return int(max((free[DISK] for free in left if times(free, besides)), default=0) / GIB)

    def _offer(
        self, kind: NodeShape, offer_id: str, count: int, disk_gib: int, hardware: HardwareSpec
    ) -> Offer:
        return Offer(
            provider=PROVIDER,
            offer_id=offer_id,
            usd_per_hour=self._usd(kind, count),
            spot=kind.spot,
            gpu=gpus.first_wanted(kind.gpu, kind.socket, hardware.gpus) if kind.gpu else "",
            gpu_count=count,
            disk_gib=disk_gib,
            region=kind.region,
            gpu_gb=kind.gb,
            socket=kind.socket,
        )

    def _usd(self, kind: NodeShape, count: int) -> float:
        if not count:
            return self.settings.usd_per_hour
        prices = (
            *((self.settings.spot_usd_per_gpu_hour,) if kind.spot else ()),
            self.settings.usd_per_gpu_hour,
        )
        known = gpus.names(kind.gpu, kind.socket)
        found = (usd for each in prices for name, usd in each.items() if gpus.plain(name) in known)
        return round(count * next(found, 0.0), 6)


def survey(
    settings: KubernetesSettings,
    nodes: Iterable[Node],
    pods: Iterable[KubernetesPod],
    waiting: Sequence[tuple[str, Resources]],
) -> Survey:
    """Return what is free on the nodes that machines may use: ready ones with the labels that the settings
    ask for, and whose taints are tolerated.
    """
    taken: dict[str, list[Resources]] = {}
    for pod in pods:
        if pod.spec.nodeName and not pod.has_ended:
            taken.setdefault(pod.spec.nodeName, []).append(requested(pod.spec))
    found = []
    for node in nodes:
        labels = node.metadata.labels
        if (
            not node.is_ready
            or labels.get(l.ARCHITECTURE) == l.ARM64
            or not settings.node_selector.items() <= labels.items()
        ):
            continue
        pool = next((each for each in settings.pools if each.node_selector.items() <= labels.items()), None)
        allocatable = amounts(node.status.allocatable)
        spot = l.is_spot(labels) or bool(pool and pool.spot)
        own = (*settings.tolerations, *(pool.tolerations if pool is not None else ()))
        if not _is_tolerated(node, _tolerations(own, spot, bool(allocatable[GPU]))):
            continue
        free = dict(allocatable)
        for each in taken.get(node.metadata.name, ()):
            free = minus(free, each)
        found.append(Free(node.metadata.name, _sign(labels), labels, allocatable, free))
    return Survey(settings, found, waiting)


def counts(hardware: HardwareSpec) -> tuple[int, ...]:
    """Return the numbers of GPUs that the run can use."""
    if hardware.variants:
        return tuple(dict.fromkeys(variant.count for variant in hardware.variants))
    return (hardware.count,) if hardware.gpus else (hardware.count, 0)


def is_offer_id(text: str) -> bool:
    """Return whether `text` has the form of an offer's id."""
    return _OFFER_ID.fullmatch(text) is not None


def place_of(offer_id: str) -> str:
    """Return the offer's id without its number of GPUs."""
    return offer_id.rpartition(":")[0]


def _sign(labels: Mapping[str, str]) -> NodeSign:
    gpu = l.gpu_label(labels)
    spot = next(((key, value) for key, value in l.SPOT_LABELS.items() if labels.get(key) == value), None)
    return NodeSign((gpu.key, gpu.value) if gpu else None, spot, labels.get(l.REGION, ""))


def _without_gpu(node: Free) -> NodeShape:
    return NodeShape("", "", 0, node.sign.spot is not None, node.sign.region)


def _is_of(node: Free, pool: Pool) -> bool:
    return pool.node_selector.items() <= node.labels.items()


def _tolerations(own: Sequence[Toleration], spot: bool, has_gpu: bool) -> tuple[Toleration, ...]:
    """Return what pods tolerate: what the settings say, and the taints that clouds put on nodes with GPUs and
    on spot nodes.
    """
    given = list(own)
    if has_gpu:
        given.append(Toleration(key=GPU, operator="Exists"))
    if spot:
        given += [Toleration(key=key, value=value) for key, value in l.SPOT_TAINTS.items()]
    return tuple(dict.fromkeys(given))


def _is_tolerated(node: Node, tolerations: Sequence[Toleration]) -> bool:
    def tolerates(given: Toleration, key: str, value: str, effect: str) -> bool:
        if given.effect not in ("", effect) or (given.key and given.key != key):
            return False
        return given.operator == "Exists" or (bool(given.key) and given.value == value)

    hard = [taint for taint in node.spec.taints if taint.effect in ("NoSchedule", "NoExecute")]
    return all(
        any(tolerates(each, taint.key, taint.value or "", taint.effect) for each in tolerations)
        for taint in hard
    )
