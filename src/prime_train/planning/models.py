"""The registry of models that is part of this version of prime-train, and whether a model suits a
training.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from prime_train.advice import Advice, Option, SettingAdvice
from prime_train.errors import TemporaryError, UsageError
from prime_train.estimate.models import lookup
from prime_train.estimate.models import registry as registries
from prime_train.estimate.models.registry import Citation, ModelEntry, ModelKind, Registry
from prime_train.exit_codes import Exit
from prime_train.planning.hugging_face_hub import Hub, HubModel
from prime_train.planning.suitability import CheckResult, Known, SuitabilityCheck, Wanted, checks


@dataclass(frozen=True)
class ModelReport:
    """What is known of a model, and whether it suits an intended use. `entry`: its entry in the registry, or
    None; `source`: where the facts come from.
    """

    known: Known
    entry: ModelEntry | None
    source: str
    checks: tuple[SuitabilityCheck, ...]

    @property
    def is_suitable(self) -> bool:
        return all(check.result is not CheckResult.NO for check in self.checks)


def registry() -> Registry:
    return registries.parse(registry_file().read_text("utf-8"))


def registry_file() -> Path:
    """Return the path of the registry file, which is installed beside the code that reads it."""
    return Path(registries.__file__).with_name(registries.FILE)


def works(entry: ModelEntry) -> str:
    return ", ".join(f"{one.trainer} {one.version}" for one in entry.works)


def models_with(text: str) -> Registry:
    """Return the registry with only the models whose id contains the text; case does not matter."""
    known = registry()
    return known.model_copy(
        update={"models": tuple(entry for entry in known.models if text.lower() in entry.id.lower())}
    )


def similar_to(text: str) -> Sequence[str]:
    """Return the ids of models of the registry that the text may have meant."""
    return registry().similar(text)


def verify_model(model: str, wanted: Wanted, hub: Hub | None = None) -> ModelReport:
    """Check the model against the facts in the registry or, with `hub`, against current facts from Hugging
    Face if it can be reached. Raises UsageError if the model is unknown, and PermanentError if the id is not
    valid.
    """
    ours = registry()
    entry, why = ours.entry(model), ""
    if hub is not None:
        try:
            found = hub.model(model)
        except TemporaryError as error:
            why = f" (Hugging Face cannot be reached now: {error})"
        else:
            if found is None:
                raise UsageError(
                    f"the model {model} does not exist, or you have no access to it",
                    fix=_instead(model, ours),
                    code=Exit.FINDINGS,
                )
            known = _of_hub(found, entry)
            return ModelReport(
                known,
                entry,
                f"Hugging Face, commit {found.commit[:12] or 'unknown'}",
                checks(known, wanted, ours.vllm),
            )
    if entry is None:
        code = Exit.EXTERNAL_FAILED if hub is not None else Exit.FINDINGS
        raise UsageError(
            f"{model} is not in the registry of {ours.date}{why}",
            fix=_instead(model, ours, hub=hub is None),
            code=code,
        )
    by = "read from Hugging Face" if entry.source is Citation.HUB else "written by hand"
    known = Known.of(entry)
    read_from = f", from {entry.reference}" if entry.reference else ""
    return ModelReport(
        known, entry, f"the registry, {by} on {entry.read}{why}{read_from}", checks(known, wanted, ours.vllm)
    )


def refreshed(hub: Hub, today: date) -> tuple[Registry, tuple[str, ...]]:
    """Return the registry updated from Hugging Face, and the ids of the models that are unknown there or not
    public, which stay as they are. Raises ExternalError if Hugging Face does not answer.
    """
    ours = registry()
    found = {entry.id: hub.model(entry.id) for entry in ours.models}
    entries = tuple(
        _updated(entry, read, today) if (read := found[entry.id]) is not None else entry
        for entry in ours.models
    )
    fresh = Registry(date=today.isoformat(), vllm=ours.vllm, models=entries)
    return fresh, tuple(name for name, read in found.items() if read is None)


def save_registry(fresh: Registry, file: Path) -> None:
    file.write_text(registries.dumped(fresh), encoding="utf-8")


def _instead(model: str, ours: Registry, *, hub: bool = False) -> Advice:
    similar = ours.similar(model)
    suggestion = f"did you mean {', '.join(similar)}? " if similar else ""
    if hub:
        return Advice(f"{suggestion}add ", Option(SettingAdvice.HUB), " to read Hugging Face")
    return Advice(f"{suggestion}check the spelling, and HF_TOKEN if it is private")


def _of_hub(found: HubModel, entry: ModelEntry | None) -> Known:
    kind = (
        ModelKind.VISION_LANGUAGE
        if found.is_vision_language
        else (ModelKind.TEXT if found.architecture else None)
    )
    shape = found.shape or lookup.resolve_model(found.id)
    readable = None if found.gated == "no" else found.readable
    vllm = entry.vllm if entry is not None else ""
    return Known(
        found.id, found.gated, readable, kind, found.architecture, found.context, found.tools, shape, vllm
    )


def _updated(entry: ModelEntry, read: HubModel, today: date) -> ModelEntry:
    """Return the entry updated from Hugging Face; values it does not provide stay unchanged."""
    kind = ModelKind.VISION_LANGUAGE if read.is_vision_language else ModelKind.TEXT
    changes = {
        "params": read.params or entry.params,
        "kind": entry.kind if entry.kind is ModelKind.PUZZLE else kind,
        "reference": "",
        "architecture": read.architecture or entry.architecture,
        "context": read.context or entry.context,
        "tools": entry.tools if read.tools is None else read.tools,
        "gated": read.gated,
        "read": today.isoformat(),
        "source": Citation.HUB,
    }
    return type(entry).model_validate({**entry.model_dump(), **changes})
