"""Takes a process, or the machine it runs on, away at an exact point of its work.

Python loads this module at start-up when its folder is on PYTHONPATH. It listens to the interpreter's audit events (open, os.rename,
subprocess.Popen, socket.connect ...) and acts when one matches a point of PT_CRASH, a JSON list of

    {"name", "self", "role", "event", "pattern", "nth", "victim", "needs", "dir", "pods"}

`role` is found in the command line of the process, `pattern` in the event's arguments, `nth` counts matches within the process. Every
point fires once for all processes together (a file in `dir` says so), and only after the point named by `needs` has fired. The product
knows nothing of this: it is killed as an operating system or a cloud would kill it.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading

POINTS = json.loads(os.environ.get("PT_CRASH", "[]"))
COMMAND = " ".join(sys.orig_argv)
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


def _take_machine(point: dict[str, str]) -> None:
    outside = {k: v for k, v in os.environ.items() if k not in ("PT_CRASH", "PYTHONPATH", "PRIME_TRAIN_POD")}
    code = (
        "import sys, pathlib; from prime_train.adapters.pods_local import LocalPods; "
        "LocalPods(pathlib.Path(sys.argv[1])).preempt(sys.argv[2])"
    )
    subprocess.Popen(
        [sys.executable, "-c", code, point["pods"], os.environ["PRIME_TRAIN_POD"]],
        env=outside,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    threading.Event().wait(60)


def _strike(point: dict[str, str]) -> None:
    if point["victim"] == "machine":
        _take_machine(point)
    elif point["victim"] in ("plane", "watcher") and point["victim"] != point["self"]:
        with open(os.path.join(point["dir"], point["victim"] + ".pid")) as file:  # noqa: PTH118, PTH123
            os.kill(int(file.read()), signal.SIGKILL)
    else:
        os.kill(os.getpid(), signal.SIGKILL)


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
