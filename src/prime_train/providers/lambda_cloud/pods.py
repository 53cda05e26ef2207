"""The port `Pods` on Lambda Cloud, whose launch has no idempotency key and answers an id only.

Instances have no time of creation, and names of at most 64 characters. So both are put on them as tags when
they are launched; the name is also given as such, cut if it is too long, for people and in case that tags are
not reported.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import Unpack

from prime_train.errors import PermanentError
from prime_train.providers.lambda_cloud import offers
from prime_train.providers.lambda_cloud.client import LambdaClient
from prime_train.providers.lambda_cloud.errors import NotThere
from prime_train.providers.lambda_cloud.models import LambdaInstance, SshKey, Stock, is_instance_id
from prime_train.providers.lambda_cloud.offers import LambdaMachine
from prime_train.providers.lambda_cloud.settings import TITLE
from prime_train.providers.port import SSH_PORT, Installer, SshAddress
from prime_train.providers.rental.parsing import readable
from prime_train.providers.rental.pods import Plane, RentalPods
from prime_train.providers.rental.reasons import short
from prime_train.providers.rental.ssh_key import public_ssh_address
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.spec.spec import HardwareSpec

USER = "ubuntu"
DIGEST_CHARS = 12
NAME_CHARS_MAX = 64
NAME_TAG = "prime-train:name"
CREATED_TAG = "prime-train:created"
SECOND_DIGITS_MAX = 10
BOOTING = "booting"
PREEMPTED = "preempted"
STATUSES = {
    BOOTING: PodStatus.PENDING,
    "active": PodStatus.ACTIVE,
    "unhealthy": PodStatus.BROKEN,
    PREEMPTED: PodStatus.GONE,
    "terminated": PodStatus.GONE,
}
"""The status of the port `Pods` for each of Lambda Cloud's; any other one, such as terminating, becomes
UNKNOWN: the machine may still run, and heartbeats decide.
"""


def pod_of(rented: LambdaInstance) -> Pod:
    status = STATUSES.get((rented.status or "").lower(), PodStatus.UNKNOWN)
    return Pod(rented.id, name_of(rented), status, created_s(rented), rented.usd_per_hour)


def name_of(rented: LambdaInstance) -> str:
    """Return the full name that the instance was launched under."""
    return rented.tag(NAME_TAG) or rented.name or ""


def created_s(rented: LambdaInstance) -> int:
    """Return the second at which the launch was requested; 0 if that is not known."""
    text = rented.tag(CREATED_TAG)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= SECOND_DIGITS_MAX else 0


def is_preempted(rented: LambdaInstance) -> bool:
    return (rented.status or "").lower() == PREEMPTED


def tags(name: str, now_s: int) -> list[dict[str, str]]:
    return [{"key": NAME_TAG, "value": name}, {"key": CREATED_TAG, "value": str(now_s)}]


class OwnSshKey:
    """This control plane's SSH key in the account, by whose name instances are launched: the one with this
    public half, in OpenSSH's format. Thread-safe.
    """

    def __init__(self, client: LambdaClient, public_key: str) -> None:
        self._client, self._public_key, self._lock = client, public_key.strip(), threading.Lock()
        self._found: SshKey | None = None

    def find(self) -> SshKey | None:
        """Return the account's entry of the key; None if it has none. An entry that was found is kept."""
        with self._lock:
            return self._find()

    def find_or_add(self) -> SshKey:
        """Return the account's entry of the key, after adding it if it is missing."""
        with self._lock:
            found = self._find()
            if found is not None:
                return found
            if not self._public_key:
                raise PermanentError("a machine cannot be rented without the control plane's public SSH key")
            # A name of its own for each key, because control planes may share an account.
            digest = hashlib.sha256(material(self._public_key).encode()).hexdigest()[:DIGEST_CHARS]
            self._found = self._client.add_ssh_key(f"prime-train-{digest}", self._public_key)
            return self._found

    def forget(self) -> None:
        """Look again next time, because the key may have been removed from the account."""
        with self._lock:
            self._found = None

    def _find(self) -> SshKey | None:
        if self._found is None and self._public_key:
            ours = [
                key
                for key in self._client.ssh_keys()
                if material(key.public_key or "") == material(self._public_key)
            ]
            # Of several entries that were added at the same time, every process takes the same.
            self._found = min(ours, key=lambda key: key.id, default=None)
        return self._found


def material(public_key: str) -> str:
    """Return type and key without the comment at its end, for comparison."""
    return " ".join(public_key.split()[:2])


class LambdaPods(RentalPods[LambdaMachine, LambdaInstance]):
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

    def _for_rent(self, hardware: HardwareSpec) -> Mapping[str, LambdaMachine]:
        """Return every machine with a known GPU in every region where it is free."""
        rows = readable(Stock, self._client.instance_types(), TITLE)
        return {machine.offer_id: machine for machine in offers.machines(rows)}

    def _offer(self, offer_id: str, machine: LambdaMachine, hardware: HardwareSpec) -> Offer:
        return offers.offer(machine, hardware)

    def _claim_account(self, name: str) -> None:
        # First the SSH key, by whose entry the account is recognised.
        self._own_key.find_or_add()
        super()._claim_account(name)

    def _rent(
        self, name: str, machine: LambdaMachine, hardware: HardwareSpec, most_usd: float
    ) -> LambdaInstance:
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
        return LambdaInstance(
            id=instance_id, status=BOOTING, instance_type=machine.type.model_dump(), tags=own_tags
        )

    def _has_ended(self, rented: LambdaInstance) -> bool:
        return is_preempted(rented)

    def _refuse_stranger(self) -> None:
        """Accept any account, because nothing is concluded from an instance missing in the list."""

    @staticmethod
    def _address_of(rented: LambdaInstance) -> SshAddress | None:
        return public_ssh_address(rented.id, USER, rented.ip, SSH_PORT)

    @staticmethod
    def _condition(rented: LambdaInstance) -> str:
        return short(rented.status or "it has no status")

    _pod_of = staticmethod(pod_of)
    _is_pod_id = staticmethod(is_instance_id)
    _is_offer_id = staticmethod(offers.is_offer_id)
