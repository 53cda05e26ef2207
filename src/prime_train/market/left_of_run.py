"""What is known when a machine is rented for a run: the work that it has left, and what this account has seen
of machines.
"""

from dataclasses import replace

from prime_train.market import priors
from prime_train.market.observations import Observations
from prime_train.market.quotes import Market, Work
from prime_train.market.run_lengths import guessed_steps, unit_of
from prime_train.market.step_times import measured_in, step_times
from prime_train.runs.budget import flush_from_s, training_s
from prime_train.runs.run import Lease, Run, with_heartbeat
from prime_train.runs.verdict import step_rose_s


def market_of(run: Run, seen: Observations, now_s: int, *, has_store: bool = True) -> Market:
    """Return what offers for the next machine of the run are compared by. `seen`: what this account has seen,
    this run included.
    """
    return Market(work_of(run, seen, now_s), seen, has_store)


def while_training(market: Market, run: Run, lease: Lease) -> Market:
    """Return the same market with the work that is left of a run at its present step, and with the step time
    that its machine shows.
    """
    live = with_heartbeat(run, lease).current_attempt
    if live is None or run.spec.trainer.steps is None:
        return market
    here = measured_in(run, [replace(live, last_sign_s=step_rose_s(lease))])
    times = step_times(
        {**market.seen.steps_of(run.spec), **here}, run.forecast.steps, market.seen.similar_to(run.forecast)
    )
    left = max(0, run.spec.trainer.steps - live.last_step)
    return replace(market, work=replace(market.work, steps=left, step_times=times, resumes=True))


def work_of(run: Run, seen: Observations, now_s: int) -> Work:
    """Return the work that the run's next machine has before it."""
    spec, forecast, flush_s = run.spec, run.forecast, flush_from_s(run)
    done = run.resume.step if run.resume is not None else 0
    steps, hours = _last_step(run, done), spec.budget.hours
    guess = (
        guessed_steps(seen.lengths, spec, forecast) if steps is None and run.trained_step is None else None
    )
    every_steps = spec.checkpoints.every_steps or forecast.every_steps
    return Work(
        config=run.config,
        steps=_left(run, steps, done) if guess is None else guess.left(done),
        guess=guess if guess is not None and guess.left(done) is not None else None,
        unit=unit_of(spec),
        step_times=step_times(seen.steps_of(spec), forecast.steps, seen.similar_to(forecast)),
        hours=max(0.0, hours - training_s(run, now_s) / 3600)
        if hours is not None
        else priors.PROBE_H
        if run.probe is not None
        else None,
        interval_steps=every_steps,
        interval_s=forecast.every_s if every_steps is None else None,
        checkpoint_bytes=forecast.checkpoint_bytes,
        model_bytes=forecast.model_bytes,
        resumes=run.resume is not None,
        deadline_h=max(0.0, flush_s - now_s) / 3600 if flush_s is not None else None,
        is_probe=run.probe is not None,
        stall_s=forecast.stall_s,
        smoke_s_max=float(spec.smoke.timeout_s) if spec.smoke is not None else 0.0,
        smoke_steps=spec.smoke.steps if spec.smoke is not None else None,
        needs=forecast.needs,
    )


def _left(run: Run, steps: int | None, done: int) -> int | None:
    if run.trained_step is not None:
        return 0
    return max(0, steps - done) if steps is not None else None


def _last_step(run: Run, done: int) -> int | None:
    """Return the last step that the run makes, `done` of which are in the checkpoint that it resumes from;
    None if that is not known.
    """
    steps = run.spec.trainer.steps or run.forecast.last_step
    if run.probe is None:
        return steps
    enough = done + run.probe.steps + 1  # each attempt measures anew
    return enough if steps is None else min(steps, enough)
