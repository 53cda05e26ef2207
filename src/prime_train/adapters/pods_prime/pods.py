"""The port `Pods` on Prime Intellect.

The create call has no idempotency key. The price is limited twice: by the maximum price in the create call, and by a comparison with the
response, because the server's own check has not always been in effect.
"""

import time
from collections.abc import Callable, Mapping
from typing import Unpack

from prime_train.adapters.pods_prime import availability, offers
from prime_train.adapters.pods_prime.client import PrimeClient, is_pod_id
from prime_train.adapters.pods_prime.connection import connection_of
from prime_train.adapters.pods_prime.models import Rented, Row
from prime_train.adapters.pods_prime.offers import RequestedMachine, Terms
from prime_train.adapters.pods_prime.statuses import pod_of
from prime_train.adapters.rental_api.pods import Plane, RentalPods
from prime_train.adapters.rental_api.reasons import short
from prime_train.core.offers import Offer
from prime_train.core.spec import HardwareSpec
from prime_train.ports import Installer

SSH_KEY_NAME = "prime-train"


class PrimePods(RentalPods[Row, Rented]):
    """Pods of one account or team. `public_key`, in OpenSSH's format, is put on every machine; without it the account's primary key is
    used. `pause` waits between requests for a list that should not be empty."""

    example_id = "runpod:A100_80GB:PCIe:1x:US-KS-2:secure:spot"
    _client: PrimeClient

    def __init__(
        self,
        client: PrimeClient,
        pusher: Installer,
        *,
        public_key: str = "",
        terms: Terms | None = None,
        pause: Callable[[float], None] = time.sleep,
        **plane: Unpack[Plane],
    ) -> None:
        super().__init__(client, pusher, **plane)
        self._public_key, self._ssh_key_id = public_key, ""
        self._terms = terms if terms is not None else Terms()
        self._pause = pause

    def burn_usd_per_hour(self, wallet_id: str | None = None) -> float:
        """Return the hourly cost in USD of all pods listed last, whoever rented them, that are paid from that wallet or whose wallet is
        unknown."""
        return sum(pod_of(rented).usd_per_hour for rented in self._alive if wallet_id is None or rented.wallet_id in (None, wallet_id))

    def _for_rent(self, hardware: HardwareSpec) -> Mapping[str, Row]:
        return offers.named(availability.rows(self._client, self._pause), hardware)

    def _offer(self, offer_id: str, machine: Row, hardware: HardwareSpec) -> Offer:
        """Return the offer, priced with the disk that `hardware` asks for."""
        return offers.offer(offer_id, machine, hardware, self._terms)

    def _rent(self, name: str, machine: Row, hardware: HardwareSpec, most_usd: float) -> Rented:
        requested = offers.requested_machine(machine, hardware)
        image = (self._terms.image(machine, hardware.image), offers.template_of(hardware.image))
        body = _order(name, machine, requested, most_usd, image=image, ssh_key_id=self._key_id())
        return self._client.create(body | self._client.paid_by())

    def _charged_usd(self, rented: Rented) -> float:
        return rented.price_hr or 0.0

    @staticmethod
    def _condition(rented: Rented) -> str:
        words = (rented.status, rented.installation_status, rented.installation_failure)
        return ", ".join(short(word) for word in words if word)

    _pod_of = staticmethod(pod_of)
    _address_of = staticmethod(connection_of)
    _is_pod_id = staticmethod(is_pod_id)
    _is_offer_id = staticmethod(offers.is_offer_id)

    def _key_id(self) -> str:
        if self._public_key and not self._ssh_key_id:
            self._ssh_key_id = self._client.ssh_key_id(self._public_key, SSH_KEY_NAME)
        return self._ssh_key_id


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
