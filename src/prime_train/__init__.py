"""Train models on rented accelerator pods, with rules that decide what runs where."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prime_train.client import Client

__version__ = "0.1.0"
__all__ = ["Client"]


def __getattr__(name: str) -> "type[Client]":
    """`prime_train.Client`, loaded when it is first asked for: agents and commands that need nothing of it must start quickly."""
    if name == "Client":
        from prime_train.client import Client

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
