"""The port `Pods` on Lambda Cloud, whose launch has no idempotency key and answers an id only."""

import time
from collections.abc import Callable, Mapping
from typing import Unpack

from prime_train.adapters.pods_lambda import offers
from prime_train.adapters.pods_lambda.client import LambdaClient
from prime_train.adapters.pods_lambda.errors import NotThere
from prime_train.adapters.pods_lambda.models import Rented, Stock, is_instance_id
from prime_train.adapters.pods_lambda.offers import Machine
from prime_train.adapters.pods_lambda.settings import TITLE
from prime_train.adapters.pods_lambda.ssh_key import OwnSshKey
from prime_train.adapters.pods_lambda.statuses import BOOTING, NAME_CHARS_MAX, is_preempted, pod_of, tags
from prime_train.adapters.rental_api.parsing import readable
from prime_train.adapters.rental_api.pods import Plane, RentalPods
from prime_train.adapters.rental_api.reasons import short
from prime_train.adapters.rental_api.ssh import public_ssh_address
from prime_train.core.offers import Offer
from prime_train.core.spec import HardwareSpec
from prime_train.ports import SSH_PORT, Installer, SshAddress

USER = "ubuntu"


class LambdaPods(RentalPods[Machine, Rented]):
    """Instances of one account. `own_key` is put on every machine. `wall`: the time of day.

    A preempted instance is terminated by `get`, because it is not documented whether it is still billed.
    """

    example_id = offers.EXAMPLE_ID
    _client: LambdaClient

    def __init__(
        self,
        client: LambdaClient,
        pusher: Installer,
        *,
        own_key: OwnSshKey,
        wall: Callable[[], float] = time.time,
        **plane: Unpack[Plane],
    ) -> None:
        super().__init__(client, pusher, **plane)
        self._own_key, self._wall = own_key, wall

    def _for_rent(self, hardware: HardwareSpec) -> Mapping[str, Machine]:
        """Return every machine with a known GPU in every region where it is free."""
        rows = readable(Stock, self._client.instance_types(), TITLE)
        return {machine.offer_id: machine for machine in offers.machines(rows)}

    def _offer(self, offer_id: str, machine: Machine, hardware: HardwareSpec) -> Offer:
        return offers.offer(machine, hardware)

    def _claim_account(self, name: str) -> None:
        # First the SSH key, by whose entry the account is recognised.
        self._own_key.find_or_add()
        super()._claim_account(name)

    def _rent(self, name: str, machine: Machine, hardware: HardwareSpec, most_usd: float) -> Rented:
        own_tags = tags(name, int(self._wall()))
        order: dict[str, object] = {
            "region_name": machine.region,
            "instance_type_name": machine.type.name,
            "ssh_key_names": [self._own_key.find_or_add().name],
            "name": name[:NAME_CHARS_MAX],
            "tags": own_tags,
        }
        try:
            instance_id = self._client.launch(order)
        except NotThere:
            self._own_key.forget()
            raise
        return Rented(id=instance_id, status=BOOTING, instance_type=machine.type.model_dump(), tags=own_tags)

    def _has_ended(self, rented: Rented) -> bool:
        return is_preempted(rented)

    def _refuse_stranger(self) -> None:
        """Accept any account, because nothing is concluded from an instance missing in the list."""

    @staticmethod
    def _address_of(rented: Rented) -> SshAddress | None:
        return public_ssh_address(rented.id, USER, rented.ip, SSH_PORT)

    @staticmethod
    def _condition(rented: Rented) -> str:
        return short(rented.status or "it has no status")

    _pod_of = staticmethod(pod_of)
    _is_pod_id = staticmethod(is_instance_id)
    _is_offer_id = staticmethod(offers.is_offer_id)
