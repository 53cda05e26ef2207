"""Pods held in memory: the provider for tests that need no process, with the behaviour of real ones."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from prime_train.errors import NoCapacity, PermanentError, TemporaryError
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.runs.wire import Ticket
from prime_train.spec.spec import HardwareSpec

DEFAULT_OFFERS = (
    Offer("memory", "memory-spot", 0.60, spot=True, disk_gib=1000),
    Offer("memory", "memory-spot-b", 0.80, spot=True, disk_gib=1000),
    Offer("memory", "memory-on-demand", 1.90, spot=False, disk_gib=1000),
)


@dataclass
class _Rented:
    pod: Pod
    offer_id: str
    tickets: list[Ticket] = field(default_factory=list)


def _now_s() -> int:
    return int(time.time())


class MemoryPods:
    """A `Pods` whose machines exist only in this object. Thread-safe.

    `stock` limits the number of pods per offer. `clock` returns whole seconds; a pod is pending for its first
    `boot_s` seconds. `started` is called for each agent that is started, once per pod.
    """

    def __init__(
        self,
        *,
        offers: Sequence[Offer] = DEFAULT_OFFERS,
        stock: dict[str, int] | None = None,
        boot_s: int = 0,
        clock: Callable[[], int] = _now_s,
        started: Callable[[Pod, Ticket], None] | None = None,
    ) -> None:
        self._offers = {offer.offer_id: offer for offer in offers}
        self._stock = dict(stock or {})
        self._boot_s = boot_s
        self._clock = clock
        self._started = started
        self._rented: dict[str, _Rented] = {}
        self._made = 0
        self._lock = threading.Lock()

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        """Return the offers with stock left."""
        with self._lock:
            return [offer for offer in self._offers.values() if self._has(offer.offer_id)]

    def create(self, name: str, offer: Offer, hardware: HardwareSpec) -> Pod:
        with self._lock:
            if offer.offer_id not in self._offers:
                raise PermanentError(
                    f"there is no offer {offer.offer_id!r}; known: {', '.join(self._offers)}"
                )
            if not self._has(offer.offer_id):
                raise NoCapacity(f"no {offer.offer_id} is available any more")
            self._made += 1
            price = self._offers[offer.offer_id].usd_per_hour
            pod = Pod(f"memory-{self._made}", name, PodStatus.PENDING, self._clock(), price)
            self._rented[pod.pod_id] = _Rented(pod, offer.offer_id)
            return self._now(pod)

    def list(self) -> Sequence[Pod]:
        with self._lock:
            return [self._now(rented.pod) for rented in self._rented.values()]

    def get(self, pod_id: str) -> Pod | None:
        with self._lock:
            rented = self._rented.get(pod_id)
            return self._now(rented.pod) if rented is not None else None

    def put_agent(self, pod: Pod, ticket: Ticket) -> None:
        with self._lock:
            rented = self._rented.get(pod.pod_id)
            if rented is None:
                raise TemporaryError(f"pod {pod.pod_id} is gone")
            if self._now(rented.pod).status is PodStatus.PENDING:
                raise TemporaryError(f"pod {pod.pod_id} is still booting")
            if rented.tickets:
                return
            rented.tickets.append(ticket)
        if self._started is not None:
            self._started(pod, ticket)

    def terminate(self, pod_id: str) -> None:
        with self._lock:
            self._rented.pop(pod_id, None)

    def preempt(self, pod_id: str, notice_s: int = 0) -> None:
        """Remove the pod, as a spot preemption does."""
        self.terminate(pod_id)

    def tickets(self, pod_id: str) -> Sequence[Ticket]:
        """Return the tickets of the agents started on the pod: at most one."""
        with self._lock:
            rented = self._rented.get(pod_id)
            return tuple(rented.tickets) if rented is not None else ()

    def set_stock(self, offer_id: str, count: int) -> None:
        """Limit the offer to `count` pods from now on; existing pods stay."""
        with self._lock:
            self._stock[offer_id] = count

    def _has(self, offer_id: str) -> bool:
        taken = sum(rented.offer_id == offer_id for rented in self._rented.values())
        return offer_id not in self._stock or self._stock[offer_id] > taken

    def _now(self, pod: Pod) -> Pod:
        up = self._clock() >= pod.created_s + self._boot_s
        return replace(pod, status=PodStatus.ACTIVE if up else PodStatus.PENDING)
