"""Asynchronous RL like prime-rl's, simulated in small ticks.

Rollouts of model and tools, engines with limited concurrency, and batches that are made ahead of a trainer.
The output is a metrics file. The bottleneck is known for certain: with one change, the simulation runs again
and shows the effect of that change.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

TICK_S = 0.5
AHEAD = 1
"""A batch is not sent before the engines have the weights of at most this many steps before the last."""
LOOK_S = 5.0
T0_S = 1_000_000.0


@dataclass(frozen=True)
class World:
    """Seconds are means of random times. `at_once`: rollouts in flight; `engines`: requests that are computed
    at full speed together.
    """

    model_s: float = 40.0
    tools_s: float = 5.0
    at_once: int = 64
    engines: int = 64
    batch: int = 64
    train_s: float = 30.0
    send_s: float = 1.0
    save_s: float = 0.0
    save_every: int = 5
    ahead: int = AHEAD


@dataclass
class Rollout:
    started_s: float
    model_s: float
    tools_s: float
    left_s: float = 0.0
    """Seconds that its tools still need, once the model has ended."""
    at_model: bool = True
    model_took_s: float = 0.0

    def __post_init__(self) -> None:
        self.left_s = self.tools_s


@dataclass
class Play:
    """One run of `steps` steps. `lines`: its file; `step_s`: the mean duration of its later steps."""

    world: World
    steps: int = 45
    seed: int = 1
    lines: list[str] = field(default_factory=list)
    step_s: float = 0.0

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._now_s = 0.0
        self._flying = [self._fresh() for _ in range(self.world.at_once)]
        self._made: list[Rollout] = []
        self._shipped, self._trained, self._last_batch_s = 0, 0, 0.0
        self._held_s = 0.0
        ends = [self._now_s for _ in self._trainer()]
        later = ends[len(ends) // 3 :]
        self.step_s = (later[-1] - later[0]) / (len(later) - 1)

    def _trainer(self) -> Iterator[int]:
        """Run the trainer; yields at the end of each step."""
        for step in range(1, self.steps + 1):
            begun_s = self._now_s
            while self._shipped < step:
                self._tick()
            waited_s = self._now_s - begun_s
            self._spend(self.world.train_s)
            self._spend(self.world.send_s)
            self._trained = step
            save_s = self.world.save_s if step % self.world.save_every == 0 else 0.0
            self._spend(save_s)
            reported = {"wait_for_batch": waited_s, "load_data": 0.0, "forward_backward": self.world.train_s}
            reported |= {
                "broadcast_weights": self.world.send_s,
                "save_ckpt": save_s,
                "step": self._now_s - begun_s,
            }
            self._tell(step, {f"time/{name}": value for name, value in reported.items()})
            yield step

    def _spend(self, seconds: float) -> None:
        end_s = self._now_s + seconds
        while self._now_s < end_s:
            self._tick()

    def _tick(self) -> None:
        """Advance everything except the trainer by one tick."""
        at_model = [rollout for rollout in self._flying if rollout.at_model]
        pace = min(1.0, self.world.engines / len(at_model)) if at_model else 1.0
        for place, rollout in enumerate(self._flying):
            if self._is_done(rollout, pace):
                self._made.append(rollout)
                self._flying[place] = self._fresh()
        self._now_s += TICK_S
        self._ship()
        if self._now_s % LOOK_S < TICK_S:
            self._look(len(at_model))

    def _is_done(self, rollout: Rollout, pace: float) -> bool:
        if rollout.at_model:
            rollout.model_s -= TICK_S * pace
            rollout.model_took_s += TICK_S
            rollout.at_model = rollout.model_s > 0
            return False
        rollout.left_s -= TICK_S
        return rollout.left_s <= 0

    def _ship(self) -> None:
        if len(self._made) < self.world.batch:
            return
        if self._trained < self._shipped - self.world.ahead:
            self._held_s += TICK_S
            return
        batch, self._made = self._made[: self.world.batch], self._made[self.world.batch :]
        self._shipped += 1
        took = [rollout.model_took_s + rollout.tools_s for rollout in batch]
        timing = {
            "agent/model/mean": sum(r.model_took_s for r in batch) / len(batch),
            "total/mean": sum(took) / len(took),
            "total/max": max(took),
        }
        reported = {f"train/agg/all/agent/timing/{name}": value for name, value in timing.items()}
        reported |= {
            "progress/rollouts": float(len(batch)),
            "time/step": self._now_s - self._last_batch_s,
            "time/wait_for_policy": self._held_s,
        }
        self._tell(self._shipped, reported)
        self._last_batch_s, self._held_s = self._now_s, 0.0

    def _look(self, at_model: int) -> None:
        running = min(at_model, self.world.engines)
        figures = {
            "num_requests_running": running,
            "num_requests_waiting": at_model - running,
            "kv_cache_usage_perc": running / self.world.engines * 0.9,
        }
        reported = {
            f"inference/agg/{name}/{stat}": float(value)
            for name, value in figures.items()
            for stat in ("sum", "mean")
        }
        self._tell(
            None,
            reported
            | {
                "dispatcher/inflight/train": float(self.world.at_once),
                "concurrency/max_inflight": float(self.world.at_once),
            },
        )

    def _tell(self, step: int | None, figures: dict[str, float]) -> None:
        self.lines.append(json.dumps({"step": step, "time": T0_S + self._now_s, **figures}))

    def _fresh(self) -> Rollout:
        chance = self._chance
        return Rollout(
            self._now_s,
            chance.uniform(0.5, 1.5) * self.world.model_s,
            chance.uniform(0.2, 1.8) * self.world.tools_s,
        )
