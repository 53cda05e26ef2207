"""Resume an ended run from its newest checkpoint."""

from collections.abc import Mapping
from pathlib import Path

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.app.home import Home
from prime_train.buckets.keys import code_key
from prime_train.checkpoints.catalog import Reader
from prime_train.checks.validate import check_run_config
from prime_train.configs.history.policy import policy_findings
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.launch.allowed import NOTHING_ALLOWED, Allowed
from prime_train.launch.launch import Unfit, on_provider, plan, put_code
from prime_train.launch.preconditions import found_for, not_rehearsed
from prime_train.planning.market_for_run import config_forecast
from prime_train.providers.kinds import allowed_providers, is_rented
from prime_train.runs.budget import Limit
from prime_train.runs.change import Renewed, resumed
from prime_train.runs.lookup import find
from prime_train.runs.requests import ask, impossible
from prime_train.runs.resuming.choice import steps_text
from prime_train.runs.run import Change, Event, IllegalMove, Run, move
from prime_train.runs.store import RunRecord
from prime_train.spec.finding import has_errors
from prime_train.spec.reader import read_config
from prime_train.spec.rehearsed import rehearsal_digest
from prime_train.spec.spec import RunSpec
from prime_train.text.deadline import parse_deadline
from prime_train.text.safe import neutralized
from prime_train.text.sizes import NUMBER_MAX


def limits_of(*, usd: float | None, hours: float | None, deadline: str | None) -> dict[Limit, float | str]:
    """Return those limits that are given. Raises UsageError for a value that no budget can have."""
    for name, value in ((SettingAdvice.USD, usd), (SettingAdvice.HOURS, hours)):
        if value is not None and not 0 < value <= NUMBER_MAX:
            raise UsageError(f"{name.value} must be more than 0, and {NUMBER_MAX} at most, not {value}")
    try:
        if deadline is not None:
            parse_deadline(deadline)
    except ValueError as error:
        raise UsageError(f"deadline {error}") from error
    given = {Limit.USD: usd, Limit.HOURS: hours, Limit.DEADLINE: deadline}
    return {limit: value for limit, value in given.items() if value is not None}


def resume(
    home: Home,
    name: str,
    limits: Mapping[Limit, float | str],
    *,
    config: Path | None = None,
    called: str | None = None,
    step: int | None = None,
    allowed: Allowed = NOTHING_ALLOWED,
) -> RunRecord:
    """Queue an ended run again and return it as saved. `limits`: new limits of its budget; `config`: a config
    whose spec, together with the current code, replaces the run's; `called`: the name to take instead of the
    config's, as for a launch; `allowed`: likewise; `step`: the step of the checkpoint to resume from, instead
    of the newest one that is trusted.

    Raises UsageError if there is no such run, it has not ended, its budget is spent, or it has no complete
    checkpoint of that step; Unfit if the config has errors; and ExternalError if an external service fails.
    """
    store = home.store()
    try:
        renewed = (
            _renewed(home, find(store, name).run, config, called, allowed) if config is not None else None
        )
        if step is not None:
            _check_step(home, find(store, name).run, step)
        return ask(
            store, name, lambda run, now_s: _allowed(home, resumed(run, now_s, limits, renewed, step=step))
        )
    except IllegalMove as error:
        raise impossible(error) from error
    except ValueError as error:
        fix = Advice("launch it as a new run: ", Call(Operation.LAUNCH, "CONFIG"))
        raise UsageError(f"{config or name}: {error}", fix=fix) from error


def _allowed(home: Home, change: Change) -> Change:
    """Return the change. Raises UsageError if the run would ask for more than the operator's policy
    allows.
    """
    why = home.not_allowed(change.run)
    if why:
        raise UsageError(f"{change.run.run_id} cannot resume: {why}", code=Exit.EXTERNAL_REFUSED)
    return change


def _check_step(home: Home, run: Run, step: int) -> None:
    """Raise UsageError unless the run has a complete checkpoint of this step in the bucket."""
    complete = Reader(home.bucket(), run.run_id).catalog().complete()
    if all(manifest.step != step for manifest in complete):
        steps = steps_text(complete)
        raise UsageError(
            f"{run.run_id} has no complete checkpoint of step {step} in the bucket",
            fix=f"steps there: {steps}",
        )


def _proves_as_much(before: RunSpec, now: RunSpec) -> bool:
    """Return whether the run was launched on rented machines with all that a rehearsal proves."""
    return is_rented(allowed_providers(before.hardware)) and rehearsal_digest(before) == rehearsal_digest(now)


def _renewed(home: Home, run: Run, config: Path, called: str | None, allowed: Allowed) -> Renewed:
    """Check the config as for a launch and upload its code. The code is stored under a key of its own, so
    that nothing changes for the run until it is resumed. Raises Unfit if the config has errors.
    """
    if run.probe is not None:
        # It would get the budget, the outputs and the steps after training of an ordinary run.
        fix = Advice("launch another probe: ", Call(Operation.PROBE, str(config)))
        raise UsageError(
            f"{run.run_id} is a probe, which measures only the config that it was launched with", fix=fix
        )
    read = read_config(config)
    if read.spec is None:
        raise Unfit(check_run_config(read)[0])
    named = read.spec.model_copy(update={"name": run.spec.name})
    spec = on_provider(named, home)
    beyond = policy_findings(home.policy(), spec, read.file, read.source, is_remote=home.is_remote)
    unproven = (
        () if allowed.without_rehearsal or _proves_as_much(run.spec, spec) else not_rehearsed(read, spec)
    )
    found, _ = found_for(read, spec, home, (*beyond, *unproven), allowed_folders=allowed.folders)
    if has_errors(found):
        raise Unfit(found)
    if (called or read.spec.name) != run.spec.name:
        own = (
            "give the run's own config; if it was launched from this one under another name, give that, too: "
        )
        what = (
            f"{config} is the config of {read.spec.name}"
            if called is None
            else f"the name {neutralized(called[:80])!r} was given"
        )
        options = (Option(SettingAdvice.CONFIG, str(config)), Option(SettingAdvice.NAME, run.spec.name))
        raise UsageError(
            f"{what}, but {run.run_id} is a run of {run.spec.name}",
            fix=Advice(own, Call(Operation.RESUME, run.run_id, options)),
        )
    renewed = Renewed(spec, "")
    move(run, Event.RESUME)
    renewed.check(run)
    made = plan(spec, file=str(config), allowed=allowed)
    digest = (
        put_code(home, made.snapshot, code_key(run.run_id, run.revision + 1))
        if made.snapshot is not None
        else ""
    )
    return Renewed(spec, made.commit, digest, config_forecast(read, spec))
