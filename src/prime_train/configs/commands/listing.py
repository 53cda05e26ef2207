"""`prime-train config list [CONFIG]`: list the versions of a config and the runs that used each, or all
configs that have versions.
"""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.exit_codes import Exit
from prime_train.terminal.arguments import AsJson, print_json

if TYPE_CHECKING:
    from rich.text import Text

    from prime_train.configs.history.list_versions import VersionList
    from prime_train.configs.history.versions import Version
    from prime_train.runs.run import Run


def list_(
    config: Annotated[
        Path | None,
        typer.Argument(
            help="The config, such as configs/demo.yaml; by default all that have versions.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> Exit:
    """List the versions and the runs that used each.

    Without a config, all configs that have versions are listed, with the newest version of each.
    """
    from rich.console import Group
    from rich.text import Text

    from prime_train.app.home import Home
    from prime_train.configs.history.list_versions import list_versions
    from prime_train.terminal.console import console as open_console

    if config is None:
        return _all(as_json=as_json)
    found = list_versions(Home.of(os.environ), config)
    if as_json:
        print_json([_record(found, version) for version in reversed(found.versions)])
        return Exit.OK
    if not found.versions:
        typer.echo(f"{config.stem} has no versions yet. Save one: prime-train config save {config}")
        return Exit.OK
    console = open_console()
    console.print(
        Group(
            *(
                part
                for version in reversed(found.versions)
                for part in _row(version, found.runs[version.number])
            )
        )
    )
    if config.is_file():
        same = found.same()
        text = (
            f"{config} is the same as {same.title}"
            if same is not None
            else f"{config} differs from all versions"
        )
        console.print(Text(text, style="dim"))
    return Exit.OK


def _all(*, as_json: bool) -> Exit:
    from rich.console import Group
    from rich.text import Text

    from prime_train.app.home import Home
    from prime_train.configs.history.list_versions import saved_configs
    from prime_train.terminal.console import console as open_console

    found = saved_configs(Home.of(os.environ))
    if as_json:
        print_json([_record(one, one.versions[-1]) for one in found])
    elif not found:
        typer.echo("no config has versions yet. Save one: prime-train config save CONFIG")
    else:
        width = max(len(one.of.path.stem) for one in found)
        rows = (
            Text.assemble((f"{one.of.path.stem:<{width}}", "bold"), _head(one.versions[-1])) for one in found
        )
        open_console().print(Group(*rows))
    return Exit.OK


def _record(found: "VersionList", version: "Version") -> dict[str, object]:
    return {
        "config": found.of.path.stem,
        "version": version.number,
        "name": version.name,
        "saved_s": version.saved_s,
        "note": version.note,
        "runs": [run.run_id for run in found.runs[version.number]],
    }


def _head(version: "Version") -> "Text":
    from rich.text import Text

    saved = datetime.fromtimestamp(version.saved_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Text.assemble(
        (f"{version.number:>4}", "bold"),
        f"  {saved}  ",
        (f"{version.name}  " if version.name else "", "bold"),
        version.note,
    )


def _row(version: "Version", runs: "tuple[Run, ...]") -> "list[Text]":
    from rich.text import Text

    from prime_train.configs.history.version_users import used_by

    return [_head(version), *(Text(f"      {used_by(run)}", style="cyan") for run in runs)]
