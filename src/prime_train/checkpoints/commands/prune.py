"""`prime-train checkpoints RUN prune`: delete what the retention policy does not keep, after listing it and
asking for confirmation.
"""

import json
from collections.abc import Sized
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.checkpoints.commands.options import BucketUrl, RunId, found_run
from prime_train.spec.choices import By
from prime_train.terminal.arguments import AsJson
from prime_train.terminal.confirm import Yes, confirm
from prime_train.text.formatting import size

if TYPE_CHECKING:
    from prime_train.checkpoints.checkpoints_prune import PrunePlan


def prune(
    run: RunId,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be deleted.")] = False,
    keep: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Number of newest checkpoints to keep; by default as in the config.",
            show_default=False,
        ),
    ] = None,
    keep_every_steps: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Keep checkpoints whose step is a multiple of this.", show_default=False
        ),
    ] = None,
    keep_best: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Number of best checkpoints to keep.", show_default=False),
    ] = None,
    best_by: Annotated[
        By | None, typer.Option(help="Metric by which checkpoints are compared.", show_default=False)
    ] = None,
    yes: Yes = False,
    bucket: BucketUrl = None,
    as_json: AsJson = False,
) -> None:
    """Delete the checkpoints that the retention policy does not keep.

    The run's own policy applies, with the changes that the options make. Some checkpoints are never deleted:
    the newest complete one (the newest two if the run is not in this store), pinned ones, those that are not
    committed yet, and the one that an active run resumed from. Outputs and logs are kept. Evidence of ended
    attempts expires by the bucket's own rule: after 90 days in a bucket that prime-train deploy created,
    otherwise never.
    """
    from prime_train.checkpoints.checkpoints_prune import plan_pruning
    from prime_train.checkpoints.checkpoints_prune import prune as carry_out

    planned = plan_pruning(
        found_run(run, bucket), keep=keep, every_steps=keep_every_steps, best=keep_best, best_by=best_by
    )
    if not as_json:
        _show(planned)
    done = not dry_run and not planned.is_empty
    if done:
        confirm("Delete them?", yes=yes, as_json=as_json)
        if untold := carry_out(planned):
            typer.echo(
                f"warning: they are deleted, but the run's history does not say so: {untold}", err=True
            )
    if as_json:
        print(json.dumps(_row(planned, done=done), indent=2))
    elif done:
        typer.echo("deleted")


def _show(plan: "PrunePlan") -> None:
    from prime_train.checkpoints.checkpoints_prune import descendant_of
    from prime_train.checkpoints.manifest import checkpoint_title

    found, planned, why = plan.found, plan.pruning, plan.why_kept
    for manifest in found.catalog.manifests:
        if manifest.key in why:
            typer.echo(f"keep    {checkpoint_title(manifest.step, manifest.attempt)}: {why[manifest.key]}")
    for kept in reversed(planned.checkpoints):
        typer.echo(
            f"delete  {checkpoint_title(kept.step, kept.attempt)}{'' if kept.complete else ', incomplete'}"
        )
    for key in plan.released:
        typer.echo(
            f"release {descendant_of(plan, key)}, which was started from content of this run and no longer "
            "needs it"
        )
    if found.record is None:
        typer.echo(
            "note: this store does not know the run; if the run has not ended, do not prune here, because "
            "its own machine prunes",
            err=True,
        )
    if planned.blobs_kept:
        typer.echo(f"warning: {planned.blobs_kept}", err=True)
    if not plan.is_empty:
        typer.echo(
            f"to delete: {_count(planned.checkpoints, 'checkpoint')} and {_count(planned.blobs, 'chunk')}, "
            f"{size(planned.bytes)}"
        )
    else:
        typer.echo("there is nothing to delete")
    if planned.later_bytes:
        at = datetime.fromtimestamp(planned.later_s, UTC)
        typer.echo(
            f"{size(planned.later_bytes)} more can be deleted after {at:%H:%M} UTC: newer chunks may belong "
            "to an upload in progress"
        )


def _count(things: Sized, word: str) -> str:
    return f"{len(things)} {word}{'' if len(things) == 1 else 's'}"


def _row(plan: "PrunePlan", *, done: bool) -> dict[str, object]:
    from prime_train.checkpoints.checkpoints_prune import descendant_of

    planned, why = plan.pruning, plan.why_kept
    stay = [manifest for manifest in plan.found.catalog.manifests if manifest.key in why]
    return {
        "done": done,
        "checkpoints": [
            {"step": kept.step, "attempt": kept.attempt, "key": kept.key} for kept in planned.checkpoints
        ],
        "chunks": len(planned.blobs),
        "bytes": planned.bytes,
        "chunks_kept": planned.blobs_kept,
        "later_bytes": planned.later_bytes,
        "later_s": planned.later_s or None,
        "released": [descendant_of(plan, key) for key in plan.released],
        "kept": [{"step": m.step, "attempt": m.attempt, "key": m.key, "why": why[m.key]} for m in stay],
    }
