"""When prime-rl's inference server has died while its trainer waits for it. Pure: the rule is all here.

prime-rl ends as a whole when one of its processes ends with an error; but when one ends with code 0, or its engine dies behind a living
front, everything else waits, and nothing but the steps tells. The rule, for trainer kind prime_rl alone: all of these at once,

- the trainer runs, was not told to leave, and has made its first step (before it, weights load and kernels are compiled);
- nothing is being saved (then steps stand still for another reason);
- for `health.inference_idle_s`, no step was made, and the server was dead: a GPU that serves inference, and has held its weights in this
  attempt, is at 0 % and holds nothing, or the server's port, which answered before, refuses;
- or it answers that its engine does not respond, or not at all: that may pass, such as after a large update of weights, so it counts only
  once the step is also later than the slow end of the run's own steps.

What never counts: GPUs at 0 % that still hold their weights (between rollouts that is their normal state); GPUs that are shared with the
trainer, or whose part is not known; a port that never answered. An engine that answers for itself is alive, whatever its GPUs look like.
Where the port is not known, the GPUs alone decide, and the detail says so.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from prime_agent.gpu.reading import EMPTY_MIB, GpuLoad


class Server(StrEnum):
    """What its port says."""

    UNHEARD = "unheard"
    """It never answered, or cannot be asked, or what answers may be a front without an engine."""
    ALIVE = "alive"
    UNRESPONSIVE = "unresponsive"
    GONE = "gone"


@dataclass(frozen=True)
class Inference:
    """`gpus`: those that serve inference and nothing else, by index; empty where that is not known."""

    gpus: tuple[int, ...] = ()
    asked: bool = False
    """There is a port to ask."""
    loaded: frozenset[int] = frozenset()
    """Of `gpus`, those that have held something since the trainer was started."""
    empty: tuple[int, ...] = ()
    """Of `loaded`, those that are empty now."""
    empty_since_s: float | None = None
    server: Server = Server.UNHEARD
    server_since_s: float = 0.0
    """Since when the server has said the same."""


def sensed(inference: Inference, loads: tuple[GpuLoad, ...], now_s: float) -> Inference:
    """After a look at all GPUs; `loads` is empty where the figures are too old to tell anything."""
    ours = [load for load in loads if load.index in inference.gpus]
    loaded = inference.loaded | {load.index for load in ours if (load.used_mib or 0.0) >= EMPTY_MIB}
    empty = tuple(load.index for load in ours if load.index in loaded and load.is_empty)
    since_s = (now_s if inference.empty_since_s is None else inference.empty_since_s) if empty else None
    return replace(inference, loaded=loaded, empty=empty, empty_since_s=since_s)


def answered(inference: Inference, server: Server, now_s: float) -> Inference:
    since_s = inference.server_since_s if server is inference.server else now_s
    return replace(inference, server=server, server_since_s=since_s)


def failure(
    inference: Inference, now_s: float, *, step: int, rose_s: float, slow_s: float | None, saving: bool, limit_s: float
) -> str | None:
    """What has failed, in words; None where nothing has. `rose_s`: when `step` was made; `slow_s`: the slow end of the step times."""
    if step == 0 or saving or inference.server is Server.ALIVE:
        return None
    for since_s, least_s, words in _signs(inference, limit_s=limit_s, slow_s=slow_s or 0.0):
        dead_s, still_s = now_s - since_s, now_s - rose_s
        if dead_s >= limit_s and still_s >= least_s:
            return f"{words} for {int(dead_s)} s, while the trainer waits at step {step} for {int(still_s)} s"
    return None


def _signs(inference: Inference, *, limit_s: float, slow_s: float) -> list[tuple[float, float, str]]:
    """What speaks for its death: since when, for how long no step must have been made, and the words."""
    server, since_s = f"the inference server{_of(inference)}", inference.server_since_s
    signs: list[tuple[float, float, str]] = []
    if inference.empty_since_s is not None:
        port = "" if inference.asked else " (the server's port is not known)"
        signs.append((inference.empty_since_s, limit_s, f"{_names(inference.empty)} for inference at 0 % and empty{port}"))
    if inference.server is Server.GONE:
        signs.append((since_s, limit_s, f"{server} refuses connections"))
    if inference.server is Server.UNRESPONSIVE:
        signs.append((since_s, max(limit_s, slow_s), f"{server} says its engine does not respond"))
    return signs


def _names(gpus: tuple[int, ...]) -> str:
    return ("GPU " if len(gpus) == 1 else "GPUs ") + ", ".join(map(str, gpus))


def _of(inference: Inference) -> str:
    return f" on {_names(inference.gpus)}" if inference.gpus else ""
