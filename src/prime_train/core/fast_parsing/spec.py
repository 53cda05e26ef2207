"""Reads a valid spec without pydantic.

Loading pydantic takes longer than everything else that checking a config needs, and most checked configs are valid. So this module never
reports a mistake: input that it does not fully understand is left to `RunSpec`, and what it reads has the same values that `RunSpec` would
have.
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from prime_train.core import prime_rl
from prime_train.core.after.steps import violation_of_env, violation_of_step, violation_of_steps
from prime_train.core.fast_parsing.spec_fields import FIELDS
from prime_train.core.image.choice import is_reference, violation_of_image
from prime_train.core.registry.providers import PROVIDERS, allowed_providers
from prime_train.core.registry.trainers import TRAINERS
from prime_train.core.spec_choices import Compress, Migrate, OnDivergence, Spot, Verify
from prime_train.core.text.globs import violation_of_outputs
from prime_train.core.text.paths import violation_of_folder
from prime_train.core.text.sizes import NUMBER_MAX, parse_gib, parse_hours, parse_integer_gib, parse_seconds, parse_size
from prime_train.core.volumes import violation_of_volumes

if TYPE_CHECKING:
    from prime_train.core.config_tree import Plain
    from prime_train.core.spec import AfterSpec, HardwareSpec, RunSpec

_BRACES = frozenset("{}")
_CHOICES: dict[str, type[StrEnum]] = {
    "Compress": Compress,
    "Migrate": Migrate,
    "OnDivergence": OnDivergence,
    "Spot": Spot,
    "Verify": Verify,
}


_UNITS: dict[str, tuple[str, Callable[[object], object]]] = {
    "bytes": ("integer", parse_size),
    "seconds": ("integer", parse_seconds),
    "hours": ("number", parse_hours),
    "integer_gib": ("integer", parse_integer_gib),
    "gib": ("number", parse_gib),
}
"""Kinds of values that may be written with a unit: for each, the kind after parsing, and the parser."""


class _Unsure(Exception):
    """The spec is not fully understood: it may be valid or not."""


class Part:
    """A part of a spec, with the fields of that class in `prime_train.core.spec`. `_given`: the names of fields set in the file;
    `_fields`: of all fields, without what is derived from them."""

    def __init__(self, values: Mapping[str, Any], given: frozenset[str] = frozenset()) -> None:
        self.__dict__.update(values, _given=given, _fields=tuple(values))

    def __getattr__(self, name: str) -> Any:
        # Called only for missing attributes; it also tells type checkers that attributes may have any type.
        raise AttributeError(f"a spec has no field {name}")

    def model_copy(self, *, update: Mapping[str, Any]) -> "Part":
        made = Part({**vars(self), **update}, self._given)
        made.__dict__["_fields"] = self._fields
        return made

    def model_dump(self, *, mode: str = "json") -> dict[str, Any]:
        """Return the part as it is stored."""
        assert mode == "json", mode
        return {name: _plain(vars(self)[name]) for name in self._fields}


def _plain(value: object) -> object:
    if isinstance(value, Part):
        return value.model_dump()
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def read(values: "Plain") -> "RunSpec | None":
    """Return the spec; None: not fully understood, and possibly still valid."""
    try:
        return cast("RunSpec", _part("RunSpec", values))
    except _Unsure:
        return None


def _part(name: str, given: object) -> Part:
    fields = FIELDS[name]
    if not isinstance(given, dict) or not given.keys() <= fields.keys():
        raise _Unsure
    values = {key: _value(kind, given[key]) if key in given else _default(kind, default) for key, (kind, *default) in fields.items()}
    part = Part(values, frozenset(given))
    if name in _SENSE and not _SENSE[name](part):
        raise _Unsure
    return part


def _default(kind: tuple[Any, ...], default: list[Any]) -> object:
    if not default:
        raise _Unsure
    # A missing part has all its defaults; a missing map is a new one, so that no two specs share it.
    match kind:
        case ("part", name):
            return _part(name, default[0])
        case ("choice", name):
            return _CHOICES[name](default[0])
        case ("map", *_):
            return {}
        case _:
            return default[0]


def _value(kind: tuple[Any, ...], value: Any) -> object:
    match kind:
        case ("null", inner):
            return None if value is None else _value(inner, value)
        case ("text", pattern, least) if isinstance(value, str) and len(value) >= least and (not pattern or re.fullmatch(pattern, value)):
            return value
        case ("inside",) if isinstance(value, str) and (path := _inside(value)):
            return path
        case ("flag",) if isinstance(value, bool):
            return value
        case ("integer", *bounds) if isinstance(value, int) and not isinstance(value, bool) and _is_within(value, *bounds):
            return value
        case ("number", *bounds) if isinstance(value, int | float) and not isinstance(value, bool) and _is_within(value, *bounds):
            return float(value)
        case ("trainer",) if isinstance(value, str) and value in TRAINERS:
            return value
        case ("provider",) if isinstance(value, str) and value in PROVIDERS:
            return value
        case ("choice", name) if isinstance(value, str) and value in _CHOICES[name].__members__.values():
            return _CHOICES[name](value)
        case ("word", *words) if isinstance(value, str) and value in words:
            return value
        case (str(name), *bounds) if name in _UNITS:
            return _value((_UNITS[name][0], *bounds), _parsed(_UNITS[name][1], value))
        case ("part", name):
            return _part(name, value)
        case ("list", inner) if isinstance(value, list):
            return tuple(_value(inner, item) for item in value)
        case ("map", of_key, of_value) if isinstance(value, dict):
            return {_value(of_key, key): _value(of_value, item) for key, item in value.items()}
    raise _Unsure


def _parsed(parse: Callable[[object], object], value: object) -> object:
    try:
        return parse(value)
    except (ValueError, OverflowError) as error:
        raise _Unsure from error


def _is_within(value: float, least: float | None, above: float | None, most: float | None) -> bool:
    if abs(value) > NUMBER_MAX:
        return False
    return (least is None or value >= least) and (above is None or value > above) and (most is None or value <= most)


def _inside(value: str) -> str:
    """Return the normalised path; empty if it may lead out of the working code."""
    path = PurePosixPath(value)
    return "" if path.is_absolute() or ".." in path.parts or not value.strip() or "\0" in value else str(path)


# ------------------------------------------------------------------------------------------------------- parts, each as a whole


def _code(code: Part) -> bool:
    return not (code.ref and not code.repo) and not (code.repo and code.folder != ".")


def _progress(progress: Part) -> bool:
    return bool(progress.kind != "regex" and progress.pattern is None)


def _prime_rl(part: Part) -> bool:
    return all(prime_rl.refused(argument) is None for argument in part.overrides)


def _trainer(trainer: Part) -> bool:
    row = TRAINERS[trainer.kind]
    if bool(trainer.command) is bool(row.command_advice) or (row.needs_steps and trainer.steps is None):
        return False
    if any(
        (kind == trainer.kind) is (getattr(trainer, other.config_section) is None)
        for kind, other in TRAINERS.items()
        if other.config_section
    ):
        return False
    return _has_only(trainer.command, "checkpoints") and _has_only(trainer.resume, "step", "epoch", "checkpoint")


def _has_only(text: str, *known: str) -> bool:
    """Return whether all braces are doubled, or enclose one of these names."""
    return not _BRACES & set(re.sub(rf"{{{{|}}}}|{{(?:{'|'.join(known)})}}", "", text))


def _hardware(hardware: Part) -> bool:
    if hardware.providers and (hardware.provider is not None or len(set(hardware.providers)) < len(hardware.providers)):
        return False
    if violation_of_image(allowed_providers(cast("HardwareSpec", hardware)), hardware.image) is not None:
        return False
    if violation_of_volumes(cast("HardwareSpec", hardware), hardware.volumes) is not None:
        return False
    return all(PROVIDERS[name].is_rented for name in hardware.providers) and (not hardware.gpus or hardware.count in (1, 2, 4, 8, 16))


def _image(image: Part) -> bool:
    return is_reference(image.base)


def _checkpoints(checkpoints: Part) -> bool:
    pattern = checkpoints.pattern
    if checkpoints.also or checkpoints.first is not None:
        return False
    return "{step}" in pattern and "{{" not in pattern and _has_only(pattern, "step") and violation_of_folder(pattern) is None


def _health(health: Part) -> bool:
    return bool(health.heartbeat_s < health.overdue_s <= health.silence_s) and not health.rollback_arguments


def _success(success: Part) -> bool:
    return any(value is not None for value in (success.loss_below, success.reward_above, success.tokens_per_s_min))


def _after(step: Part) -> bool:
    return violation_of_env(step.env) is None and violation_of_step(cast("AfterSpec", step)) is None


def _run(spec: Part) -> bool:
    if set(spec.environment) & set(spec.secrets):
        return False
    part = spec.trainer.prime_rl
    if part is not None and spec.image is not None and spec.image.requirements:
        return False
    if part is not None:
        part.run_name = part.run_name or spec.name
        part.folder = prime_rl.run_folder(part.output, part.run_name)
    if not _saved_where_the_trainer_saves(spec) or not _outputs_are_a_part_of_the_tree(spec):
        return False
    return violation_of_steps(cast("RunSpec", spec)) is None


def _outputs_are_a_part_of_the_tree(spec: Part) -> bool:
    return violation_of_outputs(spec.outputs, folder=spec.checkpoints.folder, checkpoint=spec.checkpoints.pattern) is None


def _saved_where_the_trainer_saves(spec: Part) -> bool:
    """Fill in unset fields as `RunSpec` does; return whether the paths are those where the trainer saves."""
    layout_of = TRAINERS[spec.trainer.kind].layout
    if layout_of is None:
        return True
    layout = layout_of(cast("RunSpec", spec))
    _fill_in(spec.trainer.progress, {"file": layout.progress_file})
    _fill_in(spec.checkpoints, {**layout.fixed, "files": layout.files})
    if layout.resume is not None and "resume" not in spec.trainer._given:
        spec.trainer.resume = layout.resume
    return all(getattr(spec.checkpoints, name) == value for name, value in layout.fixed.items())


def _fill_in(part: Part, values: Mapping[str, object]) -> None:
    """Set the fields that are unset or empty."""
    vars(part).update({name: value for name, value in values.items() if name not in part._given or not getattr(part, name)})


_SENSE: dict[str, Callable[[Part], bool]] = {
    "CodeSpec": _code,
    "ProgressSpec": _progress,
    "PrimeRlSpec": _prime_rl,
    "TrainerSpec": _trainer,
    "HardwareSpec": _hardware,
    "ImageSpec": _image,
    "CheckpointSpec": _checkpoints,
    "HealthSpec": _health,
    "SuccessSpec": _success,
    "AfterSpec": _after,
    "RunSpec": _run,
}
"""Checks that involve several fields of a part, at least as strict as those of `RunSpec` and its parts."""
