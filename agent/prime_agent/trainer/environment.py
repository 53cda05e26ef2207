"""The environment of the agent's children: the machine's, without the agent's own secrets, extended by the
variables of the spec and the run.
"""

import re
from collections.abc import Callable, ItemsView, Iterator, Mapping

from prime_train.providers.kinds import credentials
from prime_train.runs.wire import Bootstrap
from prime_train.text.redaction import redacted

_OURS = re.compile(r"^(PRIME_TRAIN|PT)_\w*(KEY|SECRET|TOKEN|PASSWORD|MASTER)")
SECRET_CHARS_MIN = 6
"""Minimum length of a value to redact. Shorter values would also match innocent text."""


def for_children(machine: Mapping[str, str], *layers: Mapping[str, str]) -> dict[str, str]:
    """Return the merged environment; later layers take precedence."""
    merged = {
        name: value for name, value in machine.items() if not _OURS.match(name) and name not in credentials()
    }
    for layer in layers:
        merged |= layer
    return merged


def without_secrets(text: str, secrets: Mapping[str, str]) -> str:
    """Return the text with the values of secrets redacted, and of anything that looks like one: a trainer may
    print its own.

    Call this before the text is cut, because the rest of a secret that was cut could not be recognised.
    """
    for name, value in sorted(secrets.items(), key=lambda item: -len(item[1])):
        if len(value) >= SECRET_CHARS_MIN:
            text = text.replace(value, f"<{name}>")
    return redacted(text)


STARTED_FROM = "PRIME_TRAIN_STARTED_FROM"
NOTES = "WANDB_NOTES"


def lineage_variables(job: Bootstrap, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that tell the trainer and its tracker from which checkpoint of another run this
    run was started, newest first, as a launch takes it: one for the trainer, and the notes in W&B if `env`
    sets them and the config does not. Empty if the run was started from step 0.

    W&B's SDK takes no values of its config from variables: the one that once named files, WANDB_CONFIG_PATHS,
    makes 0.31 fail.
    """
    if not job.started_from:
        return {}
    variables = {STARTED_FROM: job.started_from}
    if NOTES in env and NOTES not in job.spec.environment:
        variables[NOTES] = f"{env[NOTES]}; started from {job.started_from}"
    return variables


Source = Callable[[], Mapping[str, str]]


class SecretsToRedact(Mapping[str, str]):
    """Values to redact, keyed by the names that replace them, read from the sources at each access.
    Thread-safe."""

    def __init__(self, *sources: Source) -> None:
        self._sources = sources

    def __getitem__(self, name: str) -> str:
        return self._now()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())

    def items(self) -> ItemsView[str, str]:
        """Return the names and current values of everything to redact."""
        return self._now().items()

    def _now(self) -> dict[str, str]:
        return {name: value for source in self._sources for name, value in source().items()}
