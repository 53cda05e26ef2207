"""A small program that behaves like prime-rl 0.8 on disk, on loopback and towards its caller; it trains
nothing.

`uv_in(folder)` creates a `uv` there that runs it, so that the exact command line of a trainer can be run.
Environment variables change its behaviour:

    FAKE_RL_STEP_S=0.05       seconds of a step
    FAKE_RL_HURRIES=/a/file   once the file exists, steps take no time
    FAKE_RL_WAITS=9@/a/file   step 9 is not made before the file exists
    FAKE_RL_DIES=oom@13       how it dies, and in which step: see `deaths`
    FAKE_RL_ONCE=/some/file   only the first launch that gets there dies; the file records it
    FAKE_RL_GPUS=2            GPUs of the machine
    FAKE_RL_NEEDS=0.4         the share of a GPU that the trainer needs
    FAKE_RL_SERVER_S=0        seconds that the inference server takes to become ready
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def uv_in(folder: Path) -> dict[str, str]:
    """Return variables with which `uv run ... rl ...` is this program, `uv run ... inference ...` its server
    and `uv run ... python ...` this Python; any other use of `uv` is written to `folder`/uv.log.
    """
    program = folder / "uv"
    folder.mkdir(parents=True, exist_ok=True)
    program.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" != run ]; then echo "$@" >> {folder}/uv.log; exit 0; fi\n'
        "while :; do case $1 in rl|inference|python) break;; esac; shift; done; name=$1; shift\n"
        f"export PYTHONPATH={ROOT}\n"
        f'case $name in rl) exec {sys.executable} -m tests.fakes.prime_rl "$@";;\n'
        f'inference) exec {sys.executable} -m tests.fakes.prime_rl.server "$@";; *) exec {sys.executable} '
        '"$@";; esac\n'
    )
    program.chmod(0o755)
    # The command looks into ~/.local/bin first.
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}
