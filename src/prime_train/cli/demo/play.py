"""Play the demo: record what happens for the chart, and preempt the machine."""

import threading
import time
from dataclasses import dataclass, field

from rich.console import Console
from rich.live import Live
from rich.text import Text

from prime_train.cli.demo.stage import Stage
from prime_train.cli.demo.view import view
from prime_train.cli.logs import history_line
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit
from prime_train.core.run import HistoryEvent, Run, RunState
from prime_train.ports import RunRecord
from prime_train.reports.charts import Point
from prime_train.reports.charts.facts import TAKEN, TAKEN_AT

LOOK_S = 0.1
KILL_SHARE = 0.4
KILL_SHARE_MAX = 0.7
LOST_STEPS_MIN = 8
"""The machine is preempted once this many steps are not in a checkpoint yet, so that some have to be repeated."""
OVERHEAD_S_MAX = 150


@dataclass
class Story:
    """What was observed during the demo."""

    run: Run
    history: list[HistoryEvent]
    points: list[Point] = field(default_factory=list)
    commits: list[Point] = field(default_factory=list)
    taken: HistoryEvent | None = None
    committed_then: int = 0
    """The newest committed step when the machine was preempted."""
    printed: int = 0
    taken_printed: bool = False

    def lines(self) -> list[HistoryEvent]:
        """Return the history, with the preemption inserted before the events in which it was noticed."""
        if self.taken is None:
            return self.history
        at_s = self.taken.at_s
        later = [n for n, line in enumerate(self.history) if line.at_s > at_s or (line.kind == "lost" and line.at_s == at_s)]
        place = later[0] if later else len(self.history)
        return [*self.history[:place], self.taken, *self.history[place:]]


def play(here: Stage, console: Console, *, kill: bool) -> Story:
    """Play the demo until the run is over and its machines are terminated. Raises UsageError if that takes far too long."""
    store = here.home.store()
    held = _load(here)
    story = Story(held.run, [])
    console.print(Text.assemble(("prime-train demo", "bold"), f"  run {here.run_id}, {held.run.spec.trainer.steps} steps"))
    end_s, pause = time.monotonic() + _longest_s(held.run), threading.Event()
    live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
    try:
        if live is not None:
            live.start()
        while not _is_over(story.run):
            held = _load(here)
            _remember(story, held, store.history(here.run_id))
            if kill and story.taken is None and _is_moment(held):
                story.taken, story.committed_then = _take(here, held), held.lease.committed_step
            if live is not None:
                live.update(view(held, story.lines(), story.points, store.now_s()), refresh=True)
            else:
                _print_new(console, story)
            if time.monotonic() > end_s:
                raise UsageError(
                    f"the demo took longer than {_longest_s(held.run):.0f} s; state {held.run.state.value}", code=Exit.OUTSIDE_FAILED
                )
            pause.wait(LOOK_S)
    finally:
        if live is not None:
            live.stop()
    return story


def _load(here: Stage) -> RunRecord:
    held = here.home.store().load(here.run_id)
    if held is None:
        raise UsageError(f"run {here.run_id} is gone", code=Exit.OUTSIDE_FAILED)
    return held


def _longest_s(run: Run) -> float:
    words = run.spec.trainer.command.split()
    pace_s = float(words[words.index("--step-seconds") + 1]) if "--step-seconds" in words else 1.0
    return OVERHEAD_S_MAX + 2 * pace_s * (run.spec.trainer.steps or 0)


def _is_over(run: Run) -> bool:
    return run.is_over and all(attempt.ended_s is not None for attempt in run.attempts)


def _remember(story: Story, held: RunRecord, history: list[HistoryEvent]) -> None:
    story.run, story.history = held.run, history
    lease, at_s = held.lease, time.time()
    if lease.attempt != held.run.attempt or lease.attempt == 0:
        return
    if lease.heartbeat is not None and lease.heartbeat.step > 0:
        point = Point(at_s, lease.heartbeat.step, lease.attempt)
        if not story.points or (story.points[-1].step, story.points[-1].attempt) != (point.step, point.attempt):
            story.points.append(point)
    seen = {commit.step for commit in story.commits}
    resumed = held.run.resume.step if held.run.resume is not None else 0
    if lease.committed_step > resumed and lease.committed_step not in seen:
        story.commits.append(Point(at_s, lease.committed_step, lease.attempt))


def _is_moment(held: RunRecord) -> bool:
    """Return whether to preempt the machine now: in mid-training, with a committed checkpoint and steps that are not in one."""
    run, lease = held.run, held.lease
    if run.state is not RunState.TRAINING or run.attempt != 1 or lease.heartbeat is None or not lease.committed_step:
        return False
    share = lease.heartbeat.step / (run.spec.trainer.steps or 1)
    return share >= KILL_SHARE_MAX or (share >= KILL_SHARE and lease.heartbeat.step - lease.committed_step >= LOST_STEPS_MIN)


def _take(here: Stage, held: RunRecord) -> HistoryEvent:
    """Preempt the machine without notice: all its processes are killed and its disk is deleted."""
    attempt = held.run.current_attempt
    assert attempt is not None
    assert attempt.pod_id is not None
    at_s = time.time()
    here.home.local_pods().preempt(attempt.pod_id)
    step = held.lease.heartbeat.step if held.lease.heartbeat is not None else 0
    text = f"the demo takes {attempt.pod_id} away: processes killed, disk deleted, nobody told"
    return HistoryEvent(here.run_id, int(at_s), attempt.number, TAKEN, text, step, {TAKEN_AT: f"{at_s:.2f}"})


def _print_new(console: Console, story: Story) -> None:
    """Print a line for each new event. Used if the output is not a terminal."""
    taken = [story.taken] if story.taken is not None and not story.taken_printed else []
    for line in [*taken, *story.history[story.printed :]]:
        console.print(
            history_line(line.at_s - story.run.created_s, line.attempt, line.kind, line.text), markup=False, highlight=False, soft_wrap=True
        )
    story.printed, story.taken_printed = len(story.history), story.taken is not None
