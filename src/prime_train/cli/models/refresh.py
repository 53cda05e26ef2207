"""`prime-train models refresh`: update the registry of models from Hugging Face."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.adapters.hub import Hub
    from prime_train.estimate.models.registry import Entry


def refresh(
    out: Annotated[Path | None, typer.Option(help="File to write; without it, the registry itself.", show_default=False)] = None,
) -> Exit:
    """Read all models anew from Hugging Face, and write the registry.

    What works and what is known to go wrong stays as it is: the hub does not tell. A model that is not there is named, and kept.
    """
    from datetime import UTC, datetime

    from prime_train.adapters.hub import Hub
    from prime_train.estimate.models import registry as registries
    from prime_train.estimate.models.registry import Registry
    from prime_train.operations.models import registry, registry_file

    known, hub = registry(), Hub.of(os.environ)
    today = datetime.now(UTC).date().isoformat()
    entries = tuple(_read(entry, hub, today) for entry in known.models)
    fresh = Registry(date=today, vllm=known.vllm, models=entries)
    target = out or registry_file()
    target.write_text(registries.dumped(fresh), encoding="utf-8")
    typer.echo(
        f"{target}: {sum(new is not old for new, old in zip(entries, known.models, strict=True))} of {len(entries)} models read anew"
    )
    return Exit.OK


def _read(entry: "Entry", hub: "Hub", today: str) -> "Entry":
    """Return the entry updated from Hugging Face; values it does not provide stay unchanged."""
    from prime_train.estimate.models.registry import Kind, Source

    told = hub.model(entry.id)
    if told is None:
        typer.echo(f"{entry.id}: not at the hub, or not for everybody", err=True)
        return entry
    changes = {
        "params": told.params or entry.params,
        "kind": Kind.VISION_LANGUAGE if told.is_vision_language else Kind.TEXT,
        "architecture": told.architecture or entry.architecture,
        "context": told.context or entry.context,
        "tools": entry.tools if told.tools is None else told.tools,
        "gated": told.gated,
        "read": today,
        "source": Source.HUB,
    }
    return type(entry).model_validate({**entry.model_dump(), **changes})
