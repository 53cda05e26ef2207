"""Reads the machine's state in its own thread, so that a hanging driver makes the figures old but delays no heartbeat."""

import logging
import shutil
import threading
import time
from pathlib import Path

from prime_agent.event_queue import Inbox
from prime_agent.events import Sensed
from prime_agent.gpu.reading import Gpus
from prime_agent.traffic import TrafficMeter

EVERY_S_MIN, EVERY_S_MAX = 1.0, 10.0
GPUS_S_MAX = 3.0
"""Seconds to wait for the driver; after that it goes on in the background, and its result is available next time."""

_log = logging.getLogger(__name__)


def read(disk: Path, gpus: Gpus, meter: TrafficMeter) -> Sensed:
    """Return the current figures; those of the GPUs include their age. Raises OSError."""
    return Sensed(round(shutil.disk_usage(disk).free / 2**30, 3), gpus.look(GPUS_S_MAX), meter.read())


class SensorThread:
    """Thread that reports the machine's state three times per heartbeat interval, but every 10 s at least and every second at most."""

    def __init__(self, disk: Path, gpus: Gpus, inbox: Inbox, *, heartbeat_s: int) -> None:
        self._disk, self._gpus, self._inbox = disk, gpus, inbox
        self._meter = TrafficMeter(time.monotonic)
        self._every_s = min(EVERY_S_MAX, max(EVERY_S_MIN, heartbeat_s / 3))
        self._pause = threading.Event()
        threading.Thread(target=self._run, name="sensors", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                self._inbox.put(read(self._disk, self._gpus, self._meter))
            except OSError as error:
                _log.warning("the disk usage cannot be read: %s", error)
            self._pause.wait(self._every_s)
