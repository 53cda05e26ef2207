"""Models of the responses of Vast.ai's API, limited to the fields that are used here."""

import re
from typing import Annotated

from pydantic import Field, ValidationError, WrapValidator

from prime_train.providers.rental.parsing import Figure, ResponsePart, TextOrNone, Usd, or_none

NUMBER_MAX = 10**15
INSTANCE_ID = "[1-9][0-9]{0,14}"
PORT_22 = "22/tcp"

Number = Annotated[int, Field(ge=1, le=NUMBER_MAX, strict=True)]
"""An id, which is a number and becomes a part of URLs."""
UsdOrNone = Annotated[Usd | None, WrapValidator(or_none)]
FlagOrNone = Annotated[Annotated[bool, Field(strict=True)] | None, WrapValidator(or_none)]


class OfferRow(ResponsePart):
    """An offer: some or all GPUs of one machine. Prices are per hour and for all of them; `gpu_ram` is in MB,
    disks in GB, `storage_cost` in USD per GB and month, traffic in USD per GB.
    """

    id: Number
    machine_id: Number
    host_id: Annotated[Number | None, WrapValidator(or_none)] = None
    gpu_name: str = Field(min_length=1, max_length=100)
    num_gpus: int = Field(ge=1, le=1024, strict=True)
    gpu_ram: Figure = None
    dph_base: UsdOrNone = None
    min_bid: UsdOrNone = None
    storage_cost: Usd = 0.0
    inet_down_cost: UsdOrNone = None
    inet_up_cost: UsdOrNone = None
    disk_space: Figure = None
    cuda_max_good: Figure = None
    direct_port_count: Figure = None
    cpu_arch: TextOrNone = None
    gpu_arch: TextOrNone = None
    verification: TextOrNone = None
    geolocation: TextOrNone = None
    reliability2: Figure = None
    duration: Figure = None


class Created(ResponsePart):
    new_contract: Number


class HostPort(ResponsePart):
    host_port: TextOrNone = Field(default=None, alias="HostPort")


class VastInstance(ResponsePart):
    """An instance. It has three states: `actual_status` is that of the container, `intended_status` what it
    should be, and `cur_state` and `next_state` belong to the contract.
    """

    id: Number
    label: TextOrNone = None
    actual_status: TextOrNone = None
    intended_status: TextOrNone = None
    cur_state: TextOrNone = None
    next_state: TextOrNone = None
    status_msg: TextOrNone = None
    is_bid: FlagOrNone = None
    start_date: Figure = None
    dph_total: Figure = None
    ssh_host: TextOrNone = None
    ssh_port: Figure = None
    public_ipaddr: TextOrNone = None
    ports: object = None

    @property
    def pod_id(self) -> str:
        return str(self.id)

    @property
    def direct_port(self) -> str | None:
        """Return the public port that leads to port 22 of the container; None if there is none."""
        mapped = self.ports.get(PORT_22) if isinstance(self.ports, dict) else None
        for one in mapped if isinstance(mapped, list) else []:
            try:
                return HostPort.model_validate(one).host_port
            except ValidationError:
                continue
        return None


class Counts(ResponsePart):
    """How many instances this page of a list has, and all of its pages together."""

    instances_found: int = Field(ge=0, le=10**6, strict=True)
    total_instances: int = Field(ge=0, le=10**6, strict=True)


class User(ResponsePart):
    """The owner of a key. `balance` is what the account is owed, or owes; `credit`, which accounts that pay
    in advance have beside it, is what is left to spend.
    """

    id: Number
    balance: Figure = None
    credit: Figure = None

    @property
    def left_usd(self) -> float | None:
        return self.balance if self.credit is None else self.credit


class Metadata(ResponsePart):
    label: TextOrNone = None


class Charge(ResponsePart):
    """What one instance has cost between `start` and `end`, in seconds since 1970."""

    source: str = Field(max_length=100)
    start: int = Field(ge=0, le=10**11, strict=True)
    end: int = Field(ge=0, le=10**11, strict=True)
    amount: Usd
    metadata: object = None

    @property
    def pod_id(self) -> str:
        """Return the id of the instance; empty if it is another contract, such as a volume."""
        kind, _, number = self.source.partition("-")
        return number if kind == "instance" and is_instance_id(number) else ""

    @property
    def label(self) -> str:
        try:
            return Metadata.model_validate(self.metadata).label or ""
        except ValidationError:
            return ""


def is_instance_id(text: str) -> bool:
    """Return whether `text` can be an instance's id; anything else must not become a part of a URL."""
    return re.fullmatch(INSTANCE_ID, text) is not None
