"""What the watcher did, as a line of log that CloudWatch turns into metrics (its embedded metric format)."""

import json
from collections.abc import Mapping

NAMESPACE = "PrimeTrain"
UNITS: Mapping[str, str] = {"Sweeps": "Count", "Steps": "Count", "Fences": "Count", "Errors": "Count", "UsdPerHour": "None"}
"""Every metric there is. `UsdPerHour` is left out where the provider does not tell."""


def line(values: Mapping[str, float], stack: str, at_s: float) -> str:
    """One document; KeyError for a metric that is not in the table."""
    metrics = [{"Name": name, "Unit": UNITS[name]} for name in values]
    told = {"Namespace": NAMESPACE, "Dimensions": [["Stack"]], "Metrics": metrics}
    return json.dumps({"_aws": {"Timestamp": int(at_s * 1000), "CloudWatchMetrics": [told]}, "Stack": stack, **values})
