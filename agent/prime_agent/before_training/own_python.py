"""Gives the commands of a run a Python environment that is theirs: with pip, and with nothing in it that
others depend on.

Most images have one: a conda or virtual environment, or a Python of the system into which root may install.
It is kept as it is. Elsewhere the attempt gets a virtual environment of its own, before that on PATH: where
there is no Python, where the system's refuses installations (PEP 668) or is not writable, where pip is
missing, and where the first Python on PATH is the one that the agent itself runs on. It lies above the Python
that the commands would have used, so that what the image has installed, such as a torch for its CUDA, stays
usable.
"""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from prime_agent.before_training.phase import Shell
from prime_agent.before_training.venv_above import put_packages_above, put_programs
from prime_train.text.safe import neutralized

PROBE_S_MAX = 60.0
VENV_S_MAX = 300.0
PROGRAMS_MAX = 2000
_MARK = "python here: "
_PROGRAM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
_TRUE = ("1", "true", "yes", "on")

# Old interpreters run it as well.
_PROBE = f"""
import os, site, sys, sysconfig
def say(name, value):
    print("{_MARK}" + name + "=" + str(value))
def exists(path):
    return path if os.path.exists(path) or path == os.path.dirname(path) else exists(os.path.dirname(path))
packages = sysconfig.get_paths()["purelib"]
say("version", "%d.%d" % sys.version_info[:2])
say("prefix", sys.prefix)
say("base", getattr(sys, "base_prefix", sys.prefix))
say("packages", packages)
say("writable", os.access(exists(packages), os.W_OK))
say("managed", os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")))
try:
    import pip
    say("pip", True)
except ImportError:
    pass
try:
    from importlib import metadata
    for one in metadata.distributions():
        for point in one.entry_points:
            if point.group == "console_scripts":
                say("program", point.name)
        for line in (one.read_text("RECORD") or "").splitlines():
            if line.startswith("../../../bin/"):
                say("program", line.split(",")[0].split("/")[-1])
except Exception:
    pass
"""


@dataclass(frozen=True)
class Interpreter:
    """A Python as it describes itself. `programs`: names of the programs of its packages."""

    path: Path
    version: str
    prefix: str
    base: str
    packages: str
    is_writable: bool
    is_managed: bool
    has_pip: bool
    programs: tuple[str, ...] = ()

    @property
    def is_virtual(self) -> bool:
        return self.prefix != self.base


@dataclass(frozen=True)
class OwnPython:
    """The variables with which commands use the environment; empty if they use the machine's Python. `why`:
    the reason, for people.
    """

    variables: Mapping[str, str]
    why: str


def give_python(shell: Shell, venv: Path, *, note: Callable[[str], None]) -> OwnPython:
    """Return how the shell's commands get their Python; `venv` is made if they need one of their own. If it
    cannot be made, they keep what they have, and the reason says so. Raises Called if the phase is cancelled.
    """
    name = next((name for name in ("python", "python3") if _which(name, shell.env)), "")
    found = _probed(Path(_which(name, shell.env)), shell) if name else None
    why = why_unfit(found, shell.env, agent_prefix=sys.prefix)
    if not why:
        return OwnPython({}, f"commands use the machine's {found.path if found else ''}")
    note(f"making a Python environment for the run, because {why}")
    failed = _make(found, venv, shell)
    if failed:
        return OwnPython(
            {}, f"commands use what the machine has, although {why}: no environment could be made: {failed}"
        )
    below = f"above {found.path}" if found is not None else "with the agent's Python"
    before = found.path.parent if found is not None else None
    return OwnPython(
        own_variables(shell.env, venv, before=before), f"commands use {venv}, {below}, because {why}"
    )


def why_unfit(found: Interpreter | None, env: Mapping[str, str], *, agent_prefix: str) -> str:
    """Return why commands need an environment of their own instead of this interpreter, the first that they
    would find; empty if they do not. `agent_prefix`: where the agent's own packages are.
    """
    if found is None:
        return "there is no Python on PATH"
    if os.path.realpath(found.prefix) == os.path.realpath(agent_prefix):
        return f"{found.path} belongs to prime-train"
    if (
        found.is_managed
        and not found.is_virtual
        and env.get("PIP_BREAK_SYSTEM_PACKAGES", "").lower() not in _TRUE
    ):
        return f"the system's Python {found.version} refuses installations (EXTERNALLY-MANAGED)"
    if not found.is_writable:
        return f"{found.packages} is not writable"
    if not found.has_pip:
        return f"{found.path} has no pip"
    missing = [name for name in ("python", "pip") if not _which(name, env)]
    return f"there is no program {' and no '.join(missing)} on PATH" if missing else ""


def own_variables(env: Mapping[str, str], venv: Path, *, before: Path | None) -> dict[str, str]:
    """Return the variables with which commands find the environment, and tools install into it.

    On PATH it comes right before the folder `before`, of the Python that it replaces, so that a program which
    a config has put in front of that stays the first of its name; where there is no such folder, it comes
    first.
    """
    folders = env.get("PATH", os.defpath).split(os.pathsep)
    place = folders.index(str(before)) if str(before) in folders else 0
    found = {
        "PATH": os.pathsep.join([*folders[:place], str(venv / "bin"), *folders[place:]]),
        "VIRTUAL_ENV": str(venv),
    }
    # Each of these makes a tool install elsewhere, or refuse to install.
    return found | {name: "0" for name in ("PIP_USER", "UV_SYSTEM_PYTHON") if name in env}


def _which(name: str, env: Mapping[str, str]) -> str:
    return shutil.which(name, path=env.get("PATH", os.defpath)) or ""


def _probed(path: Path, shell: Shell) -> Interpreter | None:
    """Return what the interpreter says about itself; None if it does not run."""
    said: list[tuple[str, str]] = []

    def read(lines: list[str]) -> None:
        for line in lines:
            name, separator, value = line.removeprefix(_MARK).strip().partition("=")
            if line.startswith(_MARK) and separator and len(said) < PROGRAMS_MAX:
                said.append((name, value))

    command = f"{shlex.quote(str(path))} -I - <<'END'\n{_PROBE}END"
    try:
        ended = shell.run(command, name="python", timeout_s=PROBE_S_MAX, on_lines=read)
    except OSError:
        return None
    facts = dict(reversed(said))
    if ended.code != 0 or not {"version", "prefix", "base", "packages"} <= facts.keys():
        return None
    programs = sorted({value for name, value in said if name == "program" and _PROGRAM.fullmatch(value)})
    return Interpreter(
        path,
        facts["version"],
        facts["prefix"],
        facts["base"],
        facts["packages"],
        facts.get("writable") == "True",
        facts.get("managed") == "True",
        "pip" in facts,
        tuple(programs),
    )


def _make(below: Interpreter | None, venv: Path, shell: Shell) -> str:
    """Make the environment. Return why it cannot be made, empty if it was."""
    python = below.path if below is not None else Path(sys.executable)
    inherits = below is not None and not below.is_virtual
    command = (
        f"{_quoted(python)} -I -m venv --clear "
        "--without-pip "
        f"{'--system-site-packages ' if inherits else ''}{_quoted(venv)}"
    )
    try:
        ended = shell.run(command, name="environment", timeout_s=VENV_S_MAX)
        if ended.code == 0 and below is not None:
            if below.is_virtual:
                put_packages_above(Path(below.packages), venv)
            put_programs(_scripts(below), python.parent, venv)
        if ended.code == 0:
            ended = shell.run(_pip_command(venv), name="pip", timeout_s=VENV_S_MAX)
    except OSError as error:
        return str(error)
    return (
        ""
        if ended.code == 0
        else neutralized(ended.tail.strip().rpartition("\n")[2] or f"exit code {ended.code}")
    )


def _scripts(below: Interpreter) -> Iterable[Path]:
    """Yield the programs of the packages below: they would otherwise run without what is installed above
    them.
    """
    folders = dict.fromkeys((below.path.parent, Path(below.prefix) / "bin", Path("/usr/local/bin")))
    for name in below.programs:
        place = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if place is not None:
            yield place


def _pip_command(venv: Path) -> str:
    """Return a command that provides pip: the one below, the one that came with the agent's Python or that of
    the environment, or by uv.
    """
    python = _quoted(venv / "bin" / "python")
    wheels = (
        f"{_quoted(Path(os.__file__).parent / 'ensurepip' / '_bundled')}/pip-*.whl "
        "/usr/share/python-wheels/pip-*.whl"
    )
    return f"""
PATH="$PATH:$HOME/.local/bin:$HOME/.prime-train/bin"
unset VIRTUAL_ENV PIP_USER PIP_TARGET PIP_PREFIX
by_wheel() {{
  for wheel in {wheels}; do
    [ -f "$wheel" ] && {python} "$wheel/pip" install --quiet --no-index --no-deps --no-compile "$wheel" && return
  done
  return 1
}}
{python} -m pip --version >/dev/null 2>&1 || by_wheel || {python} -m ensurepip --default-pip >/dev/null 2>&1 ||
  uv pip install --quiet --python {python} pip || exit
for name in pip pip3; do
  [ -e {_quoted(venv)}/bin/$name ] || {{ printf '#!/bin/sh\\nexec %s -m pip "$@"\\n' {_quoted(python)} >{_quoted(venv)}/bin/$name &&
    chmod 755 {_quoted(venv)}/bin/$name; }} || exit
done
"""


def _quoted(value: Path | str) -> str:
    return shlex.quote(str(value))
