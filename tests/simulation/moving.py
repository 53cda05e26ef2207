"""The simulation with prices that change, and runs that move to cheaper machines while they train.

Runs are short here as well, so the times after which a run may move are shorter, too. All promises hold as
before: no two attempts train with a valid lease, no durable step is lost, no machine is left behind, and the
budget is kept, also where a machine is lost while it saves, or where what it was left for is sold out by
then.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from prime_train.market import move_decision as moving
from prime_train.runs.run import Run
from prime_train.spec.choices import Migrate
from prime_train.watch import moves
from tests.simulation.agent import Work
from tests.simulation.provider import OFFERS
from tests.simulation.world import Simulation

PRICES_S = (120, 900)
"""Seconds between two changes of the prices."""
SHARE = (0.2, 1.0)
"""Range of a price, by the usual one, which is the highest."""

LONGER, LASTS_S = 4, 2000
"""Factor on the steps of a run, because a move does not pay in the last minutes; and the highest number of
seconds of training, with which a run that loses all of it once still ends in time.
"""


class MovingSimulation(Simulation):
    """One seed with prices that change."""

    def play(self) -> None:
        with _soon():
            super().play()

    def _plan(self) -> None:
        super()._plan()
        self._reprice()

    def _reprice(self) -> None:
        rng = self.luck.rng
        self.pods.for_rent = [
            replace(offer, usd_per_hour=round(offer.usd_per_hour * rng.uniform(*SHARE), 2))
            for offer in OFFERS
        ]
        self.loop.after(rng.uniform(*PRICES_S), self._reprice)

    def _draw_run(self, rng: random.Random, run_id: str) -> tuple[Run, Work]:
        run, work = super()._draw_run(rng, run_id)
        work = replace(work, steps=max(work.steps, min(LONGER * work.steps, int(LASTS_S / work.step_s))))
        hardware = run.spec.hardware.model_copy(
            update={"migrate": rng.choice((Migrate.AUTO, Migrate.AUTO, Migrate.PROPOSE))}
        )
        trainer = run.spec.trainer.model_copy(update={"steps": work.steps})
        return replace(run, spec=run.spec.model_copy(update={"hardware": hardware, "trainer": trainer})), work


@contextmanager
def _soon() -> Iterator[None]:
    with (
        patch.object(moves, "LOOK_EVERY_S", 60),
        patch.object(moving, "TRAINED_S_MIN", 60),
        patch.object(moving, "MOVE_EVERY_S", 300),
        patch.object(moving, "WORK_H_MIN", 0.05),
    ):
        yield
