"""The proof of a rehearsal: the script is started again from what it had saved, killed in a save, and started once
more.
"""

import itertools
import threading
import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from prime_train.rehearsal.aside import Aside
from prime_train.rehearsal.chosen_progress import by_names, slack_s
from prime_train.rehearsal.process import Rehearsed
from prime_train.rehearsal.recording import FileChange
from prime_train.rehearsal.rehearsal import Rehearsal, lowered_spec
from prime_train.rehearsal.resume_arguments import arguments_to_try, variables_of
from prime_train.rehearsal.saves import Save
from prime_train.rehearsal.seen_saves import begins_save
from prime_train.rehearsal.stage import Stage
from prime_train.rehearsal.trial import (
    Outcome,
    Trials,
    Tried,
    same_losses,
)
from prime_train.trainers.registry import TRAINERS

TRIALS_MAX = 10
QUICK_SAVES_MAX = 3
TRIALS_S_MAX = 45.0
"""Seconds after which no other arguments are tried."""


def prove(stage: Stage, found: Rehearsal) -> None:
    """Start the script from its checkpoints, as far as that can be done, and keep how that went."""
    try:
        _prove(stage, found)
    except OSError as error:
        found.why_open = f"a checkpoint could not be laid into a new folder: {error}"


def _prove(stage: Stage, found: Rehearsal) -> None:
    progress = found.progress or by_names(found.saves)
    if progress is None:
        found.why_open = "no step is known: neither a line nor the name of a checkpoint has one"
        return
    if _is_only_at_the_end(found):
        found.why_open = "it saved only once, at its end, from where nothing is left to be trained"
        return
    trials = Trials(lowered_spec(found), stage.fresh, stage.running, found.saves, progress)
    trials.first_reports = reports = trials.reports(found.first)
    if not reports:
        found.why_open = "no step was read"
        return
    found.steps_of_saves = [trials.step_of(save, reports) for save in found.saves.saves]
    # The last but one, so that the steps after it were seen without an interruption, too.
    save, source = found.kept[-2:][0] if found.kept else (None, None)
    if save is None or source is None:
        found.why_open = found.why_open or "no checkpoint could be copied while the script ran"
        return
    limit_s = max(10.0, 4 * trials.first_s + 10 * _between_reports(reports))
    process = _first_that_resumes(stage, found, trials, save, source, reports, limit_s)
    if process is None:
        return
    _kill_in_a_save(stage, found, trials, process, reports)


def _is_only_at_the_end(found: Rehearsal) -> bool:
    """Return whether the script ended by itself, and saved only after its last step."""
    saves, series = found.saves.saves, found.progress.series if found.progress is not None else None
    has_ended = found.first.asked_s is None and found.first.killed_s is None
    if not has_ended or series is None:
        return False
    # The last line may be read a moment after what was written next.
    after = {value.number for value in series.values if value.at_s > saves[0].begun_s + slack_s(series)}
    return len(after) <= 1


def _between_reports(reports: Sequence[tuple[float, object]]) -> float:
    apart = [b[0] - a[0] for a, b in itertools.pairwise(reports)]
    return max(apart, default=1.0)


def _first_that_resumes(
    stage: Stage,
    found: Rehearsal,
    trials: Trials,
    save: Save,
    source: Path,
    reports: Sequence[tuple[float, object]],
    limit_s: float,
) -> Rehearsed | None:
    restored = trials.step_of(save, trials.reports(found.first))
    end_s = time.monotonic() + TRIALS_S_MAX
    for arguments in _candidates(stage, found):
        if time.monotonic() > end_s:
            break
        shown = f"with {arguments}" if arguments else "with nothing added"
        stage.say(f"starting it in a new folder with the checkpoint of step {restored}, {shown}")
        process = trials.start(arguments, save, source, label=f"resumed {shown}")
        tried = trials.judged(arguments, process, restored, limit_s)
        found.tries.append(tried)
        stage.say(f"  {tried.outcome.value}" + (f": first step {tried.first}" if tried.first else ""))
        if tried.outcome is Outcome.RESUMED:
            return process
    return None


def _candidates(stage: Stage, found: Rehearsal) -> list[str]:
    spec = stage.request.spec
    if TRAINERS[spec.trainer.kind].layout is not None:
        return [spec.trainer.resume]
    texts = [text for _, text in found.scripts]
    found.variables = variables_of(texts)
    named = [spec.trainer.resume] if stage.request.names_resume else []
    tried = arguments_to_try(texts, found.saves.folder)
    return list(dict.fromkeys([*named, *tried]))[:TRIALS_MAX]


def _kill_in_a_save(
    stage: Stage,
    found: Rehearsal,
    trials: Trials,
    process: Rehearsed,
    reports: Sequence[tuple[float, object]],
) -> None:
    """Let the resumed script go on to a save, kill it in the middle, and start again from the last complete
    checkpoint.
    """
    stage.say("waiting for its next save, to kill it in the middle")
    limit_s = process.now_s() + stage.request.seconds
    aside = Aside(stage.folder / f"aside-{stage.count}", trials.saves)
    hit = threading.Event()

    def kill(change: FileChange) -> None:
        # Only once there is a complete one to go back to.
        if aside.kept and not hit.is_set() and begins_save(trials.saves, change):
            process.kill()
            hit.set()

    process.on_change(kill)
    # A save may be too quick to be hit.
    while (
        process.is_running
        and process.now_s() < limit_s
        and not hit.is_set()
        and aside.count < QUICK_SAVES_MAX
    ):
        process.wake.wait(0.05)
        process.wake.clear()
        aside.keep(process)
    process.on_change(None)
    process.kill()
    process.close()
    resumed = found.tries[-1]
    found.same = same_losses(
        trials.reports(process.recording), trials.reports(found.first), above=resumed.restored
    )
    found.tries[-1] = Tried(
        resumed.arguments,
        resumed.outcome,
        resumed.restored,
        resumed.first,
        resumed.line,
        process.recording,
        tuple(trials.reports(process.recording)),
    )
    if not aside.kept:
        found.why_open = aside.lacks or "the resumed script saved nothing in the time that it had"
        return
    save, source = aside.kept[-1]
    folder = str(PurePosixPath(save.path).parent)
    found.other_folder = folder if folder != found.saves.folder else ""
    found.was_hit = hit.is_set()
    restored = trials.step_of(save, trials.reports(process.recording), resumed=resumed.restored)
    stage.say(f"killed it; starting again from the checkpoint of step {restored}")
    after = trials.start(resumed.arguments, save, source, label="after the kill")
    found.again = trials.judged(resumed.arguments, after, restored, max(10.0, 4 * trials.first_s + 10.0))
    after.close()
