"""`prime-train checkpoints RUN`: what is in the bucket, and what of it is whole."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from prime_train.cli.home import Home
    from prime_train.core.run import Run


def checkpoints(
    run: Annotated[str, typer.Argument(help="The run, or the start of its id.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """List a run's checkpoints in the bucket.

    Newest first, and whether each is complete: every file of its manifest is there.
    """
    import json

    from prime_train.cli.home import Home
    from prime_train.cli.names import find

    home = Home.of(os.environ)
    found = find(home.store(), run).run
    rows = _rows(home, found)
    if as_json:
        print(json.dumps(rows, indent=2))
    elif rows:
        _print(rows)
    else:
        typer.echo(f"{found.run_id} has no checkpoint in the bucket")


def _rows(home: "Home", run: "Run") -> list[dict[str, object]]:
    """One row a manifest. `committed`: the control plane has accepted it, or a later one; `resumes` names what an attempt restored."""
    from prime_train.core.keys import blob_prefix, latest_key
    from prime_train.core.manifest import missing_blobs
    from prime_train.reconcile import read_manifests

    bucket = home.bucket()
    manifests = read_manifests(bucket, run.run_id)
    sizes = {stat.key: stat.size for stat in bucket.list(blob_prefix(run.run_id))} if manifests else {}
    pointer = bucket.get(latest_key(run.run_id))
    latest = _latest(pointer.data) if pointer is not None else None
    held = home.store().load(run.run_id)
    committed = max(run.durable_step, held.lease.committed_step if held is not None else 0)
    rows: list[dict[str, object]] = []
    for manifest in manifests:
        missing = missing_blobs(manifest, sizes)
        row: dict[str, object] = {"step": manifest.step, "epoch": manifest.epoch, "files": len(manifest.files), "size_bytes": manifest.size}
        row |= {"complete": not missing, "missing": len(missing), "committed": manifest.step <= committed}
        row |= {"latest": manifest.key == latest, "created_s": manifest.created_s, "key": manifest.key}
        rows.append(row)
    return rows


def _latest(data: bytes) -> str | None:
    import json

    try:
        said = json.loads(data)
        return str(said["manifest"]) if isinstance(said, dict) and "manifest" in said else None
    except ValueError:
        return None


def _print(rows: list[dict[str, object]]) -> None:
    from rich.console import Console
    from rich.table import Table

    from prime_train.cli.amounts import size, span
    from prime_train.cli.home import wall_s

    now_s = wall_s()
    table = Table("step", "attempt", "files", "size", "age", "complete", "", box=None, pad_edge=False)
    for row in rows:
        whole = "yes" if row["complete"] else f"no: {row['missing']} files missing"
        marks = [word for word, said in (("latest", row["latest"]), ("not committed", not row["committed"])) if said]
        age = span(now_s - int(str(row["created_s"])))
        table.add_row(
            f"{row['step']:,}", str(row["epoch"]), f"{row['files']:,}", size(float(str(row["size_bytes"]))), age, whole, ", ".join(marks)
        )
    Console().print(table)
