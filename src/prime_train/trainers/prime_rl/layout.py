"""Which GPUs of a machine serve prime-rl's inference, and on which ports it answers, out of its configuration.

prime-rl gives its inference server the first GPUs and its trainer the next ones, in the order of CUDA_VISIBLE_DEVICES. What is not said has
prime-rl's own defaults. Whatever is not understood makes that part unknown, never wrong: a file that is no TOML, a placement over several
machines, GPUs named by something else than their number.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

INFER_GPUS, TRAIN_GPUS = "deployment.num_infer_gpus", "deployment.num_train_gpus"
PORT, ENGINE_PORT, PLACEMENT = "inference.server.port", "inference.deployment.backend_port", "deployment.type"
DEFAULT_PORT = 8000
ENGINE_ABOVE = 100
"""The engine's own port is so far above the one that clients use."""

PORT_MAX = 65_535
GPUS_MAX = 64


@dataclass(frozen=True)
class Layout:
    """`gpus`: those for inference alone, by the number the driver gives them; `ports`: the engine's, then the front's. Empty: not known,
    or there is no such server here."""

    gpus: tuple[int, ...] = ()
    ports: tuple[int, ...] = ()


def layout(config: str, overrides: Sequence[str], *, count: int, visible: str | None) -> Layout:
    """`config`: the text of its TOML file; `overrides`: the arguments after it; `count`: GPUs in the machine; `visible`:
    CUDA_VISIBLE_DEVICES of its launcher."""
    try:
        said = dict(_flat(tomllib.loads(config))) | dict(_arguments(overrides))
    except (tomllib.TOMLDecodeError, ValueError, RecursionError):
        return Layout()
    if not any(name == "inference" or name.startswith("inference.") for name in said):
        return Layout()
    if said.get(PLACEMENT, "single_node") != "single_node" or said.get("inference") in ("None", "none", "null"):
        return Layout()
    return Layout(_gpus(said, count, visible), _ports(said))


def _gpus(said: Mapping[str, object], count: int, visible: str | None) -> tuple[int, ...]:
    infer, train = _number(said.get(INFER_GPUS, 1), GPUS_MAX), _number(said.get(TRAIN_GPUS, 1), GPUS_MAX)
    # Where there are fewer than both need, they share, or the launcher will refuse.
    if not infer or not train or infer + train > count:
        return ()
    if visible is None:
        return tuple(range(infer))
    order = [_number(part.strip(), GPUS_MAX) for part in visible.split(",")]
    numbers = [number for number in order if number is not None]
    return tuple(numbers[:infer]) if len(numbers) == len(order) >= infer + train else ()


def _ports(said: Mapping[str, object]) -> tuple[int, ...]:
    front = _number(said.get(PORT, DEFAULT_PORT), PORT_MAX - ENGINE_ABOVE)
    if not front:
        return ()
    engine = _number(said.get(ENGINE_PORT, front + ENGINE_ABOVE), PORT_MAX)
    return (engine, front) if engine else (front,)


def _flat(table: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    """Each setting by its path; a table by its own too, for an empty one says that the part is there."""
    for key, value in table.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            yield name, "table"
            yield from _flat(value, f"{name}.")
        else:
            yield name, value


def _arguments(words: Sequence[str]) -> Iterator[tuple[str, object]]:
    """`--a.b-c 1` and `--a.b-c=1`. Raises ValueError for a further file, which may say anything."""
    left = list(words)
    while left:
        word = left.pop(0)
        if word.startswith("@"):
            raise ValueError("a further file of settings")
        if not word.startswith("--"):
            continue
        name, given, value = word.removeprefix("--").partition("=")
        if not given:
            value = left.pop(0) if left and not left[0].startswith(("--", "@")) else ""
        yield name.replace("-", "_"), value


def _number(value: object, largest: int) -> int | None:
    """A whole number from 0 to `largest`, or None."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    if isinstance(value, str):
        if not (value.isascii() and value.isdecimal() and len(value) <= 5):
            return None
        value = int(value)
    return value if 0 <= value <= largest else None
