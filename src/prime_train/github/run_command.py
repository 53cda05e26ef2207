"""Determine what an event asks to do with a run: stop, resume or status.

Comments count only from people with push access to the repository, which is checked with GitHub's API, not
read from the event.
"""

from collections.abc import Callable
from dataclasses import dataclass

from prime_train.app.home import Home
from prime_train.errors import UsageError
from prime_train.github.api import GitHub
from prime_train.github.events import Comment, Dispatch, Trigger
from prime_train.github.repository import may_write
from prime_train.github.runs import DOES, STATUS, do_once, run_of_pull
from prime_train.runs.lookup import find
from prime_train.runs.store import RunRecord, Store
from prime_train.watch.loop import sweep_while_moving
from prime_train.watch.port import Watched

COMMAND = "/prime-train"
EVENTS = {"prime-train-stop": "stop", "prime-train-resume": "resume"}


@dataclass(frozen=True)
class RunCommand:
    """A request to act on a run. `does`: one of `DOES`; `run`: the run's name, empty for the run of the pull
    request.
    """

    does: str
    run: str
    comment: Comment | None = None


@dataclass(frozen=True)
class Ignored:
    """Why an event leads to nothing; empty if it was not meant as a request. `malformed`: the comment that is
    no command, although its author may give one.
    """

    why: str = ""
    malformed: Comment | None = None


def run_command(trigger: Trigger, github: GitHub, run: str) -> RunCommand | Ignored:
    """Return the event's request. `run`: the run's name, if the job names one. Raises UsageError if no run is
    named.
    """
    event = trigger.event
    if isinstance(event, Comment):
        return _of_comment(trigger, event, github)
    action = event.action if isinstance(event, Dispatch) else ""
    named = run or (event.text("run") if isinstance(event, Dispatch) else "")
    if not named:
        raise UsageError("no run was given", fix="set the input run, or run in the payload, to the run's id")
    return RunCommand(EVENTS.get(action, "stop"), named)


def commanded_run(store: Store, repository: str, command: RunCommand) -> RunRecord:
    """Return the run that the command is about. Raises UsageError as `find` and `run_of_pull` do."""
    if command.comment is None:
        return find(store, command.run)
    return run_of_pull(store, repository, command.comment.issue, command.run, command.does)


def request_once(home: Home, repository: str, command: RunCommand, *, now: bool) -> RunRecord:
    """Save what the command asks for and return the run. `now`: a run that is stopped ends without a last
    checkpoint. Raises UsageError as `commanded_run` and `do_once` do.
    """
    store = home.store()
    return do_once(store, commanded_run(store, repository, command), command.does, now=now)


def follow_up(
    home: Home, command: RunCommand, record: RunRecord, watched: Callable[[], Watched], *, minutes: float
) -> RunRecord:
    """If the command changes the run and the run's provider can be called from here, sweep for up to
    `minutes` while the machine starts or ends. Returns the run as it is then. `watched` returns a function
    that is called with the events of runs meanwhile.
    """
    if command.does != STATUS and home.calls_providers_of(record.run.spec):
        sweep_while_moving(home.watching(watched(), waits=True), minutes=minutes, only=record.run.run_id)
    return home.store().load(record.run.run_id) or record


def _of_comment(trigger: Trigger, comment: Comment, github: GitHub) -> RunCommand | Ignored:
    words = comment.body.split()
    if not comment.is_pull or words[:1] != [COMMAND]:
        return Ignored()
    if not comment.author_is_person or not may_write(github, comment.author):
        return Ignored(
            f"{comment.author[:50]} may not push to {trigger.repository}, so the command was ignored"
        )
    does = words[1] if len(words) > 1 else ""
    if does not in DOES or len(words) > 3:
        return Ignored(
            f"{' '.join(words)[:100]!r} is not a command: {COMMAND} {'|'.join(DOES)} [RUN]", comment
        )
    return RunCommand(does, words[2] if len(words) > 2 else "", comment)
