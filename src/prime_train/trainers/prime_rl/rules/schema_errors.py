"""Describes values that do not fit prime-rl's settings: the position, the new place, and the allowed
values.
"""

from enum import StrEnum
from typing import NamedTuple

from prime_train.spec.rule import Violation
from prime_train.spec.tree import Scalar
from prime_train.text.nearest import nearest
from prime_train.trainers.prime_rl.reference.prime_rl_timeline import CHANGES, LATER
from prime_train.trainers.prime_rl.rules import suggestions as near
from prime_train.trainers.prime_rl.rules.fields import Section, ValueKind, section

SEEN_CHARS_MAX = 60
WORDS_MAX = 12
_WANTED = {"bool": "true or false", "text": "text", "int": "a whole number", "number": "a number"}
_WANTED |= {"section": "a table", "by": "a table", "map": "a table", "list": "a list", "any": "anything"}

Where = tuple[str | int, ...]


class SchemaErrorKind(StrEnum):
    UNKNOWN = "unknown"
    MOVED = "moved"
    REMOVED = "removed"
    LATER = "later"
    KIND = "kind"
    VALUE = "value"
    MISSING = "missing"


class SchemaError(NamedTuple):
    kind: SchemaErrorKind
    violation: Violation
    date: str = ""
    """The date of the change; empty if not known or if the setting never existed."""
    corrected: tuple[str | int, ...] = ()
    """The path of the intended setting, by another name or in another place; empty if there is none or more
    than one.
    """


def dotted(path: Where) -> str:
    """Return the path as text, such as orchestrator.train.source[0].env."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")[:200]


def plain(path: Where) -> str:
    """Return the path as the tables name it, with underscores, such as orchestrator.train.source.*.env."""
    return ".".join("*" if isinstance(step, int) else step.replace("-", "_") for step in path)


def unknown(here: Where, sections: tuple[Section, ...]) -> SchemaError:
    """Return the error for a key that none of these sections has."""
    return _gone(here) or _to_vllm(here) or _misspelt(here, sections)


def _gone(here: Where) -> SchemaError | None:
    """Return the error for a setting that moved, was removed or comes in a later version; None if it is none
    of these.
    """
    where, name = dotted(here), plain(here)
    change = CHANGES.get(name)
    if change is None and name not in LATER:
        return None
    if change is None:
        before = LATER[name]
        message = f"prime-rl added {where} after the newest version that prime-train knows" + (
            f"; in older versions it is {before}" if before else ""
        )
        return SchemaError(
            SchemaErrorKind.LATER, _at(here, message, f"write {before}" if before else "", on_key=True)
        )
    if change.to:
        # The path with list indexes filled in: orchestrator.train.source.*.group_size ->
        # orchestrator.train.source[0].group_size
        places = iter([step for step in here if isinstance(step, int)])
        there = tuple(next(places, 0) if step == "*" else step for step in change.to.split("."))
        to, since = dotted(there), f" ({change.date}, {change.change})" if change.change else ""
        violation = _at(here, f"{where} is now {to}{since}", change.instead or f"write {to}", on_key=True)
        return SchemaError(SchemaErrorKind.MOVED, violation, change.date, () if change.instead else there)
    since = f" since {change.date} ({change.change})" if change.change else ""
    return SchemaError(
        SchemaErrorKind.REMOVED,
        _at(here, f"{where} is not a setting of prime-rl{since}", change.instead, on_key=True),
        change.date,
    )


def _to_vllm(here: Where) -> SchemaError | None:
    """Return the error for a vLLM setting written one level too high, where it once was; None if it is not
    one.
    """
    if here[:-1] != ("inference",) or plain(here[-1:]) not in section("VllmConfig").settings:
        return None
    there = ("inference", "vllm", here[-1])
    to = dotted(there)
    return SchemaError(
        SchemaErrorKind.MOVED,
        _at(here, f"{dotted(here)} is now {to}", f"write {to}", on_key=True),
        corrected=there,
    )


def _misspelt(here: Where, sections: tuple[Section, ...]) -> SchemaError:
    guess = near.key(plain(here), sections)
    there = _guessed(guess, here) if guess else ()
    fix = f"did you mean {guess}?" if guess and plain(there) != plain(here) else near.listed(sections)
    return SchemaError(
        SchemaErrorKind.UNKNOWN,
        _at(here, f"prime-rl has no setting {dotted(here)}", fix, on_key=True),
        corrected=there,
    )


def _guessed(guess: str, here: Where) -> Where:
    """Return the path of the guessed name: in the same section if the guess is a bare name; empty if the
    guess is within a list, as its index is not known.
    """
    steps = guess.split(".")
    return (*here[:-1], guess) if len(steps) == 1 else tuple(steps) if "*" not in steps else ()


def missing(here: Where) -> SchemaError:
    return SchemaError(
        SchemaErrorKind.MISSING,
        _at(here, f"{dotted(here)} is missing; prime-rl requires it", f"add {here[-1]}"),
    )


def not_a_word(word: str, words: tuple[str, ...], path: Where) -> SchemaError:
    guess = next(iter(nearest(word, words)), None)
    listed = ", ".join(words[:WORDS_MAX]) + (", ..." if len(words) > WORDS_MAX else "")
    fix = f"did you mean {guess}?" if guess else f"write one of {listed}"
    return SchemaError(
        SchemaErrorKind.VALUE,
        _at(path, f"{dotted(path)} cannot be {word[:SEEN_CHARS_MAX]!r}; it is one of {listed}", fix),
    )


def out_of_bounds(kind: ValueKind, node: Scalar, path: Where) -> SchemaError:
    low = "" if kind.low is None else f"{'more than' if kind.low_open else 'at least'} {kind.low:g}"
    high = "" if kind.high is None else f"{'less than' if kind.high_open else 'at most'} {kind.high:g}"
    bounds = " and ".join(side for side in (low, high) if side)
    return SchemaError(
        SchemaErrorKind.VALUE,
        _at(path, f"{dotted(path)} must be {bounds}, got {seen(node)}", f"write {bounds}"),
    )


def of_another_kind(what: str, kinds: tuple[ValueKind, ...], path: Where) -> SchemaError:
    wanted = " or ".join(
        dict.fromkeys(_WANTED.get(kind.name, repr(kind.text)) for kind in kinds if kind.name != "null")
    )
    return SchemaError(
        SchemaErrorKind.KIND, _at(path, f"{dotted(path)} must be {wanted}, got {what}", f"write {wanted}")
    )


def seen(node: Scalar) -> str:
    match node.value:
        case bool():
            return "true" if node.value else "false"
        case str():
            return repr(node.value[:SEEN_CHARS_MAX])
        case None:
            return "nothing"
        case _:
            return node.text[:SEEN_CHARS_MAX]


def _at(path: Where, message: str, fix: str = "", *, on_key: bool = False) -> Violation:
    return Violation(path, message, fix, on_key=on_key, document="trainer")
