"""Which runs used which version of a config: the store has their specs."""

from prime_train.control_plane.wiring.home import Home
from prime_train.core.run import Run
from prime_train.core.spec import RunSpec
from prime_train.operations.config_versions import Version, spec_of


def users(versions: tuple[Version, ...], runs: list[Run]) -> dict[int, tuple[Run, ...]]:
    """The runs of each version, by its number: those with its spec, whatever their name and whoever rented out their machines. Of
    versions with one spec, it is the newest that was there when the run was launched, for they differ only in the trainer's file."""
    found: dict[int, list[Run]] = {version.number: [] for version in versions}
    plain = [(version, _plain(spec)) for version in versions if (spec := spec_of(version.texts.config)) is not None]
    for run in runs:
        same = [version for version, spec in plain if spec == _plain(run.spec)]
        before = [version for version in same if version.saved_s <= run.created_s]
        chosen = before[-1] if before else next(iter(same), None)
        if chosen is not None:
            found[chosen.number].append(run)
    return {number: tuple(runs) for number, runs in found.items()}


def runs_of(home: Home) -> list[Run]:
    """All runs of the store; none where there is no store."""
    return home.store().list_runs() if (home.root / "control.sqlite").exists() else []


def used_by(run: Run) -> str:
    """small-x4k2p (succeeded at step 20), W&B team/project"""
    tracked = run.spec.wandb
    project = f", W&B {f'{tracked.entity}/' if tracked.entity else ''}{tracked.project}/{run.run_id}" if tracked else ""
    return f"{run.run_id} ({run.state.value}, step {run.best_step:,}){project}"


def _plain(spec: RunSpec) -> RunSpec:
    return spec.model_copy(update={"name": "", "hardware": spec.hardware.model_copy(update={"provider": None})})
