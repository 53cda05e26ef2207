"""Train models on rented accelerator pods, with rules that decide what runs where."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prime_train.client import Client

__version__ = "0.1.0"
__all__ = ["Client"]


def __getattr__(name: str) -> "type[Client]":
    """Return `prime_train.Client`, imported on first use so that agents and commands that do not need it start quickly."""
    if name == "Client":
        from prime_train.client import Client

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
