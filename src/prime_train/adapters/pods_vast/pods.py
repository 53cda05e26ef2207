"""The port `Pods` on Vast.ai.

The create call has no idempotency key and no maximum price, and its answer is no more than an id. So the instance is read before anything
is believed: it must have our label, and must not cost more than its offer.

An interruptible instance whose machine is taken by a higher bid is paused, not ended: its disk is paid for, and hours later it would start
again with an agent that was replaced long ago. So a paused instance is destroyed, and only then counts as gone.
"""

from collections.abc import Mapping
from typing import Unpack

from prime_train.adapters.pods_vast import offers
from prime_train.adapters.pods_vast.client import VastClient
from prime_train.adapters.pods_vast.connection import connection_of
from prime_train.adapters.pods_vast.errors import LeftStopped
from prime_train.adapters.pods_vast.models import Rented, is_instance_id
from prime_train.adapters.pods_vast.offers import Machine
from prime_train.adapters.pods_vast.search import Searches
from prime_train.adapters.pods_vast.settings import BID_FACTOR
from prime_train.adapters.pods_vast.ssh_key import OwnSshKey
from prime_train.adapters.pods_vast.statuses import condition, is_paused, pod_of
from prime_train.adapters.pods_vast.unheard import UnheardHosts
from prime_train.adapters.rental_api.pods import Plane, RentalPods
from prime_train.adapters.rental_api.reasons import short
from prime_train.core.offers import Offer
from prime_train.core.spec import HardwareSpec
from prime_train.core.verdict import Pod
from prime_train.core.wire import Ticket
from prime_train.ports import ExternalError, Installer, LimitReached, NoCapacity, NoFunds, SshAddress, TemporaryError

IMAGE = "vastai/base-image:@vastai-automatic-tag"
"""Vast.ai's own image with CUDA, in the version that suits the machine's driver. Hosts keep it, so that it starts quickly."""
RUNTYPE = "ssh_direct"
"""Vast.ai starts an SSH server in the container, on a public port of the machine."""
ONSTART = "entrypoint.sh"
"""What prepares CUDA and the environment in Vast.ai's own image: its entrypoint, which an SSH server takes the place of."""


class VastPods(RentalPods[Machine, Rented]):
    """Instances of one account. `searches`: what was found for rent. `public_key`, in OpenSSH's format, is attached to every instance;
    without it, the account's keys are on them. `bid_factor`: what is bid, as a multiple of the lowest bid. `unheard`: the instances whose
    hosts do not report."""

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

    # ---------------------------------------------------------------------------------------- what differs between providers

    def _for_rent(self, hardware: HardwareSpec) -> Mapping[str, Machine]:
        rows = {market: self._searches.rows(offers.query(hardware, market)) for market in offers.markets(hardware)}
        return offers.machines(rows.get(offers.ON_DEMAND, ()), rows.get(offers.BID, ()), self._bid_factor)

    def _offer(self, offer_id: str, machine: Machine, hardware: HardwareSpec) -> Offer:
        return offers.offer(machine, hardware)

    def _rent(self, name: str, machine: Machine, hardware: HardwareSpec, most_usd: float) -> Rented:
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
        if is_paused(rented):
            taken = LeftStopped("the machine was taken by a higher bid at once", instance_id)
            self._clear(taken, name)
            raise taken
        return rented

    def _created(self, instance_id: str, name: str) -> Rented:
        """Return the instance of a create call. Raises TemporaryError unless it is known to be ours; if it is, the list has it."""
        try:
            rented = self._asked(instance_id)
        except ExternalError as error:
            raise TemporaryError(f"instance {instance_id} was rented, but cannot be read: {error}") from error
        if rented is None or rented.label != name:
            raise TemporaryError(f"the answer to the create call is about another instance than {name}")
        return rented

    def _clear(self, refusal: ExternalError, name: str) -> None:
        """Destroy what a refused create call has left, be it named by the answer or only found by our label. Raises TemporaryError if it is
        not known to be gone."""
        left = {self._created(refusal.instance_id, name).pod_id} if isinstance(refusal, LeftStopped) else set()
        try:
            left |= {rented.pod_id for rented in self._client.labelled(name)}
            for instance_id in left:
                self._client.delete(instance_id)
        except ExternalError as error:
            raise TemporaryError(f"{refusal}; whether it has left an instance is not known: {error}") from error

    def _named(self, pod: Pod) -> Pod:
        return self._unheard.judged(super()._named(pod))

    def _has_ended(self, rented: Rented) -> bool:
        return is_paused(rented)

    @staticmethod
    def _condition(rented: Rented) -> str:
        return short(condition(rented))

    _pod_of = staticmethod(pod_of)
    _address_of = staticmethod(connection_of)
    _is_pod_id = staticmethod(is_instance_id)
    _is_offer_id = staticmethod(offers.is_offer_id)


def _order(name: str, machine: Machine, hardware: HardwareSpec) -> dict[str, object]:
    """Return the body of the create call. It contains no settings and no secrets: anyone who may read the account's instances sees it, and
    so does the host."""
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
