"""Finds the versions of the installed libraries, and the environment variables that the table of them asks
for.

The libraries are not imported: their versions are read from their metadata by the Python of the working
tree's `.venv`, or else by the first one on the PATH. Which Python a command ends up with is not known in
general; where it is another one, no row applies. Nothing here can end an attempt.
"""

from collections.abc import Mapping

from prime_agent.before_training.phase import Shell
from prime_agent.before_training.preflight import shm_bytes
from prime_agent.gpu.reading import GpuReader
from prime_agent.trainer.logs import BoundedLog
from prime_train.spec.spec import RunSpec
from prime_train.trainers.conventions.environment_by_version import LIBRARIES, chosen, machine
from prime_train.trainers.cuda_versions import RUNTIMES

VERSIONS_S_MAX = 60.0
"""Seconds for reading the versions. It takes less than one, unless the disk is very slow."""
DRIVER_S_MAX = 5.0
_MARK = "installed library:"

_CODE = f"""
import sys
sys.path[:] = [path for path in sys.path if path]  # the working tree may hold files named like modules
from importlib import metadata
for name in {(*LIBRARIES, *RUNTIMES)!r}:
    try:
        print("{_MARK}", name, metadata.version(name))
    except metadata.PackageNotFoundError:
        pass
"""
_COMMAND = f"""for python in .venv/bin/python python3 python; do
command -v "$python" >/dev/null && exec "$python" - <<'END'
{_CODE}
END
done
echo 'no Python was found, so the versions of libraries are unknown'"""


def variables_by_version(
    spec: RunSpec, installed: Mapping[str, str], shell: Shell, gpus: GpuReader
) -> Mapping[str, str]:
    """Return the variables to set unless they are set already, and write them to the log with their reasons.
    `installed`: versions of libraries by name.
    """
    names = tuple(load.name for load in gpus.look(DRIVER_S_MAX).loads)
    rows = list(chosen(machine(spec, names), installed, shm_bytes(), shell.env))
    if rows:
        log = BoundedLog(shell.log)
        for row in rows:
            line = (
                f"environment: {row.variable}={row.value} for {row.library} {installed[row.library]}: "
                f"{row.reason} ({row.source})"
            )
            log.write(f"{line}\n".encode())
        log.close()
    return {row.variable: row.value for row in rows}


def installed_versions(shell: Shell) -> Mapping[str, str]:
    """Return the versions of the libraries that matter by name; empty if they could not be read. Raises
    Called if the phase is cancelled.
    """
    found: dict[str, str] = {}

    def read(lines: list[str]) -> None:
        for line in lines:
            name, _, version = line.removeprefix(_MARK).strip().partition(" ")
            if line.startswith(_MARK) and version:
                found[name] = version

    try:
        shell.run(_COMMAND, name="versions", timeout_s=VERSIONS_S_MAX, on_lines=read)
    except OSError as error:
        log = BoundedLog(shell.log)
        log.write(f"the versions of libraries cannot be read: {error}\n".encode())
        log.close()
    return found
