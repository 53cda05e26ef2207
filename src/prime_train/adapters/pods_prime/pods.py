"""The port `Pods` on Prime Intellect.

A machine is rented by repeating a row of the list of machines for rent, so rows are kept from `offers` until `create`; an offer of another
process is looked up in the list again. The create call has no idempotency key. So it is made only once, under a name unique to the attempt,
and if its response is lost, that name shows whether there is a pod.

The price is limited twice: by the maximum price in the create call, and by a comparison with the response, because the server's own check
has not always been in effect. A pod that costs more is given back at once.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from prime_train.adapters.pods_prime import availability, offers
from prime_train.adapters.pods_prime.client import PrimeClient, is_pod_id
from prime_train.adapters.pods_prime.connection import connection_of
from prime_train.adapters.pods_prime.models import Rented, Row
from prime_train.adapters.pods_prime.offers import RequestedMachine, Terms
from prime_train.adapters.pods_prime.statuses import pod_of
from prime_train.adapters.rental_api.account_check import Guard
from prime_train.adapters.rental_api.pod_names import Mark
from prime_train.adapters.rental_api.pods import address_of_ready, owned
from prime_train.adapters.rental_api.prices import ceiling_usd
from prime_train.core.offers import Offer
from prime_train.core.spec import HardwareSpec
from prime_train.core.verdict import Pod, PodStatus
from prime_train.core.wire import Ticket
from prime_train.ports import ExternalError, Installer, LimitReached, NoCapacity, PermanentError, SshAddress, TemporaryError

SSH_KEY_NAME = "prime-train"

log = logging.getLogger(__name__)


class PrimePods:
    """Pods of one account or team. `pusher` installs the agent. `public_key`, in OpenSSH's format, is put on every machine; without it the
    account's primary key is used. `closed`: the reason why nothing may be rented; empty if renting is allowed. `mark` distinguishes this
    control plane's pods from those of others on the account. `owner` raises if the key belongs to another account than this control plane's
    machines; offers may be listed with any account. `pause` waits between requests for a list that should not be empty."""

    def __init__(
        self,
        client: PrimeClient,
        pusher: Installer,
        *,
        public_key: str = "",
        mark: Mark | None = None,
        closed: str = "",
        owner: Guard | None = None,
        terms: Terms | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client, self._pusher = client, pusher
        self._public_key, self._ssh_key_id = public_key, ""
        self._closed, self._owner = closed, owner if owner is not None else _anybody
        self._burning: list[tuple[str | None, float]] = []
        self._mark = mark if mark is not None else Mark()
        self._terms = terms if terms is not None else Terms()
        self._pause = pause
        self._rows: dict[str, Row] = {}

    # -------------------------------------------------------------------------------------------------------------- the port

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        """Return every machine that is not sold out, priced with the disk that `hardware` asks for."""
        if self._closed:
            raise PermanentError(self._closed)
        self._rows = offers.named(availability.rows(self._client, self._pause), hardware)
        return [offers.offer(offer_id, row, hardware, self._terms) for offer_id, row in self._rows.items()]

    def create(self, name: str, offer: Offer, hardware: HardwareSpec) -> Pod:
        """Rent the machine at its listed price, whatever price `offer` has. Raises NoCapacity also if the machine now costs more than the
        run allows."""
        self._owner(renting=name)
        row = self._row(offer.offer_id, hardware)
        requested, ceiling_usd = offers.requested_machine(row, hardware), self._ceiling_usd(offer.offer_id, row, hardware)
        image = (self._terms.image(row, hardware.image), offers.template_of(hardware.image))
        body = _order(self._mark.on(name), row, requested, ceiling_usd, image=image, ssh_key_id=self._key_id())
        try:
            rented = self._client.create(body | self._client.paid_by())
        except LimitReached:
            raise
        except NoCapacity as error:
            raise NoCapacity(f"{offer.offer_id}: {error}") from error
        if (rented.price_hr or 0.0) > ceiling_usd:
            self._give_back(rented, offer.offer_id, ceiling_usd)
        return replace(pod_of(rented), name=name)

    def list(self) -> Sequence[Pod]:
        """Return the pods whose names this control plane chose; the account may have others. Pods reported as terminated are left out;
        `get` returns them. Raises TemporaryError also if the list is incomplete."""
        self._refuse_stranger()
        seen = [(pod_of(rented), rented.wallet_id) for rented in self._client.pods()]
        self._burning = [(wallet_id, pod.usd_per_hour) for pod, wallet_id in seen if pod.status is not PodStatus.GONE]
        pods = [self._named(pod) for pod, _ in seen]
        return owned(pods)

    def get(self, pod_id: str) -> Pod | None:
        rented = self._found(pod_id)
        pod = pod_of(rented) if rented is not None else None
        return self._named(pod) if pod is not None else None

    def put_agent(self, pod: Pod, ticket: Ticket) -> None:
        """Install and start the agent. Raises TemporaryError if the pod is gone, still booting, unhealthy or has no SSH address yet, or if
        its agent could not reach this control plane."""
        if self._closed:
            raise TemporaryError(self._closed)
        rented = self._found(pod.pod_id)
        if rented is None:
            raise TemporaryError(f"pod {pod.pod_id} is gone")
        connection = address_of_ready(pod.pod_id, pod_of(rented), _condition(rented), connection_of(rented))
        self._pusher(connection, ticket)

    def connection(self, pod_id: str) -> SshAddress | None:
        """Return the pod's SSH address, or None if it is gone or has none yet."""
        rented = self._client.pod(pod_id) if is_pod_id(pod_id) else None
        return connection_of(rented) if rented is not None else None

    def terminate(self, pod_id: str) -> None:
        """Delete the pod. The request is sent before the account is checked, because the pod is being paid for. If Prime does not know the
        id, the check follows and raises if the key is another account's, since the answer then proves nothing."""
        if is_pod_id(pod_id) and not self._client.delete(pod_id):
            self._owner()

    def burn_usd_per_hour(self, wallet_id: str | None) -> float:
        """Return the hourly cost in USD of all pods listed last, whoever rented them, that are paid from that wallet or whose wallet is
        unknown."""
        return sum(usd for paid_from, usd in self._burning if wallet_id is None or paid_from in (None, wallet_id))

    # ----------------------------------------------------------------------------------------------------------------- inside

    def _found(self, pod_id: str) -> Rented | None:
        """Return the pod, or None if Prime does not know its id. Before None is returned, the key's account is checked, because under
        another account's key every pod would be unknown."""
        rented = self._client.pod(pod_id) if is_pod_id(pod_id) else None
        if rented is None:
            self._owner()
        return rented

    def _refuse_stranger(self) -> None:
        """Raise PermanentError if the key belongs to another account. An unknown owner is accepted here, because nothing is concluded from
        a pod missing in the list."""
        try:
            self._owner()
        except TemporaryError as error:
            log.warning("the account of the key cannot be determined now: %s", error)

    def _named(self, pod: Pod) -> Pod:
        """Return the pod with the mark removed from its name; a pod without this control plane's mark gets an empty name."""
        return replace(pod, name=self._mark.without(pod.name) or "")

    def _row(self, offer_id: str, hardware: HardwareSpec) -> Row:
        if offer_id not in self._rows and offers.is_offer_id(offer_id):
            self.offers(hardware)
        row = self._rows.get(offer_id)
        if row is not None:
            return row
        if offers.is_offer_id(offer_id):
            raise NoCapacity(f"{offer_id} is no longer for rent")
        raise PermanentError(f"there is no offer {offer_id!r}; ids look like runpod:A100_80GB:PCIe:1x:US-KS-2:secure:spot")

    def _ceiling_usd(self, offer_id: str, row: Row, hardware: HardwareSpec) -> float:
        usd, most_usd = offers.requested_machine(row, hardware).usd_per_hour, hardware.usd_per_hour_max
        hindrance = offers.offer(offer_id, row, hardware, self._terms).hindrance
        if usd is None or hindrance:
            raise PermanentError(f"{offer_id} {hindrance}")
        if most_usd is not None and usd > most_usd:
            raise NoCapacity(f"{offer_id} now costs ${usd:.2f}/h, above hardware.usd_per_hour_max {most_usd:.2f}")
        return ceiling_usd(usd, most_usd)

    def _key_id(self) -> str:
        if self._public_key and not self._ssh_key_id:
            self._ssh_key_id = self._client.ssh_key_id(self._public_key, SSH_KEY_NAME)
        return self._ssh_key_id

    def _give_back(self, rented: Rented, offer_id: str, ceiling_usd: float) -> None:
        dear = f"{offer_id} was rented at ${rented.price_hr:.4f}/h, above ${ceiling_usd:.4f}"
        try:
            self._client.delete(rented.id)
        except ExternalError as error:
            # The pod exists, and the core finds it by its name: a dear machine that trains is better than an unknown one.
            raise TemporaryError(f"{dear}, and pod {rented.id} could not be terminated: {error}") from error
        raise NoCapacity(f"{dear}; pod {rented.id} was terminated")


def _order(
    name: str, row: Row, requested: RequestedMachine, ceiling_usd: float, *, image: tuple[str | None, str | None], ssh_key_id: str
) -> dict[str, object]:
    """Return the body of the create call, which repeats one row. Empty fields are left out, because unknown or empty fields are refused.
    `image`: the name of the image, and the id of the template if it is that of one.

    It contains no settings and no secrets: whether variables given here reach a login shell is not documented. Prime's automatic restart is
    off, because what it keeps is not documented either; the watcher restarts runs.
    """
    pod: dict[str, object] = {
        "name": name,
        "cloudId": row.cloud_id,
        "gpuType": row.gpu_type,
        "socket": row.socket,
        "gpuCount": row.gpu_count,
        "diskSize": requested.disk_gb,
        "vcpus": requested.vcpus,
        "memory": requested.memory_gb,
        "maxPrice": ceiling_usd,
        "image": image[0],
        "customTemplateId": image[1],
        "dataCenterId": row.data_center,
        "country": row.country,
        "security": row.security,
        "sshKeyId": ssh_key_id or None,
        "autoRestart": False,
    }
    return {"pod": {key: value for key, value in pod.items() if value is not None}, "provider": {"type": row.provider}}


def _anybody(renting: str = "") -> None:
    """Accept any account."""


def _condition(rented: Rented) -> str:
    words = (rented.status, rented.installation_status, rented.installation_failure)
    return ", ".join(word[:200] for word in words if word)
