"""The agent while it only watches: CPU and memory beside a trainer that makes ten steps a second."""

import tempfile
import threading
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from tests.e2e.plane import CONFIG, Plane, plane, write_config
from tests.waiting import await_true

SECONDS = 60
CALM = (
    CONFIG.replace("--steps 80", "--steps 100000")
    .replace("steps: 80", "steps: 100000")
    .replace("--step-seconds 0.02", "--step-seconds 0.1")
    .replace("--save-every 25", "--save-every 5000")
    .replace(
        "{heartbeat_s: 1, overdue_s: 3, silence_s: 5,", "{heartbeat_s: 30, overdue_s: 90, silence_s: 300,"
    )
)


def main(quick: bool = False) -> None:
    seconds = 10 if quick else SECONDS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with plane(folder) as here:
            run_id = here.launch(write_config(folder, CALM))
            await_true("it trains", lambda: here.run(run_id).state.value == "training")
            rows = _measure(here, seconds)
            here.cli("stop", run_id, "--now")
            here.await_end(run_id)
    table = Table("process", "CPU % of a core", "memory MiB (USS)")
    for role, cpu_pct, mib in rows:
        table.add_row(role, f"{cpu_pct:.2f}", f"{mib:.0f}")
    Console().print(table)
    Console().print(f"over {seconds} s, heartbeats every 30 s, 10 steps a second")


def _measure(here: Plane, seconds: int) -> list[tuple[str, float, float]]:
    roles = {"machine (init)": "pod_process", "agent": "prime_agent", "trainer": "--save-every"}
    found = [psutil.Process(pid) for pid in here.processes()]
    rows = [
        (role, p)
        for role, word in roles.items()
        for p in found
        if word in " ".join(p.cmdline()) and p.name() != "sh"
    ]
    before = {p.pid: p.cpu_times() for _, p in rows}
    threading.Event().wait(seconds)
    after = {p.pid: p.cpu_times() for _, p in rows}
    used = {pid: sum(after[pid][:2]) - sum(before[pid][:2]) for pid in before}
    return [(role, 100 * used[p.pid] / seconds, p.memory_full_info().uss / 2**20) for role, p in rows]


if __name__ == "__main__":
    main()
