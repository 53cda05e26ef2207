"""What Prime's API says, as far as we read it.

Words (statuses, GPU types, images, providers) are open sets: a new one must not make us blind, so they are plain text here, and what is
made of an unknown one is decided where it is used. Fields that we do not need are not looked at; what is not required may be null.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidatorFunctionWrapHandler, WrapValidator
from pydantic.alias_generators import to_camel


def _or_none(value: object, read: ValidatorFunctionWrapHandler) -> object:
    try:
        return read(value)
    except ValueError:
        return None


Told = Annotated[str | None, WrapValidator(_or_none)]
Figure = Annotated[float | None, WrapValidator(_or_none)]
"""None also for what is of another type: one odd field of one pod must not blind us for all of them."""


USD_MAX = 10_000.0
"""An hour of no box costs as much."""
Usd = Annotated[float, Field(ge=0, le=USD_MAX, strict=True)]
"""A price that can be believed: a number, not text. What is no such price makes its row one that is left out."""
Count = Annotated[float, Field(ge=0, le=10**9)]
BILL_USD_MAX = 10_000_000.0
"""No box costs as much in all the time that anybody trains on it."""
BilledUsd = Annotated[Annotated[float, Field(ge=0, le=BILL_USD_MAX)] | None, WrapValidator(_or_none)]
"""None for a sum that cannot be one: booked, it would take from what was spent, or end the run as over its budget."""


class Part(BaseModel):
    """Names come in camel case from most routes, and as ours from lists, wallet and status."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True, allow_inf_nan=False)


class Amount(Part):
    """How much disk, memory or vCPUs can be had: GB, GB and cores; prices are a unit's per hour."""

    min_count: Count | None = None
    default_count: Count | None = None
    max_count: Count | None = None
    price_per_unit: Usd | None = None
    step: Count | None = None
    default_included_in_price: bool | None = None


class Prices(Part):
    """Of the whole box, per hour."""

    on_demand: Usd | None = None
    community_price: Usd | None = None
    currency: str = "USD"


class Row(Part):
    """A machine for rent. Every box size, and spot or not, has a row of its own."""

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


class Rented(Part):
    """A pod. `ssh_connection` and `ip` are text, a list of texts and nulls, or null; see `connection`."""

    id: str = Field(min_length=1)
    name: Told = None
    status: Told = None
    installation_status: Told = None
    installation_failure: Told = None
    installation_progress: Figure = None
    price_hr: Figure = None
    wallet_id: Told = None
    created_at: Told = None
    terminated_at: Told = None
    ssh_connection: object = None
    ip: object = None
    prime_port_mapping: object = None


class Billed(Part):
    """A pod that is no more, and what it cost in all."""

    id: str
    name: Told = None
    created_at: Told = None
    terminated_at: Told = None
    total_billed_price: BilledUsd = None


class SshKey(Part):
    id: str
    name: str | None = None
    public_key: str | None = None


class Disk(Part):
    id: str
    name: str | None = None
    status: str | None = None
    provider_type: str | None = None
    size: float | None = None
    """GB."""
    price_hr: float | None = None


class Wallet(Part):
    balance_usd: float
    wallet_id: Told = None
    currency: str = "USD"


class Scope(Part):
    read: bool = False
    write: bool = False


class Person(Part):
    """Whose key it is, and what it may do; None: not told."""

    id: str
    email: Told = None
    scope: Annotated[dict[str, Scope] | None, WrapValidator(_or_none)] = None
