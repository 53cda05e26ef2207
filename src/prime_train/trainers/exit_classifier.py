"""The cause of a trainer's end, from its last lines of output and its exit code.

A failure produces many lines, and most of them describe its consequences. So lines are ranked by strength,
not by position: the earliest line of the greatest strength names the cause, which is the innermost exception
of the process that failed first. An exception that no rule knows outranks the complaints of other ranks about
a lost connection, which are its consequences. A signal that ended the trainer is stronger evidence than a
hint and weaker than a root cause. torchrun always exits with code 1; how its workers really ended is in its
output.
"""

import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from prime_train.spec.causes import Action, Cause
from prime_train.trainers.error_lines import (
    PASSING,
    begins_ignored,
    begins_traceback,
    continued,
    ended_by,
    exception_in,
    first_failure,
    is_code,
    is_error,
    is_frame,
    is_noise,
    is_part_of_traceback,
    is_summary,
    is_told,
    is_warned,
    own_words,
    signal_of,
    unwrapped,
)
from prime_train.trainers.gpu_memory import is_held_by_others
from prime_train.trainers.known_errors.places import LINES_MAX as FRAME_LINES_MAX
from prime_train.trainers.known_errors.places import placed
from prime_train.trainers.known_errors.refusals import is_refusal
from prime_train.trainers.log_lines import clean
from prime_train.trainers.log_rules import EvidenceStrength, LogRule
from prime_train.trainers.patterns import any_of, found_in

LINES_MAX = 4000
LINE_SHOWN_MAX = 500
MESSAGE_LINES_MAX = 12
"""Lines after an exception that may belong to its message."""

_HANDLED = (
    r"(?i)\b(retrying|will retry|trying again|trying the next|falling back|skipping this|attempt "
    r"\d+ "
    r"(of|/) ?\d+)\b"
)
_CONNECTION = (
    r"(?i)connect|timeout|network|socket|protocol|remote|dist(ributed|backend|network|"
    r"store)|"
    r"rendezvous|pipe|cancel|interrupt|exit|warning"
)
"""Kinds of exceptions that may themselves follow from a lost connection."""
_RAISED_WHEN_CUT_OFF = frozenset(("RuntimeError", "OSError"))
_RAISED_FOR_ANYTHING = frozenset(("RuntimeError", "Exception"))
_SAID_OF_MUCH = frozenset((Cause.BAD_CONFIG, Cause.TRAINER_ERROR))
"""Causes of the rules for words that many libraries use."""

_SIGNALS: dict[int, Cause] = {
    signal.SIGKILL: Cause.KILLED,
    signal.SIGTERM: Cause.KILLED,
    signal.SIGINT: Cause.KILLED,
    signal.SIGHUP: Cause.KILLED,
    signal.SIGBUS: Cause.SHARED_MEMORY,
}
_CODES: dict[int, Cause] = {126: Cause.BAD_CONFIG, 127: Cause.BAD_CONFIG}
"""Causes of the exit codes with which a shell reports a command that it cannot run."""


@dataclass(frozen=True)
class Named:
    """What a trainer's end is put down to. `line`: what says so, for people; `action`: what follows, None:
    what follows from the cause.
    """

    cause: Cause
    line: str
    action: Action | None = None


@dataclass(frozen=True)
class _Line:
    text: str
    """The line without a label of a launcher."""
    labelled: str
    raised: bool
    """Whether it is an exception, calls itself an error, or belongs to the message of one."""
    is_code: bool = False
    """Whether it is code that a traceback shows."""
    frames: tuple[str, ...] = ()
    """The last lines of its traceback, if it is an exception that would be raised again."""
    is_ignored: bool = False
    """Whether it belongs to an exception that Python went on after."""


def fired(line: str, rules: Sequence[LogRule], *, resumed: bool) -> LogRule | None:
    """Return the rule of the greatest strength that matches this line, or None; rules about resuming apply
    only if `resumed` is true.
    """
    (one,) = _read([line])
    return _fired(one, tuple(rules), resumed=resumed)


def classify(
    lines: Sequence[str],
    rules: Sequence[LogRule],
    *,
    code: int,
    disk_full: bool = False,
    resumed: bool = False,
) -> tuple[Cause, str]:
    """Return the cause of the trainer's end and the line that names it, as `named` does."""
    found = named(lines, rules, code=code, disk_full=disk_full, resumed=resumed)
    return found.cause, found.line


def named(
    lines: Sequence[str],
    rules: Sequence[LogRule],
    *,
    code: int,
    disk_full: bool = False,
    resumed: bool = False,
) -> Named:
    """Return the cause of the trainer's end, what follows from it, and the line that names it, cut to
    `LINE_SHOWN_MAX` characters.

    `lines` is the tail of the output. `code` is the exit code; a signal is given as its negative or as 128
    plus its number. `disk_full` says that the disk is full now, which explains a failed save that logged no
    error. `resumed` says that a checkpoint was to be resumed.
    """
    found = _named(_read(lines[-LINES_MAX:]), tuple(rules), code=code, disk_full=disk_full, resumed=resumed)
    elsewhere = found.cause is Cause.GPU_OOM and found.action is None and is_held_by_others(found.line)
    return Named(
        found.cause, found.line[:LINE_SHOWN_MAX], Action.ANOTHER_MACHINE if elsewhere else found.action
    )


def _named(
    tail: Sequence[_Line], rules: tuple[LogRule, ...], *, code: int, disk_full: bool, resumed: bool
) -> Named:
    if code == 0:
        return _ended_well(tail, rules, resumed=resumed)
    matches = [
        _as_spoken(*match)
        for match in (*_all_placed(tail, rules, resumed=resumed), *_all_fired(tail, rules, resumed=resumed))
    ]
    best = min(matches, key=lambda match: match[0].strength, default=None)
    code, ended = _end_of_first(tail, code)
    if best and best[0].strength <= EvidenceStrength.ROOT:
        return _by_rule(*best, ended)
    if disk_full:
        return Named(Cause.DISK_FULL, _last_words(tail, ended))
    number = signal_of(code)
    by_code = _CODES.get(code) if number is None else _SIGNALS.get(number)
    if by_code is not None:
        return Named(by_code, ended)
    unknown = _unknown_exception(tail, [line for _, line in matches])
    if unknown and (
        best is None or best[0].is_consequence or (not best[1].raised and _outranks_hints(unknown))
    ):
        # What an exception says that no rule knows. Where a checkpoint was to be resumed, it may be the one
        # that is refused.
        if not _is_deterministic(unknown):
            return Named(Cause.TRAINER_ERROR, unknown)
        return Named(
            Cause.BAD_CONFIG if is_refusal(unknown) and not resumed else Cause.TRAINER_ERROR,
            unknown,
            Action.STOP,
        )
    if best:
        return _by_rule(*best, ended)
    return Named(Cause.TRAINER_ERROR, _last_words(tail, ended))


def _read(lines: Sequence[str]) -> list[_Line]:
    """Return the lines cleaned, with what is the message of an exception marked."""
    labelled = [own_words(clean(line)) for line in lines]
    texts = [unwrapped(line) for line in labelled]
    read, left, frames, ignoring = [], 0, list[str](), False
    for before, text, after, whole in zip(["", *texts], texts, [*texts[1:], ""], labelled, strict=False):
        ignoring = begins_ignored(text) or (
            ignoring and not exception_in(before) and is_part_of_traceback(text)
        )
        if ignoring:
            left = 0
        elif is_error(text):
            left = MESSAGE_LINES_MAX + 1
        elif begins_traceback(text):
            left, frames = 0, []
        left = max(0, left - 1)
        shown, code = continued(text, after) if left == MESSAGE_LINES_MAX else text, is_code(text, before)
        led_by = (
            tuple(frames[-FRAME_LINES_MAX:])
            if not ignoring and exception_in(text) and _is_deterministic(text)
            else ()
        )
        read.append(_Line(shown, whole, raised=left > 0, is_code=code, frames=led_by, is_ignored=ignoring))
        frames = [*frames, text] if code or is_frame(text) or text[:1].isspace() else []
    return read


def _by_rule(rule: LogRule, line: _Line, ended: str) -> Named:
    """Return what the rule says of the line; a line of a launcher's summary is put in words. The label of a
    line is shown where it is what the rule fits.
    """
    if rule.strength is not EvidenceStrength.USER and is_summary(line.text):
        return Named(rule.cause, ended, rule.action)
    return Named(rule.cause, (rule.fits(line.text) and line.text.strip()) or line.labelled, rule.action)


def _unknown_exception(tail: Sequence[_Line], matched: Sequence[_Line]) -> str | None:
    """Return the first exception in `tail` that no rule matches and that no lost connection explains; None if
    there is none. A RuntimeError or OSError explains nothing if it comes after a line that a rule matches,
    because libraries raise it also when they are cut off.
    """
    known, is_first = {id(line) for line in matched}, True
    for line in tail:
        if id(line) in known:
            is_first = False
            continue
        name = exception_in(line.text)
        if not name or line.is_ignored or found_in(_CONNECTION, name) or found_in(_HANDLED, line.text):
            continue
        if is_first or name not in _RAISED_WHEN_CUT_OFF:
            return line.text.strip()
    return None


def _is_deterministic(exception: str) -> bool:
    return exception_in(exception) not in PASSING


def _outranks_hints(exception: str) -> bool:
    """Return whether the exception says more than a hint that was only logged: not if it is of a kind that is
    raised for anything.
    """
    return _is_deterministic(exception) and exception_in(exception) not in _RAISED_FOR_ANYTHING


def _all_fired(
    tail: Sequence[_Line], rules: tuple[LogRule, ...], *, resumed: bool
) -> Iterator[tuple[LogRule, _Line]]:
    for line in tail:
        rule = _fired(line, rules, resumed=resumed)
        if rule is not None and (
            rule.strength is EvidenceStrength.USER or rule.stop or not found_in(_HANDLED, line.text)
        ):
            yield rule, line


def _all_placed(
    tail: Sequence[_Line], rules: tuple[LogRule, ...], *, resumed: bool
) -> Iterator[tuple[LogRule, _Line]]:
    """Yield what the places say where exceptions were raised, if they say more than words that many libraries
    use.
    """
    for line in tail:
        rule = placed(line.text, line.frames) if line.frames else None
        if rule is None or found_in(_HANDLED, line.text):
            continue
        by_words = _fired(line, rules, resumed=resumed)
        if by_words is None or (
            by_words.strength is EvidenceStrength.HINT and by_words.cause in _SAID_OF_MUCH
        ):
            yield rule, line


def _as_spoken(rule: LogRule, line: _Line) -> tuple[LogRule, _Line]:
    """Return the match with the strength that the line deserves: what a logger calls a warning is no more
    than a hint, and what it calls information says nothing against an exception. Libraries probe for what is
    not there, such as a plug-in, and go on without it.
    """
    if rule.strength is EvidenceStrength.USER or rule.stop:
        return rule, line
    least = (
        EvidenceStrength.CONSEQUENCE
        if is_told(line.labelled)
        else EvidenceStrength.HINT
        if is_warned(line.labelled)
        else None
    )
    return (
        (rule, line)
        if least is None
        else (replace(rule, strength=max(rule.strength, least)), replace(line, raised=False))
    )


def _fired(line: _Line, rules: tuple[LogRule, ...], *, resumed: bool) -> LogRule | None:
    # Hardly any line matches a rule: one search over all rules finds that out in a thirtieth of the time.
    any_rule = any_of(_patterns(rules))
    texts = (line.text,) if line.text == line.labelled else (line.text, line.labelled)
    if any_rule is not None and not any(any_rule.search(text) for text in texts):
        return None
    applying = (rule for rule in rules if _applies(rule, line, resumed=resumed))
    matching = (rule for rule in applying if any(rule.fits(text) for text in texts))
    return min(matching, key=lambda rule: rule.strength, default=None)


def _applies(rule: LogRule, line: _Line, *, resumed: bool) -> bool:
    if (rule.resumed_only and not resumed) or (rule.raised_only and not line.raised):
        return False
    return rule.in_code or not line.is_code or rule.stop or rule.strength is EvidenceStrength.USER


@lru_cache(64)
def _patterns(rules: tuple[LogRule, ...]) -> tuple[str, ...]:
    return tuple(rule.pattern for rule in rules)


def _ended_well(tail: Sequence[_Line], rules: tuple[LogRule, ...], *, resumed: bool) -> Named:
    """Return the cause for exit code 0. Errors in the log were handled then, unless the trainer stopped early
    in an orderly way or started over.
    """
    decisive = tuple(rule for rule in rules if rule.cause in (Cause.STOPPED_EARLY, Cause.RESUME_IGNORED))
    best = min(_all_fired(tail, decisive, resumed=resumed), key=lambda match: match[0].strength, default=None)
    return _by_rule(*best, "") if best else Named(Cause.FINISHED, "exit code 0")


def _end_of_first(tail: Sequence[_Line], code: int) -> tuple[int, str]:
    """Return the exit code of the process that failed first, and in words how it ended. Launchers end with a
    code of their own.
    """
    first = (
        first_failure([line.text for line in tail])
        if signal_of(code) is None and code not in _CODES
        else None
    )
    if first is None or first[0] == 0:
        return code, ended_by(code)
    who = f"rank {first[1]} " if first[1] is not None else ""
    words = ended_by(first[0])
    return first[0], f"{who}{'was ' if who and words.startswith('killed') else ''}{words}"


def _last_words(tail: Sequence[_Line], ended: str) -> str:
    """Return the last exception in `tail`, or how the trainer ended if that was a signal, or else its last
    meaningful line, or else `ended`.
    """
    raised = [line.text.strip() for line in tail if exception_in(line.text) and not is_noise(line.text)]
    if raised:
        return raised[-1]
    spoken = [line.text.strip() for line in tail if not is_noise(line.text)]
    return ended if "killed by" in ended or not spoken else spoken[-1]
