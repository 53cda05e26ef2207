"""`prime-train config list CONFIG`: list the versions of a config, and the runs that used each."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.cli.arguments import AsJson, print_json
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from rich.text import Text

    from prime_train.core.run import Run
    from prime_train.operations.config_versions import Version


def list_(
    config: Annotated[Path, typer.Argument(help="The config, such as configs/demo.yaml.", show_default=False)],
    as_json: AsJson = False,
) -> Exit:
    """List the versions, and the runs that used each."""
    from rich.console import Group
    from rich.text import Text

    from prime_train.operations.config_runs import runs_of, users
    from prime_train.operations.config_versions import versions_of
    from prime_train.output import console as open_console

    versions = versions_of(config)
    saved = versions.all()
    if as_json:
        used = users(saved, runs_of(versions.home))
        print_json([_record(version, used[version.number]) for version in reversed(saved)])
        return Exit.OK
    if not saved:
        typer.echo(f"{config.stem} has no versions yet. Keep one: prime-train config save {config}")
        return Exit.OK
    console = open_console()
    used = users(saved, runs_of(versions.home))
    console.print(Group(*(part for version in reversed(saved) for part in _row(version, used[version.number]))))
    if config.is_file():
        same = [version for version in saved if version.texts == versions.now()]
        console.print(Text(f"{config} is {same[-1].title}" if same else f"{config} is as none of them", style="dim"))
    return Exit.OK


def _record(version: "Version", runs: "tuple[Run, ...]") -> dict[str, object]:
    return {"version": version.number, "saved_s": version.saved_s, "note": version.note, "runs": [run.run_id for run in runs]}


def _row(version: "Version", runs: "tuple[Run, ...]") -> "list[Text]":
    from datetime import UTC, datetime

    from rich.text import Text

    from prime_train.operations.config_runs import used_by

    saved = datetime.fromtimestamp(version.saved_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
    head = Text.assemble((f"{version.number:>4}", "bold"), f"  {saved}  {version.note}")
    return [head, *(Text(f"      {used_by(run)}", style="cyan") for run in runs)]
