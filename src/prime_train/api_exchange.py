"""What is told of a call to a provider's API: the request, and its response."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Exchange:
    """A request to a provider's API and its response, both as they were sent, but for the key. `path`: the
    whole path. `earlier`: the statuses of the responses after which the client itself repeated the request.
    `status`: 0 if no complete response arrived; `failure` then says why."""

    method: str
    path: str
    parameters: Mapping[str, str | int | Sequence[str]]
    asked: object = field(repr=False)
    status: int
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    earlier: tuple[int, ...] = ()
    failure: str = ""


Witness = Callable[[Exchange], None]
"""A function that is told every exchange with a provider's API, from any thread, before the answer is used.
"""
