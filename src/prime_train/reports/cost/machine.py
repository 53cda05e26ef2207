"""A machine to pay for."""

from dataclasses import dataclass

from prime_train.core.market.step_times import Kind
from prime_train.core.offers import Offer
from prime_train.estimate.cost.bill import Rate


@dataclass(frozen=True)
class Machine:
    """A machine to pay for. `kind` is its GPU kind, or empty if that does not matter."""

    name: str
    kind: str
    count: int
    rate: Rate
    socket: str = ""
    offer: Offer | None = None
    """The offer that it is; None: it stands for any machine at this price."""

    @property
    def kind_and_count(self) -> Kind:
        return (self.offer.gpu, self.offer.gpu_count) if self.offer is not None else (self.kind, self.count)
