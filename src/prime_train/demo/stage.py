"""The environment of the demo: a temporary home, a control plane and one queued run, all removed at the
end.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prime_train.app.embedded import control_plane
from prime_train.app.home import Home
from prime_train.app.interruption import uninterrupted
from prime_train.app.temporary import temporary_home
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.launch.code.archive import survey
from prime_train.launch.launch import LaunchPlan, launch
from prime_train.spec.reader import read_config
from prime_train.spec.spec import RunSpec
from prime_train.trainers.of_spec import trainer_for

INTERVAL_S = 1.0
REFERENCE_S_MAX = 120.0

_PACE = re.compile(r"--step-seconds \S+")


@dataclass(frozen=True)
class Stage:
    """The environment of the demo. `reference` trains the same model without interruption and without
    prime-train.
    """

    home: Home
    run_id: str
    reference: subprocess.Popen[bytes]
    reference_folder: Path


def demo_spec(seconds_per_step: float) -> RunSpec:
    """Return the spec of configs/demo.yaml, from the checkout or the package, with the given time per
    step.
    """
    package = Path(__file__).parents[1]
    known = (package / "demo" / "demo.yaml", package.parents[1] / "configs" / "demo.yaml")
    read = read_config(next((path for path in known if path.exists()), known[0]))
    if read.spec is None or not read.is_fit:
        raise UsageError("; ".join(finding.message for finding in read.findings), code=Exit.FINDINGS)
    command = _PACE.sub(f"--step-seconds {seconds_per_step:g}", read.spec.trainer.command)
    # Its trainer is a part of this program, whatever environment is active.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return read.spec.model_copy(
        update={
            "trainer": read.spec.trainer.model_copy(update={"command": command}),
            "environment": {**read.spec.environment, "PATH": path},
        }
    )


@contextmanager
def stage(
    spec: RunSpec, environment: Mapping[str, str], *, keep: bool, warn: Callable[[str], None]
) -> Iterator[Stage]:
    """Set up the demo's environment. At the end, even after Ctrl-C or SIGTERM, no pod, no process and (unless
    `keep`) no folder is left. `warn` is called with what is left nevertheless.
    """
    reference = None
    with temporary_home(environment, name="demo", keep=keep, warn=warn) as (home, folder):
        try:
            reference = _train_in_one_piece(spec, folder / "reference", environment)
            (folder / "tree").mkdir()
            run = launch(home, spec, LaunchPlan(survey(folder / "tree"), ""))
            with control_plane(home, port=0, interval_s=INTERVAL_S):
                yield Stage(home, run.run_id, reference, folder / "reference")
        finally:
            if reference is not None:
                with uninterrupted():
                    reference.kill()
                    reference.wait()


def _train_in_one_piece(
    spec: RunSpec, folder: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start the spec's training command without pauses between steps."""
    folder.mkdir()
    line = trainer_for(spec).command(
        spec, checkpoints=str(folder / "checkpoints"), resume_step=None, resume_folder=None
    )
    path = os.pathsep.join((str(Path(sys.executable).parent), environment.get("PATH", os.defpath)))
    return subprocess.Popen(
        ["/bin/sh", "-c", "exec " + _PACE.sub("--step-seconds 0", line)],
        cwd=folder,
        env={**environment, "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
