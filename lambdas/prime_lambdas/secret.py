"""The stack's secret in Secrets Manager: one JSON object of names and values that holds everything
confidential.
"""

import json
import logging
from collections.abc import Callable, Mapping

from prime_lambdas.aws import ask
from prime_lambdas.settings import Settings
from prime_train.elapsed import Elapsed
from prime_train.errors import ExternalError, PermanentError
from prime_train.spec import access_run_secrets as run_secrets

MASTER = "PRIME_TRAIN_MASTER_KEY"
MASTER_BYTES = 32
POD = "PRIME_TRAIN_POD_"
"""Prefix of the variables that open the bucket to pods. Pods receive them as bucket keys (`of_bucket`), not
as secrets of a run.
"""
PAIR = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
KEYS = (*PAIR, "AWS_SESSION_TOKEN")
KEPT_S = 300.0

log = logging.getLogger(__name__)


class Secret:
    """The secret, read on first use and again after `KEPT_S` seconds, so that a changed key needs no
    deployment.

    `clock` returns monotonic seconds that also count while the function's process is frozen; None uses this
    machine's.
    """

    def __init__(
        self, read: Callable[[], Mapping[str, str]], clock: Callable[[], float] | None = None
    ) -> None:
        self._read, self._clock = read, clock or Elapsed()
        self._values: Mapping[str, str] | None = None
        self._read_at_s = 0.0

    def values(self) -> Mapping[str, str]:
        """Return the secret's values: the same object at each call, until the values change.

        If the secret cannot be read again, return the values read last. Raises ExternalError if it was never
        read.
        """
        if self._values is not None and self._clock() - self._read_at_s < KEPT_S:
            return self._values
        try:
            fresh = self._read()
        except ExternalError as error:
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
        """Make the next `values()` read the secret again, because its current values turned out to be
        unusable.
        """
        self._read_at_s = self._clock() - KEPT_S


def read(settings: Settings) -> Mapping[str, str]:
    """Return the current values of the secret. Raises ExternalError."""
    return parsed(
        ask("secretsmanager", settings, lambda client: client.get_secret_value(SecretId=settings.secret)).get(
            "SecretString"
        )
    )


def parsed(text: str | None) -> Mapping[str, str]:
    """Return the values in a secret's text.

    Raises PermanentError if it is not a JSON object of strings. The error neither repeats nor chains the
    text, which holds the secret.
    """
    try:
        values = json.loads(text or "")
    except ValueError:
        values = None
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise PermanentError("the secret is not a JSON object with string values")
    return values


def masters(values: Mapping[str, str]) -> tuple[bytes, ...]:
    """Return the master keys: first the one from which new keys are derived, then older ones that are still
    accepted.

    In the secret they are separated by commas. Raises PermanentError if there is none, or one is not 64 hex
    digits.
    """
    try:
        keys = tuple(bytes.fromhex(text.strip()) for text in values.get(MASTER, "").split(","))
    except ValueError:
        keys = ()
    if not keys or any(len(key) != MASTER_BYTES for key in keys):
        raise PermanentError(f"{MASTER} in the secret is not {2 * MASTER_BYTES} hex digits")
    return keys


def of_runs(values: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """Return the values of the secret that the stack's list allows runs to have."""
    return run_secrets.for_runs(values, settings.run_secrets)


def of_bucket(values: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that open the bucket to pods.

    They never include the function's own keys, and include no AWS key at all unless access key ID and secret
    access key are both set.
    """
    given = {name.removeprefix(POD): value for name, value in values.items() if name.startswith(POD)}
    return (
        given if has_pod_keys(values) else {name: value for name, value in given.items() if name not in KEYS}
    )


def has_pod_keys(values: Mapping[str, str]) -> bool:
    """Return whether the secret holds long-lived bucket keys for pods, which then take precedence over keys
    of the role.
    """
    return all(values.get(POD + name) for name in PAIR)
