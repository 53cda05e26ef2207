"""The fields of a heartbeat as data: `python -m tests.core.heartbeat_table` writes them, and a test checks that they are up to date."""

import types
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from prime_train.core import wire
from prime_train.core.keys import IDENTITY_PATTERN, RUN_ID_PATTERN
from prime_train.core.wire import Heartbeat

FILE = Path(wire.__file__).parent / "fast_parsing" / "heartbeat_fields.py"
RUN_ID = f"^{RUN_ID_PATTERN}$"
IDENTITY = f"^({IDENTITY_PATTERN})?$"
HEAD = '''\
"""Fields of a heartbeat, made by tests/core/heartbeat_table.py from `prime_train.core.wire`; not to be edited.

By part and name: the kind of value with its limits, and the default where there is one. `heartbeat` beside this module reads by
them.
"""

from typing import Any

'''


def text() -> str:
    rows = [f'    "{part.__name__}": {{\n{_rows(part)}    }},\n' for part in parts(Heartbeat)]
    return "".join([HEAD, *map(_words, enums()), "\nFIELDS: dict[str, dict[str, tuple[Any, ...]]] = {\n", *rows, "}\n"])


def parts(part: type[BaseModel]) -> list[type[BaseModel]]:
    """Yield the part and the parts in it."""
    wanted = [_plain(field.annotation) for field in part.model_fields.values()]
    inner = [other for kind in wanted if isinstance(kind, type) and issubclass(kind, BaseModel) for other in parts(kind)]
    return list(dict.fromkeys([part, *inner]))


def enums() -> list[type[StrEnum]]:
    """Yield the enumerations of values in it."""
    wanted = [_plain(field.annotation) for part in parts(Heartbeat) for field in part.model_fields.values()]
    return list(dict.fromkeys(kind for kind in wanted if isinstance(kind, type) and issubclass(kind, StrEnum)))


def validators() -> set[str]:
    """Return the validators of a heartbeat and its parts, beyond those of their fields."""
    requested = [part.__pydantic_decorators__ for part in parts(Heartbeat)]
    return {name for one in requested for name in (*one.field_validators, *one.model_validators)}


def _words(kind: type[StrEnum]) -> str:
    return f"{_name(kind)} = (\n" + "".join(f'    "{member.value}",\n' for member in kind) + ")\n"


def _name(kind: type[StrEnum]) -> str:
    return f"{kind.__name__.upper()}S"


def _rows(part: type[BaseModel]) -> str:
    return "".join(f'        "{name}": {_quoted(_row(field))},\n' for name, field in part.model_fields.items())


def _row(field: FieldInfo) -> tuple[Any, ...]:
    kind = _kind(field.annotation, field.metadata)
    if field.is_required():
        return (kind,)
    default = field.get_default()
    assert (default is None) is _may_be_null(field.annotation), (
        "a part of a heartbeat may be null where that is its default, and only there"
    )
    return (kind, default)


def _may_be_null(wanted: Any) -> bool:
    return type(None) in get_args(wanted)


def _plain(wanted: Any) -> Any:
    """Return the type without None and annotations."""
    if get_origin(wanted) in (Union, types.UnionType):
        wanted = next(part for part in get_args(wanted) if part is not type(None))
    return get_args(wanted)[0] if get_origin(wanted) is Annotated else wanted


def _kind(wanted: Any, metadata: list[Any]) -> tuple[Any, ...]:
    inner = next((part for part in get_args(wanted) if get_origin(part) is Annotated), wanted)
    more = get_args(inner)[1:] if get_origin(inner) is Annotated else ()
    limits = _limits(
        [*metadata, *(limit for message in more for limit in (message.metadata if isinstance(message, FieldInfo) else [message]))]
    )
    kind = _plain(wanted)
    if issubclass(kind, BaseModel):
        return ("part", kind.__name__)
    if issubclass(kind, StrEnum):
        return ("word", kind)
    if kind is str and limits == {"pattern": RUN_ID}:
        return ("run_id",)
    if kind is str and limits == {"pattern": IDENTITY}:
        return ("identity",)
    if kind is str and limits.keys() == {"max_length"}:
        return ("text", limits["max_length"])
    if kind is bool:
        return ("flag",)
    assert limits.keys() <= {"ge", "le"}, f"a limit that is not known here: {limits}"
    return ({int: "integer", float: "number"}[kind], limits.get("ge"), limits.get("le"))


def _limits(metadata: list[Any]) -> dict[str, Any]:
    names = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length", "pattern")
    # They change a value, and refuse none.
    metadata = [limit for limit in metadata if not isinstance(limit, AfterValidator | BeforeValidator)]
    found = {name: getattr(limit, name) for limit in metadata for name in names if getattr(limit, name, None) is not None}
    assert len(found) >= len(metadata), f"a limit that is not known here: {metadata}"
    return found


def _quoted(value: Any) -> str:
    """Return the value as written in a file, with double quotes."""
    match value:
        case str():
            return f'"{value}"'
        case type() if issubclass(value, StrEnum):
            return f"*{_name(value)}"
        case tuple():
            return f"({', '.join(map(_quoted, value))}{',' if len(value) == 1 else ''})"
        case _:
            return repr(value)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
