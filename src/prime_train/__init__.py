"""Train models on rented accelerator pods, with rules that decide what runs where."""

from typing import TYPE_CHECKING

from prime_train.version import __version__

if TYPE_CHECKING:
    from prime_train.client import Client, PrimeTrainError

__all__ = ["Client", "PrimeTrainError", "__version__"]


def __getattr__(name: str) -> "type[Client] | type[PrimeTrainError]":
    """Return `prime_train.Client` or `prime_train.PrimeTrainError`, imported on first use so that agents and
    commands that do not need them start quickly.
    """
    match name:
        case "Client":
            from prime_train.client import Client

            return Client
        case "PrimeTrainError":
            from prime_train.client import PrimeTrainError

            return PrimeTrainError
        case _:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
