"""Determine what an event asks to launch, and whether it may: only a person with push access may cause
spending.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.github.api import GitHub
from prime_train.github.events import Dispatch, Event, PullRequest, Trigger
from prime_train.github.repository import has_commit, may_write, pull_of, pulls_with
from prime_train.launch.code.archive import checkout_of

LABEL, PROBE_LABEL = "train", "probe"
UPDATES = frozenset({"opened", "reopened", "synchronize"})
"""What happens to a pull request when commits are proposed. It launches probes where the repository's
settings say so, and nothing else.
"""


@dataclass(frozen=True)
class LaunchRequest:
    """A request to launch a run. `key`: identifies the request; identical for repeated deliveries of the same
    event. `branch`: the branch from which it is launched, empty if unknown; `base`: the branch that its pull
    request proposes to change, empty if it is not launched from a pull request's own branch. `probe`: only a
    probe is launched; `by_itself`: no person asked for it, but the repository's settings say that commits
    that are proposed are measured.
    """

    config: Path
    commit: str
    pull: int | None
    key: str
    branch: str = ""
    base: str = ""
    probe: bool = False
    by_itself: bool = False


def requested_launch(
    trigger: Trigger, github: GitHub, config: Path, *, again: bool, start_from: str = "", probe: bool = False
) -> LaunchRequest:
    """Return the launch request of the event. `start_from`: the checkpoint to start from, empty for none;
    `probe`: whether the job asks only for a probe. Raises UsageError if the event may not launch anything, or
    is about another commit than the one checked out.
    """
    event, commit = trigger.event, checked_out(trigger)
    probe = probe or (isinstance(event, PullRequest) and event.label == PROBE_LABEL)
    pull = (
        _allowed(trigger, event, github, probe=probe)
        if isinstance(event, PullRequest)
        else _pull_of(github, commit)
    )
    parts = [trigger.repository, str(config), commit]
    if again or isinstance(event, Dispatch):
        parts += [_of_dispatch(trigger, again=again)]
    if start_from:
        parts += [f"from {start_from}"]
    if probe:
        parts += ["probe"]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    by_itself = isinstance(event, PullRequest) and event.action in UPDATES
    return LaunchRequest(
        config, commit, pull, key, *_branches(event, github, pull), probe=probe, by_itself=by_itself
    )


def _branches(event: Event, github: GitHub, pull: int | None) -> tuple[str, str]:
    """Return the branch from which a run is launched, and the one that its pull request proposes to
    change.
    """
    if isinstance(event, PullRequest):
        return (event.base_branch, "") if event.merged else (event.branch, event.base_branch)
    branch = event.branch if isinstance(event, Dispatch) else ""
    proposed = pull_of(github, pull) if pull is not None and branch else None
    is_proposed = proposed is not None and proposed.head.ref == branch and proposed.base.ref != branch
    return branch, proposed.base.ref if proposed is not None and is_proposed else ""


def launches(trigger: Trigger) -> bool:
    """Return whether the job was started by a pull request event that launches the pull request's configs.
    Whether its sender may do that is checked elsewhere.
    """
    return isinstance(trigger.event, PullRequest) and not _why_not(trigger, trigger.event, probe=False)


def checked_out(trigger: Trigger) -> str:
    """Return the commit checked out in the working folder. Raises UsageError if the folder is not a git
    checkout, has uncommitted changes, or is at another commit than the event's.
    """
    event, found = trigger.event, checkout_of(Path())
    if found is None:
        raise UsageError(
            "the working folder is not a git checkout",
            fix="check out the repository in an earlier step (actions/checkout)",
        )
    if found.is_dirty:
        raise UsageError(
            "the checkout has uncommitted changes, but a launch must be reproducible from a commit",
            fix="remove earlier steps that change files",
        )
    commits = {trigger.commit} | (
        {event.head, event.merge_commit} if isinstance(event, PullRequest) else set()
    )
    if trigger.commit and found.commit not in commits:
        raise UsageError(
            f"commit {found.commit[:12]} is checked out, but the event is about {trigger.commit[:12]}",
            fix="check out the event's commit",
        )
    return found.commit


def _allowed(trigger: Trigger, event: PullRequest, github: GitHub, *, probe: bool) -> int:
    why = _why_not(trigger, event, probe=probe)
    if not why and (not event.sender_is_person or not may_write(github, event.sender)):
        why = f"{event.sender[:50]} may not launch: only people who may push to {trigger.repository} can"
    if why:
        raise UsageError(why, code=Exit.EXTERNAL_REFUSED)
    return event.number


def _why_not(trigger: Trigger, event: PullRequest, *, probe: bool) -> str:
    """Return why this pull request event may not launch a run, or "" if it may. `probe`: whether the job asks
    only for a probe. The permission of the event's sender is checked elsewhere.
    """
    if event.head_repository != trigger.repository:
        return "a pull request from a fork cannot launch runs: its configs are only checked"
    match event.action:
        case "labeled":
            known = (LABEL, PROBE_LABEL)
            return (
                ""
                if event.label in known
                else f"the label {event.label[:50]!r} does not launch a run; {' and '.join(known)} do"
            )
        case "closed":
            return "" if event.merged else "the pull request was closed without being merged"
        case action if probe and action in UPDATES:
            return ""
        case _:
            return (
                f"a pull request that was {event.action[:50]} does not launch a run; the label {LABEL} does"
            )


def _pull_of(github: GitHub, commit: str) -> int | None:
    """Return the number of the pull request that introduced the commit and on which the run is reported, or
    None. Raises UsageError if the commit is not on GitHub.
    """
    if not has_commit(github, commit):
        raise UsageError(
            f"commit {commit[:12]} is not on GitHub, so machines could not fetch it", fix="push it"
        )
    return next(iter(pulls_with(github, commit)), None)


def _of_dispatch(trigger: Trigger, *, again: bool) -> str:
    """Return the part of the request's key that distinguishes one dispatch from another.

    For a manual dispatch that is the workflow run's id, which stays the same when jobs are rerun. A
    repository_dispatch event may be delivered twice, so it is identified by `id` in its payload; without an
    `id`, all such events count as the same unless `again` is set.
    """
    event = trigger.event
    if isinstance(event, Dispatch) and event.action and (event.text("id") or not again):
        return f"event {event.text('id')}"
    return f"run {trigger.job_id}"
