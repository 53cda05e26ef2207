"""Services that run beside a trainer and that its steps wait for, such as the inference server of reinforcement learning."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from prime_train.core.causes import Cause


@dataclass(frozen=True)
class Service:
    """`name`: as people call it, with its article, such as "the inference server"; no two services of a trainer share one.

    `ports`: on loopback, in the order in which they are asked. The first is the service's own: its answer proves life. A later one is a
    front's, which may live on without the service behind it: its answer proves nothing, and its end is an end. Empty: nobody is asked.
    """

    name: str
    cause: Cause
    """What a failure of the service counts as."""
    idle_s: int
    """The service counts as failed when it was dead for so long and no step was made."""
    gpus: tuple[int, ...] = ()
    """The GPUs that it has to itself, by the driver's numbers; empty where that is not known."""
    ports: tuple[int, ...] = ()
    paths: tuple[str, ...] = ("/health",)
    """What is asked for by GET; a path after the first is asked for where those before it are not found."""


@dataclass(frozen=True)
class Machine:
    """What a trainer may look at to find its services. `read` returns the text of a file of the working tree and raises OSError or
    ValueError; `environment` is the trainer's."""

    read: Callable[[str], str]
    environment: Mapping[str, str]
