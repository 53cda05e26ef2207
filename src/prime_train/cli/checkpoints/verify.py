"""`prime-train checkpoints RUN verify`: compare every byte in the bucket with what was saved."""

from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from prime_train.cli.checkpoints.options import AsJson, BucketUrl, RunId, Step
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.core.manifest import Manifest
    from prime_train.operations.checkpoints import Found

FLAWS_SHOWN_MAX = 50


class Verdict(TypedDict):
    """The result for one checkpoint. Each flaw has `path`, `what` and `digest`. If the manifest cannot be read, only `key` is known."""

    step: int | None
    attempt: int | None
    key: str
    size_bytes: int
    whole: bool
    flaws: list[dict[str, str]]


def verify(
    run: RunId,
    step: Step = None,
    all_: Annotated[bool, typer.Option("--all", help="Every checkpoint in the bucket.")] = False,
    bucket: BucketUrl = None,
    as_json: AsJson = False,
) -> Exit:
    """Read a checkpoint again, byte by byte.

    The newest complete one, unless another is named. Leaves with 1 where a file is not as it was saved, and names each.
    """
    import json

    from prime_train.operations.checkpoints import look, newest, of_step

    if all_ and step is not None:
        raise UsageError("--all and --step exclude each other", fix="keep one")
    found = look(run, bucket)
    wanted = list(found.catalog.manifests) if all_ else []
    if not wanted and not (all_ and found.catalog.unread):
        wanted = [of_step(found, step) if step is not None else newest(found)]
    verdicts = [_verdict(found, manifest, quiet=as_json) for manifest in wanted]
    if all_:
        verdicts += [_unread(key, quiet=as_json) for key in found.catalog.unread]
    if as_json:
        print(json.dumps(verdicts, indent=2))
    return Exit.OK if all(verdict["whole"] for verdict in verdicts) else Exit.FINDINGS


def _verdict(found: "Found", manifest: "Manifest", *, quiet: bool) -> Verdict:
    from dataclasses import asdict

    from prime_train.checkpoints.verify import verify
    from prime_train.cli.checkpoints.progress_bar import bar
    from prime_train.core.text.formatting import size

    with bar(f"step {manifest.step}", manifest.size) as progress:
        flaws = verify(found.bucket, manifest, progress=progress)
    name = f"step {manifest.step} of attempt {manifest.attempt}"
    if not quiet:
        count = f"{len(manifest.files)} files, {size(manifest.size)}"
        typer.echo(f"{name}: {'DAMAGED' if flaws else 'whole'} ({count})")
        for flaw in flaws[:FLAWS_SHOWN_MAX]:
            typer.echo(f"  {flaw.path} {flaw.what}")
        if len(flaws) > FLAWS_SHOWN_MAX:
            typer.echo(f"  and {len(flaws) - FLAWS_SHOWN_MAX} more; --json names them")
    return Verdict(
        step=manifest.step,
        attempt=manifest.attempt,
        key=manifest.key,
        size_bytes=manifest.size,
        whole=not flaws,
        flaws=[asdict(flaw) for flaw in flaws],
    )


def _unread(key: str, *, quiet: bool) -> Verdict:
    if not quiet:
        typer.echo(f"{key}: the manifest cannot be read")
    return Verdict(step=None, attempt=None, key=key, size_bytes=0, whole=False, flaws=[])
