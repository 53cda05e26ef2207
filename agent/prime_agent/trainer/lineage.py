"""Tells the trainer and its tracker from which checkpoint of another run this run was started."""

from collections.abc import Mapping

from prime_train.core.wire import Bootstrap

STARTED_FROM = "PRIME_TRAIN_STARTED_FROM"
NOTES = "WANDB_NOTES"


def lineage_variables(job: Bootstrap, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that name the source of the run, newest first, as a launch takes it: one for the trainer, and the notes in W&B
    if `env` sets them and the config does not. Empty if the run was started from step 0.

    W&B's SDK takes no values of its config from variables: the one that once named files, WANDB_CONFIG_PATHS, makes 0.31 fail.
    """
    if not job.started_from:
        return {}
    variables = {STARTED_FROM: job.started_from}
    if NOTES in env and NOTES not in job.spec.environment:
        variables[NOTES] = f"{env[NOTES]}; started from {job.started_from}"
    return variables
