"""`prime-train verify-model ID`: check whether a model is suitable before a machine is rented for it."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.adapters.hub import HubModel
    from prime_train.estimate.models.hardware_presets import Preset
    from prime_train.estimate.models.registry import Entry, Registry
    from prime_train.estimate.models.suitability import Check, Known

GPUS_MAX = 64
SEQ_LEN_MAX = 2**21
_MARKS = {"yes": ("ok", "green"), "note": ("note", "yellow"), "no": ("NO", "bold red")}


def verify_model(
    model: Annotated[str, typer.Argument(help="Its id, such as Qwen/Qwen3-8B.", show_default=False)],
    gpu: Annotated[str, typer.Option(help="GPU it is for, such as h100-80gb.", show_default=False)] = "",
    gpus: Annotated[int, typer.Option(min=1, max=GPUS_MAX, help="GPUs that share it.")] = 1,
    seq_len: Annotated[int, typer.Option(min=0, max=SEQ_LEN_MAX, help="Tokens of a sequence; 0: up to 4096.")] = 0,
    tools: Annotated[bool, typer.Option("--tools", help="It must be able to call tools.")] = False,
    hub: Annotated[bool, typer.Option("--hub", help="Ask Hugging Face (HF_ENDPOINT, HF_TOKEN) instead of the registry.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> Exit:
    """Check a model: access, kind, vLLM, tools, memory.

    Facts are those of the registry that came with this version, or with --hub those of Hugging Face now, as far as it can be reached.
    Leaves with 1 where it will not do.
    """
    from prime_train.estimate.models.suitability import Verdict, Wanted, checks
    from prime_train.operations.models import registry

    wanted = Wanted(_preset(gpu), gpus, seq_len, tools)
    ours = registry()
    known, entry, source = _known(model, ours, ask_hub=hub)
    found = checks(known, wanted, ours.vllm)
    if as_json:
        _print_json(known, entry, source, found)
    else:
        _show(known, entry, source, found)
    return Exit.FINDINGS if any(check.verdict is Verdict.NO for check in found) else Exit.OK


def _preset(text: str) -> "Preset | None":
    from prime_train.estimate.models.hardware_presets import near, preset

    if not text:
        return None
    found = preset(text)
    if found is None:
        raise UsageError(
            f"--gpu {text}: not known", fix=f"write one of {', '.join(near(text))}, or a kind with its memory, such as H100_80GB"
        )
    return found


def _known(model: str, ours: "Registry", *, ask_hub: bool) -> "tuple[Known, Entry | None, str]":
    """Return the facts known of the model, its entry in the registry (or None), and a description of the source. Raises UsageError if the
    model is unknown."""
    from prime_train.estimate.models.suitability import Known
    from prime_train.ports import TemporaryError

    entry, why = ours.entry(model), ""
    if ask_hub:
        from prime_train.adapters.hub import Hub

        try:
            told = Hub.of(os.environ).model(model)
        except TemporaryError as error:
            why = f" (Hugging Face cannot be asked now: {error})"
        else:
            if told is None:
                raise UsageError(f"there is no model {model}, or none that you may see", fix=_instead(model, ours), code=Exit.FINDINGS)
            return _of_hub(told, entry), entry, f"Hugging Face, commit {told.commit[:12] or 'not told'}"
    if entry is None:
        code = Exit.OUTSIDE_FAILED if ask_hub else Exit.FINDINGS
        raise UsageError(f"{model} is not in the registry of {ours.date}{why}", fix=_instead(model, ours, hub=not ask_hub), code=code)
    by = "read from Hugging Face" if entry.source.value == "hub" else "written by hand"
    return Known.of(entry), entry, f"the registry, {by} on {entry.read}{why}"


def _instead(model: str, ours: "Registry", *, hub: bool = False) -> str:
    near = ours.near(model)
    said = [f"did you mean {', '.join(near)}?"] if near else []
    return " ".join([*said, "add --hub to ask Hugging Face"] if hub else [*said, "check the spelling, and HF_TOKEN if it is private"])


def _of_hub(told: "HubModel", entry: "Entry | None") -> "Known":
    from prime_train.estimate.models import lookup as models
    from prime_train.estimate.models.registry import Kind
    from prime_train.estimate.models.suitability import Known

    kind = Kind.VISION_LANGUAGE if told.is_vision_language else (Kind.TEXT if told.architecture else None)
    shape = told.shape or models.understand(told.id)
    readable = None if told.gated == "no" else told.readable
    vllm = entry.vllm if entry is not None else ""
    return Known(told.id, told.gated, readable, kind, told.architecture, told.context, told.tools, shape, vllm)


def _show(known: "Known", entry: "Entry | None", source: str, found: "tuple[Check, ...]") -> None:
    from rich.table import Table
    from rich.text import Text

    from prime_train.output import console as open_console
    from prime_train.reports.find.words import large

    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True)
    rows.add_column(no_wrap=True, style="bold")
    rows.add_column()
    for check in found:
        mark, style = _MARKS[check.verdict]
        rows.add_row(Text(mark, style=style), check.name, Text(check.said))
    size = f", {large(known.shape.params)} parameters{', its shape guessed' if known.shape.guessed else ''}" if known.shape else ""
    console = open_console()
    console.print(Text(f"{known.id}{size}"))
    console.print(rows)
    if entry is not None:
        _show_experience(entry)
    typer.echo(f"from {source}")


def _show_experience(entry: "Entry") -> None:
    from prime_train.operations.models import works

    if entry.works:
        typer.echo(f"seen to work with {works(entry)}")
    for issue in entry.issues:
        typer.echo(f"known issue, {issue.date}: {issue.text}")


def _print_json(known: "Known", entry: "Entry | None", source: str, found: "tuple[Check, ...]") -> None:
    import json
    from dataclasses import asdict

    rows = [asdict(check) for check in found]
    seen = entry.model_dump(mode="json", include={"works", "issues"}) if entry is not None else {}
    print(json.dumps({"model": known.id, "from": source, "checks": rows, **seen}, indent=2))
