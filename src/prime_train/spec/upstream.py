"""Results of prime-rl's own validators for a config."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ValidatorError:
    """An error that prime-rl's own validators report. `where`: keys and list indices as pydantic reports
    them, with names of alternatives it tried.
    """

    where: tuple[str | int, ...]
    kind: str
    text: str


@dataclass(frozen=True)
class Upstream:
    """The result of the validators. `commit`: the commit they belong to; as given by the user if it could not
    be resolved. `failure`: why they could not run.
    """

    commit: str
    refusals: tuple[ValidatorError, ...] = ()
    failure: str = ""
    is_absent: bool = False
    """Whether prime-rl has no such commit."""

    @property
    def has_answered(self) -> bool:
        return not self.failure and not self.is_absent
