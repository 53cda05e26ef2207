"""The port `Pods` on Lambda Cloud.

The launch has no idempotency key. So it is made only once, under a name unique to the attempt, and if its response is lost, that name shows
in the list whether there is an instance.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from prime_train.adapters.pods_lambda import offers
from prime_train.adapters.pods_lambda.client import LambdaClient
from prime_train.adapters.pods_lambda.errors import NotThere
from prime_train.adapters.pods_lambda.models import Rented, Stock, is_instance_id
from prime_train.adapters.pods_lambda.offers import Machine
from prime_train.adapters.pods_lambda.settings import TITLE
from prime_train.adapters.pods_lambda.ssh_key import OwnSshKey
from prime_train.adapters.pods_lambda.statuses import NAME_CHARS_MAX, is_preempted, pod_of, tags
from prime_train.adapters.rental_api.account_check import Guard
from prime_train.adapters.rental_api.parsing import readable
from prime_train.adapters.rental_api.pod_names import Mark
from prime_train.adapters.rental_api.pods import address_of_ready, owned
from prime_train.adapters.rental_api.reasons import short
from prime_train.adapters.rental_api.ssh import ssh_address
from prime_train.core.keys import parse_pod_name
from prime_train.core.offers import Offer
from prime_train.core.spec import HardwareSpec
from prime_train.core.verdict import Pod, PodStatus
from prime_train.core.wire import Ticket
from prime_train.ports import (
    SSH_PORT,
    ExternalError,
    Installer,
    LimitReached,
    NoCapacity,
    PermanentError,
    SshAddress,
    TemporaryError,
)

USER = "ubuntu"

log = logging.getLogger(__name__)


class LambdaPods:
    """Instances of one account. `pusher` installs the agent. `own_key` is put on every machine. `closed`: the reason why nothing may be
    rented; empty if renting is allowed. `mark` distinguishes this control plane's machines from those of others on the account. `owner`
    raises if the key belongs to another account than this control plane's machines; offers may be listed with any account. `wall`: the time
    of day."""

    def __init__(
        self,
        client: LambdaClient,
        pusher: Installer,
        *,
        own_key: OwnSshKey,
        mark: Mark | None = None,
        closed: str = "",
        owner: Guard | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._client, self._pusher, self._own_key, self._wall = client, pusher, own_key, wall
        self._closed, self._owner = closed, owner if owner is not None else _anybody
        self._mark = mark if mark is not None else Mark()
        self._machines: dict[str, Machine] = {}

    # -------------------------------------------------------------------------------------------------------------- the port

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        """Return every machine with a known GPU in every region where it is free."""
        if self._closed:
            raise PermanentError(self._closed)
        rows = readable(Stock, self._client.instance_types(), TITLE)
        self._machines = {machine.offer_id: machine for machine in offers.machines(rows)}
        return [offers.offer(machine, hardware) for machine in self._machines.values()]

    def create(self, name: str, offer: Offer, hardware: HardwareSpec) -> Pod:
        """Rent the machine at its listed price, whatever price `offer` has. Raises NoCapacity also if the machine now costs more than the
        run allows."""
        machine = self._machine(offer.offer_id, hardware)
        _refuse_unsuitable(offers.offer(machine, hardware), hardware)
        # First the SSH key, by whose entry the account is recognised.
        key = self._own_key.find_or_add()
        self._owner(renting=name)
        marked, now_s = self._mark.on(name), int(self._wall())
        order: dict[str, object] = {
            "region_name": machine.region,
            "instance_type_name": machine.type.name,
            "ssh_key_names": [key.name],
            "name": marked[:NAME_CHARS_MAX],
            "tags": tags(marked, now_s),
        }
        try:
            instance_id = self._client.launch(order)
        except LimitReached:
            raise
        except NoCapacity as error:
            if isinstance(error, NotThere):
                self._own_key.forget()
            raise NoCapacity(f"{offer.offer_id}: {error}") from error
        return Pod(instance_id, name, PodStatus.PENDING, now_s, offers.usd_per_hour(machine))

    def list(self) -> Sequence[Pod]:
        """Return the instances whose names this control plane chose; the account may have others. What is reported as ended is left out;
        `get` returns it. Nothing is concluded from an instance missing here, so the key's account is not checked."""
        named = [self._named(pod_of(rented)) for rented in self._client.instances()]
        return owned(named)

    def get(self, pod_id: str) -> Pod | None:
        """Return the instance, or None if Lambda Cloud does not know its id.

        A preempted instance of this control plane is terminated here, because it is not documented whether it is still billed. Only when
        that is confirmed is it GONE.
        """
        rented = self._found(pod_id)
        if rented is None:
            return None
        pod = self._named(pod_of(rented))
        return self._ended(pod) if is_preempted(rented) and parse_pod_name(pod.name) is not None else pod

    def put_agent(self, pod: Pod, ticket: Ticket) -> None:
        """Install and start the agent. Raises TemporaryError if the pod is gone, still booting, unhealthy or has no SSH address yet, or if
        its agent could not reach this control plane."""
        if self._closed:
            raise TemporaryError(self._closed)
        rented = self._found(pod.pod_id)
        if rented is None:
            raise TemporaryError(f"pod {short(pod.pod_id)} is gone")
        connection = address_of_ready(pod.pod_id, pod_of(rented), short(rented.status or "it has no status"), _connection_of(rented))
        self._pusher(connection, ticket)

    def connection(self, pod_id: str) -> SshAddress | None:
        """Return the pod's SSH address, or None if it is gone or has none yet."""
        rented = self._client.instance(pod_id) if is_instance_id(pod_id) else None
        return _connection_of(rented) if rented is not None else None

    def terminate(self, pod_id: str) -> None:
        """Terminate the pod. The request is sent before the account is checked, because the pod is being paid for. If Lambda Cloud does not
        know the id, the check follows and raises if the key is another account's, since the answer then proves nothing."""
        if is_instance_id(pod_id) and not self._client.terminate(pod_id):
            self._owner()

    # ----------------------------------------------------------------------------------------------------------------- inside

    def _found(self, pod_id: str) -> Rented | None:
        """Return the instance, or None if Lambda Cloud does not know its id. Before None is returned, the key's account is checked, because
        under another account's key every instance would be unknown."""
        rented = self._client.instance(pod_id) if is_instance_id(pod_id) else None
        if rented is None:
            self._owner()
        return rented

    def _ended(self, pod: Pod) -> Pod:
        """Return the preempted pod as gone once it is terminated; as broken while it cannot be."""
        try:
            self._client.terminate(pod.pod_id)
        except ExternalError as error:
            log.warning("pod %s was preempted, and could not be terminated yet: %s", pod.pod_id, error)
            return replace(pod, status=PodStatus.BROKEN)
        return replace(pod, status=PodStatus.GONE)

    def _named(self, pod: Pod) -> Pod:
        """Return the pod with the mark removed from its name; a pod without this control plane's mark gets an empty name."""
        return replace(pod, name=self._mark.without(pod.name) or "")

    def _machine(self, offer_id: str, hardware: HardwareSpec) -> Machine:
        if offer_id not in self._machines and offers.is_offer_id(offer_id):
            self.offers(hardware)
        machine = self._machines.get(offer_id)
        if machine is not None:
            return machine
        if offers.is_offer_id(offer_id):
            raise NoCapacity(f"{offer_id} is no longer for rent")
        raise PermanentError(f"there is no offer {offer_id!r}; ids look like {offers.EXAMPLE_ID}")


def _refuse_unsuitable(found: Offer, hardware: HardwareSpec) -> None:
    most_usd = hardware.usd_per_hour_max
    if found.hindrance:
        raise PermanentError(f"{found.offer_id} {found.hindrance}")
    if most_usd is not None and found.usd_per_hour > most_usd:
        raise NoCapacity(f"{found.offer_id} now costs ${found.usd_per_hour:.2f}/h, above hardware.usd_per_hour_max {most_usd:.2f}")


def _connection_of(rented: Rented) -> SshAddress | None:
    return ssh_address(rented.id, USER, rented.ip, SSH_PORT)


def _anybody(renting: str = "") -> None:
    """Accept any account."""
