"""Services that run beside a trainer and that its steps wait for, such as the inference server of
reinforcement learning.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from prime_train.spec.causes import Cause


@dataclass(frozen=True)
class Service:
    """A service beside the trainer. `name` is what people call it, with its article, such as "the inference
    server", and unique in a trainer.

    `ports` are on loopback, in the order in which they are queried; if empty, the service is not queried. The
    first is the service's own, whose response proves that it is alive. A later one belongs to a front end,
    which may stay up without the service: its response proves nothing, but if it ends, the service counts as
    ended.
    """

    name: str
    cause: Cause
    """Cause that is reported if the service fails."""
    idle_s: int
    """Seconds without a new step for which the service must appear dead before it counts as failed."""
    gpus: tuple[int, ...] = ()
    """GPUs that only this service uses, by the driver's numbers; empty if they are unknown."""
    ports: tuple[int, ...] = ()
    paths: tuple[str, ...] = ("/health",)
    """Paths to request by GET; each further path is used only if those before it do not exist."""
    every_s: float = 10.0
    """Pause between two health probes in seconds."""


@dataclass(frozen=True)
class ServiceSurroundings:
    """What a trainer may use to find its services.

    `read` returns the text of a file in the working tree, and raises OSError or ValueError. `environment` is
    the trainer's environment.
    """

    read: Callable[[str], str]
    environment: Mapping[str, str]
