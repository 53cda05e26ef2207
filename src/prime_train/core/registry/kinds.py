"""The types of the rows."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prime_train.core.spec import RunSpec


@dataclass(frozen=True)
class Layout:
    """Where a trainer saves by itself: fields of `checkpoints`, and the file of `trainer.progress`. What a config leaves out is filled in
    from here, and what it says otherwise about `folder`, `pattern` and `marker` is refused."""

    folder: str
    pattern: str
    marker: str | None = None
    files: tuple[str, ...] = ()
    progress_file: str | None = None


@dataclass(frozen=True)
class TrainerKind:
    """A kind of trainer, by the name that `trainer.kind` has for it."""

    implementation: str
    """The class that implements the port of trainers, as `package.module:Class`; it is created without arguments."""
    summary: str
    """What is run, as the end of a sentence that begins with the kind's name."""
    part: str = ""
    """The part of `trainer` that this kind needs and no other kind may have."""
    own_command: str = ""
    """What to do instead of writing `trainer.command`, for a kind with a command of its own; empty: the kind needs `trainer.command`."""
    needs_steps: str = ""
    """Why the kind needs `trainer.steps`; empty: it does not."""
    layout: "Callable[[RunSpec], Layout] | None" = field(default=None, repr=False)
    """Where the trainer saves; None: where the config says."""
