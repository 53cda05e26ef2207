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

    from prime_train.rehearsal.dress import Dressed
    from prime_train.rehearsal.rehearse import Rehearsal, Request

LIMIT_S = 60.0


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
    usd: Annotated[float, typer.Option(help="Budget in dollars that the config gets.")] = 5.0,
    name: Annotated[
        str | None,
        typer.Option(help="Name of the run, instead of one made from the script's.", show_default=False),
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
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> Exit:
    """Rehearse a script: watch how it saves, reports and resumes, and prove it.

    The script runs in a copy of the working tree until it has saved three times. Then it is asked to stop,
    started again in an empty folder with nothing but the checkpoint, killed in the middle of a save, and
    started once more. What was seen is told with its evidence, and written as a config.
    """
    from prime_train.rehearsal.rehearse import rehearse

    if save is not None and save.exists():
        raise UsageError(f"{save} exists already", fix="name a new file, or delete that one")
    request = _request(config, ctx.meta.get(COMMAND), usd, name, seconds)
    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    found = rehearse(request, os.environ, say)
    if dress and found.is_proven:
        found.dressed = _dressed(found, usd, name, say)
    return _tell(found, save, usd, name, as_json=as_json)


def _request(
    config: Path | None, command: "Sequence[str] | None", usd: float, name: str | None, seconds: float
) -> "Request":
    from prime_train.launch.command_config import config_of
    from prime_train.rehearsal.rehearse import Request
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
    folder = Path(read.spec.trainer.code.folder)
    return Request(read.spec, folder, seconds)


def _dressed(found: "Rehearsal", usd: float, name: str | None, say: "Callable[[str], None]") -> "Dressed":
    """Run the config that is written."""
    from prime_train.rehearsal.dress import Dressed, dressed
    from prime_train.rehearsal.written_config import dress_values
    from prime_train.spec.overrides import config_text
    from prime_train.spec.reader import read_text

    read = read_text(config_text(dress_values(found, usd=usd, name=name or "")), "the config that was written")
    if read.spec is None or not read.is_fit:
        return Dressed(why="; ".join(finding.message for finding in read.findings))
    say("dress rehearsal: the config is run by prime-train itself, and its machine is taken away in a save")
    folder = str(found.request.folder.absolute())
    trainer = read.spec.trainer
    code = trainer.code.model_copy(update={"folder": folder})
    spec = read.spec.model_copy(update={"trainer": trainer.model_copy(update={"code": code})})
    return dressed(spec, found.saves, os.environ, seconds=found.until_second_save_s, say=say)


def _tell(found: "Rehearsal", save: Path | None, usd: float, name: str | None, *, as_json: bool) -> Exit:
    from prime_train.rehearsal.conclusions import conclusions
    from prime_train.rehearsal.report import printed
    from prime_train.rehearsal.written_config import config_values
    from prime_train.spec.overrides import config_text
    from prime_train.terminal.console import console

    said = conclusions(found)
    text = config_text(config_values(found, usd=usd, name=name or ""))
    if save is not None and found.saves.saves:
        save.write_text(text, encoding="utf-8")
    if as_json:
        print(
            json.dumps(
                {
                    "proven": found.is_proven,
                    "seconds": round(found.seconds, 1),
                    "conclusions": [
                        {
                            "topic": one.topic,
                            "text": one.text,
                            "certainty": one.certainty.value,
                            "evidence": one.evidence,
                        }
                        for one in said
                    ],
                    "config": text,
                },
                indent=2,
            )
        )
    else:
        printed(console(), found, text, save)
    return Exit.OK if found.is_proven else Exit.FINDINGS
