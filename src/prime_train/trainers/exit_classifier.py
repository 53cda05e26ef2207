"""The cause of a trainer's end, from its last lines of output and its exit code.

A failure produces many lines, and most of them describe its consequences. So lines are ranked by strength, not by position: the earliest
line of the greatest strength names the cause. An exception that no rule knows outranks the complaints of other ranks about a lost
connection, which are its consequences. A signal that ended the trainer is stronger evidence than a hint and weaker than a root
cause. torchrun always exits with code 1; how its workers really ended is in its output.
"""

import re
import signal
from collections.abc import Iterator, Sequence

from prime_train.core.causes import Cause
from prime_train.trainers.log_lines import clean
from prime_train.trainers.log_rules import EvidenceStrength, LogRule
from prime_train.trainers.patterns import any_of, found_in

LINES_MAX = 4000
LINE_SHOWN_MAX = 500

_HANDLED = r"(?i)\b(retrying|will retry|trying again|trying the next|falling back|skipping this|attempt \d+ (of|/) ?\d+)\b"
_ERROR = r"^[\w.]*(Error|Exception|Exit|Interrupt)(: |$)|^(error|ERROR|fatal|FATAL): "
_CONNECTION = (
    r"(?i)connect|timeout|network|socket|protocol|remote|dist(ributed|backend|network|store)|rendezvous|pipe|cancel|interrupt|exit"
)
"""Kinds of exceptions that may themselves follow from a lost connection."""
_RAISED_WHEN_CUT_OFF = frozenset(("RuntimeError", "OSError"))
_LAUNCHER = r"^torch\.distributed\.elastic\S*(ChildFailed|Signal)"
_EXCEPTION = re.compile(r"([A-Za-z_][\w.]*(?:Error|Exception))(?:: |$)")
_NOISE = r"^\W*$|ChildFailedError|^\s*(time|host|rank|exitcode|error_file|traceback)\s+: |^(Root Cause|Failures|<NO_OTHER)|FAILED$"

_SIGNALS: dict[int, Cause] = {
    signal.SIGKILL: Cause.KILLED,
    signal.SIGTERM: Cause.KILLED,
    signal.SIGINT: Cause.KILLED,
    signal.SIGHUP: Cause.KILLED,
    signal.SIGBUS: Cause.SHARED_MEMORY,
}
_CODES: dict[int, Cause] = {126: Cause.BAD_CONFIG, 127: Cause.BAD_CONFIG}
"""Causes of the exit codes with which a shell reports a command that it cannot run."""


def fired(line: str, rules: Sequence[LogRule], *, resumed: bool) -> LogRule | None:
    """Return the rule of the greatest strength that matches this line, or None; rules about resuming apply only if `resumed` is true."""
    return _fired(clean(line), rules, resumed=resumed)


def classify(
    lines: Sequence[str], rules: Sequence[LogRule], *, code: int, disk_full: bool = False, resumed: bool = False
) -> tuple[Cause, str]:
    """Return the cause of the trainer's end and the line that names it, cut to `LINE_SHOWN_MAX` characters.

    `lines` is the tail of the output. `code` is the exit code; a signal is given as its negative or as 128 plus its number. `disk_full`
    says that the disk is full now, which explains a failed save that logged no error. `resumed` says that a checkpoint was to be resumed.
    """
    tail = [clean(line) for line in lines[-LINES_MAX:]]
    if code == 0:
        return _ended_well(tail, rules, resumed=resumed)
    best = _strongest(tail, rules, resumed=resumed)
    if best and best[0].strength <= EvidenceStrength.ROOT:
        return best[0].cause, best[1][:LINE_SHOWN_MAX]
    ended = f"ended by {_name(code)}"
    if disk_full:
        return Cause.DISK_FULL, _last_words(tail, ended)
    by_code = _by_code(code)
    if by_code is not None:
        return by_code, ended
    if best and best[0].strength is EvidenceStrength.CONSEQUENCE and (unknown := _unknown_exception(tail, rules, resumed=resumed)):
        return Cause.TRAINER_ERROR, unknown[:LINE_SHOWN_MAX]
    if best:
        return best[0].cause, best[1][:LINE_SHOWN_MAX]
    return Cause.TRAINER_ERROR, _last_words(tail, ended)


def _strongest(tail: Sequence[str], rules: Sequence[LogRule], *, resumed: bool) -> tuple[LogRule, str] | None:
    """Return the earliest line of the greatest strength, with its rule; None if no rule matches any line."""
    return min(_all_fired(tail, rules, resumed=resumed), key=lambda found: found[0].strength, default=None)


def _unknown_exception(tail: Sequence[str], rules: Sequence[LogRule], *, resumed: bool) -> str | None:
    """Return the first exception in `tail` that no rule matches and that no lost connection explains; None if there is none. A RuntimeError
    or OSError explains nothing if it comes after a line that a rule matches, because libraries raise it also when they are cut off."""
    is_first = True
    for line in tail:
        if _fired(line, rules, resumed=resumed) is not None:
            is_first = False
            continue
        exception = _EXCEPTION.match(line)
        if exception is None or found_in(_CONNECTION, exception[1]) or found_in(_LAUNCHER, line) or found_in(_HANDLED, line):
            continue
        if is_first or exception[1] not in _RAISED_WHEN_CUT_OFF:
            return line
    return None


def _all_fired(tail: Sequence[str], rules: Sequence[LogRule], *, resumed: bool) -> Iterator[tuple[LogRule, str]]:
    for line in tail:
        rule = _fired(line, rules, resumed=resumed)
        if rule is not None and (rule.strength is EvidenceStrength.USER or rule.stop or not found_in(_HANDLED, line)):
            yield rule, line


def _fired(text: str, rules: Sequence[LogRule], *, resumed: bool) -> LogRule | None:
    # Hardly any line matches a rule: one search over all rules finds that out in a thirtieth of the time.
    any_rule = any_of(tuple(rule.pattern for rule in rules))
    if any_rule is not None and not any_rule.search(text):
        return None
    matching = (rule for rule in rules if (resumed or not rule.resumed_only) and rule.fits(text))
    return min(matching, key=lambda rule: rule.strength, default=None)


def _ended_well(tail: Sequence[str], rules: Sequence[LogRule], *, resumed: bool) -> tuple[Cause, str]:
    """Return the cause for exit code 0. Errors in the log were handled then, unless the trainer stopped early in an orderly way or started
    over."""
    decisive = [rule for rule in rules if rule.cause in (Cause.STOPPED_EARLY, Cause.RESUME_IGNORED)]
    best = _strongest(tail, decisive, resumed=resumed)
    return (best[0].cause, best[1][:LINE_SHOWN_MAX]) if best else (Cause.FINISHED, "exit code 0")


def _by_code(code: int) -> Cause | None:
    number = _signal_of(code)
    return _CODES.get(code) if number is None else _SIGNALS.get(number)


def _signal_of(code: int) -> int | None:
    number = -code if code < 0 else code - 128
    return number if 1 <= number <= 64 else None


def _name(code: int) -> str:
    number = _signal_of(code)
    if number is None:
        return f"exit code {code}"
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_words(tail: Sequence[str], otherwise: str) -> str:
    """Return the last exception in `tail`, or else its last meaningful line, or else `otherwise`."""
    spoken = [line.strip() for line in tail if not found_in(_NOISE, line)]
    errors = [line for line in spoken if found_in(_ERROR, line) and not found_in(_LAUNCHER, line)]
    return next(iter([*errors[-1:], *spoken[-1:]]), otherwise)[:LINE_SHOWN_MAX]
