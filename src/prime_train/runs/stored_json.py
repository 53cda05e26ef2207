"""Conversion between prime-train's values and the JSON that stores keep."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from prime_train.runs.breaker import Watch
from prime_train.runs.run import Alert, HistoryEvent, Lease, Run
from prime_train.runs.store import RunRecord
from prime_train.runs.stored_forms import FIELD, FORM, NewerForm, UnknownField, in_todays_form, numbered
from prime_train.runs.unreadable import HISTORY, LEASE, RECORD, STATE, Unreadable, UnreadableRecord
from prime_train.version import __version__

PROBLEM_CHARS_MAX = 300

_Value = TypeVar("_Value")
_parsers: dict[type, TypeAdapter[Any]] = {}


NUMBERED = frozenset({Run, Watch})
"""What carries the number of its form."""


def dump(value: object) -> str:
    """Return `value` as JSON that loads again. Pydantic's own JSON would turn an infinite number into null,
    and half a surrogate pair (from an odd file name in an error's text) cannot be encoded at all.
    """
    content = _parser(type(value)).dump_python(value, mode="json")
    return readable(_json(numbered(content) if type(value) in NUMBERED else content))


def load(kind: type[_Value], text: str) -> _Value:
    """Return the value of type `kind` in `text`, whatever form it was written in. Raises ValueError if the
    JSON does not fit; `first_problem` describes it.
    """
    value: _Value = _parser(kind).validate_json(_todays(kind, text) if kind in NUMBERED else text)
    return value


def _todays(kind: type, text: str) -> str:
    """Return the JSON in today's form: the same text if it is written in that already. Raises NewerForm or
    UnknownField.
    """
    content = json.loads(text)
    if not isinstance(content, dict):
        return text
    if content.get(FIELD) == FORM:
        in_todays_form(kind, content)
        return text  # the parser skips the number
    return _json(in_todays_form(kind, content))


def _json(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def readable(text: str) -> str:
    """Return `text` with halves of surrogate pairs replaced."""
    return text.encode("utf-8", "replace").decode()


def first_problem(error: ValueError | KeyError) -> str:
    """Return the first problem without the values, which pydantic's own message would contain, and which
    version may have written it.
    """
    if isinstance(error, KeyError):
        return (
            f"attribute {error.args[0]} is missing; an older version of prime-train than this "
            "one "
            f"({__version__}) may have written it"
        )
    if isinstance(error, NewerForm | UnknownField):
        return f"{error}; this version is {__version__}, and a newer one has written it: use that one"
    if not isinstance(error, ValidationError):
        return f"{error}"[:PROBLEM_CHARS_MAX] + f"; {_ANOTHER}"
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place, kind = ".".join(map(str, first["loc"])), first["type"]
    problem = f"{place}: {first['msg']}"[:PROBLEM_CHARS_MAX]
    return f"{problem}; {_WRITERS.get(kind, _ANOTHER)}"


_ANOTHER = (
    f"it may have been written by another version of prime-train than this one ({__version__}), or be damaged"
)
_WRITERS = {
    "extra_forbidden": f"this version of prime-train ({__version__}) does not know the field; it may have "
    "been written by another version, probably a newer one",
    "missing": "the field is missing; it may have been written by another version of prime-train than this "
    f"one ({__version__}), "
    "probably an older one",
}
"""What a problem's type says about the version that wrote the value."""


@dataclass(frozen=True)
class StoredRun:
    """A stored run: the functions parse its record and its lease, and raise ValueError or KeyError."""

    run_id: str
    run: Callable[[], Run]
    lease: Callable[[], Lease]


def one_record(stored: StoredRun, place: str) -> RunRecord:
    """Return the run and its lease. Raises UnreadableRecord if one of them cannot be read. `place`: the
    store, for the message.
    """
    record = _record_of(stored)
    if isinstance(record, Unreadable):
        raise UnreadableRecord(record, place)
    return record


def runs_and_unreadable(stored: Iterable[StoredRun]) -> tuple[list[Run], list[Unreadable]]:
    """Return the runs in order, and apart from them those of which the record or the lease cannot be read."""
    records = [_record_of(one) for one in stored]
    runs = [record.run for record in records if isinstance(record, RunRecord)]
    return runs, [record for record in records if isinstance(record, Unreadable)]


def history_from(run_id: str, texts: Iterable[str]) -> list[HistoryEvent]:
    """Return the events of a run. In the place of one that cannot be read is one that says so, at the time of
    the one before it.
    """
    events = [HistoryEvent(run_id, 0, 0, STATE, "")]
    for text in texts:
        event = _value_of(run_id, HISTORY, partial(load, HistoryEvent, text))
        if isinstance(event, Unreadable):
            event = replace(
                events[-1], kind=STATE, text=f"this event cannot be read: {event.reason}", step=0, data={}
            )
        events.append(event)
    return events[1:]


def readable_alone(kind: type[_Value], texts: Iterable[str]) -> Iterator[_Value]:
    """Yield the values that can be read, and leave out the others."""
    for text in texts:
        value = _value_of("", "", partial(load, kind, text))
        if not isinstance(value, Unreadable):
            yield value


def unreadable_events(events: Iterable[tuple[str, str]]) -> Iterable[Unreadable]:
    """Return what cannot be read of history, once for each run and reason. An event is the id of its run, and
    JSON.
    """
    found = (_value_of(run_id, HISTORY, partial(load, HistoryEvent, text)) for run_id, text in events)
    return dict.fromkeys(one for one in found if isinstance(one, Unreadable))


def unreadable_alerts(alerts: Iterable[tuple[str, str]]) -> Iterable[Unreadable]:
    """Return the alerts that cannot be read. An alert is its key and JSON."""
    found = (_value_of("", f"alert {key}", partial(load, Alert, text)) for key, text in alerts)
    return [one for one in found if isinstance(one, Unreadable)]


def _record_of(stored: StoredRun) -> RunRecord | Unreadable:
    run = _value_of(stored.run_id, RECORD, stored.run)
    lease = _value_of(stored.run_id, LEASE, stored.lease)
    if isinstance(run, Unreadable):
        return run
    return RunRecord(run, lease) if isinstance(lease, Lease) else lease


def _value_of(run_id: str, what: str, parse: Callable[[], _Value]) -> _Value | Unreadable:
    try:
        return parse()
    except (ValueError, KeyError) as error:
        return Unreadable(run_id, what, first_problem(error))
    except (
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:  # a value of another kind than a column, or a field, has
        return Unreadable(run_id, what, f"{type(error).__name__}; {_ANOTHER}")


def _parser(kind: type) -> TypeAdapter[Any]:
    """Return the type's parser, built on first use: building one takes as long as parsing a hundred
    values.
    """
    if kind not in _parsers:
        _parsers[kind] = TypeAdapter(kind)
    return _parsers[kind]
