"""The registry of models that is part of this version of prime-train."""

from pathlib import Path

from prime_train.estimate.models import registry as registries
from prime_train.estimate.models.registry import Entry, Registry


def registry() -> Registry:
    return registries.parse(registry_file().read_text("utf-8"))


def registry_file() -> Path:
    """Return the path of the registry file, which is installed beside the code that reads it."""
    return Path(registries.__file__).with_name(registries.FILE)


def works(entry: Entry) -> str:
    return ", ".join(f"{one.trainer} {one.version}" for one in entry.works)
