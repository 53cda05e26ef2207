"""`prime-train verify-model ID`: check whether a model is suitable before a machine is rented for it."""

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.estimate.models.hardware_presets import known_preset
from prime_train.estimate.ranges import large
from prime_train.exit_codes import Exit
from prime_train.planning.limits import SEQ_LEN_MAX
from prime_train.terminal.arguments import print_json

if TYPE_CHECKING:
    from prime_train.estimate.models.registry import ModelEntry
    from prime_train.planning.models import ModelReport


GPUS_MAX = 64
_MARKS = {"yes": ("ok", "green"), "note": ("note", "yellow"), "no": ("NO", "bold red")}


def verify_model(
    model: Annotated[str, typer.Argument(help="Id of the model, such as Qwen/Qwen3-8B.", show_default=False)],
    gpu: Annotated[str, typer.Option(help="Kind of GPU, such as h100-80gb.", show_default=False)] = "",
    gpus: Annotated[int, typer.Option(min=1, max=GPUS_MAX, help="Number of GPUs that share the model.")] = 1,
    seq_len: Annotated[
        int, typer.Option(min=0, max=SEQ_LEN_MAX, help="Tokens per sequence; 0: up to 4096.")
    ] = 0,
    tools: Annotated[bool, typer.Option("--tools", help="Require support for tool calls.")] = False,
    vision: Annotated[
        bool, typer.Option("--vision", help="Train it as a vision-language model, with images.")
    ] = False,
    hub: Annotated[
        bool, typer.Option("--hub", help="Read Hugging Face (HF_ENDPOINT, HF_TOKEN) instead of the registry.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> Exit:
    """Check a model: access, kind, vLLM, tools, memory.

    The facts are those in the registry of this version or, with --hub, the current ones from Hugging Face if
    it can be reached. Exits with code 1 if a check fails.
    """
    from prime_train.planning.hugging_face_hub import Hub
    from prime_train.planning.models import verify_model as verify
    from prime_train.planning.suitability import Wanted

    found = verify(
        model,
        Wanted(known_preset(gpu) if gpu else None, gpus, seq_len, tools, vision),
        Hub.of(os.environ) if hub else None,
    )
    if as_json:
        _print_json(found)
    else:
        _show(found)
    return Exit.OK if found.is_suitable else Exit.FINDINGS


def _show(found: "ModelReport") -> None:
    from rich.table import Table
    from rich.text import Text

    from prime_train.terminal.console import console as open_console

    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True)
    rows.add_column(no_wrap=True, style="bold")
    rows.add_column()
    for check in found.checks:
        mark, style = _MARKS[check.result]
        rows.add_row(Text(mark, style=style), check.name, Text(check.message))
    shape = found.known.shape
    size = (
        f", {large(shape.params)} "
        f"parameters{', architecture estimated from its size' if shape.guessed else ''}"
        if shape
        else ""
    )
    console = open_console()
    console.print(Text(f"{found.known.id}{size}"))
    console.print(rows)
    if found.entry is not None:
        _show_experience(found.entry)
    typer.echo(f"from {found.source}")


def _show_experience(entry: "ModelEntry") -> None:
    from prime_train.planning.models import works

    if entry.works:
        typer.echo(f"known to work with {works(entry)}")
    for issue in entry.issues:
        typer.echo(f"known issue, {issue.date}: {issue.text}")


def _print_json(found: "ModelReport") -> None:
    rows = [asdict(check) for check in found.checks]
    seen = found.entry.model_dump(mode="json", include={"works", "issues"}) if found.entry is not None else {}
    print_json({"model": found.known.id, "from": found.source, "checks": rows, **seen})
