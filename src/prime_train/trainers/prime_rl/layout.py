"""Which GPUs of a machine serve prime-rl's inference, and on which ports, derived from its configuration.

prime-rl gives its inference server the first GPUs and its trainer the next ones, in the order of
CUDA_VISIBLE_DEVICES. Missing settings take prime-rl's defaults. Anything that cannot be interpreted leaves
that part unknown instead of guessed: a file that is not TOML, a placement over several machines, GPUs that
are not given by number.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

INFER_GPUS, TRAIN_GPUS = "deployment.num_infer_gpus", "deployment.num_train_gpus"
PORT, ENGINE_PORT, PLACEMENT = "inference.server.port", "inference.deployment.backend_port", "deployment.type"
DEFAULT_PORT = 8000
ENGINE_ABOVE = 100
"""Offset of the engine's own port from the one that clients use."""

PORT_MAX = 65_535
GPUS_MAX = 64


@dataclass(frozen=True)
class Layout:
    """GPUs and ports of the inference server.

    `gpus` are those used for inference alone, by the driver's numbers; `ports` are the engine's, then the
    front end's. A field is empty if it is unknown, or if this machine has no inference server.
    """

    gpus: tuple[int, ...] = ()
    ports: tuple[int, ...] = ()


def layout(config: str, overrides: Sequence[str], *, count: int, visible: str | None) -> Layout:
    """Return the layout for a configuration.

    `config` is the text of its TOML file, `overrides` the arguments after it, `count` the number of GPUs in
    the machine, and `visible` the launcher's CUDA_VISIBLE_DEVICES (None if unset).
    """
    try:
        settings = dict(_flat(tomllib.loads(config))) | dict(_arguments(overrides))
    except (tomllib.TOMLDecodeError, ValueError, RecursionError):
        return Layout()
    if not any(name == "inference" or name.startswith("inference.") for name in settings):
        return Layout()
    if settings.get(PLACEMENT, "single_node") != "single_node" or settings.get("inference") in (
        "None",
        "none",
        "null",
    ):
        return Layout()
    return Layout(_gpus(settings, count, visible), _ports(settings))


def _gpus(settings: Mapping[str, object], count: int, visible: str | None) -> tuple[int, ...]:
    infer, train = (
        _number(settings.get(INFER_GPUS, 1), GPUS_MAX),
        _number(settings.get(TRAIN_GPUS, 1), GPUS_MAX),
    )
    # With fewer GPUs than both need, they share GPUs, or the launcher will refuse.
    if not infer or not train or infer + train > count:
        return ()
    if visible is None:
        return tuple(range(infer))
    order = [_number(part.strip(), GPUS_MAX) for part in visible.split(",")]
    numbers = [number for number in order if number is not None]
    return tuple(numbers[:infer]) if len(numbers) == len(order) >= infer + train else ()


def _ports(settings: Mapping[str, object]) -> tuple[int, ...]:
    front = _number(settings.get(PORT, DEFAULT_PORT), PORT_MAX - ENGINE_ABOVE)
    if not front:
        return ()
    engine = _number(settings.get(ENGINE_PORT, front + ENGINE_ABOVE), PORT_MAX)
    return (engine, front) if engine else (front,)


def _flat(table: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    """Yield each setting by its dotted path. Tables are included, because even an empty one means that the
    component is configured.
    """
    for key, value in table.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            yield name, "table"
            yield from _flat(value, f"{name}.")
        else:
            yield name, value


def _arguments(words: Sequence[str]) -> Iterator[tuple[str, object]]:
    """Yield the settings in arguments of the forms `--a.b-c 1` and `--a.b-c=1`. Raises ValueError for a
    further settings file, whose content is unknown.
    """
    left = list(words)
    while left:
        word = left.pop(0)
        if word.startswith("@"):
            raise ValueError("an additional settings file")
        if not word.startswith("--"):
            continue
        name, given, value = word.removeprefix("--").partition("=")
        if not given:
            value = left.pop(0) if left and not left[0].startswith(("--", "@")) else ""
        yield name.replace("-", "_"), value


def _number(value: object, largest: int) -> int | None:
    """Return a whole number from 0 to `largest`, or None."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    if isinstance(value, str):
        if not (value.isascii() and value.isdecimal() and len(value) <= 5):
            return None
        value = int(value)
    return value if 0 <= value <= largest else None
