"""`prime-train outputs RUN diff [FROM] [TO]`: compare two versions of a run's outputs."""

from functools import partial
from typing import Annotated

import typer

from prime_train.checkpoints.commands.options import AsJson, BucketUrl, RunId
from prime_train.outputs.commands.options import Only, found_outputs
from prime_train.terminal.arguments import print_json


def diff(
    run: RunId,
    before: Annotated[
        str, typer.Argument(metavar="[FROM]", help="Older version: an attempt (2), a step (@500) or both (2@500).", show_default=False)
    ] = "",
    after: Annotated[str, typer.Argument(metavar="[TO]", help="Newer version; by default the newest.", show_default=False)] = "",
    only: Only = None,
    bucket: BucketUrl = None,
    as_json: AsJson = False,
) -> None:
    """Compare two versions of the outputs.

    By default, the newest versions are compared with those from before the last attempt or, if there was only one attempt, with the
    previous version of each output. Text files are compared line by line.
    """
    from prime_train.outputs.commands.output_diff import diff_lines
    from prime_train.outputs.diff import diff as compare
    from prime_train.outputs.diff import lines_of_change

    found = found_outputs(run, bucket)
    compared = compare(found, before, after, patterns=only or ())
    if as_json:
        print_json(compared.rows)
        return
    for line in diff_lines(compared.before, compared.after, compared.changes, partial(lines_of_change, found)):
        typer.echo(line)
