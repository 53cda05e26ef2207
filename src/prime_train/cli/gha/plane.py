"""The control plane as the job reaches it, and one look at its runs."""

import os
import time
from typing import TYPE_CHECKING

from prime_train.cli.exits import Refused
from prime_train.cli.home import HOME, Home, wall_s
from prime_train.cli.providers import STORE

if TYPE_CHECKING:
    from prime_train.core.run import Run
    from prime_train.reconcile import Swept, World

PAUSE_S = 2.0
COMING_UP = frozenset({"queued", "launching", "booting"})


def home() -> Home:
    """Raises Refused where what the job keeps would be gone with its machine."""
    if os.environ.get("RUNNER_ENVIRONMENT") == "github-hosted" and not os.environ.get(STORE):
        lost = "a run that is kept on this runner is forgotten when the job ends, and its machine paid for until it is found"
        fix = "set url and master-key to those of a control plane (prime-train serve, prime-train key --show)"
        raise Refused(f"{STORE} is not set: {lost}", fix=fix)
    found = Home.of(os.environ)
    if not found.elsewhere and not os.environ.get(HOME):
        raise Refused(
            f"neither {STORE} nor {HOME} is set", fix=f"set url and master-key; or on a runner of your own {HOME}, a folder that stays"
        )
    return found


def world(found: Home, *, waits: bool) -> "World":
    said = found.last_serving()
    if said is None:
        raise Refused("no webhook is known: nothing has served this home yet", fix="prime-train serve, or prime-train serve --no-watch")
    return found.world(said.public_url, watched=_say, waits=waits)


def look(found: Home, *, waits: bool = False) -> "Swept":
    """One sweep. `waits`: until agents are on their machines, which takes minutes."""
    from prime_train.reconcile import sweep

    return sweep(world(found, waits=waits), wall_s(), clock=wall_s)


def is_coming_up(runs: "list[Run]") -> bool:
    return any(run.state.value in COMING_UP for run in runs)


def pause() -> None:
    time.sleep(PAUSE_S)


def _say(run_id: str, what: str, text: str) -> None:
    print(f"{run_id} {what} {text}".rstrip(), flush=True)
