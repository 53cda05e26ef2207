"""The types of the registry's rows."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prime_train.core.spec import RunSpec


@dataclass(frozen=True)
class Layout:
    """The paths where a trainer saves by itself: fields of `checkpoints`, and the file of `trainer.progress`. Fields that a config omits
    are filled in from here, and other values of `folder`, `pattern` and `marker` are refused."""

    folder: str
    pattern: str
    marker: str | None = None
    files: tuple[str, ...] = ()
    progress_file: str | None = None


@dataclass(frozen=True)
class TrainerKind:
    """A kind of trainer; its key in the registry is the value of `trainer.kind`."""

    implementation: str
    """The class that implements the port of trainers, as `package.module:Class`; it is created without arguments."""
    summary: str
    """The action of the kind, as the end of a sentence that begins with the kind's name."""
    part: str = ""
    """The part of `trainer` that this kind needs and no other kind may have."""
    own_command: str = ""
    """What to do instead of setting `trainer.command`, for a kind with a command of its own; empty: the kind needs `trainer.command`."""
    needs_steps: str = ""
    """Why the kind needs `trainer.steps`; empty: it does not."""
    layout: "Callable[[RunSpec], Layout] | None" = field(default=None, repr=False)
    """Returns where the trainer saves; None: the config decides."""


@dataclass(frozen=True)
class ProviderKind:
    """A provider of machines; its key in the registry is the value of `hardware.provider`."""

    implementation: str
    """The class that implements the port of providers, as `package.module:Class`; it is created with a `ProviderContext`."""
    title: str
    """The provider's name as people write it."""
    is_rented: bool = True
    """Whether its machines are rented; otherwise they are the control plane's own."""
    credentials: tuple[str, ...] = ()
    """The environment variables with its credentials. The provider is set up if all of them are set, or if it is chosen by name."""
    advice: str = ""
    """What to do if it is not set up."""
    documentation: str = ""
    """The address of its documentation."""

    @property
    def summary(self) -> str:
        return f"is {self.title}"
