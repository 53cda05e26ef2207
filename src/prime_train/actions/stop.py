"""`prime-train gha stop`: stop a run, or do what a comment or an event asks: stop, resume or status.

Comments count only from people with push access to the repository, which is checked with GitHub's API, not read from the event.
"""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.actions.event import Comment, Event
    from prime_train.actions.job import Job
    from prime_train.adapters.github import GitHub
    from prime_train.ports import RunRecord, Store

COMMAND = "/prime-train"
DOES = ("stop", "resume", "status")
EVENTS = {"prime-train-stop": "stop", "prime-train-resume": "resume"}


@dataclass(frozen=True)
class Wanted:
    """A request to act on a run. `does`: one of `DOES`; `run`: the run's name, empty for the run of the pull request."""

    does: str
    run: str
    comment: "Comment | None" = None


def stop(
    run: Annotated[str, typer.Option(envvar="PRIME_TRAIN_INPUT_RUN", help="The run's id; none: what the event names.")] = "",
    now: Annotated[bool, typer.Option("--now", envvar="PRIME_TRAIN_INPUT_NOW", help="Without waiting for a last checkpoint.")] = False,
    minutes: Annotated[
        float, typer.Option(envvar="PRIME_TRAIN_INPUT_MINUTES", min=0, max=300, help="Go on for so long while its machine goes or comes.")
    ] = 0,
) -> Exit:
    """Stop a run, or do what a comment asks."""
    from prime_train.actions import control_plane as plane
    from prime_train.actions.event import read_event
    from prime_train.actions.job import Job, hide
    from prime_train.control_plane.wiring.github_auth import client

    hide(os.environ)
    job = Job.of(os.environ)
    github = client(os.environ)(job.repository)
    wanted = _wanted(job, read_event(job), github, run)
    if wanted is None:
        job.output(run="", state="", did="nothing")
        return Exit.OK
    home = plane.home()
    store = home.store()
    held = _do(store, _meant(store, job, wanted), wanted.does, now=now)
    if wanted.comment is not None:
        _react(job, github, wanted.comment, "+1")
    if wanted.does != "status" and held.run.spec.hardware.provider in home.pods().names:
        plane.looks(home, minutes=minutes, only=held.run.run_id)
    held = store.load(held.run.run_id) or held
    _answer(job, store, held, wanted)
    return Exit.OK


def _wanted(job: "Job", event: "Event", github: "GitHub", run: str) -> Wanted | None:
    """Return the event's request, or None if it makes no valid one or its author may not. Raises UsageError if no run is named."""
    from prime_train.actions.event import Comment, Dispatch

    if isinstance(event, Comment):
        return _of_comment(job, event, github)
    action = event.action if isinstance(event, Dispatch) else ""
    named = run or (event.text("run") if isinstance(event, Dispatch) else "")
    if not named:
        raise UsageError("no run is named", fix="set the input run, or run in the payload, to the run's id")
    return Wanted(EVENTS.get(action, "stop"), named)


def _of_comment(job: "Job", event: "Comment", github: "GitHub") -> Wanted | None:
    from prime_train.adapters.github import may_write

    words = event.body.split()
    if not event.is_pull or words[:1] != [COMMAND]:
        return None
    if not event.author_is_person or not may_write(github, event.author):
        job.notice(f"{event.author[:50]} may not push to {job.repository}: nothing was done")
        return None
    does = words[1] if len(words) > 1 else ""
    if does not in DOES or len(words) > 3:
        job.notice(f"{' '.join(words)[:100]!r} is no command: {COMMAND} {'|'.join(DOES)} [RUN]")
        _react(job, github, event, "confused")
        return None
    return Wanted(does, words[2] if len(words) > 2 else "", event)


def _meant(store: "Store", job: "Job", wanted: Wanted) -> "RunRecord":
    """Return the run that the request names, or the run of the pull request. A comment may only refer to runs of its own repository. Raises
    UsageError if the run is not of this repository, or if not exactly one run of the pull request matches."""
    from prime_train.operations.run_lookup import find

    runs = [run for run in store.list_runs() if run.origin is not None and run.origin.repository == job.repository]
    if wanted.run:
        held = find(store, wanted.run)
        if wanted.comment is not None and held.run.run_id not in [run.run_id for run in runs]:
            raise UsageError(f"{held.run.run_id} was not launched from {job.repository}", code=Exit.OUTSIDE_REFUSED)
        return held
    assert wanted.comment is not None
    of_pull = [run for run in runs if run.origin is not None and run.origin.pull == wanted.comment.issue]
    is_meant = [run for run in of_pull if run.is_over == (wanted.does == "resume")] or of_pull[:1]
    if len(is_meant) != 1:
        said = ", ".join(run.run_id for run in is_meant[:6])
        raise UsageError(
            f"{len(is_meant)} runs of this pull request can be meant: {said}" if said else "this pull request has no run",
            fix=f"write which: {COMMAND} {wanted.does} RUN" if said else "",
        )
    return find(store, is_meant[0].run_id)


def _do(store: "Store", held: "RunRecord", does: str, *, now: bool) -> "RunRecord":
    from prime_train.core.change import resumed, wished
    from prime_train.core.run import DesiredState
    from prime_train.operations.run_requests import ask

    want = DesiredState.CANCEL if now else DesiredState.STOP
    match does:
        case "stop":
            if held.run.is_over or held.run.want is want:
                return held
            return ask(store, held.run.run_id, lambda run, now_s: wished(run, want, now_s))
        case "resume":
            if not held.run.is_over and held.run.want is not DesiredState.RUN:
                raise UsageError(f"{held.run.run_id} is still being stopped", fix="ask again when it has stopped", code=Exit.OUTSIDE_FAILED)
            return ask(store, held.run.run_id, resumed) if held.run.is_over else held
        case _:
            return held


def _answer(job: "Job", store: "Store", held: "RunRecord", wanted: Wanted) -> None:
    from prime_train.actions.publish import show, summarize

    show(job, store, held)
    summarize(job, store, held)
    job.output(run=held.run.run_id, state=held.run.state.value, did=wanted.does)
    typer.echo(f"{held.run.run_id} is {held.run.state.value}; asked: {wanted.does}")


def _react(job: "Job", github: "GitHub", comment: "Comment", content: str) -> None:
    from prime_train.adapters.github import react
    from prime_train.ports import OutsideError

    try:
        react(github, comment.comment_id, content)
    except OutsideError as error:
        job.warning(f"no reaction: {error}")
