"""What this machine knows of the process that serves a control plane."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from prime_train.advice import Advice, Call, Operation
from prime_train.errors import UsageError


@dataclass(frozen=True)
class Announced:
    """The content of serve.json, written by the process that serves the home. `public_url`: the URL that
    rented machines call; `providers`: the providers of runs whose configs name none; `bucket_url`: where it
    looks for checkpoints.
    """

    url: str
    pid: int
    public_url: str
    providers: tuple[str, ...]
    bucket_url: str


@dataclass(frozen=True)
class Serving:
    """The process that serves a control plane, at one moment. Each fact is looked up when it is first needed,
    and once.

    `elsewhere`: the address of the remote control plane whose store is used; empty if the store is in the
    home or in a DynamoDB table. `is_remote`: whether the store is not in the home: whoever launches from here
    is not at the home of the control plane then, and its watchers are elsewhere too. `has_runs`: whether runs
    were ever stored here.
    """

    elsewhere: str
    is_remote: bool
    has_runs: bool
    read_announced: Callable[[], Announced | None] = field(repr=False)
    answers: Callable[[Announced], bool] = field(repr=False)

    @cached_property
    def last(self) -> Announced | None:
        """What the process announced that served last, which may have ended; of a remote control plane its
        own description; None if there is none.
        """
        return self.read_announced()

    @cached_property
    def now(self) -> Announced | None:
        """What the process announced that serves now; None if none answers."""
        return self.last if self.last is not None and self.answers(self.last) else None

    @property
    def is_served(self) -> bool:
        """Whether a control plane serves now. One elsewhere is served there, and is not asked."""
        return self.is_remote or self.now is not None

    @property
    def webhook_url(self) -> str:
        """The webhook's public URL. Raises UsageError if nothing has served yet."""
        if self.last is None:
            fix = Advice("start it, with a watcher or without: ", Call(Operation.SERVE))
            raise UsageError(
                "the webhook's address is unknown, because no control plane has served this home yet", fix=fix
            )
        return self.last.public_url
