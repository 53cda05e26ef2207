"""Makes the rows of a store those of an older version, which knew fewer fields."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

ROLLED_BACK = ("finite_limit", "rollbacks", "went_back_attempt", "rolls_back", "began")
RUN = ("distrusted", "resume_failures", "unresumable", "step_asked", "renewed_attempt", *ROLLED_BACK)
MEASURED = ("timed_steps", "timed_s", "timed_spread_s", "gpu_peak_mib", "gpu_mib", "traffic")
ATTEMPT = ("resumed_attempt", "not_finite_since", *MEASURED, "created_s", "variant")
HEARTBEAT = (
    "unsaved",
    "not_finite_since",
    "finite_step",
    "restored_step",
    "learning_rate",
    "timed_spread_s",
    "after_failed",
    "traffic",
)


def make_older(store: Path) -> None:
    """Remove these fields from all runs and heartbeats in a store that nobody has open."""
    with closing(sqlite3.connect(store)) as open_store, open_store:
        for run_id, text in open_store.execute("SELECT run_id, run FROM runs").fetchall():
            run = _without(json.loads(text), RUN)
            run["attempts"] = [_without(attempt, ATTEMPT) for attempt in run.get("attempts", [])]
            open_store.execute("UPDATE runs SET run = ? WHERE run_id = ?", (json.dumps(run), run_id))
        for run_id, text in open_store.execute(
            "SELECT run_id, heartbeat FROM leases WHERE heartbeat IS NOT NULL"
        ).fetchall():
            heartbeat = json.dumps(_without(json.loads(text), HEARTBEAT))
            open_store.execute("UPDATE leases SET heartbeat = ? WHERE run_id = ?", (heartbeat, run_id))


def _without(row: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
