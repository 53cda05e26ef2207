"""`prime-train init`: a run's config and its trainer's, from three questions."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.cli.exits import Exit, Refused
from prime_train.cli.output import print_coloured

if TYPE_CHECKING:
    from prime_train.cli.init_ask import Answers
    from prime_train.cli.init_plan import How, Settings, Wanted

STEPS = 100
FOLDER = Path("configs")


def init(
    model: Annotated[str, typer.Option(help="Model, such as Qwen/Qwen3-4B.", show_default=False)] = "",
    preset: Annotated[str, typer.Option(help="Hardware, such as h100-80gb.", show_default=False)] = "",
    gpus: Annotated[int, typer.Option(min=0, help="GPUs: 2, 4 or 8.", show_default=False)] = 0,
    environment: Annotated[str, typer.Option("--environment", "--env", help="What is learned: an environment of prime-rl.")] = "",
    lora: Annotated[bool | None, typer.Option("--lora/--full", help="Adapters, or all weights; without either, what fits.")] = None,
    steps: Annotated[int, typer.Option(min=1, help="Last step.")] = STEPS,
    budget: Annotated[float, typer.Option(min=0, help="Most dollars that all attempts may cost.", show_default=False)] = 0,
    ref: Annotated[str, typer.Option(help="Commit of prime-rl, 8 to 40 digits.", show_default=False)] = "",
    name: Annotated[str, typer.Option(help="Name of the run; otherwise made of the model's.", show_default=False)] = "",
    folder: Annotated[Path, typer.Option(help="Where configs lie.")] = FOLDER,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; needs --model and --preset.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> Exit:
    """Make a config for a new run: asks, explains, shows.

    Writes FOLDER/NAME.yaml and FOLDER/NAME/rl.toml, after they were shown. Nothing is rented.
    """
    from prime_train.cli.init_ask import Answers, answers
    from prime_train.cli.init_plan import How, settle

    given = Answers(model, preset, gpus, environment, budget)
    if not yes and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refused("there is nobody to ask: this is no terminal", fix="add --model, --preset, --gpus and --yes")
    if yes and not (model and preset):
        raise Refused("--yes needs --model and --preset", fix="such as --model Qwen/Qwen3-4B --preset h100-80gb --gpus 2")
    how = How.AUTO if lora is None else How.LORA if lora else How.FULL
    try:
        wanted = _wanted(given if yes else answers(given), how, steps=steps, ref=ref, name=name)
        settings = settle(wanted)
        if isinstance(settings, str):
            raise Refused(settings, fix=_larger(wanted), code=Exit.FINDINGS)
        _check_name(settings.name)
        return _write(settings, folder, ask=not yes, force=force)
    except typer.Abort:
        # At a question, control-C and the end of input are this.
        raise KeyboardInterrupt from None


def _wanted(given: "Answers", how: "How", *, steps: int, ref: str, name: str) -> "Wanted":
    from prime_train.cli.init_ask import DEFAULT_USD, checked_environment, checked_gpus, checked_model, checked_preset, checked_usd
    from prime_train.cli.init_plan import Wanted
    from prime_train.cli.init_text import INCLUDED, KNOWN_REF

    shape, entry = checked_model(given.model)
    return Wanted(
        model_id=given.model,
        shape=shape,
        preset=checked_preset(given.preset),
        gpus=checked_gpus(given.gpus or 2),
        environment=checked_environment(given.environment or INCLUDED),
        how=how,
        usd=checked_usd(str(given.usd or DEFAULT_USD)),
        steps=steps,
        ref=_checked_ref(ref) or KNOWN_REF,
        name=name,
        context=entry.context if entry is not None else 0,
        gated=entry is not None and entry.gated != "no",
    )


def _checked_ref(ref: str) -> str:
    if ref and not (8 <= len(ref) <= 40 and set(ref) <= set("0123456789abcdef")):
        raise Refused(f"--ref {ref}: no commit", fix="write 8 to 40 digits, as git rev-parse gives them")
    return ref


def _check_name(name: str) -> None:
    import re

    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", name):
        raise Refused(f"--name {name!r} is no name", fix="lower-case letters, digits and inner hyphens, 32 at most")


def _larger(wanted: "Wanted") -> str:
    from dataclasses import replace

    from prime_train.cli.init_plan import GPUS, How, settle

    for count in GPUS:
        if count > wanted.gpus and not isinstance(settle(replace(wanted, gpus=count)), str):
            return f"take --gpus {count}"
    if wanted.how is How.FULL and not isinstance(settle(replace(wanted, how=How.LORA)), str):
        return "train adapters only: --lora"
    return "take larger GPUs, such as --preset h200-141gb, or a smaller model"


def _write(settings: "Settings", folder: Path, *, ask: bool, force: bool) -> Exit:
    from prime_train.cli import init_text

    beside = folder / settings.name
    files = {
        folder / f"{settings.name}.yaml": init_text.config(settings, beside.as_posix()),
        beside / "rl.toml": init_text.trainer(settings),
    }
    _preview(settings, files, shown=ask)
    there = [path for path in files if path.exists()]
    if there and not force and not (ask and typer.confirm(f"{' and '.join(map(str, there))} exist. Replace?", default=False)):
        raise Refused(f"{there[0]} exists, and was left as it is", fix="choose another --name, or add --force")
    if ask and not (there or typer.confirm("Write these files?", default=True)):
        typer.echo("nothing was written")
        return Exit.OK
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        typer.echo(f"wrote {path}")
    return _next(settings, next(iter(files)))


def _preview(settings: "Settings", files: dict[Path, str], *, shown: bool) -> None:
    typer.echo(f"\n{settings.name}: {settings.wanted.model_id} on {settings.wanted.gpus} x {settings.wanted.preset.kind}")
    for subject, words in settings.reasons:
        print_coloured(f"  {typer.style(f'{subject:<10}', bold=True)} {words}")
    for path, text in files.items() if shown else ():
        print_coloured(typer.style(f"\n--- {path}", bold=True))
        typer.echo(text)


def _next(settings: "Settings", path: Path) -> Exit:
    from prime_train.cli.init_text import INCLUDED

    wanted, steps = settings.wanted, []
    if wanted.environment != INCLUDED:
        steps.append(f"add under setup what installs {wanted.environment} into ../prime-rl")
    if wanted.gated:
        steps.append("set HF_TOKEN where prime-train serve runs: the model is gated")
    steps += [f"prime-train validate {path}", f"prime-train run {path} --dry-run"]
    typer.echo("next:\n" + "\n".join(f"  {step}" for step in steps))
    return Exit.OK
