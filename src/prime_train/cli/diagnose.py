"""`prime-train diagnose RUN`: explain what happened to a run, and why."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from prime_train.control_plane.wiring.home import Home
from prime_train.core.run import Run
from prime_train.core.text.commands import worded
from prime_train.core.text.redaction import redacted
from prime_train.operations.diagnose import RunDiagnosis
from prime_train.operations.diagnose import diagnose as diagnosed
from prime_train.operations.run_logs.log_tail import stored_log
from prime_train.reports.run_status import status_of

LOG_LINES = 5


def diagnose(
    run: Annotated[str, typer.Argument(help="The run, or the start of its id.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain what happened to a run, and why.

    The explanation is based on the run's attempts, heartbeats, provider, metrics, evidence and W&B. It says whether the run is healthy,
    interrupted, without reward or silent, or whether only W&B lags behind.
    """
    home = Home.of(os.environ)
    found = diagnosed(home, run, lambda text: typer.echo(text, err=True))
    if as_json:
        print(json.dumps(_record(found), indent=2))
    else:
        _print(home, found)


def _record(found: RunDiagnosis) -> dict[str, object]:
    facts = found.facts
    seen = asdict(facts.tracker) if facts.tracker is not None else facts.tracker_error or None
    return {
        "run": facts.record.run.run_id,
        "status": status_of(facts.record, facts.now_s).row(),
        "conclusions": [{**asdict(one), "advice": worded(one.advice)} for one in found.conclusions],
        "wandb": {"url": found.wandb_url, "seen": seen},
        "evidence": list(found.evidence),
    }


def _print(home: Home, found: RunDiagnosis) -> None:
    facts = found.facts
    now = status_of(facts.record, facts.now_s)
    typer.echo(f"{now.run}: {now.state}, attempt {now.attempt}, step {now.figures.steps_text}")
    for text in now.alert_texts:
        typer.echo(f"alert: {text}")
    if found.wandb_url:
        typer.echo(f"W&B: {found.wandb_url}")
    for one in found.conclusions:
        typer.echo(f"\n{one.title}")
        typer.echo(f"  because: {redacted(one.because)}")
        if one.advice:
            typer.echo(f"  do: {worded(one.advice)}")
    _print_evidence(home, facts.record.run, found.evidence)


def _print_evidence(home: Home, run: Run, kept: Sequence[str]) -> None:
    if not kept:
        return
    typer.echo("\nsaved in the bucket:")
    for key in kept:
        typer.echo(f"  {key}")
    key, text = stored_log(home, run, LOG_LINES)
    if text:
        typer.echo(f"--- the end of {key}\n{redacted(text)}")
