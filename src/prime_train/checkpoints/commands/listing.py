"""`prime-train checkpoints RUN`: list the checkpoints in the bucket, whether each is complete, and why it is
kept.
"""

import json
from typing import TYPE_CHECKING

import typer

from prime_train.checkpoints.commands.options import BucketUrl, RunId, found_run
from prime_train.terminal.arguments import AsJson
from prime_train.text.formatting import size, span

if TYPE_CHECKING:
    from prime_train.checkpoints.lookup import CheckpointRow


def list_(run: RunId, bucket: BucketUrl = None, as_json: AsJson = False) -> None:
    """List the checkpoints.

    They are listed newest first, with whether each is complete (all of its files are in the bucket), whether
    a trainer has resumed from it and made a step (proven), and why it is kept.
    """
    from prime_train.checkpoints.lookup import rows_of

    found = found_run(run, bucket)
    rows = rows_of(found)
    for key in found.catalog.unread:
        typer.echo(f"warning: {key} cannot be read", err=True)
    if as_json:
        print(json.dumps(rows, indent=2))
    elif rows:
        _print(rows, found.now_s)
        for manifest in found.catalog.descendants:
            typer.echo(
                f"the content of step {manifest.step:,} is kept for {manifest.run}, which was started from it"
            )
    else:
        typer.echo(f"{found.run_id} has no checkpoint in the bucket")


def _print(rows: "list[CheckpointRow]", now_s: int) -> None:
    from rich.text import Text

    from prime_train.terminal.columns import Column, Fitting
    from prime_train.terminal.console import console

    columns = {
        "step": (0, [f"{row['step']:,}" for row in rows]),
        "attempt": (4, [str(row["attempt"] or "-") for row in rows]),
        "files": (5, [f"{row['files']:,}" for row in rows]),
        "size": (1, [size(row["size_bytes"]) for row in rows]),
        "stored": (6, [_stored(row) for row in rows]),
        "age": (2, [span(now_s - row["created_s"]) for row in rows]),
        "complete": (
            0,
            ["yes" if row["complete"] else f"no: {row['missing']} chunks missing" for row in rows],
        ),
        "proven": (8, [_proven(row) for row in rows]),
        "kept": (3, [_kept(row) for row in rows]),
        "": (7, [_marks(row) for row in rows]),
    }
    shown = [
        Column(name, tuple(map(Text, cells)), rank) for name, (rank, cells) in columns.items() if any(cells)
    ]
    console().print(Fitting(shown))


def _stored(row: "CheckpointRow") -> str:
    """Return the stored size if it is less than the checkpoint's size, else "" (an empty string)."""
    less = row["stored_bytes"] < row["size_bytes"]
    return f"{size(row['stored_bytes'])} ({row['stored_bytes'] / row['size_bytes']:.0%})" if less else ""


def _proven(row: "CheckpointRow") -> str:
    """Return whether a trainer could resume from the checkpoint; "" if none has tried."""
    if row["distrusted"]:
        return "no: not loadable"
    return "yes" if row["proven"] else ""


def _kept(row: "CheckpointRow") -> str:
    return row["kept"] or ("pinned" if row["pinned"] else "")


def _marks(row: "CheckpointRow") -> str:
    marks = (
        (f"content of {row['blobs_of']}", bool(row["blobs_of"])),
        ("latest", row["latest"]),
        ("not committed", row["committed"] is False),
        (f"loss not finite since step {row['not_finite_since']}", row["finite"] is False),
    )
    return ", ".join(word for word, applies in marks if applies)
