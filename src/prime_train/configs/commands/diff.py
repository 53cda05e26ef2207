"""`prime-train config diff CONFIG [FROM] [TO]`: show two versions side by side, the meaning of each change,
and the runs that used them.
"""

import os
from pathlib import Path
from typing import Annotated

import typer

from prime_train.exit_codes import Exit


def diff(
    config: Annotated[
        Path, typer.Argument(help="The config, such as configs/demo.yaml.", show_default=False)
    ],
    before: Annotated[
        str,
        typer.Argument(
            metavar="[FROM]",
            help="Number or name of the older version; by default the newest.",
            show_default=False,
        ),
    ] = "",
    after: Annotated[
        str,
        typer.Argument(
            metavar="[TO]",
            help="Number or name of the newer version, or now for the current file.",
            show_default=False,
        ),
    ] = "now",
) -> Exit:
    """Show two versions side by side and explain each change."""
    from prime_train.app.home import Home
    from prime_train.checks.compare_versions import compare_versions
    from prime_train.configs.commands.side_by_side import render
    from prime_train.terminal.console import console

    found = compare_versions(Home.of(os.environ), config, before, after)
    if found.is_same:
        typer.echo(f"{found.before.title} and {found.after.title} are the same")
    else:
        console().print(render(found))
    return Exit.OK
