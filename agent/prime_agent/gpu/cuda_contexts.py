"""Makes a CUDA context on each GPU, as every program that computes on it must: a GPU that answers queries may
still refuse that.

This happens in a process of its own (`python -m prime_agent.gpu.cuda_contexts`), which is killed after a time
limit: the call may never return, may crash, and leaves memory in use in the process that made it. Only the
driver's own library is needed. The process reports each GPU before it tries it, so that the one that hangs is
known.
"""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

LIBRARY = "libcuda.so.1"
CONTEXTS_S_MAX = 120.0
"""Seconds for the contexts of all GPUs. One takes up to a few seconds while the driver wakes up the GPU."""
KILLED_S_MAX = 2.0
"""Seconds to wait for a process that was killed; one that hangs in the driver may not end before the driver
answers.
"""

_HINTS = {
    802: "the machine's fabric manager is not running",
    803: "the driver's library does not match its kernel module",
    804: "the image's compatibility package does not support this GPU",
}


@dataclass(frozen=True)
class Contexts:
    """`fault`: why no context can be made; "" if each GPU has one. `cuda`: the driver's newest CUDA version,
    as (12, 8); (): unknown.
    """

    fault: str = ""
    cuda: tuple[int, ...] = ()


def make_contexts(limit_s: float = CONTEXTS_S_MAX) -> Contexts:
    """Make and release a context on each GPU that programs on this machine see. Raises OSError if the process
    cannot be started.
    """
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "prime_agent.gpu.cuda_contexts"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.DEVNULL,
            # The order in which the driver lists the GPUs, so that their numbers mean the same in all
            # messages.
            env={**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
            start_new_session=True,
        )
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(KILLED_S_MAX)
            end = f"the driver did not answer within {limit_s:.0f} s"
        else:
            end = f"the process ended with code {process.returncode}"
        out.seek(0)
        said = [json.loads(line) for line in out.read().splitlines(keepends=True) if line.endswith(b"\n")]
    return _read(said, end)


def _read(said: list[dict[str, Any]], end: str) -> Contexts:
    """Return the result of what the process reported before its `end`."""
    last = said[-1] if said else {}
    cuda = next((one["cuda"] for one in said if "cuda" in one), 0)
    version = (cuda // 1000, cuda % 1000 // 10) if cuda else ()
    faults = [one["fault"] for one in said if "fault" in one]
    if "done" not in last:
        where = (
            f"no CUDA context can be made on GPU {last['gpu']}"
            if "gpu" in last
            else "CUDA cannot be initialised"
        )
        faults.append(f"{where}: {end}")
    return Contexts("; ".join(faults), version)


def main() -> None:
    try:
        cuda = ctypes.CDLL(LIBRARY)
    except OSError as error:
        _say(fault=f"CUDA cannot be initialised: {error}", done=True)
        return
    count, version = ctypes.c_int(), ctypes.c_int()
    code = (
        cuda.cuInit(0)
        or cuda.cuDriverGetVersion(ctypes.byref(version))
        or cuda.cuDeviceGetCount(ctypes.byref(count))
    )
    if code:
        _say(fault=f"CUDA cannot be initialised: {_words(cuda, code)}", done=True)
        return
    _say(cuda=version.value)
    if not count.value:
        _say(fault="CUDA finds no GPU")
    for index in range(count.value):
        _say(gpu=index)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        code = cuda.cuDeviceGet(ctypes.byref(device), index) or cuda.cuDevicePrimaryCtxRetain(
            ctypes.byref(context), device
        )
        if code:
            _say(fault=f"no CUDA context can be made on GPU {index}: {_words(cuda, code)}")
        else:
            cuda.cuDevicePrimaryCtxRelease_v2(device)
    _say(done=True)


def _words(cuda: ctypes.CDLL, code: int) -> str:
    name = ctypes.c_char_p()
    known = cuda.cuGetErrorName(code, ctypes.byref(name)) == 0 and name.value
    words = name.value.decode(errors="replace") if known and name.value else f"CUDA error {code}"
    return f"{words} ({_HINTS[code]})" if code in _HINTS else words


def _say(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    main()
