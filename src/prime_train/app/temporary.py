"""A home that is there for one purpose and removed at its end, with the machines of this machine that it
rented.
"""

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from prime_train.app.home import Home
from prime_train.app.interruption import sigterm_leaves, uninterrupted
from prime_train.app.logs import logged_in
from prime_train.environment import BUCKET, HOME, PROVIDER
from prime_train.errors import ExternalError
from prime_train.providers.kinds import LOCAL, credentials

CLEAR_S_MAX = 30.0


@contextmanager
def temporary_home(
    environment: Mapping[str, str], *, name: str, keep: bool = False, warn: Callable[[str], None]
) -> Iterator[tuple[Home, Path]]:
    """Yield a new home whose only machines are local, and the folder that it is in, with the log `NAME.log`.
    At the end, even after Ctrl-C or SIGTERM, no pod, no process and (unless `keep`) no folder is left. `warn`
    is called with what is left nevertheless.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"prime-train-{name}-"))
    own = {HOME: str(folder / "home"), PROVIDER: LOCAL}
    home = Home(
        folder / "home", {k: v for k, v in environment.items() if k not in {BUCKET, *credentials()}} | own
    )
    try:
        with sigterm_leaves(), logged_in(folder / f"{name}.log"):
            yield home, folder
    finally:
        with uninterrupted():
            _clear_pods(home, warn)
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            warn(f"kept: {folder}")


def _clear_pods(home: Home, warn: Callable[[str], None]) -> None:
    pods, pause, end_s = home.local_pods(), threading.Event(), time.monotonic() + CLEAR_S_MAX
    while time.monotonic() < end_s:
        try:
            left = pods.list()
            for pod in left:
                pods.terminate(pod.pod_id)
            if not left:
                return
        except ExternalError as error:
            warn(f"prime-train: {error}; retrying")
        pause.wait(0.2)
    warn(f"prime-train: some machines are still running under {home.root}")
