"""Models of the responses of Lambda Cloud's API, limited to the fields that are used here."""

import re
from collections.abc import Iterator

from pydantic import Field, ValidationError

from prime_train.providers.rental.parsing import Figure, P, ResponsePart, TextOrNone

INSTANCE_ID = "[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
NAME = "[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
CENTS_MAX = 1_000_000


class Region(ResponsePart):
    name: str = Field(pattern=f"^{NAME}$")


class Specs(ResponsePart):
    gpus: int = Field(ge=0, le=1024, strict=True)
    storage_gib: int = Field(ge=0, le=10**9, strict=True)


class InstanceType(ResponsePart):
    """A type of machine. `gpu_description` is such as `H100 (80 GB SXM5)`; the price is that of the whole
    machine.
    """

    name: str = Field(pattern=f"^{NAME}$")
    gpu_description: TextOrNone = None
    price_cents_per_hour: int = Field(ge=0, le=CENTS_MAX, strict=True)
    specs: Specs


class Stock(ResponsePart):
    """A type of machine, and the regions in which it is free."""

    instance_type: InstanceType
    regions_with_capacity_available: tuple[Region, ...]


class SshKey(ResponsePart):
    id: str = Field(min_length=1, max_length=128)
    name: str = Field(min_length=1, max_length=256)
    public_key: TextOrNone = None


class LaunchResponse(ResponsePart):
    instance_ids: tuple[str, ...] = Field(min_length=1)


class Tag(ResponsePart):
    key: str
    value: str


class Price(ResponsePart):
    price_cents_per_hour: Figure = None


class LambdaInstance(ResponsePart):
    """An instance. Its id becomes a part of URLs."""

    id: str = Field(pattern=f"^{INSTANCE_ID}$")
    name: TextOrNone = None
    status: TextOrNone = None
    ip: TextOrNone = None
    instance_type: object = None
    tags: object = None

    def tag(self, key: str) -> str:
        """Return the value of the tag; empty if it is missing or cannot be read."""
        items = self.tags if isinstance(self.tags, list) else []
        return next((tag.value for tag in _readable(Tag, items) if tag.key == key), "")

    @property
    def usd_per_hour(self) -> float:
        """Return the price in USD per hour; 0 if it is not believable."""
        cents = (
            next((price.price_cents_per_hour for price in _readable(Price, [self.instance_type])), None)
            or 0.0
        )
        return round(cents / 100, 6) if 0 <= cents <= CENTS_MAX else 0.0


def is_instance_id(text: str) -> bool:
    """Return whether `text` can be an instance's id; anything else must not become a part of a URL."""
    return re.fullmatch(INSTANCE_ID, text) is not None


def _readable(kind: type[P], items: list[object]) -> Iterator[P]:
    """Yield what can be read, because a tag that cannot must not hide the machine."""
    for item in items:
        try:
            yield kind.model_validate(item)
        except ValidationError:
            continue
