"""The watcher's counts as a log line that CloudWatch turns into metrics (its embedded metric format)."""

import json
from collections.abc import Mapping

NAMESPACE = "PrimeTrain"
UNITS: Mapping[str, str] = {
    "Sweeps": "Count",
    "Steps": "Count",
    "Fences": "Count",
    "Errors": "Count",
    "UsdPerHour": "None",
}
"""Unit of every metric. `UsdPerHour` is left out if the provider does not report it."""


def line(values: Mapping[str, float], stack: str, at_s: float) -> str:
    """Return one JSON document in CloudWatch's embedded metric format. Raises KeyError for a metric that is
    not in `UNITS`.
    """
    metrics = [{"Name": name, "Unit": UNITS[name]} for name in values]
    directive = {"Namespace": NAMESPACE, "Dimensions": [["Stack"]], "Metrics": metrics}
    return json.dumps(
        {"_aws": {"Timestamp": int(at_s * 1000), "CloudWatchMetrics": [directive]}, "Stack": stack, **values}
    )
