"""The catalogue of list prices that is part of this version, for answers without an account: what providers
asked for on demand on a day.

Each row has the day on which it was read and the page that it is from. Nothing tells what is free, spot
prices change too fast for a list, and an offer made of a row is never rented: offers of an account take its
place wherever there is one.
"""

import csv
import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date

from prime_train.runs.offer import Offer
from prime_train.text.gpu_names import memory_gb_in

FILE = "list_prices.csv"
ID = "list"
"""The beginning of the ids of such offers."""
NONE = "no list prices of these providers are known; without an account"
_FIELDS = (
    "provider",
    "cloud",
    "gpu",
    "socket",
    "gpu_counts",
    "usd_per_gpu_hour",
    "disk_gib",
    "read_on",
    "source",
    "copy",
)


@dataclass(frozen=True)
class ListPrice:
    """A row. `cloud`: the provider's name of a part of what it rents out; `disk_gib`: None: as much as is
    asked for; `copy`: where the page's content was read, if not on the page itself.
    """

    provider: str
    cloud: str
    gpu: str
    socket: str
    gpu_counts: tuple[int, ...]
    usd_per_gpu_hour: float
    disk_gib: int | None
    read_on: date
    source: str
    copy: str

    def offers(self, disk_gib: int) -> list[Offer]:
        """Return an offer for each number of GPUs. `disk_gib`: the disk that is asked for."""
        return [
            Offer(
                self.provider,
                ":".join(
                    part
                    for part in (ID, self.provider, self.gpu, self.socket, f"{count}x", self.cloud)
                    if part
                ),
                round(self.usd_per_gpu_hour * count, 4),
                spot=False,
                gpu=self.gpu,
                gpu_count=count,
                disk_gib=disk_gib if self.disk_gib is None else self.disk_gib,
                region=self.cloud,
                gpu_gb=memory_gb_in(self.gpu),
                socket=self.socket,
            )
            for count in self.gpu_counts
        ]


def parse(text: str) -> tuple[ListPrice, ...]:
    """Return the rows. Raises ValueError, with the line, for a row without a day, a source or a sensible
    price.
    """
    rows = csv.DictReader(io.StringIO(text), strict=True)
    if tuple(rows.fieldnames or ()) != _FIELDS:
        raise ValueError(
            f"the columns are {', '.join(rows.fieldnames or ())}; they must be {', '.join(_FIELDS)}"
        )
    return tuple(_row(row, rows.line_num) for row in rows)


def _row(row: dict[str, str], line: int) -> ListPrice:
    try:
        found = ListPrice(
            row["provider"],
            row["cloud"],
            row["gpu"],
            row["socket"],
            tuple(int(count) for count in row["gpu_counts"].split()),
            float(row["usd_per_gpu_hour"]),
            int(row["disk_gib"]) if row["disk_gib"] else None,
            date.fromisoformat(row["read_on"]),
            row["source"],
            row["copy"],
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"line {line}: {error}") from error
    if not (found.provider and found.gpu and found.gpu_counts and found.source.startswith("https://")):
        raise ValueError(
            f"line {line}: a row needs a provider, a kind of GPU, a number of GPUs and the page that it is "
            "from"
        )
    if not 0 < found.usd_per_gpu_hour < 1000:
        raise ValueError(
            f"line {line}: {found.usd_per_gpu_hour} is not the price of a GPU in dollars an hour"
        )
    return found


def of_providers(prices: Sequence[ListPrice], providers: Collection[str]) -> list[ListPrice]:
    """Return the rows of these providers; of all if none is named."""
    return [price for price in prices if not providers or price.provider in providers]


def age(prices: Sequence[ListPrice], today: date) -> str:
    """Return in words how old the prices are: prices of 2026-09-20 to 2026-11-09, up to 68 days old; without
    an account
    """
    if not prices:
        return NONE
    first, last = min(price.read_on for price in prices), max(price.read_on for price in prices)
    days = max(0, (today - first).days)
    when = f"{first}" if first == last else f"{first} to {last}"
    return (
        f"prices of {when}, {'' if first == last else 'up to '}{days} day{'' if days == 1 else 's'} "
        "old; without an account"
    )
