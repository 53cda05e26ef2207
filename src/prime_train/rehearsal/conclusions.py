"""What a rehearsal has shown, in sentences: each with how certain it is, and with the evidence."""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from prime_train.advice import Option, SettingAdvice
from prime_train.rehearsal.failure_line import failure_line
from prime_train.rehearsal.options import save_options
from prime_train.rehearsal.progress_lines import series_in
from prime_train.rehearsal.recording import median
from prime_train.rehearsal.rehearsal import Rehearsal
from prime_train.rehearsal.saves import distances
from prime_train.rehearsal.script_lines import where_it_loads, why_not_resumed
from prime_train.rehearsal.trial import Outcome
from prime_train.rehearsal.written_config import (
    added_setup,
    counts_from_0,
    every_seen,
    every_steps,
    folder_of,
    progress_file,
    total_steps,
)
from prime_train.spec.checkpoint_names import EPOCH
from prime_train.text.formatting import size, span, usd
from prime_train.text.invocations import flag
from prime_train.text.nearest import nearest
from prime_train.text.safe import neutralized
from prime_train.trainers.log_lines import clean

LINE_CHARS_MAX = 160
_MISSING_FILE = re.compile(
    r"(?:No such file or directory|not found)[^'\"]*['\"](?P<path>[^'\"/][^'\"]*)['\"]"
)
_NO_SCRIPT = re.compile(r"\S*python[\d.]*: can't open file '(?P<path>[^']+)'")


class Certainty(StrEnum):
    SEEN = "seen"
    LIKELY = "likely"
    UNKNOWN = "not known"


@dataclass(frozen=True)
class Conclusion:
    """One thing that is known, or not, of the script."""

    topic: str
    text: str
    certainty: Certainty
    evidence: str = ""


def conclusions(found: Rehearsal) -> list[Conclusion]:
    """Return what the rehearsal has shown, in the order in which people ask."""
    if found.is_rented:
        return _dressed(found)
    failure = _failure(found)
    if failure and not found.saves.saves and found.progress is None:
        return failure
    return [
        *failure,
        *_checkpoints(found),
        *_beside(found),
        *_progress(found),
        *_resume(found),
        *_stop(found),
        *_dressed(found),
        *_setup(found),
        *_figures(found),
    ]


def _failure(found: Rehearsal) -> list[Conclusion]:
    """Say that the script failed by itself, why, and what may help."""
    first = found.first
    if first.asked_s is not None or first.killed_s is not None or not first.code:
        return []
    lines = [clean(line.text) for line in first.lines_of("stderr") or first.lines_of("stdout")][-50:]
    why = failure_line(found.request.spec, first)[:LINE_CHARS_MAX]
    text = f"the script failed after {_short(first.seen_s)}, with code {first.code}"
    said = [Conclusion("failed", text, Certainty.SEEN, why)]
    missing = next((match for line in reversed(lines) if (match := _MISSING_FILE.search(line))), None)
    if any("ModuleNotFoundError" in line for line in lines):
        fix = "activate the environment that has the module, and start prime-train from there"
        said.append(Conclusion("advice", fix, Certainty.LIKELY))
    elif missing is not None and (found.request.folder / missing["path"]).exists():
        text = (
            f"{neutralized(missing['path'])} is in the folder, but git ignores it, so that it does not reach a "
            "machine: make it in setup, or let git track it"
        )
        said.append(Conclusion("advice", text, Certainty.SEEN))
    elif script := next((match["path"] for line in lines if (match := _NO_SCRIPT.match(line))), ""):
        said.append(Conclusion("advice", _no_script(found.request.folder, script), Certainty.SEEN))
    return said


def _no_script(folder: Path, script: str) -> str:
    """Say that the script to start is not there, and which may have been meant. `script`: its path in a copy
    of the folder.
    """
    name = Path(script).name
    near = nearest(name, (path.name for path in folder.glob(f"*{Path(name).suffix}")))
    meant = f"; did you mean {neutralized(near[0])}?" if near else ""
    return f"the command names {neutralized(name)}, which a launch would not send from {neutralized(str(folder.absolute()))}{meant}"


def _checkpoints(found: Rehearsal) -> list[Conclusion]:
    saves = found.saves
    if not saves.saves and saves.others:
        text = f"saves with no step in their names, but a date or the like: {', '.join(saves.others)}"
        why = "nothing says which of them is the newest: have the step written into the name"
        return [Conclusion("checkpoint", text, Certainty.UNKNOWN, why)]
    if not saves.saves:
        return [_none_seen(found)]
    count, what = len(saves.saves), "folder" if saves.is_folder else "file"
    names = ", ".join((saves.pattern, *saves.also))
    seen = f"{count} save{'' if count == 1 else 's'}: {', '.join(_names(found))}"
    several = count >= 3
    if saves.is_in_place and saves.also:
        text = f"{1 + len(saves.also)} files of fixed names, overwritten at each save: {_path(found, names)}"
    elif saves.is_in_place and count == 1:
        text = f"one {what} of a fixed name, saved once: {_path(found, names)}"
    elif saves.is_in_place:
        text = f"one {what} of a fixed name, {'replaced' if saves.is_renamed else 'overwritten'} at each save: {_path(found, names)}"
    elif saves.also:
        text = f"{1 + len(saves.also)} files of one number: {_path(found, names)}"
    else:
        text = f"a {what} for each save: {_path(found, names)}"
    found_all = [Conclusion("checkpoint", text, Certainty.SEEN if several else Certainty.LIKELY, seen)]
    found_all += _number(found)
    found_all.append(_complete(found))
    kept = saves.kept
    if kept is not None and not saves.is_in_place:
        found_all.append(
            Conclusion("kept", f"the script keeps the newest {kept} and deletes older ones", Certainty.SEEN)
        )
    if saves.deletes_first:
        found_all.append(
            Conclusion(
                "kept", "it deletes an older checkpoint before the next one is complete", Certainty.SEEN
            )
        )
    return found_all


def _none_seen(found: Rehearsal) -> Conclusion:
    """Say that no save was seen, how far the script got, and what may help."""
    reached = f", up to step {found.progress.series.numbers[-1]:,}" if found.progress is not None else ""
    options = ", ".join(one.option for one in save_options(found.numbers))
    by_itself = found.first.asked_s is None
    advice = (
        "it had ended before one"
        if by_itself
        else f"let it save sooner ({options})"
        if options
        else f"give it more time ({flag(Option(SettingAdvice.SECONDS))}), or let it save sooner"
    )
    if not by_itself:
        advice += "; or, if it saves outside of its folder, such as in /tmp, let it save below it"
    return Conclusion(
        "checkpoint",
        f"no checkpoint was seen in {span(found.first.seen_s)}{reached}: {advice}",
        Certainty.UNKNOWN,
        "no file was written that is no log, table, picture or code",
    )


def _names(found: Rehearsal) -> list[str]:
    names = [save.path.rpartition("/")[2] for save in found.saves.saves]
    return names if len(names) <= 4 else [*names[:3], "..."]


def _path(found: Rehearsal, names: str) -> str:
    folder = folder_of(found)
    return names if folder == "." else f"{folder}/{names}"


def _number(found: Rehearsal) -> list[Conclusion]:
    saves, progress = found.saves, found.progress
    if not saves.counts:
        return [
            Conclusion(
                "number",
                "none in the name: a save counts as that of the step that was reported last",
                Certainty.SEEN,
            )
        ]
    padded = f", padded with zeros to {saves.width} digits" if saves.width else ""
    unit = "epochs" if saves.counts == EPOCH else "steps"
    zero = (
        ", counted from 0"
        if counts_from_0(found) or (saves.counts == EPOCH and progress and progress.first == 0)
        else ""
    )
    text = f"the number in the name counts {unit}{zero}{padded}"
    if progress is not None and progress.is_matched:
        agreed = f"it agrees with what the script reports at {progress.agreed} of {len(saves.saves)} saves"
        sure = Certainty.SEEN if progress.agreed >= 3 else Certainty.LIKELY
        return [Conclusion("number", text, sure, f"{agreed}; {distances(saves.numbers)}".rstrip("; "))]
    return [
        Conclusion("number", text, Certainty.LIKELY, f"by its name; {distances(saves.numbers)}".rstrip("; "))
    ]


def _complete(found: Rehearsal) -> Conclusion:
    saves = found.saves
    if saves.is_renamed:
        drafts = {one.draft.rpartition("/")[2] for save in saves.saves for one in save.members}
        return Conclusion(
            "complete",
            "as soon as its name is there: it is renamed into place",
            Certainty.SEEN,
            f"from {sorted(drafts)[0]}",
        )
    if saves.sentinel:
        return Conclusion(
            "complete",
            f"once {saves.sentinel} is there, which is written last",
            Certainty.SEEN if len(saves.saves) >= 3 else Certainty.LIKELY,
            f"it was closed last in {len(saves.saves)} saves",
        )
    if saves.also:
        return Conclusion(
            "complete", "once all of its files are there and none is open for writing", Certainty.SEEN
        )
    moments = "; during each save there is no whole one on the disk" if saves.is_in_place else ""
    return Conclusion(
        "complete",
        f"once no process has it open for writing{moments}",
        Certainty.SEEN,
        "it was written under its own name",
    )


def _beside(found: Rehearsal) -> list[Conclusion]:
    words = {
        "pointer": "a pointer to the newest one, written again on the next machine",
        "link": "a link to the newest one, made again on the next machine",
        "copy": "a copy of the newest one, written again on the next machine",
        "best": "not what a run resumes from: an older or equal state",
        "shared": "saved with each checkpoint under a fixed name",
    }
    return [
        Conclusion("beside", f"{one.path}: {words[one.kind]}", Certainty.SEEN)
        for one in found.saves.beside[:6]
    ]


def _progress(found: Rehearsal) -> list[Conclusion]:
    progress = found.progress
    if progress is None:
        others = series_in(found.first)
        rough = next((one for one in others if one.is_abbreviated), None)
        if rough is not None:
            text = "its lines say the step only roughly: write the whole number into a line, or into a table"
            return [
                Conclusion("progress", text, Certainty.UNKNOWN, f"such as {rough.example[:LINE_CHARS_MAX]!r}")
            ]
        named = next((one for one in others if one.named), None)
        if named is not None and found.saves.numbers:
            text = "no line says the number that is in the names of its checkpoints"
            return [
                Conclusion("progress", text, Certainty.UNKNOWN, f"only {named.example[:LINE_CHARS_MAX]!r}")
            ]
        return [
            Conclusion(
                "progress",
                "no number was seen that rises from line to line",
                Certainty.UNKNOWN,
                "print a line such as: step 10 loss 2.31",
            )
        ]
    series = progress.series
    where = progress_file(found) or ("a progress bar" if series.is_bar else f"lines on {series.stream}")
    unit = "epochs" if series.counts == EPOCH else "epoch and batch" if series.is_within_epoch else "steps"
    example = series.example[:LINE_CHARS_MAX]
    numbers = ", ".join(map(str, dict.fromkeys(series.numbers[:40]))) if len(set(series.numbers)) <= 4 else ""
    text = f"{where}: {unit}, {'counted from 0' if progress.first == 0 else 'counted from 1'}"
    text += f", every {series.distance}" if series.distance > 1 else ""
    text += ", with the loss" if series.loss else ", without a loss"
    said = [
        Conclusion(
            "progress",
            text,
            Certainty.SEEN if progress.is_matched or series.named else Certainty.LIKELY,
            f"such as {example!r}"
            if example
            else f"column {series.key!r}: {numbers or series.numbers[0]} ...",
        )
    ]
    total = total_steps(found)
    if total is not None:
        said.append(
            Conclusion(
                "length",
                f"{total[0]:,} {unit if unit != 'epoch and batch' else 'steps'}",
                Certainty.LIKELY,
                total[1],
            )
        )
    return said


def _resume(found: Rehearsal) -> list[Conclusion]:
    if not found.tries:
        why = found.why_open or ("no step is known" if found.saves.saves else "there is no checkpoint")
        return [Conclusion("resume", f"not tried: {why}", Certainty.UNKNOWN)]
    resumed = found.resumed
    if resumed is None:
        tried = "; ".join(
            f"{one.arguments or 'nothing added'}: {one.outcome.value}"
            + (f" ({one.line[:LINE_CHARS_MAX]})" if one.line else "")
            for one in found.tries
        )
        said = [
            Conclusion(
                "resume", "by nothing that was tried did it resume from its checkpoint", Certainty.SEEN, tried
            )
        ]
        if any(one.outcome is Outcome.COUNTED_ANEW for one in found.tries):
            text = "it loads its checkpoint, but counts its steps from the beginning again"
            said = [Conclusion("resume", text, Certainty.LIKELY, tried)]
        elif not any(one.outcome is Outcome.STARTED_OVER for one in found.tries):
            said = [Conclusion("resume", "no start with its checkpoint went on", Certainty.LIKELY, tried)]
        if found.variables:
            said.append(
                Conclusion(
                    "resume",
                    f"its text reads {', '.join(found.variables)} of its environment, which a config cannot "
                    "set for a resume alone: read an argument instead",
                    Certainty.LIKELY,
                )
            )
        all_failed = all(one.outcome is Outcome.FAILED for one in found.tries)
        hints = (where_it_loads if all_failed else why_not_resumed)(found.scripts)
        said += [Conclusion("resume", text, Certainty.LIKELY) for text in hints]
        return said
    how = f"by {resumed.arguments}" if resumed.arguments else "by itself, without an argument"
    said = [
        Conclusion(
            "resume",
            f"{how}: in a new folder with the checkpoint of step {resumed.restored}, it went on with {resumed.first}",
            Certainty.SEEN,
            f"it said {resumed.line[:LINE_CHARS_MAX]!r}" if resumed.line else "",
        )
    ]
    both, same = found.same
    if both:
        text = (
            f"the {'loss is' if both == 1 else f'losses of {both} steps are'} the same as without the interruption"
            if same == both
            else f"the losses of {both - same} of {both} steps differ from those without the interruption: "
            "durable, but not exact (data position, random states or schedule are not restored, or no two starts are alike)"
        )
        said.append(Conclusion("exact", text, Certainty.SEEN if same == both else Certainty.LIKELY))
    else:
        said.append(
            Conclusion(
                "exact",
                "whether the losses go on as without the interruption",
                Certainty.UNKNOWN,
                "no loss is reported with the step",
            )
        )
    if found.again is not None:
        again = found.again
        where = "as a save began" if found.was_hit else "between two saves"
        text = (
            f"killed {where}, it went on from the last complete checkpoint, of step {again.restored}, with {again.first}"
            if again.outcome is Outcome.RESUMED
            else f"killed {where} and started from the last complete checkpoint: {again.outcome.value} {again.line[:LINE_CHARS_MAX]}"
        )
        said.append(Conclusion("killed", text, Certainty.SEEN))
    elif found.why_open:
        said.append(Conclusion("killed", f"not tried: {found.why_open}", Certainty.UNKNOWN))
    return said


def _stop(found: Rehearsal) -> list[Conclusion]:
    if found.first.asked_s is None:
        return [Conclusion("SIGTERM", "not tried: it had ended before", Certainty.UNKNOWN)]
    took = found.stop_s
    if took is None or found.first.killed_s is not None:
        return [Conclusion("SIGTERM", "it goes on; it was killed after 30 s", Certainty.SEEN)]
    every = every_steps(found)
    unit = "epoch" if found.saves.counts == EPOCH else "step"
    cost = f": a preemption costs up to {every:,} {unit}{'' if every == 1 else 's'}" if every else ""
    if found.saved_on_stop:
        return [Conclusion("SIGTERM", f"it saves and ends, in {took:.1f} s", Certainty.SEEN)]
    return [Conclusion("SIGTERM", f"it ends in {took:.1f} s and saves nothing{cost}", Certainty.SEEN)]


def _dressed(found: Rehearsal) -> list[Conclusion]:
    dressed = found.dressed
    if dressed is None:
        return []
    where = "in the middle of a save" if dressed.taken_in_save else "between two saves"
    if not dressed.is_good:
        return [Conclusion("with config", f"prime-train ran it: {dressed.why}", Certainty.SEEN)]
    text = (
        f"prime-train ran it, lost the machine {where} with step {dressed.durable} in the bucket, rented another "
        f"one, resumed from step {dressed.resumed} and reached step {dressed.first}"
    )
    cost = f", for {usd(dressed.usd)}" if dressed.usd is not None else ""
    return [Conclusion("with config", text, Certainty.SEEN, f"in {span(dressed.seconds)}{cost}")]


def _setup(found: Rehearsal) -> list[Conclusion]:
    """Say which commands the config has that this rehearsal did not run."""
    why = "it is in the folder; not run here, where the environment has its packages already"
    return [Conclusion("setup", command, Certainty.LIKELY, why) for command in added_setup(found)]


def _figures(found: Rehearsal) -> list[Conclusion]:
    said = []
    if found.progress is not None and found.progress.series.step_s > 0:
        step_s = found.progress.series.step_s
        unit = "epoch" if found.progress.series.counts == EPOCH else "step"
        said.append(f"{_short(step_s)} {'an' if unit == EPOCH else 'a'} {unit}")
    if found.saves.saves:
        every = every_seen(found)
        said.append(f"{size(median([save.size for save in found.saves.saves]))} a checkpoint")
        said.append(f"{_short(found.saves.save_s)} a save" + (f", each {every:,}" if every else ""))
    if found.first.peak_bytes:
        said.append(f"{size(found.first.peak_bytes)} of memory")
    return [Conclusion("measured", ", ".join(said), Certainty.SEEN)] if said else []


def _short(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
