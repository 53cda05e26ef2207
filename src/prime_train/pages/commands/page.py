"""`prime-train page RUN`: write everything known about a run to one HTML file."""

import os
from pathlib import Path
from typing import Annotated

import typer

from prime_train.errors import UsageError
from prime_train.exit_codes import Exit


def page(
    run: Annotated[
        str, typer.Argument(help="A run's id, its start, or a config's name.", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="File to write; by default RUN.html in this folder.", show_default=False),
    ] = None,
) -> None:
    """Write a run's page as a single HTML file.

    The page shows the run's steps over time, metrics such as loss and reward, attempts, time and money,
    checkpoints, the end of its log, its diagnosis and its history, all as of now. It loads nothing from the
    network and can be sent to anyone.
    """
    from prime_train.app.home import Home
    from prime_train.pages.run_page import run_page_html
    from prime_train.pages.run_sources import run_page

    home = Home.of(os.environ)
    found = run_page(home.store(), home.files(), home.observer(), run)
    file = out if out is not None else Path(f"{found.record.run.run_id}.html")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(run_page_html(found), encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{file}: {error.strerror}", fix="choose a file that can be written: --out FILE", code=Exit.USAGE
        ) from error
    for note in found.seen.notes:
        typer.echo(f"not checked: {note}", err=True)
    typer.echo(file.absolute())
