"""The port `Pods` on Vast.ai.

The create call has no idempotency key and no maximum price, and its answer is no more than an id. So the
instance is read before anything is believed: it must have our label, and must not cost more than its offer.

An interruptible instance whose machine is taken by a higher bid is paused, not ended: its disk is paid for,
and hours later it would start again with an agent that was replaced long ago. So a paused instance is
destroyed, and only then counts as gone.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Unpack

from prime_train.errors import (
    ExternalError,
    LimitReached,
    NoCapacity,
    NoFunds,
    PermanentError,
    TemporaryError,
)
from prime_train.providers.port import Installer, SshAddress
from prime_train.providers.rental.pods import Plane, RentalPods
from prime_train.providers.rental.reasons import short
from prime_train.providers.rental.ssh_key import public_ssh_address
from prime_train.providers.vast import offers
from prime_train.providers.vast.client import VastClient
from prime_train.providers.vast.errors import LeftStopped
from prime_train.providers.vast.models import VastInstance, is_instance_id
from prime_train.providers.vast.offers import VastMachine
from prime_train.providers.vast.search import Searches
from prime_train.providers.vast.settings import BID_FACTOR
from prime_train.providers.vast.statuses import condition, is_paused, pod_of
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.runs.wire import Ticket
from prime_train.spec.spec import HardwareSpec

IMAGE = "vastai/base-image:@vastai-automatic-tag"
"""Vast.ai's own image with CUDA, in the version that suits the machine's driver. Hosts keep it, so that it
starts quickly.
"""
RUNTYPE = "ssh_direct"
"""Vast.ai starts an SSH server in the container, on a public port of the machine."""
ONSTART = "entrypoint.sh"
"""What prepares CUDA and the environment in Vast.ai's own image: its entrypoint, which an SSH server takes
the place of.
"""
USER = "root"
UNHEARD_S_MAX = 300.0
"""Seconds without a report of the host after which its instance counts as broken."""
KEPT_MAX = 1000


class UnheardHosts:
    """When each instance was first seen without a report of its host. `clock` returns monotonic seconds.

    A host that was rented and then goes offline, or is `unknown`, while its instance boots, does not come
    back in time: Vast.ai documents that who waits for such an instance to run waits for ever. That is only
    concluded after a while. It has an effect only on machines from which no agent was ever heard; about all
    others heartbeats decide.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since_s: dict[str, float] = {}

    def judged(self, pod: Pod) -> Pod:
        """Return the pod, which is broken if its host has not reported for `UNHEARD_S_MAX`."""
        if pod.status is not PodStatus.UNKNOWN:
            self._since_s.pop(pod.pod_id, None)
            return pod
        now_s = self._clock()
        since_s = self._since_s.setdefault(pod.pod_id, now_s)
        while len(self._since_s) > KEPT_MAX:
            self._since_s.pop(next(iter(self._since_s)))
        return replace(pod, status=PodStatus.BROKEN) if now_s - since_s >= UNHEARD_S_MAX else pod


class OwnSshKey:
    """This control plane's SSH key, with this public half in OpenSSH's format; empty: the keys of the account
    are used. It is put on each of its instances and not in the account: instances of others do not accept it,
    and nothing of the account is changed. Thread-safe."""

    def __init__(self, client: VastClient, public_key: str) -> None:
        self._client, self._public_key, self._lock = client, public_key.strip(), threading.Lock()
        self._attached: set[str] = set()

    def attach(self, pod_id: str) -> None:
        """Let the instance accept the key; does nothing if it does already. Raises TemporaryError also if it
        is refused, because the instance may not have been ready.
        """
        if not self._public_key:
            return
        with self._lock:
            if pod_id in self._attached:
                return
            if " ".join(self._public_key.split()[:2]) not in self._client.ssh_keys(pod_id):
                try:
                    self._client.attach_ssh_key(pod_id, self._public_key)
                except PermanentError as error:
                    raise TemporaryError(
                        f"instance {short(pod_id)} does not take the control plane's SSH key: {error}"
                    ) from error
            self._attached.add(pod_id)


def connection_of(rented: VastInstance) -> SshAddress | None:
    """Return the instance's SSH address, a public port of the machine, or else Vast.ai's proxy, which
    forwards the connection; None if Vast.ai does not give a usable one yet."""
    direct = public_ssh_address(rented.pod_id, USER, (rented.public_ipaddr or "").strip(), rented.direct_port)
    return (
        direct
        if direct is not None
        else public_ssh_address(rented.pod_id, USER, rented.ssh_host, rented.ssh_port)
    )


class VastPods(RentalPods[VastMachine, VastInstance]):
    """Instances of one account. `searches`: what was found for rent. `public_key`, in OpenSSH's format, is
    attached to every instance; without it, the account's keys are on them. `bid_factor`: what is bid, as a
    multiple of the lowest bid. `unheard`: the instances whose hosts do not report.
    """

    example_id = offers.EXAMPLE_ID
    _client: VastClient

    def __init__(
        self,
        client: VastClient,
        pusher: Installer,
        *,
        searches: Searches | None = None,
        public_key: str = "",
        bid_factor: float = BID_FACTOR,
        unheard: UnheardHosts | None = None,
        **plane: Unpack[Plane],
    ) -> None:
        own_key = OwnSshKey(client, public_key)

        def attach_and_push(connection: SshAddress, ticket: Ticket) -> None:
            own_key.attach(connection.pod_id)
            pusher(connection, ticket)

        super().__init__(client, attach_and_push, **plane)
        self._searches = searches if searches is not None else Searches(client)
        self._bid_factor = bid_factor
        self._unheard = unheard if unheard is not None else UnheardHosts()

    def terminate(self, pod_id: str) -> None:
        super().terminate(pod_id)
        self._searches.outdate()

    # ---------------------------------------------------------------------------------------- what differs
    # between providers

    def _for_rent(self, hardware: HardwareSpec) -> Mapping[str, VastMachine]:
        rows = {
            market: self._searches.rows(offers.query(hardware, market)) for market in offers.markets(hardware)
        }
        return offers.machines(rows.get(offers.ON_DEMAND, ()), rows.get(offers.BID, ()), self._bid_factor)

    def _offer(self, offer_id: str, machine: VastMachine, hardware: HardwareSpec) -> Offer:
        return offers.offer(machine, hardware)

    def _rent(self, name: str, machine: VastMachine, hardware: HardwareSpec, most_usd: float) -> VastInstance:
        try:
            instance_id = self._client.create(machine.row.id, _order(name, machine, hardware))
        except (NoCapacity, NoFunds) as refusal:
            if not isinstance(refusal, NoFunds | LimitReached):
                self._searches.taken(machine.row.id)
            if isinstance(refusal, LeftStopped) or machine.bid_usd is not None:
                self._clear(refusal, name)
            raise
        self._searches.outdate()
        rented = self._created(instance_id, name)
        self._refused.forget()
        if is_paused(rented):
            taken = LeftStopped("the machine was taken by a higher bid at once", instance_id)
            self._clear(taken, name)
            raise taken
        return rented

    def _created(self, instance_id: str, name: str) -> VastInstance:
        """Return the instance of a create call. Raises TemporaryError unless it is known to be ours; if it
        is, the list has it.
        """
        try:
            rented = self._asked(instance_id)
        except ExternalError as error:
            raise TemporaryError(f"instance {instance_id} was rented, but cannot be read: {error}") from error
        if rented is None or rented.label != name:
            raise TemporaryError(f"the answer to the create call is about another instance than {name}")
        return rented

    def _clear(self, refusal: ExternalError, name: str) -> None:
        """Destroy what a refused create call has left, be it named by the answer or only found by our label.
        Raises TemporaryError if it is not known to be gone.
        """
        left = (
            {self._created(refusal.instance_id, name).pod_id} if isinstance(refusal, LeftStopped) else set()
        )
        try:
            left |= {rented.pod_id for rented in self._client.labelled(name)}
            for instance_id in left:
                self._client.delete(instance_id)
        except ExternalError as error:
            raise TemporaryError(
                f"{refusal}; whether it has left an instance is not known: {error}"
            ) from error

    def _named(self, pod: Pod) -> Pod:
        return self._unheard.judged(super()._named(pod))

    def _has_ended(self, rented: VastInstance) -> bool:
        return is_paused(rented)

    @staticmethod
    def _condition(rented: VastInstance) -> str:
        return short(condition(rented))

    _pod_of = staticmethod(pod_of)
    _address_of = staticmethod(connection_of)
    _is_pod_id = staticmethod(is_instance_id)
    _is_offer_id = staticmethod(offers.is_offer_id)


def _order(name: str, machine: VastMachine, hardware: HardwareSpec) -> dict[str, object]:
    """Return the body of the create call. It contains no settings and no secrets: anyone who may read the
    account's instances sees it, and so does the host.
    """
    order: dict[str, object] = {
        "image": hardware.image or IMAGE,
        "label": name,
        "disk": offers.disk_gb(hardware),
        "runtype": RUNTYPE,
        "target_state": "running",
        "cancel_unavail": True,
    }
    if hardware.image is None:
        order["onstart"] = ONSTART
    if machine.bid_usd is not None:
        order["price"] = machine.bid_usd
    return order
