"""Fake pods as processes of this machine that answer SSH: starting, reaching and ending them."""

import getpass
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.prime.machine import CLEAR_S_MAX, POD_VARIABLE
from tests.fakes.prime.ssh_wire import Cuts, SshWire

PORT_CHARS_MAX = 20
KEYGEN_S_MAX = 30.0
PRIVILEGES = Path("/run/sshd")
"""Folder that sshd requires when run by root."""

SFTP_SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/libexec/sftp-server")


def sshd_program() -> str | None:
    """Return $SSHD, or sshd from PATH or its usual places; absolute, because sshd executes itself again."""
    return os.environ.get("SSHD") or shutil.which("sshd", path=os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/usr/local/sbin"]))


needs_sshd = pytest.mark.skipif(
    sshd_program() is None or shutil.which("ssh") is None,
    reason="there is no sshd ($SSHD, PATH, /usr/sbin) or no ssh: install openssh-server and openssh-client",
)


class Machine:
    """A machine, which is up when the constructor returns. `disk` is the home of the user who logs in, which is the user that runs the
    tests."""

    def __init__(self, folder: Path, pod_id: str, public_key: str, cuts: Cuts) -> None:
        self.disk = folder / "disk"
        self._folder = folder
        _furnish(folder, pod_id, public_key)
        command = [sys.executable, "-I", str(Path(__file__).with_name("machine.py")), str(folder), pod_id, str(sshd_program())]
        with (folder / "machine.log").open("ab") as log:
            # Its end of this pipe is all that keeps it alive. In a session of its own, so that ^C is not for it.
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True)
        self._wire = SshWire(self._said_port(), cuts)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def port(self) -> int:
        return self._wire.port

    @property
    def user(self) -> str:
        return getpass.getuser()

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


def _furnish(folder: Path, pod_id: str, public_key: str) -> None:
    assert sshd_program() is not None, "there is no sshd: mark the test `needs_sshd`, or use FakePrime(..., machines=False)"
    if os.geteuid() == 0:
        PRIVILEGES.mkdir(mode=0o755, exist_ok=True)
    (folder / "disk").mkdir(parents=True)
    (folder / "authorized_keys").write_text(public_key + "\n")
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", pod_id, "-f", str(folder / "host_key")]
    subprocess.run(command, check=True, timeout=KEYGEN_S_MAX, stdin=subprocess.DEVNULL)
    (folder / "sshd_config").write_text(_config(folder, pod_id))


def _config(folder: Path, pod_id: str) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
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
SetEnv "HOME={folder}/disk" "{POD_VARIABLE}={pod_id}" "PATH={path}"
ForceCommand cd "$HOME" && if [ -n "$SSH_ORIGINAL_COMMAND" ]; then exec "$SHELL" -c "$SSH_ORIGINAL_COMMAND"; else exec "$SHELL" -l; fi
"""
