"""Fake pods as processes of this machine that answer SSH: starting, reaching and ending them.

On Linux a pod is a container in one respect: bubblewrap gives it a list of processes of its own, in which the
first one has the environment that the pod's image sets. A session over SSH does not have it, as on real
machines.
"""

import getpass
import os
import shutil
import subprocess
import sys
import time
from functools import cache, partial
from pathlib import Path

import pytest

from tests.fakes.http.connections import LOOPBACK
from tests.fakes.machine_images import CONDA_OF_THE_TESTS, PLAIN_PATH, Image, Walls
from tests.fakes.prime.machine import CLEAR_S_MAX, POD_VARIABLE
from tests.fakes.prime.ssh_wire import Cut, Cuts, SshWire

PORT_CHARS_MAX = 20
KEYGEN_S_MAX = 30.0
PRIVILEGES = Path("/run/sshd")
"""Folder that sshd requires when run by root."""

WALLS = ("--dev-bind", "/", "/", "--unshare-pid", "--as-pid-1", "--proc", "/proc")
SFTP_SERVERS = (
    "/usr/lib/openssh/sftp-server",
    "/usr/libexec/openssh/sftp-server",
    "/usr/libexec/sftp-server",
)


def sshd_program() -> str | None:
    """Return $SSHD, or sshd from PATH or its usual places; absolute, because sshd executes itself again."""
    return os.environ.get("SSHD") or shutil.which(
        "sshd", path=os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/usr/local/sbin"])
    )


@cache
def has_walls() -> bool:
    """Return whether bubblewrap can give a pod a list of processes of its own; elsewhere than on Linux there
    are no such lists.
    """
    if sys.platform != "linux":
        return True
    command = [shutil.which("bwrap") or "bwrap", *WALLS, "true"]
    try:
        return subprocess.run(command, check=False, capture_output=True, timeout=KEYGEN_S_MAX).returncode == 0
    except OSError:
        return False


needs_sshd = pytest.mark.skipif(
    sshd_program() is None or shutil.which("ssh") is None or not has_walls(),
    reason="there is no sshd ($SSHD, PATH, /usr/sbin), no ssh, or no bwrap that works: install "
    "openssh-server, openssh-client, bubblewrap",
)


class Machine:
    """A machine, which is up when the constructor returns. `disk` is the home of the user who logs in, which
    is the user that runs the tests, under the name that the image knows. `place`: the address at which it
    answers; port 0 stands for any.
    """

    def __init__(
        self,
        folder: Path,
        pod_id: str,
        public_key: str,
        cuts: Cuts,
        image: Image = CONDA_OF_THE_TESTS,
        place: tuple[str, int] = (LOOPBACK, 0),
    ) -> None:
        self.disk = folder / "disk"
        self._folder, self._user = folder, image.user or getpass.getuser()
        for late_s in image.late_s:
            cuts.add(Cut(0, partial(_hang, late_s)), 1)
        # Beside the pod, which removes its folder when it ends.
        walls = image.walls(folder.parent / f"image-{image.name}")
        _furnish(folder, pod_id, public_key, walls)
        command = [
            sys.executable,
            "-I",
            str(Path(__file__).with_name("machine.py")),
            str(folder),
            pod_id,
            str(sshd_program()),
        ]
        if sys.platform == "linux":
            command = [str(shutil.which("bwrap")), *WALLS, *walls.mounts, "--", *command]
        with (folder / "machine.log").open("ab") as log:
            # Its end of this pipe is all that keeps it alive. In a session of its own, so that ^C is not for
            # it.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=dict(walls.env),
                start_new_session=True,
            )
        self._wire = SshWire(self._said_port(), cuts, place)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def port(self) -> int:
        return self._wire.port

    @property
    def user(self) -> str:
        return self._user

    def allow(self, public_key: str) -> None:
        """Let this key log in as well."""
        with (self._folder / "authorized_keys").open("a") as keys:
            keys.write(public_key + "\n")

    def host_key(self) -> str:
        return (self._folder / "host_key.pub").read_text()

    def log(self) -> str:
        """Return the log of sshd."""
        path = self._folder / "sshd.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def destroy(self) -> None:
        """End the machine; returns when every process of it is dead and its disk is deleted."""
        self._wire.close()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        code = self._process.wait(2 * CLEAR_S_MAX)
        self._process.stdout.close()
        assert code == 0, f"the machine in {self._folder} ended with {code}"

    def _said_port(self) -> int:
        assert self._process.stdout is not None
        message = self._process.stdout.readline(PORT_CHARS_MAX)
        assert message, f"no machine: {(self._folder / 'machine.log').read_text(errors='replace')}"
        return int(message)


def _hang(seconds: float, _: int) -> None:
    time.sleep(seconds)


def _furnish(folder: Path, pod_id: str, public_key: str, walls: Walls) -> None:
    assert sshd_program() is not None, (
        "there is no sshd: mark the test `needs_sshd`, or use FakePrime(..., machines=False)"
    )
    if os.geteuid() == 0:
        PRIVILEGES.mkdir(mode=0o755, exist_ok=True)
    (folder / "disk").mkdir(parents=True)
    (folder / "authorized_keys").write_text(public_key + "\n")
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", pod_id, "-f", str(folder / "host_key")]
    subprocess.run(command, check=True, timeout=KEYGEN_S_MAX, stdin=subprocess.DEVNULL)
    (folder / "sshd_config").write_text(
        _config(folder, pod_id).replace(f'"PATH={PLAIN_PATH}"', f'"PATH={walls.session_path}"')
    )


def _config(folder: Path, pod_id: str) -> str:
    sftp = next((path for path in SFTP_SERVERS if Path(path).exists()), "internal-sftp")
    return f"""\
HostKey "{folder}/host_key"
AuthorizedKeysFile "{folder}/authorized_keys"
PidFile none
StrictModes no
UsePAM no
UseDNS no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PrintMotd no
PrintLastLog no
LogLevel VERBOSE
Subsystem sftp {sftp}
SetEnv "HOME={folder}/disk" "{POD_VARIABLE}={pod_id}" "PATH={PLAIN_PATH}"
ForceCommand cd "$HOME" && if [ -n "$SSH_ORIGINAL_COMMAND" ]; then exec "$SHELL" -c "$SSH_ORIGINAL_COMMAND"; else exec "$SHELL" -l; fi
"""
