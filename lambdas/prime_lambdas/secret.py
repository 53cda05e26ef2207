"""The secret of Secrets Manager with everything that must not be seen: one JSON object of names and values."""

import json
import logging
from collections.abc import Callable, Mapping

from prime_lambdas.asking import Question, ask
from prime_lambdas.settings import Settings
from prime_train.core import run_secrets
from prime_train.core.errors import OutsideError, PermanentError
from prime_train.elapsed import Elapsed

MASTER = "PRIME_TRAIN_MASTER_KEY"
MASTER_BYTES = 32
POD = "PRIME_TRAIN_POD_"
"""Begins the names of what opens the bucket to pods; they get it by another way."""
PAIR = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
KEYS = (*PAIR, "AWS_SESSION_TOKEN")
KEPT_S = 300.0

log = logging.getLogger(__name__)


class Secret:
    """Read when it is first needed and again after `KEPT_S`, so that a changed key needs no deployment. `clock`: seconds that only rise,
    also while the function's process is frozen; None: this machine's."""

    def __init__(self, read: Callable[[], Mapping[str, str]], clock: Callable[[], float] | None = None) -> None:
        self._read, self._clock = read, clock or Elapsed()
        self._values: Mapping[str, str] | None = None
        self._read_at_s = 0.0

    def values(self) -> Mapping[str, str]:
        """The same object as long as nothing has changed. Where it cannot be read again, what was read last; else raises OutsideError."""
        if self._values is not None and self._clock() - self._read_at_s < KEPT_S:
            return self._values
        try:
            fresh = self._read()
        except OutsideError as error:
            if self._values is None:
                raise
            log.warning("the secret could not be read again: %s", error)
            fresh = self._values
        self._read_at_s = self._clock()
        if fresh != self._values:
            self._values = fresh
        assert self._values is not None
        return self._values

    def doubt(self) -> None:
        """Has it read again when it is needed next, for what is in it will not do."""
        self._read_at_s = self._clock() - KEPT_S


def read(settings: Settings) -> Mapping[str, str]:
    """As it is now. Raises OutsideError."""
    headers = {"content-type": "application/x-amz-json-1.1", "x-amz-target": "secretsmanager.GetSecretValue"}
    question = Question("secretsmanager", "/", headers, json.dumps({"SecretId": settings.secret}).encode())
    return parsed(ask(question, settings.environment, settings.region, settings.endpoint))


def parsed(answer: bytes) -> Mapping[str, str]:
    """Nothing of what cannot be read is repeated, and the error is not chained: it would hold the text."""
    try:
        values = json.loads(json.loads(answer)["SecretString"])
    except (ValueError, KeyError, TypeError):
        values = None
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise PermanentError("the secret is no JSON object of names and texts; prime-train doctor says which one is meant")
    return values


def masters(values: Mapping[str, str]) -> tuple[bytes, ...]:
    """The key that makes new ones first, then older ones that are still taken, separated by commas."""
    try:
        keys = tuple(bytes.fromhex(text.strip()) for text in values.get(MASTER, "").split(","))
    except ValueError:
        keys = ()
    if not keys or any(len(key) != MASTER_BYTES for key in keys):
        raise PermanentError(f"{MASTER} in the secret is not {2 * MASTER_BYTES} hex digits")
    return keys


def of_runs(values: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """What runs may have of it, as the stack's list has it."""
    return run_secrets.for_runs(values, settings.run_secrets)


def of_bucket(values: Mapping[str, str]) -> dict[str, str]:
    """Environment of pods that opens the bucket to them: never the function's own keys, and never half a pair."""
    given = {name.removeprefix(POD): value for name, value in values.items() if name.startswith(POD)}
    return given if has_pod_keys(values) else {name: value for name, value in given.items() if name not in KEYS}


def has_pod_keys(values: Mapping[str, str]) -> bool:
    """Whether somebody has given pods keys that do not end: then they get those."""
    return all(values.get(POD + name) for name in PAIR)
