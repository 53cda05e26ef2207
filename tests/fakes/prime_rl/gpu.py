"""The memory of the machine's GPU: what the inference server holds of it, in a file beside `uv`, and what the
trainer finds free.
"""

import json
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import psutil

READY_S = 5


def gpus_there() -> int:
    return int(os.environ.get("FAKE_RL_GPUS", "2"))


def hold(share: float) -> None:
    """Let this process hold a share of the only GPU until it ends, however it ends."""
    _holder().write_text(json.dumps([os.getpid(), share]))


def held() -> float:
    """Return the share of the only GPU that a living process holds."""
    if not _holder().exists():
        return 0.0
    pid, share = json.loads(_holder().read_text())
    return (
        float(share)
        if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        else 0.0
    )


def _holder() -> Path:
    return Path(os.environ["HOME"]) / "gpu0.json"


def engine_answers(client: dict[str, Any]) -> bool:
    """Return whether the engine, which takes new weights, answers at the address that the orchestrator knows.
    A router has no such endpoints.
    """
    url = (client["admin_base_url"] or [client["base_url"]])[0]
    try:
        with urllib.request.urlopen(f"{url.removesuffix('/v1')}/health", timeout=READY_S) as answer:
            return bool(answer.headers.get("x-engine"))
    except (urllib.error.URLError, OSError):
        return False


def is_too_full() -> bool:
    """Return whether the trainer does not fit beside the server."""
    return gpus_there() == 1 and held() + float(os.environ.get("FAKE_RL_NEEDS", "0.4")) > 1
