"""`prime-train checkpoints RUN verify`: compare every byte in the bucket with what was saved."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.checkpoints.commands.options import BucketUrl, RunId, Step, found_run
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.terminal.arguments import AsJson
from prime_train.text.formatting import size

if TYPE_CHECKING:
    from prime_train.checkpoints.checkpoints_verify import VerifiedCheckpoint

DAMAGED_SHOWN_MAX = 50


def verify(
    run: RunId,
    step: Step = None,
    all_: Annotated[bool, typer.Option("--all", help="Verify every checkpoint in the bucket.")] = False,
    bucket: BucketUrl = None,
    as_json: AsJson = False,
) -> Exit:
    """Verify a checkpoint by reading every byte.

    Verifies the newest complete checkpoint unless another one is named. If a file differs from what was
    saved, it is named and the exit code is 1.
    """
    from prime_train.checkpoints.checkpoints_verify import verify as verify_one
    from prime_train.checkpoints.checkpoints_verify import verify_all
    from prime_train.checkpoints.commands.progress_bar import bar

    if all_ and step is not None:
        raise UsageError("--all and --step cannot be combined", fix="keep one")
    found, results = found_run(run, bucket), []
    for result in verify_all(found, bar) if all_ else verify_one(found, step, bar):
        results.append(result)
        if not as_json:
            _print(result)
    if as_json:
        print(json.dumps([_row(result) for result in results], indent=2))
    return Exit.OK if all(result.intact for result in results) else Exit.FINDINGS


def _print(result: "VerifiedCheckpoint") -> None:
    from prime_train.checkpoints.manifest import checkpoint_title

    one, damaged = result.manifest, result.damaged
    if one is None:
        typer.echo(f"{result.key}: the manifest cannot be read")
        return
    count = f"{len(one.files)} files, {size(one.size)}"
    typer.echo(f"{checkpoint_title(one.step, one.attempt)}: {'DAMAGED' if damaged else 'intact'} ({count})")
    for file in damaged[:DAMAGED_SHOWN_MAX]:
        typer.echo(f"  {file.path} {file.what}")
    if len(damaged) > DAMAGED_SHOWN_MAX:
        typer.echo(f"  and {len(damaged) - DAMAGED_SHOWN_MAX} more; --json lists them")


def _row(result: "VerifiedCheckpoint") -> dict[str, object]:
    one = result.manifest
    return {
        "step": one.step if one is not None else None,
        "attempt": one.attempt if one is not None else None,
        "key": result.key,
        "size_bytes": one.size if one is not None else 0,
        "intact": result.intact,
        "damaged": [asdict(one) for one in result.damaged],
    }
