"""`prime-train checkpoints RUN verify`: compare every byte in the bucket with what was saved."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from prime_train.cli.checkpoints.options import AsJson, BucketUrl, RunId, Step, found_run
from prime_train.cli.checkpoints.progress_bar import bar
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit
from prime_train.core.text.formatting import size
from prime_train.operations.checkpoints.verify import Verdict, verify_all
from prime_train.operations.checkpoints.verify import verify as verify_one

FLAWS_SHOWN_MAX = 50


def verify(
    run: RunId,
    step: Step = None,
    all_: Annotated[bool, typer.Option("--all", help="Verify every checkpoint in the bucket.")] = False,
    bucket: BucketUrl = None,
    as_json: AsJson = False,
) -> Exit:
    """Verify a checkpoint by reading every byte.

    Verifies the newest complete checkpoint unless another one is named. If a file differs from what was saved, it is named and the exit
    code is 1.
    """
    if all_ and step is not None:
        raise UsageError("--all and --step cannot be combined", fix="keep one")
    found, verdicts = found_run(run, bucket), []
    for verdict in verify_all(found, bar) if all_ else verify_one(found, step, bar):
        verdicts.append(verdict)
        if not as_json:
            _print(verdict)
    if as_json:
        print(json.dumps([_row(verdict) for verdict in verdicts], indent=2))
    return Exit.OK if all(verdict.intact for verdict in verdicts) else Exit.FINDINGS


def _print(verdict: Verdict) -> None:
    one, flaws = verdict.manifest, verdict.flaws
    if one is None:
        typer.echo(f"{verdict.key}: the manifest cannot be read")
        return
    count = f"{len(one.files)} files, {size(one.size)}"
    typer.echo(f"step {one.step} of attempt {one.attempt}: {'DAMAGED' if flaws else 'intact'} ({count})")
    for flaw in flaws[:FLAWS_SHOWN_MAX]:
        typer.echo(f"  {flaw.path} {flaw.what}")
    if len(flaws) > FLAWS_SHOWN_MAX:
        typer.echo(f"  and {len(flaws) - FLAWS_SHOWN_MAX} more; --json lists them")


def _row(verdict: Verdict) -> dict[str, object]:
    one = verdict.manifest
    return {
        "step": one.step if one is not None else None,
        "attempt": one.attempt if one is not None else None,
        "key": verdict.key,
        "size_bytes": one.size if one is not None else 0,
        "intact": verdict.intact,
        "flaws": [asdict(flaw) for flaw in verdict.flaws],
    }
