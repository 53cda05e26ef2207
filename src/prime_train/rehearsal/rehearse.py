"""A rehearsal: the script runs for a while and is watched, then it is stopped, killed and started again from
what it had saved, until it is known how it saves, reports and resumes.
"""

import itertools
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.launch.code.archive import survey
from prime_train.rehearsal.chosen_progress import ProgressSeen, by_names, chosen, slack_s
from prime_train.rehearsal.options import Number, numbers_of, save_options, with_number
from prime_train.rehearsal.process import Place, Rehearsed, environment_of, why_not_walled
from prime_train.rehearsal.progress_lines import series_in
from prime_train.rehearsal.recording import FileChange, Recording
from prime_train.rehearsal.restored import restore
from prime_train.rehearsal.resume_arguments import arguments_to_try, variables_of
from prime_train.rehearsal.saves import Save, SavesSeen
from prime_train.rehearsal.seen_saves import begins_save, saves_like, saves_seen
from prime_train.rehearsal.trial import Outcome, Trials, Tried, line_of, same_losses
from prime_train.rehearsal.written_files import history_of
from prime_train.spec.finding import Severity
from prime_train.spec.spec import RunSpec
from prime_train.text.formatting import size
from prime_train.text.safe import neutralized
from prime_train.trainers.conventions.own_scripts import SCRIPT_BYTES_MAX, scripts_of
from prime_train.trainers.registry import TRAINERS

SAVES_WANTED = 3
LOOK_S = 0.3
SETTLED_S = 0.3
"""Seconds after the last save before the script is stopped, so that it was not stopped in it."""
AFTER_S_MAX = 8.0
UNSAVED_S = 8.0
"""Seconds without a save after which the script is started again with a shorter interval, if it has one."""
SHORT_S = 1.5
"""Seconds that a shorter interval is to last."""
STOP_S_MAX = 30.0
TRIALS_MAX = 10
QUICK_SAVES_MAX = 3
TRIALS_S_MAX = 45.0
"""Seconds after which no other arguments are tried."""
SCRIPTS_MAX = 50


@dataclass(frozen=True)
class Request:
    """What is to be rehearsed. `spec`: the run; of a command alone it says nothing but that. `folder`: the
    working tree. `seconds`: the limit of the first run; each further start has the same.
    """

    spec: RunSpec
    folder: Path
    seconds: float = 60.0

    @property
    def command(self) -> str:
        return self.spec.trainer.command

    @property
    def names_resume(self) -> bool:
        """Whether the config says how the script resumes."""
        return (
            "resume" in self.spec.trainer.model_fields_set
            or TRAINERS[self.spec.trainer.kind].layout is not None
        )


@dataclass
class Rehearsal:
    """What a rehearsal has found. `first`: the recording of the first run; `lowered`: the option with which
    the script was made to save sooner. `tries`: starts with a restored checkpoint, the last one for each of
    the arguments that were tried. `was_hit`: the resumed script was killed while it saved; `again`: the start
    after that. `kept`: copies of complete saves of the first run.
    """

    request: Request
    first: Recording = field(default_factory=Recording)
    saves: SavesSeen = field(default_factory=SavesSeen)
    progress: ProgressSeen | None = None
    lowered: Number | None = None
    numbers: Sequence[Number] = ()
    variables: Sequence[str] = ()
    """Variables of the environment by which the script seems to be told to resume."""
    tries: list[Tried] = field(default_factory=list)
    was_hit: bool = False
    again: Tried | None = None
    kept: list[tuple[Save, Path]] = field(default_factory=list)
    steps_of_saves: list[int] = field(default_factory=list)
    """The completed steps at each save of the first run."""
    same: tuple[int, int] = (0, 0)
    saved_on_stop: bool = False
    other_folder: str = ""
    why_open: str = ""
    seconds: float = 0.0

    @property
    def resumed(self) -> Tried | None:
        """The start that resumed; None if none did."""
        return next((one for one in self.tries if one.outcome is Outcome.RESUMED), None)

    @property
    def is_proven(self) -> bool:
        return self.resumed is not None and self.again is not None and self.again.outcome is Outcome.RESUMED

    @property
    def stop_s(self) -> float | None:
        """Seconds from SIGTERM to the end of the script; None if it had ended before, or did not end."""
        asked, ended = self.first.asked_s, self.first.ended_s
        return None if asked is None or ended is None else ended - asked


Say = Callable[[str], None]


def rehearse(request: Request, own: Mapping[str, str], say: Say) -> Rehearsal:
    """Rehearse the command. `own`: this process's environment; `say` is told what is being done.

    Raises UsageError if the working tree cannot be copied, or a command of the set-up fails.
    """
    began = time.monotonic()
    with _ending_in_order(), _stage(request, say) as stage:
        stage.own = own
        found = Rehearsal(request)
        stage.set_up()
        _observe(stage, found)
        if found.saves.saves:
            _prove(stage, found)
        found.seconds = time.monotonic() - began
        return found


@dataclass
class _Stage:
    """The folders of a rehearsal, and the processes in them."""

    request: Request
    folder: Path
    say: Say
    own: Mapping[str, str] = field(default_factory=dict)
    started: list[Rehearsed] = field(default_factory=list)
    count: int = 0

    @property
    def base(self) -> Path:
        return self.folder / "base"

    def fresh(self) -> Place:
        """Return a new place with the code, and what the set-up has made, in its tree."""
        self.count += 1
        root = self.folder / f"start-{self.count}"
        place = Place(root / "tree", root / "home", self.folder / "private", self.request.folder.absolute())
        place.home.mkdir(parents=True)
        shutil.copytree(self.base, place.tree, symlinks=True)
        return place

    def start(self, spec: RunSpec) -> Rehearsed:
        """Start the run's command as on its first machine."""
        place = self.fresh()
        return self.running(line_of(spec, place.tree), place)

    def running(self, line: str, place: Place) -> Rehearsed:
        """Start a command line in this place. Raises OSError."""
        process = Rehearsed(line, place, environment_of(self.own, place, self.request.spec))
        self.started.append(process)
        process.start()
        return process

    def set_up(self) -> None:
        """Run the commands of the set-up in the tree of which all others are copies."""
        for command in self.request.spec.setup:
            self.say(f"set-up: {command}")
            home = self.folder / "setup-home"
            home.mkdir(exist_ok=True)
            process = self.running(command, Place(self.base, home, self.folder / "private"))
            ended = process.wait(SETUP_S_MAX)
            process.close()
            if not ended or process.recording.code != 0:
                last = process.recording.lines[-1].text if process.recording.lines else "it printed nothing"
                raise UsageError(
                    f"setup: {command!r} ended with code {process.recording.code}: {last}"
                    if ended
                    else f"setup: {command!r} took more than {SETUP_S_MAX:.0f} s",
                    fix="run it by hand in a clean copy of the repository",
                    code=Exit.FINDINGS,
                )

    def texts(self) -> list[str]:
        """Return the text of the scripts that the command starts, then of the other Python files."""
        named = [self.base / path for path in scripts_of(self.request.command)]
        others = sorted(self.base.rglob("*.py"))[:SCRIPTS_MAX]
        return [text for path in dict.fromkeys([*named, *others]) if (text := _text(path))]

    def close(self) -> None:
        for process in self.started:
            process.close()


SETUP_S_MAX = 900.0


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(SCRIPT_BYTES_MAX).decode(errors="replace")
    except OSError:
        return ""


@contextmanager
def _stage(request: Request, say: Say) -> Iterator[_Stage]:
    snapshot = survey(request.folder.absolute())
    wrong = [one for one in snapshot.findings if one.severity is Severity.ERROR]
    if wrong:
        raise UsageError(wrong[0].message, fix=wrong[0].fix, code=Exit.FINDINGS)
    folder = Path(tempfile.mkdtemp(prefix="prime-train-try-"))
    stage = _Stage(request, folder, lambda text: say(neutralized(text)))
    try:
        (folder / "private").mkdir()
        for name, _ in snapshot.files:
            target = stage.base / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(snapshot.folder / name, target, follow_symlinks=False)
        stage.base.mkdir(exist_ok=True)
        reason = why_not_walled(folder / "private")
        if reason:
            say(
                f"not walled off from this machine's other files ({reason}): paths outside its copy are written to"
            )
        yield stage
    finally:
        stage.close()
        _remove(folder)


def _remove(folder: Path) -> None:
    """Delete a folder with all that is in it, also folders that nobody may write to."""
    for path, folders, _ in os.walk(folder):
        for name in folders:
            if not (Path(path) / name).is_symlink():
                with suppress(OSError):
                    (Path(path) / name).chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Have SIGTERM end this process like an exception, so that nothing is left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        raise SystemExit(ENDED_BY_SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# ------------------------------------------------------------------------------------------------------------
# watch


def _observe(stage: _Stage, found: Rehearsal) -> None:
    """Watch the script until it has saved often enough, then ask it to stop."""
    found.numbers = numbers_of(stage.request.command, stage.texts())
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


def _watch(stage: _Stage, found: Rehearsal, process: Rehearsed, *, may_shorten: bool) -> Number | None:
    """Watch until three saves were made and training has gone on, or the limit is reached. Return an option
    with a shorter interval if one is needed.
    """
    told, took_s = 0, 0.0
    while process.is_running and process.now_s() < stage.request.seconds:
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
        if may_shorten and not saves and process.now_s() > UNSAVED_S:
            shorter = _shorter(found)
            if shorter is not None:
                return shorter
            may_shorten = found.progress is None
    return None


def _keep(stage: _Stage, found: Rehearsal, process: Rehearsed) -> None:
    """Copy the newest complete save aside."""
    if found.saves.saves:
        aside = _Aside(stage.folder / f"aside-{stage.count}", found.saves)
        aside.kept, aside.count = found.kept, len(found.kept)
        aside.keep(process)
        found.kept = aside.kept


def _keep_last(stage: _Stage, found: Rehearsal, process: Rehearsed) -> None:
    """Copy what could not be copied while the script ran, if it was not deleted since."""
    aside = _Aside(stage.folder / f"aside-{stage.count}", found.saves)
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


def lowered_spec(found: Rehearsal) -> RunSpec:
    """Return the run with the shorter interval between saves, if it needed one."""
    spec = found.request.spec
    if found.lowered is None:
        return spec
    command = with_number(spec.trainer.command, found.lowered.option, found.lowered.value)
    return spec.model_copy(update={"trainer": spec.trainer.model_copy(update={"command": command})})


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
    return now_s - saves[-1].closed_s >= max(SETTLED_S, min(apart / 2, AFTER_S_MAX))


def _shorter(found: Rehearsal) -> Number | None:
    """Return the option that says how often the script saves, with a value that is soon reached."""
    options = save_options(found.numbers)
    if not options or found.progress is None:
        return None
    step_s = found.progress.series.step_s
    value = max(2, round(SHORT_S / step_s)) if step_s > 0 else 2
    usual = options[0]
    return Number(usual.option, value, True) if value < usual.value else None


# ------------------------------------------------------------------------------------------------------------
# prove


def _prove(stage: _Stage, found: Rehearsal) -> None:
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
    return has_ended and series is not None and saves[0].begun_s + slack_s(series) >= series.values[-1].at_s


def _between_reports(reports: Sequence[tuple[float, object]]) -> float:
    apart = [b[0] - a[0] for a, b in itertools.pairwise(reports)]
    return max(apart, default=1.0)


class _Aside:
    """Copies of the newest complete save and the one before, made while the script runs on: it may write over
    them or delete them.
    """

    def __init__(self, folder: Path, saves: SavesSeen) -> None:
        self._folder, self._saves = folder, saves
        self.count = 0
        self.lacks = ""
        self.kept: list[tuple[Save, Path]] = []

    def keep_last(self, process: Rehearsed) -> None:
        """Copy the last saves of a process that has ended, as far as they are still there."""
        if self._saves.is_in_place:
            self.keep(process)
            return
        kept = {save.path for save, _ in self.kept}
        for save in saves_like(self._saves, process.recording)[-2:]:
            if save.path not in kept and save.deleted_s is None and self._has_room(save):
                self.count += 1
                target = self._folder / f"save-{self.count}"
                with suppress(OSError):
                    restore(save, self._saves, process.place.tree, target)
                    self.kept.append((save, target))
        self.kept.sort(key=lambda row: row[0].closed_s)

    def _has_room(self, save: Save) -> bool:
        """Return whether the disk has room for a copy of this save, a tree with it, and what that writes."""
        place = next(one for one in (self._folder, *self._folder.parents) if one.exists())
        free = shutil.disk_usage(place).free
        self.lacks = (
            ""
            if free > COPIES * save.size + FREE_BYTES_MIN
            else (
                f"{size(free)} are free in {place}, too little for copies of a checkpoint of {size(save.size)}: "
                "set TMPDIR to a folder on a larger disk"
            )
        )
        return not self.lacks

    def keep(self, process: Rehearsed) -> None:
        """Copy the newest save if it is complete and was not kept yet."""
        found = saves_like(self._saves, process.recording)
        if not found or process.now_s() - found[-1].closed_s < QUIET_S:
            return
        newest = found[-1]
        if self.kept and self.kept[-1][0].closed_s >= newest.closed_s:
            return
        if not self._has_room(newest):
            return
        self.count += 1
        target = self._folder / f"save-{self.count}"
        try:
            restore(newest, self._saves, process.place.tree, target)
        except OSError:  # it was deleted meanwhile: the next one will be kept
            shutil.rmtree(target, ignore_errors=True)
            return
        after = saves_like(self._saves, process.recording)[-1:]
        if after != [newest] or newest.path in _open_paths(process.recording):
            shutil.rmtree(target, ignore_errors=True)
            return
        self.kept.append((newest, target))
        for _, old in self.kept[:-2]:
            shutil.rmtree(old, ignore_errors=True)


COPIES = 4
FREE_BYTES_MIN = 2**30
QUIET_S = 0.15
"""Seconds without a write after which a save is copied."""


def _open_paths(recording: Recording) -> set[str]:
    return history_of(recording).growing


def _first_that_resumes(
    stage: _Stage,
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
        shown = f"with {arguments}" if arguments else "with nothing added to its command"
        stage.say(f"starting it in a new folder with the checkpoint of step {restored}, {shown}")
        process = trials.start(arguments, save, source)
        tried = trials.judged(arguments, process, restored, limit_s)
        found.tries.append(tried)
        stage.say(f"  {tried.outcome.value}" + (f": first step {tried.first}" if tried.first else ""))
        if tried.outcome is Outcome.RESUMED:
            return process
    return None


def _candidates(stage: _Stage, found: Rehearsal) -> list[str]:
    spec = stage.request.spec
    if TRAINERS[spec.trainer.kind].layout is not None:
        return [spec.trainer.resume]
    texts = stage.texts()
    found.variables = variables_of(texts)
    named = [spec.trainer.resume] if stage.request.names_resume else []
    return list(dict.fromkeys([*named, *arguments_to_try(texts, found.saves.folder)]))[:TRIALS_MAX]


def _kill_in_a_save(
    stage: _Stage,
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
    aside = _Aside(stage.folder / f"aside-{stage.count}", trials.saves)
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
    after = trials.start(resumed.arguments, save, source)
    found.again = trials.judged(resumed.arguments, after, restored, max(10.0, 4 * trials.first_s + 10.0))
    after.close()
