"""Changes that a user requests: stop, resume with other limits or another config, archive."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.budget import Exhausted, Limit, used_up
from prime_train.runs.change.parts import happened, mirrored, saved
from prime_train.runs.forecast import NO_FORECAST, Forecast
from prime_train.runs.resuming.trust import cleared_step, distrusted_after
from prime_train.runs.run import Change, DesiredState, Event, Run, move
from prime_train.spec.after_steps import kept_steps
from prime_train.spec.checkpoint_names import first_number
from prime_train.spec.spec import BudgetSpec, RunSpec


def requested(run: Run, desired: DesiredState, now_s: int) -> Change:
    """Record the user's request to stop or cancel; reconcile carries it out. Raises IllegalMove if the run is
    over.
    """
    if run.is_over:
        move(run, Event.STOP if desired is DesiredState.STOP else Event.CANCEL)
    return saved(
        replace(run, desired=desired, next_check_s=now_s),
        happened(run, now_s, "asked", f"the user requests {desired.value}"),
    )


@dataclass(frozen=True)
class Renewed:
    """Another config and other code with which a run is resumed."""

    spec: RunSpec
    commit: str
    code_sha256: str = ""
    """SHA-256 of the packed working tree; empty if a repository is checked out."""
    forecast: Forecast = NO_FORECAST
    """What is estimated of the config."""

    def check(self, run: Run) -> None:
        """Raise ValueError if the run cannot continue with this config: its name, its kind of trainer and the
        pattern of checkpoint names must stay, because its checkpoints are found and read by them, and it must
        not end before the newest checkpoint.
        """
        old, new = run.spec, self.spec
        kept = (
            ("name", old.name, new.name),
            ("trainer.kind", old.trainer.kind, new.trainer.kind),
            ("checkpoints.pattern", old.checkpoints.pattern, new.checkpoints.pattern),
            ("checkpoints.first", first_number(old), first_number(new)),
        )
        for field, before, after in kept:
            if before != after:
                raise ValueError(
                    f"{field} may not change when a run is resumed: it is {after} here and {before} in run "
                    f"{run.run_id}"
                )
        steps = new.trainer.steps
        if steps is not None and steps < run.durable_step:
            raise ValueError(
                f"trainer.steps is {steps}, but run {run.run_id} already has a checkpoint of step "
                f"{run.durable_step}"
            )


def resumed(
    run: Run,
    now_s: int,
    limits: Mapping[Limit, float | str] | None = None,
    renewed: Renewed | None = None,
    *,
    step: int | None = None,
) -> Change:
    """Return the change that resumes an ended run, optionally with larger limits or another config, and from
    the checkpoint of `step` instead of the newest one that is trusted. If no attempt could resume with the
    present config, another one begins with the newest checkpoint, because none of them is to blame. Raises
    IllegalMove unless the run was stopped, failed or cancelled, Exhausted if its budget is still used up, and
    ValueError if it cannot continue with that config or these limits.
    """
    moved = move(run, Event.RESUME)
    if renewed is not None:
        renewed.check(run)
        moved = _with_steps_kept(moved, renewed.spec)
        moved = replace(moved, spec=renewed.spec, forecast=renewed.forecast)
        moved = replace(moved, renewed_attempt=run.attempt, distrusted=distrusted_after(run))
        step = step if step is not None else cleared_step(run, moved.distrusted)
        moved = replace(
            moved, commit=renewed.commit, revision=run.revision + 1, code_sha256=renewed.code_sha256
        )
    # Validated like any budget, because a run stored with an invalid limit could not be read again.
    budget = BudgetSpec.model_validate(
        moved.spec.budget.model_dump() | {limit.value: value for limit, value in (limits or {}).items()}
    )
    after = replace(
        moved,
        spec=moved.spec.model_copy(update={"budget": budget}),
        desired=DesiredState.RUN,
        strikes=(),
        resume_failures=0,
        rollbacks=0,
        unresumable="",
        step_asked=step,
        resume_chosen=False if step is not None else run.resume_chosen and not run.unresumable,
        backoffs=0,
        not_before_s=now_s,
        next_check_s=now_s,
        notices=(),
        why="",
        ended_s=None,
        cleanup_s=None,
        archived=False,
    )
    exhausted = used_up(after, now_s)
    if exhausted:
        raise Exhausted(after, exhausted)
    text = f"the user resumes the run{f' from step {step}' if step is not None else ''}" + (
        f" with a changed config, at {renewed.commit or 'no commit'}" if renewed is not None else ""
    )
    return saved(
        after, happened(after, now_s, "asked", text), alerts=mirrored(after, AlertKind.RESUMED, now_s)
    )


def _with_steps_kept(run: Run, spec: RunSpec) -> Run:
    """Return the run with what another config leaves of its success: training is repeated if the trainer
    changed, and a step after it if that step, or one before it, did.
    """
    if run.spec.trainer != spec.trainer:
        return replace(run, trained_step=None, after_done=0, after_failed="")
    done = kept_steps(run.spec.after, spec.after, run.after_done)
    return replace(run, after_done=done, after_failed=run.after_failed if done == run.after_done else "")


def archived(run: Run, now_s: int, *, undo: bool = False) -> Change:
    """Archive an ended run, or with `undo` take it out of the archive: lists leave archived runs out, and
    nothing else changes. Raises ValueError unless the run is settled.
    """
    if not undo and not run.is_settled:
        raise ValueError(f"run {run.run_id} is {run.state.value}, but not settled")
    text = "the user restores the run from the archive" if undo else "the user archives the run"
    return saved(replace(run, archived=not undo), happened(run, now_s, "asked", text))
