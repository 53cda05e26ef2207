"""The form of stored values, and how values in older forms become today's.

A stored run, and the shared state of the watchers, carry the number of their form (`FORM`), in the store as
in the bucket. An older one is migrated when it is read, and written in today's form with its next change. One
in a newer form is refused, as is one with a field that this version does not know: a version that read it
without that field would drop it with its next change.

Values from before forms were numbered count as form 0. What they are called in today's form is decided by
their old names alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from prime_train.runs.breaker import Watch
from prime_train.runs.run import Run

FIELD = "form"
FORM = 1
"""The form in which this version writes. It is raised when a field is renamed or gets another meaning, with a
migration from the one before it; a new field needs neither, if its default means that it is unknown.
"""

_Value = dict[str, Any]
_Path = tuple[str, ...]
EACH = "*"

_RENAMED: Mapping[type, tuple[tuple[_Path, str, str], ...]] = {
    Run: (
        ((), "want", "desired"),
        ((), "branch", "lineage"),
        (("lineage",), "lineage", "ancestors"),
        (("attempts", EACH), "evidence_asked_s", "evidence_requested_s"),
        (("attempts", EACH), "terminate_asked_s", "terminate_requested_s"),
        (("orphans", EACH), "asked_s", "requested_s"),
        (("orphans", EACH), "first_asked_s", "first_requested_s"),
        (("spec", "trainer"), "tree", "code"),
        (("spec", "checkpoints"), "marker", "sentinel"),
    ),
    Watch: (((), "swept_s", "last_sweep_s"),),
}
"""What form 1 renamed: the place of a value, its old name and its new one. What agents send is renamed in the
models of the wire.
"""


class NewerForm(ValueError):
    """A value in a form that only newer versions of prime-train know."""

    def __init__(self, form: object) -> None:
        super().__init__(
            f"it is in form {str(form)[:20]}, and this version of prime-train reads forms up to {FORM}"
        )


class UnknownField(ValueError):
    """A value with a field that only newer versions of prime-train know."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name}: this version of prime-train does not know the field")


def numbered(value: _Value) -> _Value:
    """Return the JSON value with the number of its form in front."""
    return {FIELD: FORM, **value}


def in_todays_form(kind: type, value: _Value) -> _Value:
    """Return the JSON value of this kind in today's form, without the number; the argument may be changed.
    Raises NewerForm or UnknownField.
    """
    form = value.pop(FIELD, 0)
    if not isinstance(form, int) or form > FORM:
        raise NewerForm(form)
    for migrate in MIGRATIONS[form:]:
        migrate(kind, value)
    unknown = _unknown(kind, value)
    if unknown:
        raise UnknownField(unknown)
    return value


def _to_form_1(kind: type, value: _Value) -> None:
    for path, old, new in _RENAMED.get(kind, ()):
        for part in _at(value, path):
            if isinstance(part, dict) and old in part and new not in part:
                part[new] = part.pop(old)
    if kind is Watch:
        account = value.pop("account", "")
        if account:
            value.setdefault("accounts", {"prime": account})


MIGRATIONS: tuple[Callable[[type, _Value], None], ...] = (_to_form_1,)
"""Functions that migrate each form to the next one. A released entry is never changed."""


def _at(value: Any, path: _Path) -> list[Any]:
    """Return the values at the place; none if it does not exist."""
    found = [value]
    for name in path:
        if name == EACH:
            found = [one for each in found if isinstance(each, list) for one in each]
        else:
            found = [each[name] for each in found if isinstance(each, dict) and name in each]
    return found


def _unknown(kind: type, value: Any) -> str:
    """Return the first field that the dataclass `kind`, or one in it, does not have; empty if there is none.
    (Models refuse theirs.)
    """
    if not isinstance(value, dict):
        return ""
    parts = _parts(kind)
    for name, content in value.items():
        if name not in parts:
            return str(name)
        part = parts[name]
        if part is None:
            continue
        for one in content if isinstance(content, list) else (content,):
            unknown = _unknown(part, one)
            if unknown:
                return f"{name}.{unknown}"
    return ""


@cache
def _parts(kind: type) -> Mapping[str, type | None]:
    """Return the fields of the dataclass, each with the dataclass of its content, or of the members of its
    list; None: it has none.
    """
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: _part(hints[field.name]) for field in fields(kind)}


def _part(hint: Any) -> type | None:
    if isinstance(hint, type) and is_dataclass(hint):
        return hint
    if get_origin(hint) in (Annotated, Union, UnionType, tuple):
        return next((part for one in get_args(hint) if (part := _part(one)) is not None), None)
    return None
