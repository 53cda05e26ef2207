"""Misbehaviour of a validator, by the name of the run."""

import fcntl
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path


def behave(name: str, where: str) -> None:
    match name:
        case "hangs":
            _hang(where)
        case "tells":
            raise ValueError(f"it sees {' '.join(sorted(os.environ))} and {os.environ['HOME']}")
        case "prints":
            print('{"refusals": []}')
            raise ValueError("printed")
        case "leaves":
            sys.exit(5)
        case "dies":
            os._exit(6)
        case "breaks":
            raise TypeError("nothing is not a number")
        case "pries":
            raise ValueError(
                " ".join(
                    f"{what}={_tried(what, at)}"
                    for what, at in (part.split("=", 1) for part in where.split(","))
                )
            )
        case "fills":
            with Path("filled").open("wb") as file:
                file.truncate(2**40)


def _hang(where: str) -> None:
    """Hang, with a process of its own that does the same; both hold a lock on the file `where`."""
    with Path(where).open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.Popen(["sleep", "100000"], pass_fds=(lock.fileno(),))
        threading.Event().wait()


def _tried(what: str, at: str) -> str:
    """Return "no", or what was gained by the attempt."""
    try:
        match what:
            case "reads":
                return Path(at).read_text(errors="replace").replace(" ", "_").replace("\0", "_") or "empty"
            case "lists":
                return "/".join(sorted(path.name for path in Path(at).iterdir()))
            case "environs":
                return (
                    "found"
                    if any(at.encode() in _bytes(path) for path in Path("/proc").glob("[0-9]*/environ"))
                    else "no"
                )
            case "connects":
                host, port = at.rsplit(":", 1)
                socket.create_connection((host, int(port)), timeout=5).close()
                return "connected"
            case "writes":
                Path(at).write_text("was here")
                return "written"
            case "kills":
                os.kill(int(at), 0)
                return "seen"
    except OSError as error:
        return "no" if error.errno else "odd"
    return "unknown"


def _bytes(path: Path) -> bytes:
    """Return the file's content; empty for a process that is gone or hidden."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
