"""`prime-train diagnose RUN`: what happened to it, and why."""

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from prime_train.adapters.tracker_wandb import RunSeen
    from prime_train.control_plane.wiring.home import Home
    from prime_train.core.run import Run
    from prime_train.core.verdict import Verdict
    from prime_train.ports import Held
    from prime_train.reports.diagnosis.conclusion import Conclusion, Facts

LOG_LINES = 5
EVIDENCE_MAX = 1000


def diagnose(
    run: Annotated[str, typer.Argument(help="The run, or the start of its id.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what happened to a run, and why.

    From its attempts, its beats, its provider, its trainer's figures, what was kept, and W&B: is it well, interrupted, without reward,
    silent, or is only W&B late?
    """
    import json

    from prime_train.control_plane.wiring.home import Home
    from prime_train.operations.run_lookup import find
    from prime_train.reports.diagnosis.conclusions import conclude

    home = Home.of(os.environ)
    facts = _facts(home, find(home.store(), run))
    found, kept = conclude(facts), _kept(home, facts.held.run)
    if as_json:
        print(json.dumps(_record(home, facts, found, kept), indent=2))
    else:
        _print(home, facts, found, kept)


def _facts(home: "Home", held: "Held") -> "Facts":
    from prime_train.control_plane.wiring.embedded import is_left_alone
    from prime_train.reports.diagnosis.conclusion import Facts

    now_s = home.store().now_s()
    tracker, untold = _tracked(home, held.run)
    return Facts(
        held,
        now_s,
        _verdict(home, held, tracker, now_s),
        tracker,
        untold,
        _rewards(held),
        served=held.run.is_over or not is_left_alone(home),
    )


def _verdict(home: "Home", held: "Held", tracker: "RunSeen | None", now_s: int) -> "Verdict | None":
    """As a watcher would find it now; None where no attempt holds the lease."""
    from dataclasses import replace

    from prime_train.control_plane.reconcile.seeing import gather, look
    from prime_train.core.run import ATTENDED
    from prime_train.core.verdict import TrackerSeen, judge

    if held.run.state not in ATTENDED or held.run.attempt is None:
        return None
    world = home.world("")
    evidence = gather(world, held, look(world), now_s)
    if tracker is not None:
        evidence = replace(evidence, tracker=TrackerSeen(tracker.step or 0, tracker.heard_s))
    return judge(held.run, evidence, now_s)


def _tracked(home: "Home", run: "Run") -> "tuple[RunSeen | None, str]":
    """What W&B tells of it, None where it has never heard of it or has not to; and why it could not be asked."""
    from prime_train.adapters.tracker_wandb import KEY, wandb_from
    from prime_train.core.tracker.pages import entity_of
    from prime_train.ports import OutsideError

    if run.spec.wandb is None:
        return None, ""
    wandb = wandb_from(home.environment)
    if wandb is None:
        return None, f"it is not asked: {KEY} is not set"
    try:
        seen = wandb.run(run.spec.wandb.project, run.run_id, entity=entity_of(run))
    except OutsideError as error:
        return None, str(error)
    return (seen if seen is not None and seen.heard_s else None), ""


def _rewards(held: "Held") -> dict[int, float]:
    """By step, from the trainer's own figures; of a step that was made twice, the last. Empty where they cannot be had."""
    from prime_train.cli.profile.sources import of_run
    from prime_train.ports import OutsideError
    from prime_train.trainers import trainer_for

    try:
        source = of_run(held)
    except OutsideError as error:
        typer.echo(f"the trainer's figures cannot be read: {error}", err=True)
        return {}
    reader = trainer_for(held.run.spec).reader(held.run.spec)
    made = (reader.read(line) for line in (source.lines if source is not None else ()))
    return {progress.step: progress.reward for progress in made if progress is not None and progress.reward is not None}


def _kept(home: "Home", run: "Run") -> list[str]:
    """The keys of what its attempts left in the bucket."""
    from itertools import islice

    from prime_train.core.keys import evidence_prefix

    return [stat.key for stat in islice(home.bucket().list(evidence_prefix(run.run_id)), EVIDENCE_MAX)]


def _url(home: "Home", facts: "Facts") -> str:
    from prime_train.adapters.tracker_wandb import ENTITY
    from prime_train.core.tracker.pages import page_url

    known = facts.tracker.url if facts.tracker is not None else ""
    return known or page_url(facts.held.run, entity=home.environment.get(ENTITY, ""))


def _record(home: "Home", facts: "Facts", found: "list[Conclusion]", kept: list[str]) -> dict[str, object]:
    from prime_train.reports.run_status import standing

    seen = asdict(facts.tracker) if facts.tracker is not None else facts.untold or None
    return {
        "run": facts.held.run.run_id,
        "standing": standing(facts.held, facts.now_s).row(),
        "conclusions": [asdict(one) for one in found],
        "wandb": {"url": _url(home, facts), "seen": seen},
        "evidence": kept,
    }


def _print(home: "Home", facts: "Facts", found: "list[Conclusion]", kept: list[str]) -> None:
    from prime_train.core.text.redaction import masked
    from prime_train.reports.run_status import standing

    now = standing(facts.held, facts.now_s)
    typer.echo(f"{now.run}: {now.state}, attempt {now.epoch}, step {now.figures.steps_said}")
    if url := _url(home, facts):
        typer.echo(f"W&B: {url}")
    for one in found:
        typer.echo(f"\n{one.title}")
        typer.echo(f"  because: {masked(one.because)}")
        if one.advice:
            typer.echo(f"  do: {one.advice}")
    _print_kept(home, facts.held.run, kept)


def _print_kept(home: "Home", run: "Run", kept: list[str]) -> None:
    from prime_train.core.text.redaction import masked
    from prime_train.operations.log_tail import kept_log

    if not kept:
        return
    typer.echo("\nkept in the bucket:")
    for key in kept:
        typer.echo(f"  {key}")
    key, text = kept_log(home, run, LOG_LINES)
    if text:
        typer.echo(f"--- the end of {key}\n{masked(text)}")
