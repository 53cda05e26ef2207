"""`prime-train compare RUN [BASE]`: compare the results of two runs, and judge what the config requires of
them.
"""

import os
from typing import Annotated

import typer

from prime_train.exit_codes import Exit
from prime_train.spec.requirements import Met
from prime_train.terminal.arguments import print_json


def compare(
    run: Annotated[
        str, typer.Argument(help="A run's id, its start, or a config's name.", show_default=False)
    ],
    base: Annotated[
        str,
        typer.Argument(
            metavar="[BASE]",
            help="Run to compare with; by default the newest on the base branch.",
            show_default=False,
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> Exit:
    """Compare a run's results with those of another run.

    Without BASE, a run of a pull request is compared with the newest run of its config on the base branch, as
    in the comment on the pull request, and any other run with the newest earlier one from its branch. The
    exit code is 1 if a line under require in the config is not met, or cannot be judged yet.
    """
    from rich.table import Table

    from prime_train.app.home import Home
    from prime_train.outputs.results.compare import compare as compare_runs
    from prime_train.outputs.results.comparison_texts import HEAD, reasons_of, row_of, rows_of, source
    from prime_train.terminal.console import console

    home = Home.of(os.environ)
    store = home.store()
    found = compare_runs(store, home.bucket, run, base)
    now_s = store.now_s()
    if as_json:
        print_json(row_of(found, now_s))
    else:
        table = Table(*HEAD, box=None, padding=(0, 2, 0, 0))
        for row in rows_of(found):
            table.add_row(*row)
        console().print(source(found, now_s))
        console().print(table)
        for reason in reasons_of(found):
            console().print(reason)
    return Exit.FINDINGS if found.outcome in (Met.NOT_MET, Met.PENDING) else Exit.OK
