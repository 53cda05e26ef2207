"""What a setting of a trainer's own config is, and what the rules say of a config, for people who compare two
versions of it.

Both come from the tables by which configs are checked: the settings of prime-rl, and the rules themselves.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from prime_train.checks.all_rules import rules_for
from prime_train.spec.config_format import ConfigFormat
from prime_train.spec.rule import Document, Subject
from prime_train.spec.tree import Mapping, Value
from prime_train.trainers.prime_rl.rules.fields import (
    ROOT,
    UNSAID,
    FieldUse,
    Section,
    ValueKind,
    below,
    section,
)
from prime_train.trainers.prime_rl.rules.settings import SHARED

Path = tuple[str | int, ...]
_WORDS_MAX = 12


def setting_of(kind: ConfigFormat, path: Sequence[str | int]) -> tuple[Value, str]:
    """Return the default of a setting, None if it is not known or there is none, and what the setting allows
    and affects in words; empty if the table of its trainer does not have it.
    """
    if kind != "prime_rl":
        return None, ""
    found = _setting(path)
    if found is None:
        return None, ""
    default, words = found
    name = ".".join(step for step in path if isinstance(step, str))
    used_by, filled_by = SHARED.get(name, ()), [shared for shared, own in SHARED.items() if name in own]
    texts = [f"prime-rl allows {words}." if words else ""]
    texts += [f"It applies to {' and '.join(used_by)}, unless they are set." if used_by else ""]
    texts += [f"If it is not set, {filled_by[0]} applies." if filled_by else ""]
    return None if default == UNSAID else default, " ".join(filter(None, texts))


def judged(kind: ConfigFormat, root: Mapping, source: str) -> dict[tuple[Path, str], str]:
    """Return what the rules say of a trainer's config, by the place and the code of the rule: its message and
    remedy. Values that must not be shown are left out.
    """
    subject = Subject(trainer=Document("", root, source), format=kind)
    found: dict[tuple[Path, str], str] = {}
    for rule in rules_for(subject):
        if rule.requires in (kind, "trainer") and rule.applies(subject):
            for violation in islice(rule.check(subject), 50):
                message = rule.title if violation.is_secret else violation.message
                fix = violation.fix or rule.fix
                found[tuple(violation.path), rule.code] = (
                    f"{rule.severity.value}: {message}{f'; {fix}' if fix else ''}"
                )
    return found


def _setting(path: Sequence[str | int]) -> tuple[Value, str] | None:
    """Return the default and the allowed values of a setting of prime-rl; None if there is no such
    setting.
    """
    sections: tuple[Section, ...] = (section(ROOT),)
    found: list[FieldUse] = []
    for step in path:
        if isinstance(step, int):
            continue
        # A table that one of its settings selects may be any of several.
        found = [part.settings[step] for part in sections if step in part.settings]
        sections = tuple(inner for setting in found for inner in below(_with_items(setting), None))
    if not found:
        return None
    defaults = {setting.default for setting in found}
    words = dict.fromkeys(word for setting in found for word in _words(setting.kinds))
    return (found[0].default if len(defaults) == 1 else UNSAID), ", ".join(words)


def _with_items(setting: FieldUse) -> FieldUse:
    """Return the setting with the kinds of its items among its own, as a path to an item has no step of its
    own in the table, and without a default, which would select one of several tables.
    """
    return setting._replace(
        kinds=tuple(kind for outer in setting.kinds for kind in (outer, *outer.items)), default=None
    )


def _words(kinds: Sequence[ValueKind]) -> Iterator[str]:
    words = [repr(kind.text) for kind in kinds if kind.name == "word"]
    names = {"bool": "true or false", "text": "text", "null": "null", "list": "a list"}
    yield from words[:_WORDS_MAX]
    for kind in kinds:
        if kind.name in ("int", "number"):
            yield f"a {'whole ' if kind.name == 'int' else ''}number{_bounds(kind.low, kind.high, kind.low_open, kind.high_open)}"
        elif kind.name == "by":
            yield from (repr(word) for word, _ in kind.options[:_WORDS_MAX])
        elif kind.name in names:
            yield names[kind.name]


def _bounds(low: float | None, high: float | None, low_open: bool, high_open: bool) -> str:
    sides = [f"{'above' if low_open else 'from'} {low:g}"] if low is not None else []
    sides += [f"{'below' if high_open else 'to'} {high:g}"] if high is not None else []
    return f" {' '.join(sides)}" if sides else ""
