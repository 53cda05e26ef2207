"""`prime-train checkpoints RUN prune`: delete what the retention policy does not keep, after showing it and asking."""

from collections.abc import Sized
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from prime_train.cli.checkpoints.options import AsJson, BucketUrl, RunId
from prime_train.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prime_train.checkpoints.prune import Pruning
    from prime_train.core.retention import Policy
    from prime_train.operations.checkpoints import Found

By = Literal["loss", "reward"]
_NO_POLICY_FIX = "say what to keep: --keep N"


def prune(
    run: RunId,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    keep: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Newest ones to keep; else as the config says.", show_default=False)
    ] = None,
    keep_every_steps: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Keep multiples of this step.", show_default=False)
    ] = None,
    keep_best: Annotated[int | None, typer.Option(min=0, metavar="N", help="Best ones to keep.", show_default=False)] = None,
    best_by: Annotated[By | None, typer.Option(help="What makes one the best.", show_default=False)] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    bucket: BucketUrl = None,
    as_json: AsJson = False,
) -> None:
    """Remove the checkpoints that need not be kept.

    By the run's policy, changed by the options. Never the newest complete one, what is pinned or not yet committed, or what an attempt
    restores; the newest two where no store here knows the run. Logs and stacks of old attempts, under evidence/, go by the bucket's own
    rule: after 90 days in one that prime-train deploy made, elsewhere never.
    """
    import json

    from prime_train.checkpoints.prune import plan
    from prime_train.operations.checkpoints import look

    found = look(run, bucket)
    policy = _policy(found, keep=keep, every_steps=keep_every_steps, best=keep_best, best_by=best_by)
    planned = plan(found.catalog, policy, committed_step=found.committed_step, pinned=found.held_back, now_s=found.now_s)
    why = found.why_kept(policy)
    if not as_json:
        _show(found, planned, why)
    done = not dry_run and bool(planned.checkpoints or planned.blobs) and _is_sure(yes=yes, as_json=as_json)
    if done:
        _carry_out(found, planned)
    if as_json:
        print(json.dumps(_row(found, planned, why, done=done), indent=2))
    elif done:
        typer.echo("removed")


def _policy(found: "Found", *, keep: int | None, every_steps: int | None, best: int | None, best_by: By | None) -> "Policy":
    from dataclasses import replace

    from prime_train.core.retention import Policy

    policy = found.policy
    if policy is None:
        if keep is None:
            raise UsageError(f"the policy of {found.run_id} cannot be read: its spec.json is missing or damaged", fix=_NO_POLICY_FIX)
        policy = Policy(keep)
    return replace(
        policy,
        keep=policy.keep if keep is None else keep,
        every_steps=policy.every_steps if every_steps is None else every_steps,
        best=policy.best if best is None else best,
        best_by=policy.best_by if best_by is None else best_by,
    )


def _show(found: "Found", planned: "Pruning", why: "Mapping[str, str]") -> None:
    from datetime import UTC, datetime

    from prime_train.core.text.formatting import size

    for manifest in found.catalog.manifests:
        if manifest.key in why:
            typer.echo(f"stays  step {manifest.step} of attempt {manifest.attempt}: {why[manifest.key]}")
    for kept in reversed(planned.checkpoints):
        typer.echo(f"goes   step {kept.step} of attempt {kept.attempt}{'' if kept.complete else ', incomplete'}")
    if found.held is None:
        typer.echo("note: no store here knows the run; unless it is over, leave this to its own machine", err=True)
    if planned.blobs_kept:
        typer.echo(f"warning: {planned.blobs_kept}", err=True)
    if planned.checkpoints or planned.blobs:
        typer.echo(f"{_count(planned.checkpoints, 'checkpoint')} and {_count(planned.blobs, 'chunk')} go, {size(planned.bytes)}")
    else:
        typer.echo("there is nothing to remove")
    if planned.later_bytes:
        at = datetime.fromtimestamp(planned.later_s, UTC)
        typer.echo(f"{size(planned.later_bytes)} can go at {at:%H:%M} UTC: younger chunks may be of an upload under way")


def _count(things: Sized, word: str) -> str:
    return f"{len(things)} {word}{'' if len(things) == 1 else 's'}"


def _is_sure(*, yes: bool, as_json: bool) -> bool:
    import sys

    if yes:
        return True
    if as_json or not sys.stdin.isatty():
        raise UsageError("nothing was removed: there is nobody to ask", fix="add --yes, or --dry-run")
    return typer.confirm("Remove them?")


def _carry_out(found: "Found", planned: "Pruning") -> None:
    """Delete the manifests one by one, because their order matters, and then the chunks in parallel."""
    from dataclasses import replace

    from prime_train.checkpoints.parallel import in_parallel
    from prime_train.checkpoints.prune import carry_out

    doomed: list[str] = []
    carry_out(found.bucket, replace(planned, blobs_kept=""), remove=doomed.append)  # the reason was printed before
    in_parallel(found.bucket.delete, doomed)


def _row(found: "Found", planned: "Pruning", why: "Mapping[str, str]", *, done: bool) -> dict[str, object]:
    stay = [manifest for manifest in found.catalog.manifests if manifest.key in why]
    return {
        "done": done,
        "checkpoints": [{"step": kept.step, "attempt": kept.attempt, "key": kept.key} for kept in planned.checkpoints],
        "chunks": len(planned.blobs),
        "bytes": planned.bytes,
        "chunks_kept": planned.blobs_kept,
        "later_bytes": planned.later_bytes,
        "later_s": planned.later_s or None,
        "kept": [{"step": m.step, "attempt": m.attempt, "key": m.key, "why": why[m.key]} for m in stay],
    }
