"""A run's state in one line."""

from prime_train.runs.figures import RunFigures, figures
from prime_train.runs.run import DesiredState, Lease, Run, RunState
from prime_train.spec.causes import POLICY

SAYS: dict[RunState, str] = {
    RunState.QUEUED: "waits for a machine",
    RunState.LAUNCHING: "requests a machine",
    RunState.BOOTING: "waits for its machine to boot",
    RunState.STARTING: "sets its machine up",
    RunState.TRAINING: "is training",
    RunState.DRAINING: "saves, and gives back its machine",
    RunState.UPLOADING: "has finished training, and uploads what it left",
    RunState.FINISHING: "has finished training, and runs the steps after it",
    RunState.SUCCEEDED: "has succeeded",
    RunState.FAILED: "has failed",
    RunState.CANCELLED: "was cancelled",
    RunState.STOPPED: "has stopped and needs a person",
}


STOPPED_BY_USER = "was stopped at the user's request"


def stopped_by_user(run: Run) -> bool:
    """Return whether a person stopped the run, in which case its end needs no attention."""
    return run.state is RunState.STOPPED and run.desired is not DesiredState.RUN


def says(run: Run) -> str:
    """Return the state of the run as a short predicate that follows its name."""
    return STOPPED_BY_USER if stopped_by_user(run) else SAYS[run.state]


def headline(run: Run, lease: Lease, now_s: int) -> str:
    """Return the state as one line without Markdown, for places with little space."""
    now = figures(run, lease, now_s)
    parts = [says(run), f"step {_progress(now)}", now.money]
    count = now.restarts
    return ", ".join(
        parts + ([f"{count} restart{'' if count == 1 else 's'}: {_causes(now)}"] if count else [])
    )


def _progress(now: RunFigures) -> str:
    step, steps = now.step, now.run.spec.trainer.steps
    return f"{step:,} of {steps:,} ({_share(step, steps)})" if steps else f"{step:,}"


def _share(part: float, total: float) -> str:
    return f"{part / total:.0%}" if total else "-"


def _causes(now: RunFigures) -> str:
    """Return the causes of the restarts with their counts."""
    named = [
        (POLICY[cause].title if cause is not None else "earlier ones", count)
        for cause, count in now.restart_causes.most_common()
    ]
    return ", ".join(f"{title} ×{count}" if count > 1 else title for title, count in named)
