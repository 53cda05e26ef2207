"""Models of the responses of Prime's API, limited to the fields that are used here.

Statuses, GPU types, images and providers are open sets. They are plain text here, so that a new value does not make a response unreadable;
the code that uses a value decides what an unknown one means. Other fields are ignored, and optional fields may be null.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidatorFunctionWrapHandler, WrapValidator
from pydantic.alias_generators import to_camel


def _or_none(value: object, read: ValidatorFunctionWrapHandler) -> object:
    try:
        return read(value)
    except ValueError:
        return None


TextOrNone = Annotated[str | None, WrapValidator(_or_none)]
Figure = Annotated[float | None, WrapValidator(_or_none)]
"""A number that may be missing. A value of any other type is read as None, so that one invalid field of one pod does not make the entire
list unreadable."""


USD_MAX = 10_000.0
"""Upper bound of a believable price of a box in USD per hour."""
Usd = Annotated[float, Field(ge=0, le=USD_MAX, strict=True)]
"""A believable price: a number, not text. A row with any other value is left out."""
Count = Annotated[float, Field(ge=0, le=10**9)]
BILL_USD_MAX = 10_000_000.0
"""Upper bound of a believable total bill in USD."""
BilledUsd = Annotated[Annotated[float, Field(ge=0, le=BILL_USD_MAX)] | None, WrapValidator(_or_none)]
"""A total bill in USD; None if the sum is not believable, because a wrong sum in the ledger would reduce the recorded spending or end the
run as over budget."""


class Part(BaseModel):
    """Base of all models. Field names are in camel case on most routes, and in snake case in lists, wallet and status."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True, allow_inf_nan=False)


class Amount(Part):
    """The amount of disk (GB), memory (GB) or vCPUs (cores) that can be ordered; prices are per unit and hour."""

    min_count: Count | None = None
    default_count: Count | None = None
    max_count: Count | None = None
    price_per_unit: Usd | None = None
    step: Count | None = None
    default_included_in_price: bool | None = None


class Prices(Part):
    """Prices of the entire box per hour."""

    on_demand: Usd | None = None
    community_price: Usd | None = None
    currency: str = "USD"


class Row(Part):
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


class Rented(Part):
    """A pod. `ssh_connection` and `ip` are text, a list of texts and nulls, or null; see `connection`."""

    id: str = Field(min_length=1)
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


class Billed(Part):
    """An ended pod and its total cost."""

    id: str
    name: TextOrNone = None
    created_at: TextOrNone = None
    terminated_at: TextOrNone = None
    total_billed_price: BilledUsd = None


class SshKey(Part):
    id: str
    name: str | None = None
    public_key: str | None = None


class Wallet(Part):
    balance_usd: float
    wallet_id: TextOrNone = None
    currency: str = "USD"


class Scope(Part):
    read: bool = False
    write: bool = False


class Person(Part):
    """The owner of a key and the key's permissions; `scope` is None if they are not given."""

    id: str
    email: TextOrNone = None
    scope: Annotated[dict[str, Scope] | None, WrapValidator(_or_none)] = None
