"""Models of the responses of Prime's API, limited to the fields that are used here."""

from typing import Annotated

from pydantic import ConfigDict, Field, WrapValidator
from pydantic.alias_generators import to_camel

from prime_train.providers.rental.parsing import (
    BilledUsd,
    Count,
    Figure,
    ResponsePart,
    TextOrNone,
    Usd,
    or_none,
)

POD_ID = "[A-Za-z0-9][A-Za-z0-9_-]{0,127}"


class PrimePart(ResponsePart):
    """Base of all models. Field names are in camel case on most routes, and in snake case in lists, wallet
    and status.
    """

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Amount(PrimePart):
    """The amount of disk (GB), memory (GB) or vCPUs (cores) that can be ordered; prices are per unit and
    hour.
    """

    min_count: Count | None = None
    default_count: Count | None = None
    max_count: Count | None = None
    price_per_unit: Usd | None = None
    step: Count | None = None
    default_included_in_price: bool | None = None


class Prices(PrimePart):
    """Prices of the entire box per hour."""

    on_demand: Usd | None = None
    community_price: Usd | None = None
    currency: str = "USD"


class AvailableMachine(PrimePart):
    """A machine for rent. Every box size, on demand and as spot, has a row of its own."""

    cloud_id: str
    gpu_type: str
    socket: str | None = None
    provider: str
    gpu_count: int = Field(ge=0)
    prices: Prices
    region: str | None = None
    data_center: str | None = None
    country: str | None = None
    gpu_memory: float | None = None
    disk: Amount | None = None
    vcpu: Amount | None = None
    memory: Amount | None = None
    stock_status: str | None = None
    security: str | None = None
    images: tuple[str, ...] | None = None
    is_spot: bool | None = None
    prepaid_time: float | None = None


class PrimePod(PrimePart):
    """A pod. Its id becomes a part of URLs. `ssh_connection` and `ip` are text, a list of texts and nulls, or
    null; see `connection`.
    """

    id: str = Field(pattern=f"^{POD_ID}$")
    name: TextOrNone = None
    status: TextOrNone = None
    installation_status: TextOrNone = None
    installation_failure: TextOrNone = None
    installation_progress: Figure = None
    price_hr: Figure = None
    wallet_id: TextOrNone = None
    created_at: TextOrNone = None
    terminated_at: TextOrNone = None
    ssh_connection: object = None
    ip: object = None
    prime_port_mapping: object = None


class Billed(PrimePart):
    """An ended pod and its total cost."""

    id: str
    name: TextOrNone = None
    created_at: TextOrNone = None
    terminated_at: TextOrNone = None
    total_billed_price: BilledUsd = None


class SshKey(PrimePart):
    id: str
    name: str | None = None
    public_key: str | None = None


class Wallet(PrimePart):
    balance_usd: float
    wallet_id: TextOrNone = None
    currency: str = "USD"


class Scope(PrimePart):
    read: bool = False
    write: bool = False


class Person(PrimePart):
    """The owner of a key and the key's permissions; `scope` is None if they are not given."""

    id: str
    email: TextOrNone = None
    scope: Annotated[dict[str, Scope] | None, WrapValidator(or_none)] = None
