"""`prime-train outputs RUN diff [FROM] [TO]`: compare two versions of a run's outputs."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.checkpoints.commands.options import BucketUrl, RunId
from prime_train.outputs.commands.options import Only, found_outputs
from prime_train.terminal.arguments import AsJson, print_json
from prime_train.text.formatting import size
from prime_train.text.safe import neutralized

if TYPE_CHECKING:
    from prime_train.outputs.manifest import OutputChange, OutputVersion


def diff(
    run: RunId,
    before: Annotated[
        str,
        typer.Argument(
            metavar="[FROM]",
            help="Older version: an attempt (2), a step (@500) or both (2@500).",
            show_default=False,
        ),
    ] = "",
    after: Annotated[
        str, typer.Argument(metavar="[TO]", help="Newer version; by default the newest.", show_default=False)
    ] = "",
    only: Only = None,
    bucket: BucketUrl = None,
    as_json: AsJson = False,
) -> None:
    """Compare two versions of the outputs.

    By default, the newest versions are compared with those from before the last attempt or, if there was only
    one attempt, with the previous version of each output. Text files are compared line by line.
    """
    from prime_train.outputs.diff import diff as compare
    from prime_train.outputs.diff import lines_of_change

    found = found_outputs(run, bucket)
    compared = compare(found, before, after, patterns=only or ())
    if as_json:
        print_json(compared.rows)
        return
    for line in _lines(compared.before, compared.after, compared.changes, partial(lines_of_change, found)):
        typer.echo(line)


def _lines(
    before: str,
    after: str,
    changes: "Sequence[OutputChange]",
    text_of: "Callable[[OutputChange], Sequence[str] | None]",
) -> Iterator[str]:
    """Yield a line for each change, then its unified diff if `text_of` returns one. `before` and `after`
    describe what was compared.
    """
    yield (
        f"{before} -> {after}: {len(changes)} file{'' if len(changes) == 1 else 's'} "
        f"differ{'s' if len(changes) == 1 else ''}"
    )
    for change in changes:
        yield f"{change.kind:<8} {neutralized(change.path)}  {_size(change.before)} -> {_size(change.after)}"
        yield from map(neutralized, text_of(change) or ())


def _size(version: "OutputVersion | None") -> str:
    return size(version.file.size) if version is not None else "none"
