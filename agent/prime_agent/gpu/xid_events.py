"""Reception of Xids, the driver's own error reports, as events of NVML."""

import ctypes
import logging
import threading
from collections.abc import Callable
from typing import Any

from prime_agent.gpu.reading import Xid

WAIT_MS = 5000
FAILURES_MAX = 10
PAUSE_S = 5.0

_log = logging.getLogger(__name__)


def listen(nvml: Any, on_xid: Callable[[Xid], None]) -> str:
    """Pass each Xid to `on_xid` for as long as that works, and return why it ended. NVML must be initialised."""
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
    """Return the event set to wait on, and the index of each GPU that sends events, keyed by the address of its handle."""
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
