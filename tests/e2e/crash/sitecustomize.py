"""Kills a process, or the machine it runs on, at an exact point of its work.

Python loads this module at start-up when its folder is on PYTHONPATH. It listens to the interpreter's audit
events (open, os.rename, subprocess.Popen, socket.connect ...) and acts when one matches a point of PT_CRASH,
a JSON list of

    {"name", "self", "role", "event", "pattern", "nth", "victim", "needs", "dir", "port"}

`role` is found in the command line of the process, `pattern` in the event's arguments, `nth` counts matches
within the process. Every point fires once for all processes together (recorded by a file in `dir`), and only
after the point named by `needs` has fired. A process kills itself; any other victim is killed by the test,
which is notified at `port` of loopback (strikes.py). The product is not involved: it is killed as an
operating system or a cloud would kill it.
"""

import json
import os
import re
import signal
import sys
import threading

POINTS = json.loads(os.environ.get("PT_CRASH", "[]"))
COMMAND = " ".join(sys.orig_argv)
PODS = ("PRIME_TRAIN_POD", "FAKE_PRIME_POD")
"""Environment variables that hold a machine's id in its processes: of a local machine, and of a rented
one.
"""
SEEN: dict[str, int] = {}
BUSY = threading.local()


def _claim(point: dict[str, str]) -> bool:
    needed = point.get("needs")
    if needed and not os.path.exists(os.path.join(point["dir"], needed)):  # noqa: PTH110, PTH118 - pathlib is slow to import here
        return False
    try:
        os.close(os.open(os.path.join(point["dir"], point["name"]), os.O_CREAT | os.O_EXCL | os.O_WRONLY))  # noqa: PTH118
    except FileExistsError:
        return False
    return True


def _have_taken(point: dict[str, str]) -> None:
    """Return when the victim is gone, unless this process is gone with it."""
    import socket

    pod = next((os.environ[name] for name in PODS if name in os.environ), "")
    with socket.create_connection(("127.0.0.1", int(point["port"]))) as reported:
        reported.sendall(
            json.dumps({"name": point["name"], "victim": point["victim"], "pod": pod}).encode() + b"\n"
        )
        reported.recv(1)


def _strike(point: dict[str, str]) -> None:
    if point["victim"] == point["self"]:
        os.kill(os.getpid(), signal.SIGKILL)
    _have_taken(point)


def _hook(event: str, args: tuple[object, ...]) -> None:
    if getattr(BUSY, "now", False):
        return
    for point in MINE:
        if event not in point["event"].split("|"):
            continue
        BUSY.now = True
        try:
            if not re.search(point["pattern"], repr(args)):
                continue
            SEEN[point["name"]] = SEEN.get(point["name"], 0) + 1
            if SEEN[point["name"]] < point["nth"] or not _claim(point):
                continue
            _strike(point)
        finally:
            BUSY.now = False


MINE = [point for point in POINTS if re.search(point["role"], COMMAND)]
if MINE:
    sys.addaudithook(_hook)
