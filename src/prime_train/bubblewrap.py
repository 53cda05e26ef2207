"""The program bubblewrap (bwrap), with which commands get namespaces of their own: where it is, and whether
it works here.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence

NAME = "bwrap"
MISSING = "bubblewrap is not installed"
PROBE_S_MAX = 20.0
WORDS_CHARS_MAX = 300
COMMON = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL")
"""What all uses have: no process, shared memory or right of this machine's other processes, and an end with
whoever started it.
"""


def program() -> str | None:
    """Return the path of bubblewrap; None if it is not installed."""
    return shutil.which(NAME)


def why_not(walls: Sequence[str]) -> str:
    """Return why nothing can be run inside of these walls, a command up to what is run, as in many
    containers; empty if it can.
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [*walls, "/usr/bin/env", "true"],
                cwd=folder,
                env={"PATH": "/usr/bin:/bin"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PROBE_S_MAX,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"bubblewrap cannot be run: {error}"
    return (
        ""
        if done.returncode == 0
        else done.stderr.decode(errors="replace").strip()[-WORDS_CHARS_MAX:] or "bubblewrap failed"
    )
