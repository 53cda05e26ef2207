"""Find the runs that used each version of a config, by the specs in the store."""

from prime_train.app.home import Home
from prime_train.configs.history.versions import Version, spec_of
from prime_train.runs.run import Run
from prime_train.spec.spec import RunSpec


def users(versions: tuple[Version, ...], runs: list[Run]) -> dict[int, tuple[Run, ...]]:
    """Return the runs of each version, by its number.

    Runs are matched by their spec, ignoring its name and provider. If several versions have the same spec,
    because they differ only in the trainer's file, a run counts for the newest of them that was saved before
    the run was launched.
    """
    found: dict[int, list[Run]] = {version.number: [] for version in versions}
    plain = [
        (version, _plain(spec)) for version in versions if (spec := spec_of(version.texts.config)) is not None
    ]
    for run in runs:
        same = [version for version, spec in plain if spec == _plain(run.spec)]
        before = [version for version in same if version.saved_s <= run.created_s]
        chosen = before[-1] if before else next(iter(same), None)
        if chosen is not None:
            found[chosen.number].append(run)
    return {number: tuple(runs) for number, runs in found.items()}


def runs_of(home: Home) -> list[Run]:
    """Return all runs of the store, or none if there is no store."""
    return home.store().list_runs() if home.has_runs else []


def used_by(run: Run) -> str:
    """Return a line such as "small-x4k2p (succeeded, step 20), W&B team/project/small-x4k2p"."""
    tracked = run.spec.wandb
    project = (
        f", W&B {f'{tracked.entity}/' if tracked.entity else ''}{tracked.project}/{run.run_id}"
        if tracked
        else ""
    )
    return f"{run.run_id} ({run.state.value}, step {run.best_step:,}){project}"


def _plain(spec: RunSpec) -> RunSpec:
    return spec.model_copy(
        update={"name": "", "hardware": spec.hardware.model_copy(update={"provider": None})}
    )
