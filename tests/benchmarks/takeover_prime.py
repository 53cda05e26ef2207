"""Takeover on rented machines: from the provider's "terminated" to the first step after the restore, and
prime-train's share of it.

The provider is a fake with a real SSH server for each machine, the sweep interval is the usual 5 s, and
prime-rl is a fake too. The provider's time to start a machine, SSH for installing the agent, and the restore
with the trainer's own start are not prime-train's share. The rest is: noticing, fencing, choosing what is
resumed and where, ordering, and noticing that the machine is ready.
"""

import statistics
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.benchmarks.takeover import moments
from tests.e2e.prime_plane import prime_plane
from tests.fakes.prime import sshd_program

OURS_S_MAX = 10
LONG = {"FAKE_RL_STEP_S": "0.5"}


def main(quick: bool = False) -> None:
    console = Console()
    if sshd_program() is None:
        console.print("skipped: there is no sshd")
        return
    rounds = [one_round() for _ in range(2 if quick else 5)]
    table = Table("after the provider's word", *(f"round {i + 1}" for i in range(len(rounds))), "median")
    for name in rounds[0]:
        values = [made[name] for made in rounds]
        table.add_row(name, *(f"{value:.1f} s" for value in values), f"{statistics.median(values):.1f} s")
    console.print(table)
    console.print(f"ours may take {OURS_S_MAX} s; heartbeat 1 s, sweep 5 s")


def one_round() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name, prime_plane(Path(name), LONG) as here:
        run_id = here.launch()
        lost = here.await_step(run_id, 7)
        here.fake.preempt(lost.pod_id)
        began = time.monotonic()
        seen = moments(here.plane, run_id)
        here.plane.cli("stop", run_id, "--now")
        here.await_end(run_id)
    after = {what: at - began for what, at in seen.items()}
    theirs = (after["agent's first heartbeat"] - after["agent being brought"]) + (
        after["first new step"] - after["agent's first heartbeat"]
    )
    ours = after["first new step"] - theirs
    return {
        **after,
        "of which SSH, start, restore, first step": theirs,
        "ours (notice, fence, choose, order, see it is up)": ours,
    }


if __name__ == "__main__":
    main()
