"""`prime-train init`: create a run's config, and for prime-rl the trainer's, from a few questions."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.errors import UsageError
from prime_train.estimate.models.hardware_presets import known_preset
from prime_train.exit_codes import Exit
from prime_train.planning.new_configs.ready_configs import ready_names
from prime_train.terminal.output import print_coloured
from prime_train.text.formatting import alternatives
from prime_train.trainers.registry import TRAINERS

if TYPE_CHECKING:
    from prime_train.planning.new_configs.new_config import Answers, Files
    from prime_train.planning.new_configs.own_script import Own
    from prime_train.planning.new_configs.plan import InitChoices

STEPS = 100
_PRESET_HELP = "Hardware, such as h100-80gb; or a config that is ready to run, such as hf-sft."
FOLDER = Path("configs")


def init(
    model: Annotated[str, typer.Option(help="Model, such as Qwen/Qwen3-4B.", show_default=False)] = "",
    preset: Annotated[str, typer.Option(help=_PRESET_HELP, show_default=False)] = "",
    gpus: Annotated[
        int,
        typer.Option(
            min=0, help="Number of GPUs: 2, 4 or 8; for your own script also 1.", show_default=False
        ),
    ] = 0,
    environment: Annotated[
        str, typer.Option("--environment", "--env", help="Environment of prime-rl to train on.")
    ] = "",
    lora: Annotated[
        bool | None,
        typer.Option("--lora/--full", help="Train LoRA adapters or all weights; by default whichever fits."),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Last step.")] = STEPS,
    budget: Annotated[
        float | None, typer.Option(help="Budget in dollars for all attempts together.", show_default=False)
    ] = None,
    ref: Annotated[
        str, typer.Option(help="Commit of prime-rl, as a hash of 8 to 40 digits.", show_default=False)
    ] = "",
    kind: Annotated[str, typer.Option(help=f"Trainer: {alternatives(TRAINERS)}.", show_default=False)] = "",
    command: Annotated[
        str, typer.Option(help="Command of your own script, such as 'python train.py'.", show_default=False)
    ] = "",
    name: Annotated[
        str,
        typer.Option(
            help="Name of the run; by default derived from the model's or the script's name.",
            show_default=False,
        ),
    ] = "",
    folder: Annotated[Path, typer.Option(help="Folder of the configs.")] = FOLDER,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", "-y", help="Do not ask questions; needs --model and --preset, --command or --kind."
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
) -> Exit:
    """Write a config for a new run, by asking and explaining.

    Writes FOLDER/NAME.yaml, and FOLDER/NAME/rl.toml for prime-rl, after they were shown. Nothing is rented.
    """
    from prime_train.planning.commands.questions import answers
    from prime_train.planning.new_configs.new_config import (
        PRIME_RL,
        Answers,
        checked_usd,
        implied_kind,
        prime_rl_settings,
        ready_files,
        suffices,
    )
    from prime_train.planning.new_configs.own_script import checked_kind

    given = Answers(model, preset, gpus, environment, checked_usd(str(budget)) if budget is not None else 0)
    if not yes and not (sys.stdin.isatty() and sys.stdout.isatty()):
        fix = "add --model, --preset, --gpus and --yes, or for your own script --kind, --command and --yes"
        raise UsageError("questions cannot be asked, because this is not a terminal", fix=fix)
    if preset in ready_names():
        needless = {
            "--model": model,
            "--gpus": gpus,
            "--environment": environment,
            "--lora": lora is True,
            "--full": lora is False,
        }
        needless |= {"--steps": steps != STEPS, "--ref": ref, "--kind": kind, "--command": command}
        _refuse_needless(preset, [option for option, value in needless.items() if value])
        return _write_ready(ready_files(preset, folder, name=name, usd=given.usd), ask=not yes, force=force)
    _check_hardware(preset)
    trains = checked_kind(kind) if kind else implied_kind(given, command)
    if yes and not suffices(given, command, trains):
        fix = "such as --model Qwen/Qwen3-4B --preset h100-80gb --gpus 2, or --command 'python train.py'"
        raise UsageError("--yes needs --model and --preset, --command or --kind", fix=fix)
    try:
        trains = trains or _prompted_kind()
        if trains != PRIME_RL:
            own = _own(trains, given, command, steps=steps, name=name, ask=not yes)
            return _write_own(own, folder, ask=not yes, force=force)
        settings = prime_rl_settings(
            given if yes else answers(given), lora=lora, steps=steps, ref=ref, name=name
        )
        return _write(settings, folder, ask=not yes, force=force)
    except typer.Abort:
        # Typer raises Abort for Ctrl-C and the end of input at a question.
        raise KeyboardInterrupt from None


def _check_hardware(preset: str) -> None:
    try:
        if preset:
            known_preset(preset)
    except UsageError as error:
        fix = f"{error.fix}; configs that are ready to run are {', '.join(ready_names())}"
        raise UsageError(f"{error}, and no config has this name", fix=fix) from error


def _refuse_needless(preset: str, options: list[str]) -> None:
    """Raise UsageError if options were given that would change nothing, because the config is ready."""
    if options:
        fix = "leave them out, and edit the file that is written"
        raise UsageError(f"the config {preset} is ready to run, so it takes no {', '.join(options)}", fix=fix)


def _prompted_kind() -> str:
    from prime_train.planning.commands.questions import ask_for, kind_words
    from prime_train.planning.new_configs.new_config import PRIME_RL
    from prime_train.planning.new_configs.own_script import checked_kind

    return checked_kind(ask_for(kind_words(), "Trainer", PRIME_RL, checked_kind))


def _own(kind: str, given: "Answers", command: str, *, steps: int, name: str, ask: bool) -> "Own":
    from prime_train.planning.commands.questions import COMMAND_WORDS, USD_WORDS, ask_for
    from prime_train.planning.new_configs.new_config import DEFAULT_USD, checked_usd, script_of
    from prime_train.planning.new_configs.own_script import checked_command, default_command

    if ask and not command:
        command = ask_for(COMMAND_WORDS, "Command", default_command(kind, steps), checked_command)
    if ask and not given.usd:
        given = replace(
            given, usd=checked_usd(ask_for(USD_WORDS, "Dollars", f"{DEFAULT_USD:g}", checked_usd))
        )
    return script_of(kind, given, checked_command(command) if command else "", steps=steps, name=name)


def _write_ready(files: "Files", *, ask: bool, force: bool) -> Exit:
    try:
        _show(files, shown=ask)
        if _written(files, ask=ask, force=force):
            _next([], next(iter(files)))
    except typer.Abort:
        raise KeyboardInterrupt from None
    return Exit.OK


def _write_own(own: "Own", folder: Path, *, ask: bool, force: bool) -> Exit:
    from prime_train.checks.report import terminal as findings
    from prime_train.launch.launch_config import InvalidConfig
    from prime_train.planning.new_configs.new_config import script_files
    from prime_train.planning.new_configs.own_script import name_of
    from prime_train.trainers.registry import TRAINERS

    try:
        files = script_files(own, folder)
    except InvalidConfig as error:
        findings.print_findings(error.findings, error.sources)
        message = f"{folder / name_of(own)}.yaml would have errors, so it was not written"
        raise UsageError(
            message, fix="change the answers that the findings name", code=Exit.FINDINGS
        ) from error
    _show(files, shown=ask)
    if _written(files, ask=ask, force=force):
        path = next(iter(files))
        # What the config says of a script of one's own is assumed until a rehearsal has seen it.
        _next([] if TRAINERS[own.kind].layout is not None else [f"prime-train try {path}"], path)
    return Exit.OK


def _write(settings: "InitChoices", folder: Path, *, ask: bool, force: bool) -> Exit:
    from prime_train.planning.new_configs.new_config import prime_rl_files, to_do

    files = prime_rl_files(settings, folder)
    typer.echo(
        f"\n{settings.name}: {settings.wanted.model_id} on {settings.wanted.gpus} x "
        f"{settings.wanted.preset.kind}"
    )
    for subject, words in settings.reasons:
        print_coloured(f"  {typer.style(f'{subject:<10}', bold=True)} {words}")
    _show(files, shown=ask)
    if _written(files, ask=ask, force=force):
        _next(to_do(settings), next(iter(files)))
    return Exit.OK


def _written(files: dict[Path, str], *, ask: bool, force: bool) -> bool:
    """Write the files after confirmation. Return False if the user declined. Raises UsageError if a file
    exists and may not be replaced.
    """
    from prime_train.planning.new_configs.new_config import existing, save_files

    there = existing(files)
    if ask and there and not force:
        force = typer.confirm(f"{' and '.join(map(str, there))} already exist. Replace them?", default=False)
    elif ask and not there and not typer.confirm("Write these files?", default=True):
        typer.echo("nothing was written")
        return False
    save_files(files, replace=force)
    for path in files:
        typer.echo(f"wrote {path}")
    return True


def _show(files: dict[Path, str], *, shown: bool) -> None:
    for path, text in files.items() if shown else ():
        print_coloured(typer.style(f"\n--- {path}", bold=True))
        typer.echo(text)


def _next(before: list[str], path: Path) -> None:
    steps = [*before, f"prime-train validate {path}", f"prime-train run {path} --dry-run"]
    typer.echo("next:\n" + "\n".join(f"  {step}" for step in steps))
