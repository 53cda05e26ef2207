"""Queries to NVIDIA's driver that never block the caller for longer than the caller allows.

If a GPU has failed, its driver may block a call for minutes or for ever. So one thread queries the driver,
and callers wait for it up to their own limit; after that they get the last known figures with their age. A
second thread waits for Xids, which can arrive at any time.
"""

import ctypes
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from prime_agent.gpu.reading import GpuLoad, GpuSnapshot, Xid, read

HANGS_S = 5.0
"""Seconds after which the driver counts as hanging. A reading takes well below a second, and a few seconds
while the driver wakes up.
"""

XIDS_MAX = 64

_log = logging.getLogger(__name__)


class NvidiaGpus:
    """GPUs read through NVIDIA's driver by a background thread, which the first `look` starts."""

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._clock = monotonic_s
        self._changed = threading.Condition()
        self._query_began_s: float | None = None
        """When the reading in progress was requested; None if there is none."""
        self._readings = 0
        self._loads: tuple[GpuLoad, ...] = ()
        self._read_s: float | None = None
        self._problem = ""
        self._xids: deque[Xid] = deque(maxlen=XIDS_MAX)
        self._deaf = ""
        self._started = False

    def look(self, wait_s: float) -> GpuSnapshot:
        with self._changed:
            if not self._started:
                self._started = True
                threading.Thread(target=self._run, name="gpus", daemon=True).start()
            if self._query_began_s is None:
                self._query_began_s = self._clock()
                self._changed.notify_all()
            wanted = self._readings + 1
            self._changed.wait_for(lambda: self._readings >= wanted, timeout=wait_s)
            return self._snapshot()

    def _snapshot(self) -> GpuSnapshot:
        now_s = self._clock()
        silent_s = 0.0 if self._query_began_s is None else now_s - self._query_began_s
        hangs = f"the GPU driver has not answered for {silent_s:.0f} s" if silent_s >= HANGS_S else ""
        age_s = 0.0 if self._read_s is None else now_s - self._read_s
        return GpuSnapshot(self._loads, age_s, hangs or self._problem, tuple(self._xids), self._deaf)

    def _run(self) -> None:
        listening = False
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._query_began_s is not None)
            loads, problem = _reading()
            with self._changed:
                if not problem:
                    self._loads, self._read_s = _named(loads, self._loads), self._clock()
                self._problem = problem
                self._readings += 1
                self._query_began_s = None
                self._changed.notify_all()
            if loads and not listening:
                listening = True
                threading.Thread(target=self._listen, name="xids", daemon=True).start()

    def _listen(self) -> None:
        import pynvml

        why = listen(pynvml, self._on_xid)
        with self._changed:
            self._deaf = why

    def _on_xid(self, xid: Xid) -> None:
        with self._changed:
            self._xids.append(xid)


def _named(loads: tuple[GpuLoad, ...], before: tuple[GpuLoad, ...]) -> tuple[GpuLoad, ...]:
    """Return the loads, in which a GPU whose name can no longer be read keeps its earlier name."""
    names = {load.index: load.name for load in before}
    return tuple(load if load.name else replace(load, name=names.get(load.index, "")) for load in loads)


def _reading() -> tuple[tuple[GpuLoad, ...], str]:
    """Return the figures of all GPUs and "", or no figures and the reason."""
    try:
        import pynvml
    except ImportError:
        return (), "the package nvidia-ml-py is not installed with the agent"
    try:
        return read(pynvml), ""
    except pynvml.NVMLError as error:
        return (), f"NVML: {error}"
    except Exception as error:
        # An incompatible binding must not end this thread, because that would look like a hanging driver.
        _log.exception("the GPUs cannot be read")
        return (), f"{type(error).__name__}: {error}"


WAIT_MS = 5000
FAILURES_MAX = 10
PAUSE_S = 5.0


def listen(nvml: Any, on_xid: Callable[[Xid], None]) -> str:
    """Pass each Xid that NVML sends as an event to `on_xid` for as long as that works, and return why it
    ended. NVML must be initialised."""
    try:
        events, gpus = _event_set(nvml)
    except nvml.NVMLError as error:
        return f"NVML does not report Xids: {error}"
    if not gpus:
        return "no GPU of this machine reports its Xids"
    failures, why, pause = 0, "", threading.Event()
    while failures < FAILURES_MAX:
        try:
            found = nvml.nvmlEventSetWait_v2(events, WAIT_MS)
        except nvml.NVMLError as error:
            if error.value == nvml.NVML_ERROR_TIMEOUT:
                continue
            failures, why = failures + 1, str(error)
            pause.wait(PAUSE_S)
            continue
        if found.eventType & nvml.nvmlEventTypeXidCriticalError:
            xid = Xid(gpus.get(_address(found.device)), int(found.eventData))
            _log.warning("GPU %s reports Xid %d", "?" if xid.gpu is None else xid.gpu, xid.code)
            on_xid(xid)
    return f"NVML no longer reports Xids: {why}"


def _event_set(nvml: Any) -> tuple[Any, dict[int | None, int]]:
    """Return the event set to wait on, and the index of each GPU that sends events, keyed by the address of
    its handle."""
    events, gpus = nvml.nvmlEventSetCreate(), {}
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            if nvml.nvmlDeviceGetSupportedEventTypes(handle) & nvml.nvmlEventTypeXidCriticalError:
                nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, events)
                gpus[_address(handle)] = index
        except nvml.NVMLError as error:
            _log.info("GPU %d does not report its Xids: %s", index, error)
    return events, gpus


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value
