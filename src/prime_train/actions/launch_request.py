"""Determine what an event asks to launch, and whether it may: only a person with push access may cause spending."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prime_train.actions.event import Dispatch, Event, PullRequest
from prime_train.actions.job import Job
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.adapters.github import GitHub

LABEL = "train"
KEY_CHARS = 10
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"


@dataclass(frozen=True)
class Wish:
    """A request to launch a run. `key`: identifies the request; identical for repeated deliveries of the same event."""

    config: Path
    commit: str
    pull: int | None
    key: str


def wish(job: Job, event: Event, github: "GitHub", config: Path, *, again: bool) -> Wish:
    """Return the launch request of the event. Raises UsageError if the event may not launch anything, or is about another commit than the
    one checked out."""
    commit = checked_out(job, event)
    pull = _allowed(job, event, github) if isinstance(event, PullRequest) else _pull_of(github, commit)
    parts = [job.repository, str(config), commit]
    if again or isinstance(event, Dispatch):
        parts += [_of_dispatch(job, event, again=again)]
    return Wish(config, commit, pull, hashlib.sha256("\n".join(parts).encode()).hexdigest())


def run_id_of(name: str, key: str) -> str:
    """Return the run id for a request's key. The id is deterministic, so that a request delivered twice leads to the same run."""
    number, letters = int(key, 16), []
    for _ in range(KEY_CHARS):
        number, rest = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[rest])
    return f"{name}-{''.join(letters)}"


def checked_out(job: Job, event: Event) -> str:
    """Return the commit checked out in the working folder. Raises UsageError if the folder is not a git checkout, has uncommitted changes,
    or is at another commit than the event's."""
    from prime_train.adapters.code_archive import checkout_of

    found = checkout_of(Path())
    if found is None:
        raise UsageError("the working folder is no git checkout", fix="check the repository out before (actions/checkout)")
    if found.is_dirty:
        raise UsageError(
            "the checkout has changes that no commit has, and what is launched must be found again", fix="let no step change files before"
        )
    meant = {job.commit} | ({event.head, event.merge_commit} if isinstance(event, PullRequest) else set())
    if job.commit and found.commit not in meant:
        raise UsageError(f"commit {found.commit[:12]} is checked out, the event is about {job.commit[:12]}", fix="check that one out")
    return found.commit


def _allowed(job: Job, event: PullRequest, github: "GitHub") -> int:
    from prime_train.adapters.github import may_write

    why = _why_not(job, event)
    if not why and (not event.sender_is_person or not may_write(github, event.sender)):
        why = f"{event.sender[:50]} may not launch: that takes a person who may push to {job.repository}"
    if why:
        raise UsageError(why, code=Exit.OUTSIDE_REFUSED)
    return event.number


def _why_not(job: Job, event: PullRequest) -> str:
    """Return why this pull request event may not launch a run, or "" if it may, provided that its sender may."""
    if event.head_repository != job.repository:
        return "a fork's pull request launches nothing: it can only be checked"
    match event.action:
        case "labeled":
            return "" if event.label == LABEL else f"the label {event.label[:50]!r} launches nothing; {LABEL} does"
        case "closed":
            return "" if event.merged else "the pull request was closed, not merged"
        case _:
            return f"a pull request that was {event.action[:50]} launches nothing; the label {LABEL} does"


def _pull_of(github: "GitHub", commit: str) -> int | None:
    """Return the number of the pull request that introduced the commit and on which the run is reported, or None. Raises UsageError if the
    commit is not on GitHub."""
    from prime_train.adapters.github import has_commit, pulls_with

    if not has_commit(github, commit):
        raise UsageError(f"commit {commit[:12]} is not on GitHub: no machine could be told of it again", fix="push it")
    return next(iter(pulls_with(github, commit)), None)


def _of_dispatch(job: Job, event: Event, *, again: bool) -> str:
    """Return the part of the request's key that distinguishes one dispatch from another.

    For a manual dispatch that is the workflow run's id, which stays the same when jobs are rerun. A repository_dispatch event may be
    delivered twice, so it is identified by `id` in its payload; without an `id`, all such events count as the same unless `again` is set.
    """
    if isinstance(event, Dispatch) and event.action and (event.text("id") or not again):
        return f"event {event.text('id')}"
    return f"run {job.run_id}"
