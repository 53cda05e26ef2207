"""What prime-rl's own validators say of a config, when they were asked."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """One thing they refuse. `where`: keys and places in lists as pydantic tells them, names of the alternatives it tried among them."""

    where: tuple[str | int, ...]
    kind: str
    text: str


@dataclass(frozen=True)
class Upstream:
    """`commit`: whose validators; as it was named where it is not known. `failure`: why they could not be asked."""

    commit: str
    refusals: tuple[Refusal, ...] = ()
    failure: str = ""
    is_absent: bool = False
    """prime-rl has no such commit."""

    @property
    def has_answered(self) -> bool:
        return not self.failure and not self.is_absent
