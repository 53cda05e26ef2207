"""A small program that behaves like prime-rl 0.8 on disk, on loopback and towards its caller; it trains nothing.

`uv_in(folder)` creates a `uv` there that runs it, so that the exact command line of a trainer can be run. Environment variables change its
behaviour:

    FAKE_RL_STEP_S=0.05       seconds of a step
    FAKE_RL_HURRIES=/a/file   once the file exists, steps take no time
    FAKE_RL_WAITS=9@/a/file   step 9 is not made before the file exists
    FAKE_RL_DIES=oom@13       how it dies, and in which step: see `deaths`
    FAKE_RL_ONCE=/some/file   only the first launch that gets there dies; the file records it
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def uv_in(folder: Path) -> dict[str, str]:
    """Return variables with which `uv run ... rl ...` is this program; any other use of `uv` is written to `folder`/uv.log."""
    program = folder / "uv"
    folder.mkdir(parents=True, exist_ok=True)
    program.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" != run ]; then echo "$@" >> {folder}/uv.log; exit 0; fi\n'
        'while [ "$1" != rl ]; do shift; done; shift\n'
        f'PYTHONPATH={ROOT} exec {sys.executable} -m tests.fakes.prime_rl "$@"\n'
    )
    program.chmod(0o755)
    # The command looks into ~/.local/bin first.
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}
