"""`prime-train checkpoints RUN`: what is in the bucket, what of it is whole, and why it is kept."""

from typing import TYPE_CHECKING, TypedDict

import typer

from prime_train.cli.checkpoints.options import AsJson, BucketUrl, RunId

if TYPE_CHECKING:
    from prime_train.operations.checkpoints import Found


class Row(TypedDict):
    """One manifest. `committed`: the control plane has accepted it, or a later one; None where it cannot be asked.

    `kept`: why it stays, None where nothing holds it or the policy cannot be read. `stored_bytes`: what its chunks take, each once.
    """

    step: int
    epoch: int
    files: int
    size_bytes: int
    stored_bytes: int
    complete: bool
    missing: int
    committed: bool | None
    latest: bool
    pinned: bool
    kept: str | None
    created_s: int
    key: str


def list_(run: RunId, bucket: BucketUrl = None, as_json: AsJson = False) -> None:
    """List the checkpoints.

    Newest first: whether each is complete (all it consists of is there), and why it is kept.
    """
    import json

    from prime_train.operations.checkpoints import look

    found = look(run, bucket)
    rows = _rows(found)
    for key in found.catalog.unread:
        typer.echo(f"warning: {key} cannot be read", err=True)
    if as_json:
        print(json.dumps(rows, indent=2))
    elif rows:
        _print(rows, found.now_s)
    else:
        typer.echo(f"{found.run_id} has no checkpoint in the bucket")


def _rows(found: "Found") -> list[Row]:
    pointer = _latest(found)
    why = found.why_kept(found.policy) if found.policy is not None else {}
    return [
        Row(
            step=manifest.step,
            epoch=manifest.epoch,
            files=len(manifest.files),
            size_bytes=manifest.size,
            stored_bytes=sum(manifest.blobs().values()),
            complete=not (missing := found.catalog.missing(manifest)),
            missing=len(missing),
            committed=manifest.step <= found.committed_step if found.held is not None else None,
            latest=manifest.key == pointer,
            pinned=manifest.key in found.catalog.pinned,
            kept=why.get(manifest.key),
            created_s=manifest.created_s,
            key=manifest.key,
        )
        for manifest in found.catalog.manifests
    ]


def _latest(found: "Found") -> str | None:
    import json

    from prime_train.core.keys import latest_key

    content = found.bucket.get(latest_key(found.run_id))
    try:
        said = json.loads(content.data) if content is not None else None
        return str(said["manifest"]) if isinstance(said, dict) and "manifest" in said else None
    except ValueError:
        return None


def _print(rows: list[Row], now_s: int) -> None:
    from rich.text import Text

    from prime_train.cli.columns import Column, Fitting
    from prime_train.core.text.formatting import size, span
    from prime_train.output import console

    columns = {
        "step": (0, [f"{row['step']:,}" for row in rows]),
        "attempt": (4, [str(row["epoch"]) for row in rows]),
        "files": (5, [f"{row['files']:,}" for row in rows]),
        "size": (1, [size(row["size_bytes"]) for row in rows]),
        "stored": (6, [_stored(row) for row in rows]),
        "age": (2, [span(now_s - row["created_s"]) for row in rows]),
        "complete": (0, ["yes" if row["complete"] else f"no: {row['missing']} chunks missing" for row in rows]),
        "kept": (3, [_kept(row) for row in rows]),
        "": (7, [_marks(row) for row in rows]),
    }
    shown = [Column(name, tuple(map(Text, cells)), rank) for name, (rank, cells) in columns.items() if any(cells)]
    console().print(Fitting(shown))


def _stored(row: Row) -> str:
    """Nothing where it takes as much as it has."""
    from prime_train.core.text.formatting import size

    less = row["stored_bytes"] < row["size_bytes"]
    return f"{size(row['stored_bytes'])} ({row['stored_bytes'] / row['size_bytes']:.0%})" if less else ""


def _kept(row: Row) -> str:
    return row["kept"] or ("pinned" if row["pinned"] else "")


def _marks(row: Row) -> str:
    return ", ".join(word for word, said in (("latest", row["latest"]), ("not committed", row["committed"] is False)) if said)
