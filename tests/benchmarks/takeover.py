"""Takeover: seconds from the preemption of the machine to the fence and to the first new step; prime-train's
share, and what other parts need.
"""

import statistics
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from prime_train.runs.run import RunState
from prime_train.runs.wire import Phase
from tests.e2e.plane import CONFIG, Plane, plane, write_config
from tests.waiting import await_true

LONG = CONFIG.replace("--steps 80", "--steps 4000").replace("steps: 80", "steps: 4000")


def main(quick: bool = False) -> None:
    rounds = [one_round() for _ in range(2 if quick else 5)]
    table = Table("from the kill to", *(f"round {i + 1}" for i in range(len(rounds))), "median")
    for name in rounds[0]:
        values = [r[name] for r in rounds]
        table.add_row(name, *(f"{v:.1f} s" for v in values), f"{statistics.median(values):.1f} s")
    Console().print(table)
    Console().print(
        "heartbeat 1 s; a machine counts as gone when a heartbeat is missing and the provider says so; the "
        "store knows whole seconds"
    )


def one_round() -> dict[str, float]:
    """Run one training on one machine, which is preempted in mid-training."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = write_config(folder, LONG)
        with plane(folder) as here:
            run_id = here.launch(config)
            await_true("a checkpoint is committed", lambda: _committed(here, run_id))
            pod_id = here.run(run_id).attempts[0].pod_id
            assert pod_id is not None
            here.pods.preempt(pod_id)
            killed = time.monotonic()
            seen = moments(here, run_id)
            here.cli("stop", run_id, "--now")
            here.await_end(run_id)
    after = {what: at - killed for what, at in seen.items()}
    others = (after["agent's first heartbeat"] - after["new machine"]) + (
        after["first new step"] - after["agent's first heartbeat"]
    )
    ours = after["first new step"] - others
    return {
        **after,
        "of which boot, set-up, restore, first step": others,
        "what we add (detect, fence, rent)": ours,
    }


def _committed(here: Plane, run_id: str) -> bool:
    record = here.store.load(run_id)
    return record is not None and record.lease.committed_step > 0


def moments(here: Plane, run_id: str) -> dict[str, float]:
    """Return when each event of the second attempt was first observed, by querying the store every few
    milliseconds.
    """
    store = here.store
    found: dict[str, float] = {}

    def look() -> bool:
        record = store.load(run_id)
        assert record is not None
        run, lease, now = record.run, record.lease, time.monotonic()
        if run.attempt > 1 or run.state is RunState.QUEUED:
            found.setdefault("fenced", now)
        if run.attempt > 1 and run.current_attempt is not None:
            if run.current_attempt.pod_id is not None or lease.heartbeat is not None:
                found.setdefault("new machine", now)
            if run.current_attempt.agent_put_s is not None or lease.heartbeat is not None:
                found.setdefault("agent being brought", now)
        if lease.attempt > 1 and lease.heartbeat is not None:
            found.setdefault("agent's first heartbeat", now)
            if lease.heartbeat.phase is Phase.TRAIN:
                found.setdefault("restored", now)
            if lease.heartbeat.step > 0:
                found.setdefault("first new step", now)
        return "first new step" in found

    await_true("the first new step", look)
    return found


if __name__ == "__main__":
    main()
