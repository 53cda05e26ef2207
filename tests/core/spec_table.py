"""The fields of a run's spec as data: `python -m tests.core.spec_table` writes them, and a test checks that they are up to date."""

import types
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from prime_train.core import spec
from prime_train.core.registry.trainers import TRAINERS

FILE = Path(spec.__file__).parent / "fast_parsing" / "spec_fields.py"
ODD = ("other",)
"""Fields of a kind that is never read without pydantic."""
INSIDE = get_args(spec.InsidePath)[1]
UNITS = {"bytes": spec.Bytes, "seconds": spec.Seconds, "hours": spec.Hours, "integer_gib": spec.IntegerGib, "gib": spec.Gib}
PARSERS = {get_args(kind)[1]: name for name, kind in UNITS.items()}
HEAD = '''\
"""Fields of a run's spec, made by tests/core/spec_table.py from `prime_train.core.spec`; not to be edited.

By part and name: the kind of value, and the default where there is one. `prime_train.core.fast_parsing.spec` says how a kind is read.
"""

from typing import Any

'''


def text() -> str:
    rows = [f'    "{part.__name__}": {{\n{_rows(part)}    }},\n' for part in parts(spec.RunSpec)]
    return "".join([HEAD, "FIELDS: dict[str, dict[str, tuple[Any, ...]]] = {\n", *rows, "}\n"])


def validators() -> dict[str, set[str]]:
    """Return the validators of each part, beyond those of its fields."""
    found = {part.__name__: part.__pydantic_decorators__ for part in parts(spec.RunSpec)}
    return {
        name: {*requested.field_validators, *requested.model_validators}
        for name, requested in found.items()
        if requested.field_validators or requested.model_validators
    }


def parts(part: type[BaseModel]) -> list[type[BaseModel]]:
    """Yield the part and those in it that can be read without pydantic."""
    inner = [other for field in part.model_fields.values() for name in [_named(field)] if name for other in parts(getattr(spec, name))]
    return list(dict.fromkeys([part, *inner]))


def _named(field: FieldInfo) -> str:
    kind = _kind(field.annotation, field.metadata)
    while kind[0] in ("null", "list", "map"):
        kind = kind[-1]
    return kind[1] if kind[0] == "part" else ""


def _rows(part: type[BaseModel]) -> str:
    return "".join(f'        "{name}": {_quoted(_row(field))},\n' for name, field in part.model_fields.items())


def _row(field: FieldInfo) -> tuple[Any, ...]:
    kind = _kind(field.annotation, field.metadata)
    if field.is_required():
        return (kind,)
    default = field.get_default(call_default_factory=True)
    assert default is not PydanticUndefined
    return (kind, {} if isinstance(default, BaseModel) else str(default) if isinstance(default, str) else default)


def _kind(wanted: Any, metadata: list[Any]) -> tuple[Any, ...]:
    if get_origin(wanted) is Annotated:
        return _kind(get_args(wanted)[0], list(get_args(wanted)[1:]))
    if get_origin(wanted) in (Union, types.UnionType):
        return ("null", _kind(next(part for part in get_args(wanted) if part is not type(None)), metadata))
    if get_origin(wanted) is Literal:
        return ("word", *get_args(wanted))
    if get_origin(wanted) in (tuple, dict) and metadata:
        return ODD
    if get_origin(wanted) is tuple:
        return ("list", _kind(get_args(wanted)[0], []))
    if get_origin(wanted) is dict:
        return ("map", *(_kind(part, []) for part in get_args(wanted)))
    if isinstance(wanted, type) and issubclass(wanted, StrEnum):
        return ("choice", wanted.__name__)
    if isinstance(wanted, type) and issubclass(wanted, BaseModel):
        is_odd = any(field.is_required() and _kind(field.annotation, field.metadata) == ODD for field in wanted.model_fields.values())
        return ODD if is_odd else ("part", wanted.__name__)
    return _single(wanted, metadata)


def _single(wanted: Any, metadata: list[Any]) -> tuple[Any, ...]:
    limits: dict[str, Any] = {}
    unit = ""
    for limit in (limit for message in metadata for limit in (message.metadata if isinstance(message, FieldInfo) else [message])):
        if limit is INSIDE:
            return ("inside",)
        if isinstance(limit, spec.NameIn):
            return ("trainer",) if limit.rows is TRAINERS else ("provider",)
        if isinstance(limit, BeforeValidator) and limit in PARSERS:
            unit = PARSERS[limit]
            continue
        names = [name for name in ("ge", "gt", "le", "min_length", "pattern") if getattr(limit, name, None) is not None]
        if not names:
            return ODD
        limits |= {name: getattr(limit, name) for name in names}
    bounds = (limits.get("ge"), limits.get("gt"), limits.get("le"))
    if wanted is str:
        return ("text", limits.get("pattern", ""), limits.get("min_length", 0))
    return {int: (unit or "integer", *bounds), float: (unit or "number", *bounds), bool: ("flag",)}.get(wanted, ODD)


def _quoted(value: Any) -> str:
    """Return the value as written in a file, with double quotes."""
    match value:
        case str():
            return f'"{value}"' if '"' not in value and "\\" not in value else repr(value)
        case tuple():
            return f"({', '.join(map(_quoted, value))}{',' if len(value) == 1 else ''})"
        case _:
            return repr(value)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
