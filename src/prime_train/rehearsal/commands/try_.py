"""`prime-train try CONFIG`, or `prime-train try -- COMMAND`: rehearse a script before it is launched."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.launch.commands.run import COMMAND

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prime_train.app.home import Home
    from prime_train.rehearsal.conclusions import Conclusion
    from prime_train.rehearsal.outcome import Outcome
    from prime_train.rehearsal.rehearsal import Request
    from prime_train.spec.reader import Config

LIMIT_S = 60.0
RENTED_USD = 0.5
RENTED_MINUTES = 30.0
CHEAPEST = "cheapest"
PAGES = "rehearsals"
"""The folder of the home with the pages of rehearsals."""


def try_(
    ctx: typer.Context,
    config: Annotated[
        Path | None,
        typer.Argument(help="The run's config; or no config, but -- COMMAND.", show_default=False),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the config to this new file.", show_default=False),
    ] = None,
    usd: Annotated[float, typer.Option(help="Budget in dollars that a new config gets.")] = 5.0,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the run, instead of that of the file to save, or one made from the script's.",
            show_default=False,
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=5.0, max=3600.0, help="Limit in seconds of each start of the script.")
    ] = LIMIT_S,
    dress: Annotated[
        bool,
        typer.Option(
            "--dress/--no-dress",
            help="At the end, run the config with a control plane of its own, and take its machine away.",
        ),
    ] = True,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="PROVIDER",
            help="Rehearse the config on rented machines instead, of this provider, or on the cheapest.",
            show_default=False,
        ),
    ] = None,
    rented_usd: Annotated[
        float, typer.Option(min=0.01, max=100.0, help="With --on: most dollars that it may cost.")
    ] = RENTED_USD,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the page to this file, not to the home.", show_default=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> Exit:
    """Rehearse a script: see how it saves and resumes, prove it.

    The script runs in a copy of the working tree until it has saved three times. Then it is asked to stop,
    started again in an empty folder with nothing but the checkpoint, killed in the middle of a save, and
    started once more. At last its config is run by prime-train itself, which loses the machine and has to
    resume on another one.

    What was seen is told with its evidence, and written as a config. A script that was proven may be launched
    on rented machines: the config says so under `rehearsed`.
    """
    from prime_train.app.home import Home
    from prime_train.app.interruption import sigterm_leaves
    from prime_train.planning.new_configs.own_script import name_of_file
    from prime_train.rehearsal.outcome import outcome_of
    from prime_train.rehearsal.rehearsal import Request
    from prime_train.rehearsal.rehearse import rehearse

    if save is not None and save.exists():
        raise UsageError(f"{save} exists already", fix="name a new file, or delete that one")
    if not name and save is not None:
        name = name_of_file(save)
    for file in (save, out):
        _refuse_unwritable(file)
    read = _read(config, ctx.meta.get(COMMAND), usd, name)
    assert read.spec is not None
    request = Request(read.spec, Path(read.spec.trainer.code.folder), seconds)

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    if on is not None:
        return _on_rented(config, read, request, on, rented_usd, out, as_json=as_json, say=say)
    with sigterm_leaves():
        found = rehearse(request, os.environ, say)
        outcome = outcome_of(found, read if config is not None else None, usd=usd, name=name or "")
        if dress and found.is_proven:
            outcome.dress(os.environ, say)
    home = Home.of(os.environ)
    # Else the page's folder would make it, and other users could read it.
    if out is None:
        home.make()
    page = out or home.root / PAGES / f"{outcome.name}.html"
    return _tell(outcome, config, save, page, as_json=as_json)


def _on_rented(
    config: Path | None,
    read: "Config",
    request: "Request",
    provider: str,
    usd: float,
    out: Path | None,
    *,
    as_json: bool,
    say: "Callable[[str], None]",
) -> Exit:
    """Run the config on rented machines, end one of them, and tell whether the next one resumed."""
    from prime_train.app.home import Home
    from prime_train.checks.report import terminal as findings
    from prime_train.launch.allowed import Allowed
    from prime_train.launch.launch_config import InvalidConfig, checked
    from prime_train.providers.kinds import allowed_providers
    from prime_train.rehearsal.dress import dressed_on_rented
    from prime_train.rehearsal.outcome import outcome_of
    from prime_train.rehearsal.rehearsal import Rehearsal
    from prime_train.spec.overrides import setting_of

    if config is None:
        raise UsageError(
            "on rented machines a config is rehearsed, and there is none",
            fix="write one: prime-train try --save FILE -- COMMAND, or prime-train init",
        )
    home = Home.of(os.environ)
    if home.elsewhere:
        raise UsageError(
            f"the control plane is at {home.elsewhere}, and only its own machine can end machines behind its back",
            fix="rehearse where the control plane runs, or without --on",
        )
    settings = [setting_of("budget.usd", usd, "--rented-usd")]
    if provider != CHEAPEST:
        settings += [
            setting_of("hardware.provider", provider, "--on"),
            setting_of("hardware.providers", [], "--on"),
        ]
    try:
        what = checked(home, config, settings=settings, allowed=Allowed(without_rehearsal=True))
        _refuse_unrented(home, allowed_providers(what.spec.hardware))
        found = Rehearsal(request, dressed=dressed_on_rented(home, what, minutes=RENTED_MINUTES, say=say))
    except InvalidConfig as error:
        return findings.print_refusal(error.findings, error.sources)
    outcome = outcome_of(found, read, usd=usd, name="")
    page = out or home.root / PAGES / f"{outcome.name}.html"
    return _tell(outcome, config, None, page, as_json=as_json)


def _refuse_unrented(home: "Home", names: "Sequence[str]") -> None:
    """Raise UsageError if no machine can be rented from any of these providers."""
    from prime_train.providers.configured import is_set_up
    from prime_train.providers.kinds import is_rented

    if not is_rented(names):
        raise UsageError(
            "this config does not train on rented machines",
            fix="name a provider with --on, or leave it out to rehearse on this machine",
        )
    if not any(is_set_up(name, home.environment) for name in names):
        raise UsageError(
            f"{' and '.join(names)} cannot be used: no key is set here",
            fix=f"prime-train provider add {names[0]}",
        )


def _read(config: Path | None, command: "Sequence[str] | None", usd: float, name: str | None) -> "Config":
    """Return the config, or one that is made from the command."""
    from prime_train.launch.command_config import config_of
    from prime_train.spec.reader import read_config, read_text

    if (config is None) == (command is None):
        raise UsageError(
            "give either a config or a command",
            fix="prime-train try CONFIG, or prime-train try -- python train.py",
        )
    if config is not None:
        read = read_config(config)
    else:
        made = config_of(command or (), usd, name=name)
        read = read_text(made.text, made.label)
    if read.spec is None or not read.is_fit:
        raise UsageError("; ".join(finding.message for finding in read.findings), code=Exit.FINDINGS)
    return read


def _refuse_unwritable(file: Path | None) -> None:
    """Raise UsageError, before anything runs, if the file could not be written afterwards."""
    if file is None:
        return
    place = next(folder for folder in file.absolute().parents if os.path.lexists(folder))
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        why = "may not be written to" if place.is_dir() else "is no folder"
        raise UsageError(f"{file} cannot be written, because {place} {why}", fix="name another file")


def _tell(outcome: "Outcome", config: Path | None, save: Path | None, page: Path, *, as_json: bool) -> Exit:
    from prime_train.rehearsal.conclusions import conclusions
    from prime_train.rehearsal.page import page_html
    from prime_train.rehearsal.report import printed
    from prime_train.terminal.console import console

    said = conclusions(outcome.found)
    shown: Path | None = page
    unwritten: OSError | None = None
    written: Path | None = None
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(page_html(outcome.found, said, outcome.text), encoding="utf-8")
    except OSError as error:  # what was found is told all the same
        shown = None
        print(f"no page was written: {error}", file=sys.stderr)
    try:
        written = outcome.written_to(config, save)
    except OSError as error:
        unwritten = error
    if as_json:
        print(json.dumps(_record(outcome, said, shown), indent=2))
    else:
        printed(console(), outcome, written, shown)
    if unwritten is not None:
        raise UsageError(f"the config was not written: {unwritten}", fix="copy it from above into a file")
    return Exit.OK if outcome.found.is_proven else Exit.FINDINGS


def _record(outcome: "Outcome", said: "Sequence[Conclusion]", page: Path | None) -> dict[str, object]:
    return {
        "proven": outcome.found.is_proven,
        "seconds": round(outcome.found.took_s, 1),
        "conclusions": [
            {
                "topic": one.topic,
                "text": one.text,
                "certainty": one.certainty.value,
                "evidence": one.evidence,
            }
            for one in said
        ],
        "differences": list(outcome.differences),
        "config": outcome.text,
        "page": str(page.absolute()) if page is not None else None,
    }
