"""The port `Pods` on a rental API, as far as it is the same at every provider.

A machine is rented by repeating what the provider lists for rent, so its entries are kept from `offers` until
`create`; an offer of another process is looked up in the list again. The create call is made only once, under
a name unique to the attempt: if its response is lost, that name shows in the provider's list whether there is
a machine.
"""

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Generic, TypedDict, TypeVar, Unpack

from prime_train.buckets.keys import parse_pod_name
from prime_train.errors import ExternalError, LimitReached, NoCapacity, PermanentError, TemporaryError
from prime_train.providers.port import Installer, SshAddress
from prime_train.providers.rental.account_check import Guard
from prime_train.providers.rental.client import RentalClient, Rented
from prime_train.providers.rental.pod_names import PodMark
from prime_train.providers.rental.reasons import short
from prime_train.runs.offer import Offer, fits
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.runs.wire import Ticket
from prime_train.spec.spec import HardwareSpec

ARM64_HINDRANCE = "has an ARM64 processor, but agents and trainers are installed for x86-64"
PRICE_HINDRANCE = "has no price"
"""Reasons why a machine would not be rented, where they are the same for all."""
PRICE_TOLERANCE = 0.05
"""Fraction by which a pod may cost more than its offer, but never more than the run allows: prices change
between the list and the order.
"""

Machine = TypeVar("Machine")

log = logging.getLogger(__name__)


class MaybeOurFault(NoCapacity):
    """A machine was refused for a reason that may be a lack of capacity as well as a mistake in the request:
    nothing was created.
    """


class RefusedOffers:
    """The offers that were refused so since a machine was rented last."""

    def __init__(self) -> None:
        self._refused: set[str] = set()

    def error(
        self, offer_id: str, refusal: str, every: Iterable[Offer], hardware: HardwareSpec
    ) -> ExternalError:
        """Return the error for a refusal. One machine that is refused may be taken; if all of `every` that
        fit are refused, with nothing rented in between, there is probably a mistake in the request.
        """
        self._refused.add(offer_id)
        fitting, said = (
            {offer.offer_id for offer in every if fits(offer, hardware) is None},
            f"{offer_id}: {refusal}",
        )
        if len(fitting) > 1 and fitting <= self._refused:
            return PermanentError(
                f"{said}; all {len(fitting)} machines that fit were refused, so the request itself may be at "
                "fault"
            )
        return NoCapacity(said)

    def forget(self) -> None:
        """A machine was rented, so requests are right."""
        self._refused.clear()


class Plane(TypedDict, total=False):
    """What a control plane says about itself to every rental API. Each may be left out.

    `mark` distinguishes its pods from those of others on the account. `closed`: the reason why nothing may be
    rented; empty if renting is allowed. `owner` raises if the key belongs to another account than this
    control plane's machines; offers may be listed with any account.
    """

    mark: PodMark | None
    closed: str
    owner: Guard | None


class RentalPods(ABC, Generic[Machine, Rented]):
    """Pods of one account. `Machine` is what the provider lists for rent; `Rented` a pod as its API describes
    it. `pusher` installs the agent.
    """

    example_id: ClassVar[str]
    """An offer's id, shown to users who wrote one that cannot be any."""

    def __init__(self, client: RentalClient[Rented], pusher: Installer, **plane: Unpack[Plane]) -> None:
        self._client, self._pusher = client, pusher
        self._mark = plane.get("mark") or PodMark()
        self._closed = plane.get("closed", "")
        self._owner = plane.get("owner") or _anybody
        self._machines: dict[str, Machine] = {}
        self._refused = RefusedOffers()
        self._alive: list[Rented] = []

    # --------------------------------------------------------------------------------------------------------
    # the port

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        """Return every machine that is not sold out, as the provider's module `offers` describes it."""
        if self._closed:
            raise PermanentError(self._closed)
        self._machines = dict(self._for_rent(hardware))
        return [self._priced(offer_id, machine, hardware) for offer_id, machine in self._machines.items()]

    def create(self, name: str, offer: Offer, hardware: HardwareSpec) -> Pod:
        """Rent the machine at its listed price, whatever price `offer` has. Raises NoCapacity also if the
        machine now costs more than the run allows.
        """
        machine = self._machine(offer.offer_id, hardware)
        most_usd = self._ceiling_usd(offer.offer_id, machine, hardware)
        self._claim_account(name)
        try:
            rented = self._rent(self._mark.on(name), machine, hardware, most_usd)
        except LimitReached:
            raise
        except MaybeOurFault as error:
            every = [self._offer(each, found, hardware) for each, found in self._machines.items()]
            raise self._refused.error(offer.offer_id, str(error), every, hardware) from error
        except NoCapacity as error:
            raise NoCapacity(f"{offer.offer_id}: {error}") from error
        self._refused.forget()
        pod, usd = self._pod_of(rented), self._charged_usd(rented)
        if usd > most_usd:
            self._give_back(pod.pod_id, f"{offer.offer_id} was rented at ${usd:.4f}/h, above ${most_usd:.4f}")
        return replace(pod, name=name)

    def list(self) -> Sequence[Pod]:
        """Return the pods whose names this control plane chose; the account may have others. What is reported
        as ended is left out; `get` returns it. Raises TemporaryError also if the list is incomplete.
        """
        self._refuse_stranger()
        pods = [(self._pod_of(rented), rented) for rented in self._client.pods()]
        self._alive = [rented for pod, rented in pods if pod.status is not PodStatus.GONE]
        return owned(self._named(pod) for pod, _ in pods)

    def get(self, pod_id: str) -> Pod | None:
        """Return the pod, or None if the provider does not know its id.

        A pod of this control plane that has ended in a way that may still be billed is terminated here. Only
        when the provider has confirmed that is it GONE.
        """
        rented = self._found(pod_id)
        if rented is None:
            return None
        pod = self._named(self._pod_of(rented))
        return self._ended(pod) if self._has_ended(rented) and parse_pod_name(pod.name) is not None else pod

    def put_agent(self, pod: Pod, ticket: Ticket) -> None:
        """Install and start the agent. Raises TemporaryError if the pod is gone, still booting, unhealthy or
        has no SSH address yet, or if its agent could not reach this control plane.
        """
        if self._closed:
            raise TemporaryError(self._closed)
        rented = self._found(pod.pod_id)
        if rented is None:
            raise TemporaryError(f"pod {short(pod.pod_id)} is gone")
        connection = address_of_ready(
            pod.pod_id, self._pod_of(rented), self._condition(rented), self._address_of(rented)
        )
        self._pusher(connection, ticket)

    def terminate(self, pod_id: str) -> None:
        """Terminate the pod. The request is sent before the account is checked, because the pod is being paid
        for. If the provider does not know the id, the check follows and raises if the key is another
        account's, since the answer then proves nothing.
        """
        if self._is_pod_id(pod_id) and not self._client.delete(pod_id):
            self._owner()

    # ------------------------------------------------------------------------------------------------ for the
    # port `Provider`

    def every(self) -> Sequence[Pod]:
        """Return all pods of the account, under the names that the provider lists."""
        return [self._pod_of(rented) for rented in self._client.pods()]

    def connection(self, pod_id: str) -> SshAddress | None:
        """Return the pod's SSH address, or None if it is gone or has none yet."""
        rented = self._asked(pod_id)
        return self._address_of(rented) if rented is not None else None

    def burn_usd_per_hour(self) -> float:
        """Return the hourly cost in USD of all pods listed last, whoever rented them."""
        return sum(self._pod_of(rented).usd_per_hour for rented in self._alive)

    # ---------------------------------------------------------------------------------------- what differs
    # between providers

    @abstractmethod
    def _for_rent(self, hardware: HardwareSpec) -> Mapping[str, Machine]:
        """Return what is not sold out, by offer id."""

    @abstractmethod
    def _offer(self, offer_id: str, machine: Machine, hardware: HardwareSpec) -> Offer:
        """Return the offer of one machine for a run with this hardware spec. `hindrance` says why it is not
        rented.
        """

    @abstractmethod
    def _rent(self, name: str, machine: Machine, hardware: HardwareSpec, most_usd: float) -> Rented:
        """Make the create call, and return the pod that it answered. `name`: that of the pod, with the mark.
        `most_usd`: the highest price per hour, for a provider that takes one. NoCapacity, NoFunds and
        PermanentError guarantee that nothing was rented.
        """

    @staticmethod
    @abstractmethod
    def _pod_of(rented: Rented) -> Pod:
        """Return the pod as the port describes it, under the name that the provider lists."""

    @staticmethod
    @abstractmethod
    def _address_of(rented: Rented) -> SshAddress | None:
        """Return the pod's SSH address; None if it has none yet."""

    @staticmethod
    @abstractmethod
    def _is_pod_id(text: str) -> bool:
        """Return whether `text` can be a pod's id; anything else must not become a part of a URL."""

    @staticmethod
    @abstractmethod
    def _is_offer_id(text: str) -> bool:
        """Return whether `text` has the form of an offer's id."""

    def _condition(self, rented: Rented) -> str:
        """Return the words for the pod's status: the provider's own, if it has any."""
        return self._pod_of(rented).status.value

    def _has_ended(self, rented: Rented) -> bool:
        """Return whether the pod has ended, but is to be terminated nevertheless, because it may still be
        billed.
        """
        return False

    def _charged_usd(self, rented: Rented) -> float:
        """Return the price per hour in the answer to the create call."""
        return self._pod_of(rented).usd_per_hour

    def _claim_account(self, name: str) -> None:
        """Check the key's account, and store it, because a machine with this name is rented next."""
        self._owner(renting=name)

    def _refuse_stranger(self) -> None:
        """Raise PermanentError if the key belongs to another account. An unknown owner is accepted here,
        because nothing is concluded from a pod missing in the list.
        """
        try:
            self._owner()
        except TemporaryError as error:
            log.warning("the account of the key cannot be determined now: %s", error)

    # --------------------------------------------------------------------------------------------------------
    # inside

    def _found(self, pod_id: str) -> Rented | None:
        """Return the pod, or None if the provider does not know its id. Before None is returned, the key's
        account is checked, because under another account's key every pod would be unknown.
        """
        rented = self._asked(pod_id)
        if rented is None:
            self._owner()
        return rented

    def _asked(self, pod_id: str) -> Rented | None:
        """Return what the provider answers about the pod; None if it does not know the id. Raises
        TemporaryError if the answer is about another pod.
        """
        rented = self._client.pod(pod_id) if self._is_pod_id(pod_id) else None
        if rented is not None and self._pod_of(rented).pod_id != pod_id:
            raise TemporaryError(f"the answer about pod {pod_id} is about another one")
        return rented

    def _ended(self, pod: Pod) -> Pod:
        """Return the pod that has ended as gone once it is terminated; as broken while it cannot be."""
        try:
            self._client.delete(pod.pod_id)
        except ExternalError as error:
            log.warning("pod %s has ended, and could not be terminated yet: %s", pod.pod_id, error)
            return replace(pod, status=PodStatus.BROKEN)
        return replace(pod, status=PodStatus.GONE)

    def _named(self, pod: Pod) -> Pod:
        """Return the pod with the mark removed from its name; a pod without this control plane's mark gets an
        empty name.
        """
        return replace(pod, name=self._mark.without(pod.name) or "")

    def _machine(self, offer_id: str, hardware: HardwareSpec) -> Machine:
        if offer_id not in self._machines and self._is_offer_id(offer_id):
            self.offers(hardware)
        if offer_id in self._machines:
            return self._machines[offer_id]
        if self._is_offer_id(offer_id):
            raise NoCapacity(f"{offer_id} is no longer for rent")
        raise PermanentError(f"there is no offer {offer_id!r}; ids look like {self.example_id}")

    def _priced(self, offer_id: str, machine: Machine, hardware: HardwareSpec) -> Offer:
        """Return the offer; one that costs nothing is not rented, because its price is only unknown."""
        found = self._offer(offer_id, machine, hardware)
        return (
            found if found.hindrance or found.usd_per_hour > 0 else replace(found, hindrance=PRICE_HINDRANCE)
        )

    def _ceiling_usd(self, offer_id: str, machine: Machine, hardware: HardwareSpec) -> float:
        """Return the highest price per hour at which the machine is kept. Raises PermanentError or NoCapacity
        if it is not to be rented.
        """
        found, most_usd = self._priced(offer_id, machine, hardware), hardware.usd_per_hour_max
        if found.hindrance:
            raise PermanentError(f"{offer_id} {found.hindrance}")
        if most_usd is not None and found.usd_per_hour > most_usd:
            raise NoCapacity(
                f"{offer_id} now costs ${found.usd_per_hour:.2f}/h, above hardware.usd_per_hour_max "
                f"{most_usd:.2f}"
            )
        # Never 0, which has meant both "no ceiling" and "nothing may be paid".
        most_usd = most_usd if most_usd is not None else math.inf
        return min(math.ceil(found.usd_per_hour * (1 + PRICE_TOLERANCE) * 10**4) / 10**4, most_usd)

    def _give_back(self, pod_id: str, dear: str) -> None:
        try:
            self._client.delete(pod_id)
        except ExternalError as error:
            # The pod exists, and the core finds it by its name: a dear machine that trains is better than an
            # unknown one.
            raise TemporaryError(f"{dear}, and pod {pod_id} could not be terminated: {error}") from error
        raise NoCapacity(f"{dear}; pod {pod_id} was terminated")


def owned(pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods that exist and whose names a control plane chose. A pod without this control plane's
    mark has an empty name.
    """
    return [pod for pod in pods if parse_pod_name(pod.name) is not None and pod.status is not PodStatus.GONE]


def address_of_ready(pod_id: str, seen: Pod, condition: str, address: SshAddress | None) -> SshAddress:
    """Return the address at which the agent of a pod can be installed. `seen`: the pod as the provider
    reports it; `condition`: the provider's own words for its status. Raises TemporaryError if the pod is
    gone, still booting, unhealthy or has no address yet.
    """
    if seen.status is PodStatus.GONE:
        raise TemporaryError(f"pod {pod_id} is gone")
    if seen.status is PodStatus.PENDING:
        raise TemporaryError(f"pod {pod_id} is still booting")
    if seen.status is not PodStatus.ACTIVE:
        raise TemporaryError(f"pod {pod_id} is not healthy: {condition}")
    if address is None:
        raise TemporaryError(f"pod {pod_id} has no SSH address yet")
    return address


def _anybody(renting: str = "") -> None:
    """Accept any account."""
