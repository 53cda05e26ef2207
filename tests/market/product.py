"""The product as a policy: its own functions rank the offers and judge moves, by what it has seen on the way
through the trace.
"""

import math
from collections.abc import Iterator
from random import Random

from prime_train.market.left_of_run import market_of
from prime_train.market.observations import observations
from prime_train.market.quotes import Market
from prime_train.market.ranking import Ranking, rank
from prime_train.runs import decide as d
from prime_train.runs.forecast import Forecast, StepEstimate
from prime_train.runs.offer import Offer
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.run import Attempt, Lease, Run, RunState
from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec
from tests import builders
from tests.market.simulator import Seen, Turn
from tests.market.traces import SPEEDS, Trace

START_S = 1_000_000
ESTIMATE_FACTOR = 1.5
"""An estimated step time is a range: that factor to either side of the middle."""
ESTIMATE_BIAS = 0.4
"""How far the estimates of all kinds are off together, at most, as a logarithm."""


class Product:
    """Ranks as a watcher does at a launch, and with `moves` as it does where a config has hardware.migrate:
    auto.
    """

    def __init__(self, trace: Trace, *, moves: bool) -> None:
        self._trace, self._moves = trace, moves
        self._spec = _spec(trace)
        self._forecast = Forecast(tuple(_estimates(trace)), every_s=trace.job.save_min * 60.0)

    def choose(self, seen: Seen) -> Offer | None:
        run = self._run(seen, None)
        best = self._ranking(run, seen, self._market(run, seen)).best
        return best[0] if best else None

    def leaves(self, seen: Seen, held: Turn) -> bool:
        if not self._moves:
            return False
        run, now_s = self._run(seen, held), _s(seen.at_min)
        lease = _lease(run, now_s)
        if not d.may_move(run, lease, now_s):
            return False
        move = d.best_move(run, lease, seen.offers, self._market(run, seen), now_s)
        return move is not None and move.pays

    def _market(self, run: Run, seen: Seen) -> Market:
        return market_of(run, observations([run], _s(seen.at_min)), _s(seen.at_min))

    def _ranking(self, run: Run, seen: Seen, market: Market) -> Ranking:
        now_s = _s(seen.at_min)
        return rank(
            seen.offers,
            self._spec.hardware,
            avoided=d.avoided_offers(run, now_s),
            on_demand=d.wants_on_demand(run, now_s),
            market=market,
        )

    def _run(self, seen: Seen, held: Turn | None) -> Run:
        """Return the run as the store would have it."""
        attempts = tuple(_attempt(number, turn) for number, turn in enumerate(seen.turns, start=1))
        state, done = RunState.QUEUED, self._trace.job.work_min - seen.left_min
        if held is not None:
            now = _attempt(len(attempts) + 1, held, now_s=_s(seen.at_min), step=math.floor(done))
            attempts, state = (*attempts, now), RunState.TRAINING
        preempted_s = tuple(_s(turn.ended_min or 0.0) for turn in seen.turns if turn.lost)
        return Run(
            "market-1",
            self._spec,
            START_S,
            state,
            attempt=len(attempts),
            attempts=attempts,
            preempted_s=preempted_s,
            resume=ResumePoint(step=math.floor(done), attempt=1, key="manifest") if done > 0 else None,
            forecast=self._forecast,
        )


def _spec(trace: Trace) -> RunSpec:
    """Return the config of the trace's job: a step is a minute on the reference kind."""
    offer = trace.markets[0].offer
    return builders.spec(
        name="market",
        trainer={"steps": math.ceil(trace.job.work_min)},
        hardware={
            "gpus": sorted(trace.job.speeds),
            "count": offer.gpu_count,
            "disk_gib": 100,
            "migrate": "auto",
        },
        budget={"usd": 1e6},
    )


def _estimates(trace: Trace) -> Iterator[StepEstimate]:
    """Return what is estimated of the step times: their ratio is the usual one of the kinds, whatever it is
    for this job.
    """
    bias, count = (
        math.exp(Random(f"estimates {trace.seed}").uniform(-ESTIMATE_BIAS, ESTIMATE_BIAS)),
        trace.markets[0].offer.gpu_count,
    )
    for kind in trace.job.speeds:
        middle_s = 60 * bias / (sum(SPEEDS[kind]) / 2)
        yield StepEstimate(kind, count, middle_s / ESTIMATE_FACTOR, middle_s * ESTIMATE_FACTOR)


def _attempt(number: int, turn: Turn, *, now_s: int | None = None, step: int | None = None) -> Attempt:
    ended_s = _s(turn.ended_min) if turn.ended_min is not None else None
    heard = turn.ended_min is None or turn.heard_min <= turn.ended_min
    lost = (Cause.PREEMPTED if turn.offer.spot else Cause.MACHINE_LOST) if heard else Cause.BOOT_LOST
    cause = None if ended_s is None else lost if turn.lost else Cause.MOVED
    resumed = math.floor(turn.resumed_min)
    return Attempt(
        number,
        turn.offer,
        _s(turn.launched_min),
        pod_id=f"pod-{number}",
        created_s=_s(turn.launched_min),
        first_heartbeat_s=_s(turn.heard_min) if heard else None,
        first_step_s=_s(turn.first_step_min) if turn.first_step_min is not None else None,
        last_sign_s=ended_s if ended_s is not None else now_s,
        resumed_step=resumed,
        last_step=step if step is not None else resumed + math.floor(turn.trained_min),
        fenced_s=ended_s,
        ended_s=ended_s,
        cause=cause,
    )


def _lease(run: Run, now_s: int) -> Lease:
    attempt = run.attempts[-1]
    heartbeat = builders.heartbeat(1, step=attempt.last_step)
    return Lease(run.run_id, attempt.number, open=True, heartbeat_s=now_s, heartbeat=heartbeat)


def _s(at_min: float) -> int:
    return START_S + round(at_min * 60)
