"""The port `Pods` on Prime Intellect.

A machine is rented by repeating a row of the list of those for rent, so rows are kept from `offers` until `create`; another process's offer
is looked for in the list again. The call that rents has no key that would make it the same call twice. So it is made once, under a name
that is the attempt's own, and where its answer is lost, that name is what says whether there is a pod.

What is paid is bounded twice: by the highest price the call names, and by comparing what came back, for the server's own check has been
seen to come and go. A pod that is dearer is given back at once.
"""

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from prime_train.adapters.pods_prime import availability, offers
from prime_train.adapters.pods_prime.client import PrimeClient, is_pod_id
from prime_train.adapters.pods_prime.connection import Connection, Pusher, connection_of
from prime_train.adapters.pods_prime.marks import Mark
from prime_train.adapters.pods_prime.models import Rented, Row
from prime_train.adapters.pods_prime.offers import Asked, Terms
from prime_train.adapters.pods_prime.owner import Guard
from prime_train.adapters.pods_prime.statuses import pod_of
from prime_train.core.keys import parse_pod_name
from prime_train.core.offers import Offer
from prime_train.core.spec import HardwareSpec
from prime_train.core.verdict import Pod, PodStatus
from prime_train.core.wire import Ticket
from prime_train.ports import LimitReached, NoCapacity, OutsideError, PermanentError, TemporaryError

PRICE_TOLERANCE = 0.05
"""A pod may cost so much more than its offer, but never more than the run allows: prices move between the list and the order."""
SSH_KEY_NAME = "prime-train"

log = logging.getLogger(__name__)


class PrimePods:
    """Pods of one account or team. `pusher` brings the agent to a machine. `public_key`, a line of OpenSSH's, is put on every machine;
    without one it is the account's primary key. `closed`: why nothing may be rented, whatever there is. `mark` tells our pods from those of
    other control planes on the account. `owner` raises where it is not the account that our machines are on; what is for rent may be
    looked at from any. `pause` waits between looks at a list that should not be empty."""

    def __init__(
        self,
        client: PrimeClient,
        pusher: Pusher,
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
        """Every machine that is not sold out, priced with the disk that `hardware` asks for."""
        if self._closed:
            raise PermanentError(self._closed)
        self._rows = offers.named(availability.rows(self._client, self._pause), hardware)
        return [offers.offer(offer_id, row, hardware, self._terms) for offer_id, row in self._rows.items()]

    def create(self, name: str, offer: Offer, hardware: HardwareSpec) -> Pod:
        """The price is the one listed, whatever `offer` says. NoCapacity also for a machine that has become dearer than the run allows."""
        self._owner(renting=name)
        row = self._row(offer.offer_id, hardware)
        asked, ceiling_usd = offers.asked(row, hardware), self._ceiling_usd(offer.offer_id, row, hardware)
        body = _order(self._mark.on(name), row, asked, ceiling_usd, image=self._terms.image(row), ssh_key_id=self._key_id())
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
        """Those whose names are ours; on the account there may be others. One that is said to be terminated is left out: `get` tells.
        TemporaryError also where the list is cut short."""
        self._refuse_stranger()
        seen = [(pod_of(rented), rented.wallet_id) for rented in self._client.pods()]
        self._burning = [(wallet_id, pod.usd_per_hour) for pod, wallet_id in seen if pod.status is not PodStatus.GONE]
        pods = [self._named(pod) for pod, _ in seen]
        return [pod for pod in pods if parse_pod_name(pod.name) is not None and pod.status is not PodStatus.GONE]

    def get(self, pod_id: str) -> Pod | None:
        rented = self._found(pod_id)
        pod = pod_of(rented) if rented is not None else None
        return self._named(pod) if pod is not None else None

    def put_agent(self, pod: Pod, ticket: Ticket) -> None:
        """TemporaryError: the pod is gone, still booting, or does not say yet how to reach it; or its agent could not call us."""
        if self._closed:
            raise TemporaryError(self._closed)
        rented = self._found(pod.pod_id)
        seen = pod_of(rented) if rented is not None else None
        if rented is None or seen is None or seen.status is PodStatus.GONE:
            raise TemporaryError(f"pod {pod.pod_id} is gone")
        if seen.status is PodStatus.PENDING:
            raise TemporaryError(f"pod {pod.pod_id} is still booting")
        if seen.status is not PodStatus.ACTIVE:
            raise TemporaryError(f"pod {pod.pod_id} is not well: {_condition(rented)}")
        connection = connection_of(rented)
        if connection is None:
            raise TemporaryError(f"pod {pod.pod_id} does not say yet how to reach it by SSH")
        self._pusher(connection, ticket)

    def connection(self, pod_id: str) -> Connection | None:
        """How to reach it by SSH; None: it is gone, or does not say yet."""
        rented = self._client.pod(pod_id) if is_pod_id(pod_id) else None
        return connection_of(rented) if rented is not None else None

    def terminate(self, pod_id: str) -> None:
        """It is asked whoever's the key is, for the pod is paid for meanwhile; of another account's key that says nothing, and raises."""
        if is_pod_id(pod_id) and not self._client.delete(pod_id):
            self._owner()

    def burn_usd_per_hour(self, wallet_id: str | None) -> float:
        """What all pods cost that were listed last, whoever rented them, and that are paid from that wallet or do not tell from which."""
        return sum(usd for paid_from, usd in self._burning if wallet_id is None or paid_from in (None, wallet_id))

    # ----------------------------------------------------------------------------------------------------------------- inside

    def _found(self, pod_id: str) -> Rented | None:
        """A pod that is found is ours. That it is not found counts only where it is known whose the key is."""
        rented = self._client.pod(pod_id) if is_pod_id(pod_id) else None
        if rented is None:
            self._owner()
        return rented

    def _refuse_stranger(self) -> None:
        """PermanentError: the key is of another account. Not knowing whose it is hinders nothing that concludes nothing from absence."""
        try:
            self._owner()
        except TemporaryError as error:
            log.warning("whose key it is is not known now: %s", error)

    def _named(self, pod: Pod) -> Pod:
        """By the name we gave it; one that is somebody else's has none."""
        return replace(pod, name=self._mark.without(pod.name) or "")

    def _row(self, offer_id: str, hardware: HardwareSpec) -> Row:
        if offer_id not in self._rows and offers.is_offer_id(offer_id):
            self.offers(hardware)
        row = self._rows.get(offer_id)
        if row is not None:
            return row
        if offers.is_offer_id(offer_id):
            raise NoCapacity(f"{offer_id} is no longer for rent")
        raise PermanentError(f"there is no offer {offer_id!r}; ids are as runpod:A100_80GB:PCIe:1x:US-KS-2:secure:spot")

    def _ceiling_usd(self, offer_id: str, row: Row, hardware: HardwareSpec) -> float:
        usd, most_usd = offers.asked(row, hardware).usd_per_hour, hardware.usd_per_hour_max
        hindrance = offers.offer(offer_id, row, hardware, self._terms).hindrance
        if usd is None or hindrance:
            raise PermanentError(f"{offer_id} {hindrance}")
        if most_usd is not None and usd > most_usd:
            raise NoCapacity(f"{offer_id} costs ${usd:.2f}/h now, over hardware.usd_per_hour_max {most_usd:.2f}")
        # Never 0, which has been seen to mean "no ceiling" and to mean "nothing may be paid".
        return min(math.ceil(usd * (1 + PRICE_TOLERANCE) * 10**4) / 10**4, most_usd if most_usd is not None else math.inf)

    def _key_id(self) -> str:
        if self._public_key and not self._ssh_key_id:
            self._ssh_key_id = self._client.ssh_key_id(self._public_key, SSH_KEY_NAME)
        return self._ssh_key_id

    def _give_back(self, rented: Rented, offer_id: str, ceiling_usd: float) -> None:
        dear = f"{offer_id} came at ${rented.price_hr:.4f}/h, over ${ceiling_usd:.4f}"
        try:
            self._client.delete(rented.id)
        except OutsideError as error:
            # It is there. The core finds it by its name; better a dear machine that trains than one that nobody knows of.
            raise TemporaryError(f"{dear}, and pod {rented.id} could not be given back: {error}") from error
        raise NoCapacity(f"{dear}; pod {rented.id} was given back")


def _order(name: str, row: Row, asked: Asked, ceiling_usd: float, *, image: str | None, ssh_key_id: str) -> dict[str, object]:
    """The body of the call that rents: one row repeated. What it would leave empty is left out; a field that is not known is refused.

    Settings and secrets are not among it: whether variables given here reach a log-in shell is not documented. Nor is what Prime's
    restart of a pod keeps, so it is off: it is the watcher who starts again.
    """
    pod: dict[str, object] = {
        "name": name,
        "cloudId": row.cloud_id,
        "gpuType": row.gpu_type,
        "socket": row.socket,
        "gpuCount": row.gpu_count,
        "diskSize": asked.disk_gb,
        "vcpus": asked.vcpus,
        "memory": asked.memory_gb,
        "maxPrice": ceiling_usd,
        "image": image,
        "dataCenterId": row.data_center,
        "country": row.country,
        "security": row.security,
        "sshKeyId": ssh_key_id or None,
        "autoRestart": False,
    }
    return {"pod": {key: value for key, value in pod.items() if value is not None}, "provider": {"type": row.provider}}


def _anybody(renting: str = "") -> None:
    """Any account will do."""


def _condition(rented: Rented) -> str:
    words = (rented.status, rented.installation_status, rented.installation_failure)
    return ", ".join(word[:200] for word in words if word)
