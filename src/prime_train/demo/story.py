"""Play the demo: preempt the machine, and record what happens."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from prime_train.demo.stage import Stage
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.pages.charts.timeline_data import TAKEN, TAKEN_AT, Point
from prime_train.runs.run import HistoryEvent, Run, RunState
from prime_train.runs.store import RunRecord

LOOK_S = 0.1
KILL_SHARE = 0.4
KILL_SHARE_MAX = 0.7
LOST_STEPS_MIN = 8
"""Number of steps after the newest checkpoint at which the machine is preempted, so that some steps have to
be repeated.
"""
OVERHEAD_S_MAX = 150


@dataclass
class Story:
    """What has been observed of the demo's run. `points`: its steps, `commits`: its committed steps, each
    with the time. `taken`: the preemption of its machine; `committed_then`: the newest committed step at that
    time.
    """

    record: RunRecord
    history: list[HistoryEvent]
    points: list[Point] = field(default_factory=list)
    commits: list[Point] = field(default_factory=list)
    taken: HistoryEvent | None = None
    committed_then: int = 0

    @property
    def run(self) -> Run:
        return self.record.run

    def lines(self) -> list[HistoryEvent]:
        """Return the history, with the preemption inserted before the events in which it was noticed."""
        if self.taken is None:
            return self.history
        at_s = self.taken.at_s
        later = [
            n
            for n, line in enumerate(self.history)
            if line.at_s > at_s or (line.kind == "lost" and line.at_s == at_s)
        ]
        place = later[0] if later else len(self.history)
        return [*self.history[:place], self.taken, *self.history[place:]]


def play(here: Stage, *, kill: bool, show: Callable[[Story], None]) -> Story:
    """Observe the run until it is over and its machines are terminated, and return its story. `show` is
    called every `LOOK_S` seconds with the story so far. With `kill`, the machine is preempted in the middle
    of the training. Raises UsageError if the run takes far too long.
    """
    store = here.home.store()
    record = _load(here)
    story, end_s, pause = Story(record, []), time.monotonic() + _longest_s(record.run), threading.Event()
    while not story.run.is_settled:
        story.record = _load(here)
        _remember(story, store.history(here.run_id))
        if kill and story.taken is None and _is_moment(story.record):
            story.taken, story.committed_then = _take(here, story.record), story.record.lease.committed_step
        show(story)
        if time.monotonic() > end_s:
            raise UsageError(
                f"the demo took longer than {_longest_s(story.run):.0f} s; state {story.run.state.value}",
                code=Exit.EXTERNAL_FAILED,
            )
        pause.wait(LOOK_S)
    return story


def _load(here: Stage) -> RunRecord:
    record = here.home.store().load(here.run_id)
    if record is None:
        raise UsageError(f"run {here.run_id} no longer exists", code=Exit.EXTERNAL_FAILED)
    return record


def _longest_s(run: Run) -> float:
    words = run.spec.trainer.command.split()
    pace_s = float(words[words.index("--step-seconds") + 1]) if "--step-seconds" in words else 1.0
    return OVERHEAD_S_MAX + 2 * pace_s * (run.spec.trainer.steps or 0)


def _remember(story: Story, history: list[HistoryEvent]) -> None:
    story.history = history
    record, lease, at_s = story.record, story.record.lease, time.time()
    if lease.attempt != record.run.attempt or lease.attempt == 0:
        return
    if lease.heartbeat is not None and lease.heartbeat.step > 0:
        point = Point(at_s, lease.heartbeat.step, lease.attempt)
        if not story.points or (story.points[-1].step, story.points[-1].attempt) != (
            point.step,
            point.attempt,
        ):
            story.points.append(point)
    seen = {commit.step for commit in story.commits}
    resumed = record.run.resume.step if record.run.resume is not None else 0
    if lease.committed_step > resumed and lease.committed_step not in seen:
        story.commits.append(Point(at_s, lease.committed_step, lease.attempt))


def _is_moment(record: RunRecord) -> bool:
    """Return whether to preempt the machine now: in mid-training, with a committed checkpoint and steps that
    are not in one.
    """
    run, lease = record.run, record.lease
    if (
        run.state is not RunState.TRAINING
        or run.attempt != 1
        or lease.heartbeat is None
        or not lease.committed_step
    ):
        return False
    share = lease.heartbeat.step / (run.spec.trainer.steps or 1)
    return share >= KILL_SHARE_MAX or (
        share >= KILL_SHARE and lease.heartbeat.step - lease.committed_step >= LOST_STEPS_MIN
    )


def _take(here: Stage, record: RunRecord) -> HistoryEvent:
    """Preempt the machine without notice: all its processes are killed and its disk is deleted."""
    attempt = record.run.current_attempt
    assert attempt is not None
    assert attempt.pod_id is not None
    at_s = time.time()
    here.home.local_pods().preempt(attempt.pod_id)
    step = record.lease.heartbeat.step if record.lease.heartbeat is not None else 0
    text = (
        f"the demo preempts {attempt.pod_id} without notice: its processes are killed and its disk is deleted"
    )
    return HistoryEvent(here.run_id, int(at_s), attempt.number, TAKEN, text, step, {TAKEN_AT: f"{at_s:.2f}"})
