"""Rows of the availability lists in the API's format, and the price of a box."""

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Spec(_Row):
    """The amounts of something that a box can have: GB or pieces; `pricePerUnit` in USD per hour."""

    minCount: int | None = None
    defaultCount: int | None = None
    maxCount: int | None = None
    pricePerUnit: float | None = None
    step: int | None = None
    defaultIncludedInPrice: bool | None = None
    additionalInfo: str | None = None

    def extra_usd(self, count: int | None) -> float:
        """Return the additional price per hour for `count` of it."""
        wanted = count if count is not None else self.defaultCount
        if self.defaultIncludedInPrice is not False or self.pricePerUnit is None or wanted is None:
            return 0.0
        return wanted * self.pricePerUnit

    def allows(self, count: int | None) -> bool:
        return count is None or (self.minCount or 0) <= count <= (self.maxCount or count)


class Prices(_Row):
    """USD per hour for the entire box."""

    onDemand: float | None = None
    communityPrice: float | None = None
    isVariable: bool | None = None
    currency: str = "USD"

    @property
    def usd(self) -> float:
        return self.communityPrice if self.communityPrice is not None else self.onDemand or 0.0


class GpuRow(_Row):
    cloudId: str
    gpuType: str = "A100_80GB"
    socket: str = "PCIe"
    provider: str = "runpod"
    region: str | None = "united_states"
    dataCenter: str | None = "US-KS-2"
    country: str | None = "US"
    gpuCount: int = 1
    gpuMemory: int = 80
    disk: Spec = Spec(
        minCount=120,
        defaultCount=120,
        maxCount=3000,
        pricePerUnit=0.00014,
        step=1,
        defaultIncludedInPrice=False,
    )
    sharedDisk: Spec = Spec()
    vcpu: Spec = Spec(defaultCount=14)
    memory: Spec = Spec(defaultCount=125)
    internetSpeed: float | None = None
    interconnect: int | None = None
    interconnectType: str | None = None
    provisioningTime: int | None = None
    stockStatus: str = "Available"
    security: str = "secure_cloud"
    prices: Prices
    images: list[str] = ["ubuntu_22_cuda_12", "cuda_12_6_pytorch_2_7", "custom_template", "prime_rl"]
    isSpot: bool | None = None
    prepaidTime: float | None = None

    def priced(self, usd: float) -> "GpuRow":
        """Return the same offer at another price."""
        return self.model_copy(
            update={"prices": self.prices.model_copy(update={"onDemand": usd, "communityPrice": None})}
        )

    def usd_per_hour(
        self, *, disk: int | None = None, vcpus: int | None = None, memory: int | None = None
    ) -> float:
        return (
            self.prices.usd
            + self.disk.extra_usd(disk)
            + self.vcpu.extra_usd(vcpus)
            + self.memory.extra_usd(memory)
        )


class DiskRow(_Row):
    """A disk offer. `spec.pricePerUnit` is per GB and hour."""

    cloudId: str | None = None
    provider: str = "runpod"
    dataCenter: str | None = "US-KS-2"
    country: str | None = "US"
    region: str | None = "united_states"
    spec: Spec = Spec(minCount=10, defaultCount=100, maxCount=8192, pricePerUnit=0.000111, step=1)
    stockStatus: str = "Available"
    security: str = "secure_cloud"
    isMultinode: bool = True


ON_DEMAND = GpuRow(cloudId="NVIDIA A100 80GB PCIe", prices=Prices(onDemand=1.64))
SPOT = GpuRow(
    cloudId="a100-80gb-spot",
    provider="datacrunch",
    dataCenter="FIN-01",
    country="FI",
    region="eu_north",
    disk=Spec(minCount=50, defaultCount=100, maxCount=2000, defaultIncludedInPrice=True),
    prices=Prices(onDemand=0.62, isVariable=True),
    isSpot=True,
)
SPOT_BOX = SPOT.model_copy(
    update={
        "cloudId": "h100-8x-spot",
        "gpuType": "H100_80GB",
        "socket": "SXM5",
        "gpuCount": 8,
        "prices": Prices(onDemand=9.20),
    }
)
EXAMPLES = (ON_DEMAND, SPOT, SPOT_BOX)


def summary(rows: Iterable[GpuRow]) -> dict[str, object]:
    """Return the cheapest price of each kind and count, everywhere and by region."""
    found: dict[str, dict[str, dict[str, dict[str, float | None]]]] = {}
    for row in rows:
        places = found.setdefault(row.gpuType, {}).setdefault(str(row.gpuCount), {})
        for place in ("cheapest", row.region or "unknown"):
            prices = places.setdefault(place, {"onDemand": None, "communityPrice": None, "spotPrice": None})
            _lower(prices, "spotPrice" if row.isSpot else "onDemand", row.prices.onDemand)
            _lower(prices, "communityPrice", row.prices.communityPrice)
    return dict(found)


def _lower(prices: dict[str, float | None], kind: str, usd: float | None) -> None:
    known = prices[kind]
    if usd is not None and (known is None or usd < known):
        prices[kind] = usd
