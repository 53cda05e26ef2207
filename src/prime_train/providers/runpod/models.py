"""Models of the responses of RunPod's API, limited to the fields that are used here."""

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from prime_train.providers.rental.parsing import Figure, ResponsePart, TextOrNone, Usd

POD_ID = "[A-Za-z0-9][A-Za-z0-9_-]{0,63}"


class RunPodPart(ResponsePart):
    """Base of all models. Field names are in camel case."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class ByCloud(RunPodPart):
    """A figure for each cloud; the price is that of one GPU."""

    secure: Usd = 0.0
    community: Usd = 0.0

    def of(self, cloud: str) -> float:
        return self.secure if cloud == "SECURE" else self.community


class DataCenter(RunPodPart):
    """A data centre, and how many machines of a kind it has free."""

    id: str = Field(min_length=1)
    availability: TextOrNone = None


class GpuType(RunPodPart):
    """A kind of GPU in the catalogue, as asked for a number of GPUs in one cloud."""

    id: str = Field(min_length=1)
    manufacturer: TextOrNone = None
    memory: Figure = None
    price: ByCloud
    availability: TextOrNone = None
    data_centers: tuple[DataCenter, ...] | None = None


class Endpoint(RunPodPart):
    host: TextOrNone = None
    port: Figure = None
    username: TextOrNone = None


class Ssh(RunPodPart):
    """The addresses of a pod. `proxy` is left out: it carries an interactive shell only."""

    direct: Endpoint | None = None


class MappedPort(RunPodPart):
    private: Figure = None
    public: Figure = None
    type: TextOrNone = None
    ip: TextOrNone = None


class Runtime(RunPodPart):
    """What a container that runs reports. `uptime`: seconds since its start."""

    uptime: Figure = None
    ports: tuple[MappedPort, ...] | None = None


class RunPodPod(RunPodPart):
    """A pod. Its id becomes a part of URLs."""

    id: str = Field(pattern=f"^{POD_ID}$")
    name: TextOrNone = None
    status: TextOrNone = None
    cost: Figure = None
    created_at: TextOrNone = None
    ssh: object = None
    runtime: object = None


class NetworkVolume(RunPodPart):
    """A network volume, which is in one data centre for good."""

    id: str = Field(pattern=f"^{POD_ID}$")
    data_center: str = Field(min_length=1)


class LowestPrice(RunPodPart):
    """The lowest bid for one GPU per hour."""

    minimum_bid_price: Usd = 0.0
    stock_status: TextOrNone = None


class KindWithBid(RunPodPart):
    """A kind of GPU in GraphQL; without a price, it is sold out."""

    id: str = Field(min_length=1)
    lowest_price: LowestPrice | None = None

    @property
    def bid_usd(self) -> float:
        return self.lowest_price.minimum_bid_price if self.lowest_price is not None else 0.0


class Interruptible(RunPodPart):
    """A spot pod as GraphQL answers it. Its id becomes a part of URLs."""

    id: str = Field(pattern=f"^{POD_ID}$")
    name: TextOrNone = None
    cost_per_hr: Figure = None


class Myself(RunPodPart):
    """The owner of a key, with the balance in USD, and the cost per hour of everything that the balance pays
    for.
    """

    id: str = Field(min_length=1)
    client_balance: Figure = None
    current_spend_per_hr: Figure = None
