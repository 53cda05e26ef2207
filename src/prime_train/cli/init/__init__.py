"""`prime-train init`: create a run's config, and for prime-rl the trainer's, from a few questions."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit
from prime_train.output import print_coloured

if TYPE_CHECKING:
    from prime_train.cli.init.questions import Answers
    from prime_train.configs.templates.own_script import Kind, Own
    from prime_train.configs.templates.plan import How, Settings, Wanted

STEPS = 100
FOLDER = Path("configs")


def init(
    model: Annotated[str, typer.Option(help="Model, such as Qwen/Qwen3-4B.", show_default=False)] = "",
    preset: Annotated[str, typer.Option(help="Hardware, such as h100-80gb.", show_default=False)] = "",
    gpus: Annotated[int, typer.Option(min=0, help="GPUs: 2, 4 or 8; for a script of your own also 1.", show_default=False)] = 0,
    environment: Annotated[str, typer.Option("--environment", "--env", help="What is learned: an environment of prime-rl.")] = "",
    lora: Annotated[bool | None, typer.Option("--lora/--full", help="Adapters, or all weights; without either, what fits.")] = None,
    steps: Annotated[int, typer.Option(min=1, help="Last step.")] = STEPS,
    budget: Annotated[float | None, typer.Option(help="Most dollars that all attempts may cost.", show_default=False)] = None,
    ref: Annotated[str, typer.Option(help="Commit of prime-rl, 8 to 40 digits.", show_default=False)] = "",
    kind: Annotated[str, typer.Option(help="What trains: prime_rl, command, torchrun or hf.", show_default=False)] = "",
    command: Annotated[str, typer.Option(help="A script of your own, such as 'python train.py'.", show_default=False)] = "",
    name: Annotated[str, typer.Option(help="Name of the run; otherwise made of the model's or script's.", show_default=False)] = "",
    folder: Annotated[Path, typer.Option(help="Where configs lie.")] = FOLDER,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; needs --model and --preset, or --command.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> Exit:
    """Make a config for a new run: asks, explains, shows.

    Writes FOLDER/NAME.yaml, and FOLDER/NAME/rl.toml for prime-rl, after they were shown. Nothing is rented.
    """
    from prime_train.cli.init.questions import Answers, answers, checked_usd
    from prime_train.configs.templates.own_script import Kind
    from prime_train.configs.templates.plan import How, settle

    given = Answers(model, preset, gpus, environment, checked_usd(str(budget)) if budget is not None else 0)
    if not yes and not (sys.stdin.isatty() and sys.stdout.isatty()):
        fix = "add --model, --preset, --gpus and --yes, or for a script of your own --command and --yes"
        raise UsageError("there is nobody to ask: this is no terminal", fix=fix)
    if yes and not (model and preset) and not command:
        fix = "such as --model Qwen/Qwen3-4B --preset h100-80gb --gpus 2, or --command 'python train.py'"
        raise UsageError("--yes needs --model and --preset, or --command", fix=fix)
    try:
        trains = _kind(kind, given, command)
        if trains is not Kind.PRIME_RL:
            own = _own(trains, given, command, steps=steps, name=name, ask=not yes)
            return _write_own(own, folder, ask=not yes, force=force)
    except typer.Abort:
        raise KeyboardInterrupt from None
    how = How.AUTO if lora is None else How.LORA if lora else How.FULL
    try:
        wanted = _wanted(given if yes else answers(given), how, steps=steps, ref=ref, name=name)
        settings = settle(wanted)
        if isinstance(settings, str):
            raise UsageError(settings, fix=_larger(wanted), code=Exit.FINDINGS)
        _check_name(settings.name)
        return _write(settings, folder, ask=not yes, force=force)
    except typer.Abort:
        # Typer raises Abort for Ctrl-C and the end of input at a question.
        raise KeyboardInterrupt from None


def _kind(said: str, given: "Answers", command: str) -> "Kind":
    """Return the kind of trainer as given, or else as implied by other options; if nothing implies it, ask."""
    from prime_train.cli.init.questions import KIND_WORDS, ask_for
    from prime_train.configs.templates.own_script import Kind, checked_kind

    if said:
        return checked_kind(said)
    if command:
        return Kind.COMMAND
    if given.model or given.preset or given.environment:
        return Kind.PRIME_RL
    return checked_kind(ask_for(KIND_WORDS, "Trainer", Kind.PRIME_RL.value, checked_kind))


def _own(kind: "Kind", given: "Answers", command: str, *, steps: int, name: str, ask: bool) -> "Own":
    from prime_train.cli.init.questions import COMMAND_WORDS, DEFAULT_USD, USD_WORDS, ask_for, checked_preset, checked_usd
    from prime_train.configs.templates.own_script import DEFAULT_COMMANDS, Own, checked_command, name_of

    if ask and not command:
        command = ask_for(COMMAND_WORDS, "Command", DEFAULT_COMMANDS[kind], checked_command)
    usd = given.usd or (float(ask_for(USD_WORDS, "Dollars", f"{DEFAULT_USD:g}", checked_usd)) if ask else DEFAULT_USD)
    gpu = checked_preset(given.preset).kind if given.preset else ""
    if given.gpus not in (0, 1, 2, 4, 8):
        raise UsageError(f"--gpus {given.gpus}: no machine for rent has so many", fix="write one of 1, 2, 4, 8")
    own = Own(kind, checked_command(command), steps, checked_usd(str(usd)), gpu, given.gpus or 1, name)
    _check_name(name_of(own))
    return own


def _write_own(own: "Own", folder: Path, *, ask: bool, force: bool) -> Exit:
    from prime_train.adapters.config_yaml import read_text
    from prime_train.cli.findings import terminal as findings
    from prime_train.configs.templates.own_script import config, name_of
    from prime_train.core.finding import Severity, has_errors
    from prime_train.operations.validate import judged

    path = folder / f"{name_of(own)}.yaml"
    files = {path: config(own)}
    found, sources = judged(read_text(files[path], str(path)))
    if has_errors(found):
        findings.print_findings([finding for finding in found if finding.severity is Severity.ERROR], sources)
        raise UsageError(f"{path} would not be right, and was not written", fix="say it otherwise", code=Exit.FINDINGS)
    _show(files, shown=ask)
    if _written(files, ask=ask, force=force):
        typer.echo(f"next:\n  prime-train validate {path}\n  prime-train run {path} --dry-run")
    return Exit.OK


def _wanted(given: "Answers", how: "How", *, steps: int, ref: str, name: str) -> "Wanted":
    from prime_train.cli.init.questions import DEFAULT_USD, checked_environment, checked_gpus, checked_model, checked_preset, checked_usd
    from prime_train.configs.templates.plan import Wanted
    from prime_train.configs.templates.text import INCLUDED, KNOWN_REF

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
        raise UsageError(f"--ref {ref}: no commit", fix="write 8 to 40 digits, as git rev-parse gives them")
    return ref


def _check_name(name: str) -> None:
    import re

    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", name):
        raise UsageError(f"--name {name!r} is no name", fix="lower-case letters, digits and inner hyphens, 32 at most")


def _larger(wanted: "Wanted") -> str:
    from dataclasses import replace

    from prime_train.configs.templates.plan import GPUS, How, settle

    for count in GPUS:
        if count > wanted.gpus and not isinstance(settle(replace(wanted, gpus=count)), str):
            return f"take --gpus {count}"
    if wanted.how is How.FULL and not isinstance(settle(replace(wanted, how=How.LORA)), str):
        return "train adapters only: --lora"
    return "take larger GPUs, such as --preset h200-141gb, or a smaller model"


def _write(settings: "Settings", folder: Path, *, ask: bool, force: bool) -> Exit:
    from prime_train.configs.templates import text as init_text

    beside = folder / settings.name
    files = {
        folder / f"{settings.name}.yaml": init_text.config(settings, beside.as_posix()),
        beside / "rl.toml": init_text.trainer(settings),
    }
    _preview(settings)
    _show(files, shown=ask)
    return _next(settings, next(iter(files))) if _written(files, ask=ask, force=force) else Exit.OK


def _written(files: dict[Path, str], *, ask: bool, force: bool) -> bool:
    """Write the files after confirmation. Return False if the user declined. Raises UsageError if a file exists and may not be replaced."""
    there = [path for path in files if path.exists()]
    if there and not force and not (ask and typer.confirm(f"{' and '.join(map(str, there))} exist. Replace?", default=False)):
        raise UsageError(f"{there[0]} exists, and was left as it is", fix="choose another --name, or add --force")
    if ask and not (there or typer.confirm("Write these files?", default=True)):
        typer.echo("nothing was written")
        return False
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        typer.echo(f"wrote {path}")
    return True


def _preview(settings: "Settings") -> None:
    typer.echo(f"\n{settings.name}: {settings.wanted.model_id} on {settings.wanted.gpus} x {settings.wanted.preset.kind}")
    for subject, words in settings.reasons:
        print_coloured(f"  {typer.style(f'{subject:<10}', bold=True)} {words}")


def _show(files: dict[Path, str], *, shown: bool) -> None:
    for path, text in files.items() if shown else ():
        print_coloured(typer.style(f"\n--- {path}", bold=True))
        typer.echo(text)


def _next(settings: "Settings", path: Path) -> Exit:
    from prime_train.configs.templates.text import INCLUDED

    wanted, steps = settings.wanted, []
    if wanted.environment != INCLUDED:
        steps.append(f"add under setup what installs {wanted.environment} into ../prime-rl")
    if wanted.gated:
        steps.append("set HF_TOKEN where prime-train serve runs: the model is gated")
    steps += [f"prime-train validate {path}", f"prime-train run {path} --dry-run"]
    typer.echo("next:\n" + "\n".join(f"  {step}" for step in steps))
    return Exit.OK
