"""Hidden metadata in the messages of prime-train, by which other processes recognise them: the run of a
thread, and the keys of alerts.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from slack_sdk.models.metadata import Metadata

from prime_train.runs.run import Alert

RUN, ALERTS = "prime_train_run", "prime_train_alerts"


def head_mark(run_id: str) -> Metadata:
    return Metadata(RUN, {"run": run_id})


def alerts_mark(alerts: Sequence[Alert]) -> Metadata:
    return Metadata(ALERTS, {"keys": [alert.key for alert in alerts]})


def run_in(message: Mapping[str, Any]) -> str | None:
    """Return the run whose thread this message begins, or None."""
    run_id = _payload(message, RUN).get("run")
    return run_id if isinstance(run_id, str) else None


def keys_in(message: Mapping[str, Any]) -> list[str]:
    """Return the keys of the alerts in this message."""
    keys = _payload(message, ALERTS).get("keys")
    return [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []


def _payload(message: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    metadata = message.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("event_type") != kind:
        return {}
    payload = metadata.get("event_payload")
    return payload if isinstance(payload, dict) else {}
