"""Run by the Python that prime-rl's config package was installed for, not by ours: a config on stdin, and on stdout what is refused of it.

It imports nothing of ours. Environments are deferred: what names them is taken out before prime-rl would import them, and the rest of a
source of tasks is held against its own fields alone, as what is said of it as a whole may be said of what was taken out.
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
_DEFERRED = (("orchestrator", "train", "source"), ("orchestrator", "eval", "source"), ("orchestrator", "eval"))
"""Whatever cannot be validated without its environments, the inner ones first."""

Where = tuple[str | int, ...]
Row = dict[str, Any]


def main() -> None:
    config = json.load(sys.stdin)
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # What a validator prints is no answer.
    os.dup2(2, 1)
    sys.path.append(sys.argv[1])
    with answer:
        json.dump(_said(config), answer)


def _said(config: Row) -> Row:
    try:
        model = vars(importlib.import_module("prime_rl.configs.rl"))["RLConfig"]
        return {"refusals": list(_refusals(model, config))[:REFUSALS_MAX]}
    except (ImportError, KeyError) as error:
        return {"failure": f"{type(error).__name__}: {error}"[:TEXT_CHARS_MAX]}
    except SystemExit as error:
        return {"failure": f"one of them left with {error.code}"[:TEXT_CHARS_MAX]}


def _refusals(model: type[BaseModel], config: Row) -> Iterator[Row]:
    taken = []
    for where in _DEFERRED:
        inner, holder = _model_at(model, where), _at(config, where[:-1])
        if inner is not None and isinstance(holder, dict) and holder.get(where[-1]) is not None:
            taken.append((inner, where, holder.pop(where[-1])))
    yield from _tried(model, config, ())
    for inner, where, part in taken:
        parts = [((*where, at), item) for at, item in enumerate(part)] if isinstance(part, list) else [(where, part)]
        for place, item in parts:
            if isinstance(item, dict):
                without = {key: value for key, value in item.items() if key not in _ENVIRONMENTS}
                yield from (row for row in _tried(inner, without, place) if _is_of_a_field(row["where"][len(place) :]))


def _is_of_a_field(where: list[str | int]) -> bool:
    return bool(where) and where[0] not in _ENVIRONMENTS


def _tried(model: type[BaseModel], config: Row, above: Where) -> Iterator[Row]:
    try:
        model.model_validate(config)
    except ValidationError as error:
        rows = error.errors(include_url=False, include_context=False, include_input=False)
        yield from (_row((*above, *row["loc"]), row["type"], row["msg"]) for row in rows)
    except ImportError:
        # What is not installed here says nothing of the config.
        raise
    except Exception as error:
        # prime-rl would end with it as well.
        yield _row(above, type(error).__name__, f"{type(error).__name__}: {error}")


def _row(where: Where, kind: str, text: str) -> Row:
    return {"where": list(where), "kind": kind, "text": text[:TEXT_CHARS_MAX]}


def _at(config: Any, path: Where) -> Any:
    for step in path:
        config = config.get(step) if isinstance(config, dict) else None
    return config


def _model_at(model: type[BaseModel], path: Where) -> type[BaseModel] | None:
    """What a table at this path is validated by; None where there is no such setting: then its name is what is refused."""
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
