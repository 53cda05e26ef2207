"""`prime-train diagnose RUN`: explain what happened to a run, and why."""

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prime_train.control_plane.wiring.home import Home
    from prime_train.core.run import Run
    from prime_train.operations.diagnose import RunDiagnosis

LOG_LINES = 5


def diagnose(
    run: Annotated[str, typer.Argument(help="The run, or the start of its id.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what happened to a run, and why.

    From its attempts, its heartbeats, its provider, its trainer's figures, what was kept, and W&B: is it well, interrupted, without reward,
    silent, or is only W&B late?
    """
    import json

    from prime_train.control_plane.wiring.home import Home
    from prime_train.operations.diagnose import diagnose as diagnosed

    home = Home.of(os.environ)
    found = diagnosed(home, run, lambda text: typer.echo(text, err=True))
    if as_json:
        print(json.dumps(_record(found), indent=2))
    else:
        _print(home, found)


def _record(found: "RunDiagnosis") -> dict[str, object]:
    from prime_train.reports.run_status import standing

    facts = found.facts
    seen = asdict(facts.tracker) if facts.tracker is not None else facts.untold or None
    return {
        "run": facts.held.run.run_id,
        "standing": standing(facts.held, facts.now_s).row(),
        "conclusions": [asdict(one) for one in found.conclusions],
        "wandb": {"url": found.wandb_url, "seen": seen},
        "evidence": list(found.evidence),
    }


def _print(home: "Home", found: "RunDiagnosis") -> None:
    from prime_train.core.text.redaction import masked
    from prime_train.reports.run_status import standing

    facts = found.facts
    now = standing(facts.held, facts.now_s)
    typer.echo(f"{now.run}: {now.state}, attempt {now.attempt}, step {now.figures.steps_said}")
    if found.wandb_url:
        typer.echo(f"W&B: {found.wandb_url}")
    for one in found.conclusions:
        typer.echo(f"\n{one.title}")
        typer.echo(f"  because: {masked(one.because)}")
        if one.advice:
            typer.echo(f"  do: {one.advice}")
    _print_kept(home, facts.held.run, found.evidence)


def _print_kept(home: "Home", run: "Run", kept: "Sequence[str]") -> None:
    from prime_train.core.text.redaction import masked
    from prime_train.operations.run_logs.log_tail import kept_log

    if not kept:
        return
    typer.echo("\nkept in the bucket:")
    for key in kept:
        typer.echo(f"  {key}")
    key, text = kept_log(home, run, LOG_LINES)
    if text:
        typer.echo(f"--- the end of {key}\n{masked(text)}")
