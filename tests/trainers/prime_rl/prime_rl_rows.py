"""Rows of prime-rl's metrics file, made by hand."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

T0_S = 1_000_000.0


@dataclass(frozen=True)
class Pace:
    """Seconds of the parts of every step; `saves` in each `save_every`-th step. `held`: for which the
    orchestrator holds a batch back; None: not reported.
    """

    wait: float = 1.0
    train: float = 30.0
    send: float = 1.0
    save: float = 0.0
    save_every: int = 5
    held: float | None = 0.0
    rollouts: dict[str, object] = field(default_factory=dict)
    engines: dict[str, object] = field(default_factory=dict)

    def saved(self, step: int) -> float:
        return self.save if step % self.save_every == 0 else 0.0


def timing(model: float, tools: float, longest: float = 0.0) -> dict[str, object]:
    """Return the times of rollouts, as newer versions report them."""
    at, total = "train/agg/all/agent/timing", model + tools
    return {f"{at}/agent/model/mean": model, f"{at}/total/mean": total, f"{at}/total/max": longest or total}


def engines(running: float, waiting: float, cache: float) -> dict[str, object]:
    names = {"num_requests_running": running, "num_requests_waiting": waiting, "kv_cache_usage_perc": cache}
    return {
        f"inference/agg/{name}/{stat}": value for name, value in names.items() for stat in ("sum", "mean")
    }


EMPTY, FULL = engines(20, 0, 0.1), engines(400, 60, 0.95)


def rows(pace: Pace, steps: Iterable[int], *, start_s: float = T0_S) -> list[str]:
    """Return the rows that both components write, the orchestrator a step ahead and in the same file."""
    lines, now_s = list[str](), start_s
    for step in steps:
        length_s = pace.wait + pace.train + pace.send + pace.saved(step)
        reported = {"time/step": length_s, "time/save_ckpt": 0.01, "progress/rollouts": 128, **pace.rollouts}
        reported |= {"time/wait_for_policy": pace.held} if pace.held is not None else {}
        lines.append(json.dumps({"step": step + 1, "time": now_s, **reported}))
        if pace.engines:
            lines.append(json.dumps({"step": None, "time": now_s + 1, **pace.engines}))
        now_s += length_s
        parts = {
            "wait_for_batch": pace.wait,
            "load_data": 0.0,
            "forward_backward": pace.train,
            "broadcast_weights": pace.send,
        }
        message = {f"time/{name}": value for name, value in parts.items()} | {
            "time/save_ckpt": pace.saved(step),
            "time/step": length_s,
        }
        lines += [json.dumps({"step": step, "time": now_s, **row}) for row in ({"perf/mfu": 31.0}, message)]
    return lines
