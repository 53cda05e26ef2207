"""The first run of a rehearsal: the script is watched until it has saved often enough, then asked to stop."""

import itertools
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from prime_train.rehearsal.aside import Aside
from prime_train.rehearsal.chosen_progress import chosen
from prime_train.rehearsal.options import Number, numbers_of, save_options
from prime_train.rehearsal.process import Rehearsed
from prime_train.rehearsal.progress_lines import series_in
from prime_train.rehearsal.recording import Recording
from prime_train.rehearsal.rehearsal import Rehearsal, lowered_spec
from prime_train.rehearsal.saves import Save, SavesSeen
from prime_train.rehearsal.seen_saves import saves_seen
from prime_train.rehearsal.stage import Stage
from prime_train.rehearsal.trial import (
    line_of,
)

SAVES_WANTED = 3
LOOK_S = 0.3
SETTLED_S = 0.3
"""Seconds after the last save before the script is stopped, so that it was not stopped in it; fewer if it
saves more often.
"""
AFTER_S_MAX = 8.0
PATIENCE = 3
"""So many times the limit is waited for a first save, while steps are reported."""
UNSAVED_S = 8.0
"""Seconds without a save after which the script is started again with a shorter interval, if it has one."""
START_S_MAX = 20.0
"""Seconds after which a script counts as started though it has said nothing."""
QUIET_PARTS = 40
SHORT_S = 1.5
"""Seconds that a shorter interval is to last."""
STOP_S_MAX = 30.0


def observe(stage: Stage, found: Rehearsal) -> None:
    """Watch the script until it has saved often enough, then ask it to stop."""
    found.scripts = stage.scripts()
    found.numbers = numbers_of(stage.request.command, [text for _, text in found.scripts])
    spec = stage.request.spec
    stage.say(f"watching: {line_of(spec, Path())}")
    process = stage.start(spec)
    shorter = _watch(stage, found, process, may_shorten=True)
    if shorter is not None:
        process.close()
        found.lowered = shorter
        stage.say(f"it saves too seldom to wait for: watching with {shorter.option} {shorter.value}")
        process = stage.start(lowered_spec(found))
        _watch(stage, found, process, may_shorten=False)
    before = len(found.saves.saves)
    if process.is_running:
        stage.say("asking it to stop, as a notice of preemption does (SIGTERM)")
        process.ask()
        process.wait(STOP_S_MAX)
    process.close()
    found.first = process.recording
    _recognise(found)
    _keep_last(stage, found, process)
    found.saved_on_stop = _has_saved_on_stop(found.first, found.saves, found.saves.saves[before:])


def _watch(stage: Stage, found: Rehearsal, process: Rehearsed, *, may_shorten: bool) -> Number | None:
    """Watch until three saves were made and training has gone on, or the limit is reached. Return an option
    with a shorter interval if one is needed.
    """
    told, took_s = 0, 0.0
    while process.is_running and process.now_s() < _limit_s(found):
        # A flood of lines is read no more often than it can be.
        threading.Event().wait(max(LOOK_S, 2 * took_s))
        found.first, began = process.recording, time.monotonic()
        _recognise(found)
        took_s = time.monotonic() - began
        saves = found.saves.saves
        _keep(stage, found, process)
        if len(saves) > told:
            told = len(saves)
            stage.say(f"save {told}: {saves[-1].path}")
        if len(saves) >= SAVES_WANTED and _has_gone_on(found, process.now_s()):
            return None
        if may_shorten and not saves and process.now_s() - first_sign_s(found.first) > UNSAVED_S:
            shorter = _shorter(found)
            if shorter is not None:
                return shorter
            may_shorten = found.progress is None
    return None


def first_sign_s(recording: Recording) -> float:
    """Return when the script first said or wrote anything: until then it loads its modules. One that never
    does counts from `START_S_MAX` on.
    """
    first = [*(one.at_s for one in recording.lines[:1]), *(one.at_s for one in recording.changes[:1])]
    return min([START_S_MAX, *first])


def _limit_s(found: Rehearsal) -> float:
    """Return the seconds for which the first run is watched: longer as long as it trains and has not saved."""
    limit_s = found.request.seconds
    return limit_s if found.saves.saves or found.progress is None else PATIENCE * limit_s


def _keep(stage: Stage, found: Rehearsal, process: Rehearsed) -> None:
    """Copy the newest complete save aside."""
    if found.saves.saves:
        aside = Aside(stage.folder / f"aside-{stage.count}", found.saves)
        aside.kept, aside.count = found.kept, len(found.kept)
        aside.keep(process)
        found.kept = aside.kept


def _keep_last(stage: Stage, found: Rehearsal, process: Rehearsed) -> None:
    """Copy what could not be copied while the script ran, if it was not deleted since."""
    aside = Aside(stage.folder / f"aside-{stage.count}", found.saves)
    aside.kept, aside.count = found.kept, len(found.kept)
    aside.keep_last(process)
    found.kept = aside.kept
    found.why_open = aside.lacks


def _has_saved_on_stop(recording: Recording, saves: SavesSeen, later: Sequence[Save]) -> bool:
    """Return whether the script saved because it was asked to end, and not because a save was due just then."""
    asked_s = recording.asked_s
    after = [save for save in later if asked_s is not None and save.begun_s >= asked_s]
    if not after:
        return False
    is_due = saves.every > 0 and after[0].number in {
        one.number + saves.every for one in saves.saves if one.number
    }
    return recording.code != ENDED_BY_SIGTERM or not is_due


ENDED_BY_SIGTERM = 128 + signal.SIGTERM


def _recognise(found: Rehearsal) -> None:
    saves = saves_seen(found.first)
    found.progress, found.saves = chosen(series_in(found.first), saves)


def _has_gone_on(found: Rehearsal, now_s: float) -> bool:
    saves, progress = found.saves.saves, found.progress
    # The checkpoint that is tried must be of a later step than the first that was reported.
    if (
        progress is not None
        and len({v.number for v in progress.series.values if v.at_s < saves[-2].begun_s}) < 2
    ):
        return False
    apart = min((b.closed_s - a.closed_s for a, b in itertools.pairwise(saves)), default=0.0)
    settled_s = min(SETTLED_S, apart / 2)
    return now_s - saves[-1].closed_s >= max(settled_s, min(apart / 2, AFTER_S_MAX))


def _shorter(found: Rehearsal) -> Number | None:
    """Return the option that says how often the script saves, with a value that is soon reached."""
    options = save_options(found.numbers)
    if not options:
        return None
    usual = options[0]
    step_s = found.progress.series.step_s if found.progress is not None else 0.0
    # Of a script that reports nothing, it is not known how long a step takes.
    value = max(2, round(SHORT_S / step_s)) if step_s > 0 else max(2, usual.value // QUIET_PARTS)
    return replace(usual, value=value, is_given=True) if value < usual.value else None
