"""What a validator might do that it should not, by the name of the run."""

import fcntl
import os
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
        case "fills":
            with Path("filled").open("wb") as file:
                file.truncate(2**40)


def _hang(where: str) -> None:
    """For ever, with a process of its own that does the same; both hold a lock on the file `where`."""
    with Path(where).open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.Popen(["sleep", "100000"], pass_fds=(lock.fileno(),))
        threading.Event().wait()
