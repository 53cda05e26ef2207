"""What the image of a rented machine sets for its programs, which a session over SSH does not have.

An image of a container sets PATH, LD_LIBRARY_PATH, HF_HOME, NCCL_... in its ENV. Its first process has them,
and so has all that it starts; but sshd begins every session anew, with a plain PATH. So an agent that was
started over SSH would not find the image's own Python. It therefore adopts the environment of the container's
first process for the commands of the run. Where that may not be read, providers leave copies in files. The
agent's own process stays as it is.

Nothing that is read here is trusted: sizes are bounded, names are checked, nothing is expanded or executed.
Values appear in no text.
"""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prime_train.providers.kinds import credentials
from prime_train.spec.secret_names import is_secret_name

ENVIRONMENT_BYTES_MAX = 512 * 1024
"""Bytes that are read of an environment. The kernel accepts more, but then there would be little room for a
command's own words.
"""
VARIABLES_MAX = 1000
NAMES_SHOWN_MAX = 100

FIRST_PROCESS = Path("/proc/1")
COPIES = (Path("/etc/rp_environment"), Path("/etc/environment"))
"""Files with a copy of the container's environment, the more specific first: that of RunPod's images, and the
system's, to which images of Vast.ai write it.
"""
CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))
SYSTEM_STARTERS = ("systemd", "init")
"""Names of the first process of a machine that is no container: its environment is about the boot."""

SESSION = "SSH_CONNECTION"
"""The variable that sshd sets in every session."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_EXPORT = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]{0,199}=.*)")

_OF_SESSION = re.compile(
    r"HOME|USER|LOGNAME|SHELL|MAIL|PWD|OLDPWD|TERM|HOSTNAME|SHLVL|_|LS_COLORS|container|DISPLAY|init"
    r"|(SSH|XDG|DBUS|LC|SUDO)_.*|LISTEN_(FDS|PID|FDNAMES)|NOTIFY_SOCKET|INVOCATION_ID|JOURNAL_STREAM"
)
_OURS = re.compile(r"(PRIME_TRAIN|PT|PRIME)_.*")


@dataclass(frozen=True)
class MachineEnvironment:
    """The environment that commands on this machine start from. `source`: where its image's part is from,
    empty if there is none. `adopted`: names of that part. `left_out`: names of variables that were not
    adopted, with the reason.
    """

    variables: Mapping[str, str] = field(repr=False)
    source: str = ""
    adopted: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Yield a description for people, without values."""
        if not self.source:
            yield "the environment of commands is that of the agent"
            return
        yield f"adopted from {self.source}, values not shown: {_listed(self.adopted)}"
        for reason in dict.fromkeys(self.left_out.values()):
            yield (
                "not adopted, because "
                f"{reason}: {_listed([name for name, why in self.left_out.items() if why == reason])}"
            )


def machine_environment(
    own: Mapping[str, str],
    *,
    first_process: Path = FIRST_PROCESS,
    copies: tuple[Path, ...] = COPIES,
    marks: tuple[Path, ...] = CONTAINER_MARKS,
) -> MachineEnvironment:
    """Return the environment for commands on this machine. `own`: that of the agent. Where the agent does not
    run in a session over SSH, it is a container's first process or has one as its ancestor, and `own` is all
    there is.
    """
    if SESSION not in own:
        return MachineEnvironment(dict(own))
    for source, variables in _images(first_process, copies, marks):
        if variables:
            return adopted(own, variables, source)
    return MachineEnvironment(dict(own))


def adopted(own: Mapping[str, str], image: Mapping[str, str], source: str) -> MachineEnvironment:
    """Return `own` with what the image sets. The image's value counts, also where sshd has set another;
    programs are searched for in the image's folders first, and then in those of `own`.
    """
    left_out = {name: why for name in image if (why := _why_not(name))}
    taken = {name: value for name, value in image.items() if name not in left_out}
    if "PATH" in taken:
        taken["PATH"] = joined_path(taken["PATH"], own.get("PATH", ""))
    return MachineEnvironment({**own, **taken}, source, tuple(sorted(taken)), dict(sorted(left_out.items())))


def joined_path(*paths: str) -> str:
    """Return the absolute folders of search paths in their order, each once. Others would depend on where a
    command runs.
    """
    folders = [folder for path in paths for folder in path.split(os.pathsep) if folder.startswith("/")]
    return os.pathsep.join(dict.fromkeys(folders)) or os.defpath


def parsed_environ(data: bytes) -> dict[str, str]:
    """Return the variables of an environment in the kernel's form, NAME=value separated by NUL. What is no
    variable, or was cut off, is left out; of two with the same name the first counts, as for programs.
    """
    whole = (
        data if data.endswith(b"\0") or len(data) < ENVIRONMENT_BYTES_MAX else data[: data.rfind(b"\0") + 1]
    )
    found: dict[str, str] = {}
    for row in whole[:ENVIRONMENT_BYTES_MAX].split(b"\0"):
        name, separator, value = row.partition(b"=")
        text = name.decode("ascii", errors="replace")
        if separator and len(found) < VARIABLES_MAX and _NAME.fullmatch(text):
            found.setdefault(text, os.fsdecode(value))
    return found


def parsed_copy(text: str) -> dict[str, str]:
    """Return the variables of a file with lines NAME=value or export NAME="value". Nothing is expanded; a
    line whose value would need a shell, or that is no assignment, is left out.
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        assignment = _EXPORT.fullmatch(line)
        words = _words(assignment[1]) if assignment is not None else ()
        if len(words) == 1 and len(found) < VARIABLES_MAX and "$" not in words[0] and "`" not in words[0]:
            name, _, found_value = words[0].partition("=")
            found[name] = found_value
    return found


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return []


def _why_not(name: str) -> str:
    """Return why a variable of the image is not adopted, empty if it is."""
    if _OF_SESSION.fullmatch(name):
        return "it belongs to one session or process"
    if _OURS.fullmatch(name):
        return "it would be a setting of prime-train"
    if is_secret_name(name) or name in credentials():
        return "its name is that of a secret, and a run gets only those that its config names"
    return ""


def _images(
    first_process: Path, copies: tuple[Path, ...], marks: tuple[Path, ...]
) -> Iterator[tuple[str, Mapping[str, str]]]:
    first = parsed_environ(_head(first_process / "environ"))
    starter = os.fsdecode(_head(first_process / "comm")).strip()
    if starter not in SYSTEM_STARTERS or "container" in first or any(mark.exists() for mark in marks):
        yield "the container's first process", first
    for copy in copies:
        yield str(copy), parsed_copy(_head(copy).decode(errors="replace"))


def _head(path: Path) -> bytes:
    """Return the beginning of a file; empty if it may not be read, or does not exist."""
    try:
        with path.open("rb") as file:
            return file.read(ENVIRONMENT_BYTES_MAX)
    except OSError:
        return b""


def _listed(names: tuple[str, ...] | list[str]) -> str:
    more = len(names) - NAMES_SHOWN_MAX
    return ", ".join(names[:NAMES_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")
