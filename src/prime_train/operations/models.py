"""The registry of models, as it came with this version."""

from pathlib import Path

from prime_train.estimate.models import registry as registries
from prime_train.estimate.models.registry import Entry, Registry


def registry() -> Registry:
    return registries.parse(registry_file().read_text("utf-8"))


def registry_file() -> Path:
    """Beside the code that reads it, however that was installed."""
    return Path(registries.__file__).with_name(registries.FILE)


def works(entry: Entry) -> str:
    return ", ".join(f"{one.trainer} {one.version}" for one in entry.works)
