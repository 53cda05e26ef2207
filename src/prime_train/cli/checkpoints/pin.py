"""`prime-train checkpoints RUN pin STEP` and `unpin STEP`: protect a checkpoint from every clean-up, or end that."""

import typer

from prime_train.cli.checkpoints.options import AsJson, BucketUrl, PinnedStep, RunId
from prime_train.core.errors import UsageError


def pin(run: RunId, step: PinnedStep, bucket: BucketUrl = None, as_json: AsJson = False) -> None:
    """Keep a checkpoint from every clean-up."""
    from prime_train.core.keys import pin_key
    from prime_train.operations.checkpoints import look, of_step

    found = look(run, bucket)
    manifest = of_step(found, step)
    found.bucket.put(pin_key(found.run_id, step, manifest.attempt), b"")
    lacks = found.catalog.missing(manifest)
    _say(f"step {step} of attempt {manifest.attempt} is pinned", step=step, attempts=[manifest.attempt], pinned=True, as_json=as_json)
    if lacks:
        typer.echo(f"warning: it is not complete, {len(lacks)} of its chunks are missing", err=True)


def unpin(run: RunId, step: PinnedStep, bucket: BucketUrl = None, as_json: AsJson = False) -> None:
    """Let a pinned checkpoint go when its time comes."""
    from prime_train.core.keys import parse_pin_key, pin_key, pin_prefix
    from prime_train.operations.checkpoints import look

    found = look(run, bucket)
    pins = [place for stat in found.bucket.list(pin_prefix(found.run_id)) if (place := parse_pin_key(found.run_id, stat.key))]
    attempts = [attempt for pinned, attempt in pins if pinned == step]
    if not attempts:
        steps = ", ".join(str(pinned) for pinned in sorted({pinned for pinned, _ in pins}))
        raise UsageError(f"step {step} of {found.run_id} is not pinned", fix=f"pinned are {steps}" if steps else "nothing is")
    for attempt in attempts:
        found.bucket.delete(pin_key(found.run_id, step, attempt))
    _say(f"step {step} is no longer pinned", step=step, attempts=attempts, pinned=False, as_json=as_json)


def _say(text: str, *, step: int, attempts: list[int], pinned: bool, as_json: bool) -> None:
    import json

    print(json.dumps({"step": step, "attempts": attempts, "pinned": pinned}, indent=2) if as_json else text)
