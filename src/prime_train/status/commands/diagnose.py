"""`prime-train diagnose RUN`: explain what happened to a run, and why."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.buckets.port import Bucket
from prime_train.errors import UsageError
from prime_train.text.invocations import worded
from prime_train.text.redaction import redacted

if TYPE_CHECKING:
    from prime_train.outputs.logs.log_ending import LogEnding
    from prime_train.runs.run import Run
    from prime_train.status.diagnose import RunDiagnosis

LOG_LINES = 5


def diagnose(
    run: Annotated[str, typer.Argument(help="The run, or the start of its id.", show_default=False)] = "",
    log: Annotated[
        Path | None, typer.Option("--log", help="Log of a trainer, instead of a run.", show_default=False)
    ] = None,
    exit_code: Annotated[
        int, typer.Option("--exit-code", help="With --log: exit code; a signal as 128 plus its number.")
    ] = 1,
    kind: Annotated[str, typer.Option("--kind", help="With --log: kind of the trainer.")] = "command",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain what happened to a run, or what a log's end means.

    The explanation is based on the run's attempts, heartbeats, provider, metrics, evidence and W&B. It says
    whether the run is healthy, interrupted, without reward or silent, or whether only W&B lags behind.

    With --log, the log of any trainer will do, and no run and no control plane are needed: the answer is the
    cause, what the tool would do (stop at once, the same machine, another machine, or after a back-off), and
    the line that says so.
    """
    from prime_train.app.home import Home
    from prime_train.outputs.logs.log_ending import ending_of
    from prime_train.status.diagnose import diagnose as diagnosed

    if (log is None) == (not run):
        raise UsageError("give either a run, or the log of a trainer with --log FILE")
    if log is not None:
        _print_log_ending(ending_of(log, code=exit_code, kind=kind), as_json=as_json)
        return
    home = Home.of(os.environ)
    found = diagnosed(
        home.store(), home.files(), home.observer(), run, lambda text: typer.echo(text, err=True)
    )
    if as_json:
        print(json.dumps(_record(found), indent=2))
    else:
        _print(home.bucket, found)


def _print_log_ending(found: "LogEnding", *, as_json: bool) -> None:
    record = {
        "cause": found.found.cause.value,
        "title": found.title,
        "action": found.next.action.value,
        "line": found.found.line,
        "why": found.next.why,
        "advice": found.advice,
    }
    if as_json:
        print(json.dumps(record, indent=2))
        return
    typer.echo(
        f"{found.title} ({record['cause']}): "
        f"{record['action']}{f', because {found.next.why}' if found.next.why else ''}"
    )
    typer.echo(f"  because: {found.found.line}")
    if found.advice:
        typer.echo(f"  do: {found.advice}")


def _record(found: "RunDiagnosis") -> dict[str, object]:
    from prime_train.status.run_status import RunFacts, status_of

    facts = found.facts
    seen = asdict(facts.tracker) if facts.tracker is not None else facts.tracker_error or None
    return {
        "run": facts.record.run.run_id,
        "status": status_of(RunFacts(facts.record, facts.now_s)).row(),
        "conclusions": [{**asdict(one), "advice": worded(one.advice)} for one in found.conclusions],
        "wandb": {"url": found.wandb_url, "seen": seen},
        "evidence": list(found.evidence),
    }


def _print(bucket: Callable[[], Bucket], found: "RunDiagnosis") -> None:
    from prime_train.status.run_status import RunFacts, status_of

    facts = found.facts
    now = status_of(RunFacts(facts.record, facts.now_s))
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
    _print_evidence(bucket, facts.record.run, found.evidence)


def _print_evidence(bucket: Callable[[], Bucket], run: "Run", kept: Sequence[str]) -> None:
    from prime_train.outputs.logs.log_tail import stored_log

    if not kept:
        return
    typer.echo("\nsaved in the bucket:")
    for key in kept:
        typer.echo(f"  {key}")
    key, text = stored_log(bucket(), run, LOG_LINES)
    if text:
        typer.echo(f"--- the end of {key}\n{redacted(text)}")
