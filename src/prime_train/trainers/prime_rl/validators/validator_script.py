"""Script run by the Python that prime-rl's config package was installed for: reads a config from stdin, and
writes the validators' refusals to stdout.

It imports no code of prime-train. Environments are deferred: the keys that name them are removed before
prime-rl would import them, and the rest of a source of tasks is validated against its own fields only,
because an error about the entire source may be due to what was removed.
"""

import importlib
import json
import os
import sys
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

REFUSALS_MAX = 200
TEXT_CHARS_MAX = 1000

_ENVIRONMENTS = ("env", "source")
_DEFERRED = (
    ("orchestrator", "train", "source"),
    ("orchestrator", "eval", "source"),
    ("orchestrator", "eval"),
)
"""The parts of a config that cannot be validated without their environments, inner ones first."""

Where = tuple[str | int, ...]
Row = dict[str, Any]


def main() -> None:
    config = json.load(sys.stdin)
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # keep what validators print out of the answer
    os.dup2(2, 1)
    sys.path.append(sys.argv[1])
    with answer:
        json.dump(_answer(config), answer)


def _answer(config: Row) -> Row:
    try:
        model = vars(importlib.import_module("prime_rl.configs.rl"))["RLConfig"]
        return {"refusals": list(_refusals(model, config))[:REFUSALS_MAX]}
    except (ImportError, KeyError) as error:
        return {"failure": f"{type(error).__name__}: {error}"[:TEXT_CHARS_MAX]}
    except SystemExit as error:
        return {"failure": f"a validator exited with {error.code}"[:TEXT_CHARS_MAX]}


def _refusals(model: type[BaseModel], config: Row) -> Iterator[Row]:
    taken = []
    for where in _DEFERRED:
        inner, holder = _model_at(model, where), _at(config, where[:-1])
        if inner is not None and isinstance(holder, dict) and holder.get(where[-1]) is not None:
            taken.append((inner, where, holder.pop(where[-1])))
    yield from _tried(model, config, ())
    for inner, where, part in taken:
        parts = (
            [((*where, at), item) for at, item in enumerate(part)]
            if isinstance(part, list)
            else [(where, part)]
        )
        for place, item in parts:
            if isinstance(item, dict):
                without = {key: value for key, value in item.items() if key not in _ENVIRONMENTS}
                yield from (
                    row for row in _tried(inner, without, place) if _is_of_a_field(row["where"][len(place) :])
                )


def _is_of_a_field(where: list[str | int]) -> bool:
    return bool(where) and where[0] not in _ENVIRONMENTS


def _tried(model: type[BaseModel], config: Row, above: Where) -> Iterator[Row]:
    try:
        model.model_validate(config)
    except ValidationError as error:
        rows = error.errors(include_url=False, include_context=False, include_input=False)
        yield from (_row((*above, *row["loc"]), row["type"], row["msg"]) for row in rows)
    except ImportError:
        # A package that is not installed here says nothing about the config.
        raise
    except Exception as error:
        # prime-rl itself would fail with it too.
        yield _row(above, type(error).__name__, f"{type(error).__name__}: {error}")


def _row(where: Where, kind: str, text: str) -> Row:
    return {"where": list(where), "kind": kind, "text": text[:TEXT_CHARS_MAX]}


def _at(config: Any, path: Where) -> Any:
    for step in path:
        config = config.get(step) if isinstance(config, dict) else None
    return config


def _model_at(model: type[BaseModel], path: Where) -> type[BaseModel] | None:
    """Return the model that validates a table at this path, or None if there is no such setting; the unknown
    name is then refused by its parent.
    """
    found: type[BaseModel] | None = model
    for step in path:
        field = found.model_fields.get(str(step)) if found is not None else None
        found = next(_models(field.annotation), None) if field is not None else None
    return found


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        return
    for argument in get_args(annotation):
        yield from _models(argument)


if __name__ == "__main__":
    main()
