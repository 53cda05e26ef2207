"""`prime-train checkpoints RUN pin STEP` and `unpin STEP`: protect a checkpoint from every clean-up, or
remove that protection.
"""

import json

import typer

from prime_train.checkpoints.commands.options import BucketUrl, PinnedStep, RunId, found_run
from prime_train.terminal.arguments import AsJson


def pin(run: RunId, step: PinnedStep, bucket: BucketUrl = None, as_json: AsJson = False) -> None:
    """Pin a checkpoint, so that it is never deleted."""
    from prime_train.checkpoints import pins
    from prime_train.checkpoints.manifest import checkpoint_title

    manifest, missing = pins.pin(found_run(run, bucket), step)
    _print_pins(
        f"{checkpoint_title(step, manifest.attempt)} is pinned",
        step=step,
        attempts=[manifest.attempt],
        pinned=True,
        as_json=as_json,
    )
    if missing:
        typer.echo(f"warning: the checkpoint is incomplete: {missing} of its chunks are missing", err=True)


def unpin(run: RunId, step: PinnedStep, bucket: BucketUrl = None, as_json: AsJson = False) -> None:
    """Unpin a checkpoint, so that it may be deleted again."""
    from prime_train.checkpoints import pins

    attempts = pins.unpin(found_run(run, bucket), step)
    _print_pins(
        f"step {step} is no longer pinned", step=step, attempts=attempts, pinned=False, as_json=as_json
    )


def _print_pins(text: str, *, step: int, attempts: list[int], pinned: bool, as_json: bool) -> None:
    print(json.dumps({"step": step, "attempts": attempts, "pinned": pinned}, indent=2) if as_json else text)
