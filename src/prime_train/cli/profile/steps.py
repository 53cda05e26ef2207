"""Step times of any trainer: how long steps take, and the share of that spent on saves."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from prime_train.trainers.prime_rl.profile.bottlenecks import percent, seconds

if TYPE_CHECKING:
    from prime_train.core.run import Attempt
    from prime_train.ports import RunRecord
    from prime_train.trainers.step_times import StepTimes

NO_MORE = "no more is known: this trainer tells its steps, and not what they are made of"


@dataclass(frozen=True)
class Steps:
    """Step times of a run in seconds; None: not known. `mean_s`: the mean of the newest attempt, including saves; `slow_s`: its slow end
    (95th percentile)."""

    run: str
    kind: str
    steps: int
    median_s: float | None
    p90_s: float | None
    mean_s: float | None
    slow_s: float | None
    save_s: float | None
    """How long one save holds up training, in seconds."""
    save_every_s: float | None
    save_share: float | None


def steps_of(held: "RunRecord", told: "StepTimes | None") -> Steps:
    """Return the step times from the progress file (`told`) and the agent's heartbeats."""
    run, lease = held.run, held.lease
    heartbeat = lease.heartbeat if lease.attempt == run.attempt else None
    saves = heartbeat.saves if heartbeat is not None else None
    save_s, every_s = (saves.stall_s, saves.interval_s) if saves is not None else (None, None)
    return Steps(
        run=run.run_id,
        kind=run.spec.trainer.kind,
        steps=told.steps if told is not None else 0,
        median_s=told.median_s if told is not None else None,
        p90_s=told.p90_s if told is not None else None,
        mean_s=_mean_s(run.current_attempt, lease.heartbeat_s, heartbeat.step if heartbeat is not None else None),
        slow_s=heartbeat.step_slow_s if heartbeat is not None else run.step_slow_s,
        save_s=save_s,
        save_every_s=every_s,
        save_share=min(1.0, save_s / every_s) if save_s is not None and every_s else None,
    )


def page(found: Steps) -> RenderableType:
    lines = [Text.assemble((found.run, "bold"), f", trainer {found.kind}")]
    if found.median_s is not None and found.p90_s is not None:
        words = f"a step takes {seconds(found.median_s)} (median), {seconds(found.p90_s)} at the slow end (p90), over {found.steps} steps"
        lines.append(Text(words))
    elif found.mean_s is not None:
        slow = f", {seconds(found.slow_s)} at the slow end (p95)" if found.slow_s is not None else ""
        lines.append(Text(f"a step takes {seconds(found.mean_s)} (mean of the newest attempt){slow}"))
    else:
        lines.append(Text("how long a step takes is not known: too few were made, or none bears a time"))
    if found.save_share is not None and found.save_s is not None and found.save_every_s is not None:
        once = f"{seconds(found.save_s)} every {seconds(found.save_every_s)}"
        lines.append(Text(f"saves take {percent(found.save_share)} of the time: {once}"))
    return Group(*lines, Text(NO_MORE, style="dim"))


def record(found: Steps) -> dict[str, object]:
    return {**asdict(found), "note": NO_MORE}


def _mean_s(attempt: "Attempt | None", heartbeat_s: int | None, step: int | None) -> float | None:
    if attempt is None or attempt.first_step_s is None:
        return None
    last_s = heartbeat_s if heartbeat_s is not None else attempt.last_sign_s
    # The time is measured from the first step, which is therefore not counted.
    made = max(step or 0, attempt.last_step) - attempt.resumed_step - 1
    return (last_s - attempt.first_step_s) / made if last_s is not None and made > 0 and last_s > attempt.first_step_s else None
