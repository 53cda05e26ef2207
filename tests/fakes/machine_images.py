"""What a rented machine is started from: which Python it has, where, and who gets to know.

Each image stands for one that is rented, or for the system of a provider's machines. The Python is that of
the tests, laid out as there: a real installation has its own folder, its own packages, and the marker file of
a system that refuses installations. What an image sets in its ENV is known to its first process, and not to
sshd.
"""

import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

PLAIN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""What an sshd sets."""
_HIDDEN = ("python", "pip", "uv", "conda", "pyenv", "2to3", "idle", "pydoc")
"""How the programs begin that no image has unless it says so."""


@dataclass(frozen=True)
class Walls:
    """A machine that was furnished from an image: words for bubblewrap, the environment of its first process,
    and sshd's PATH.
    """

    mounts: tuple[str, ...]
    env: Mapping[str, str]
    session_path: str


@dataclass(frozen=True)
class Image:
    """An image. `python`: the folder of its Python, "" if it has none; `names`: the names under which that is
    called. `has_pip`, `is_managed` (by the system: PEP 668) and `is_writable` describe it. `env`: what its
    ENV sets, besides the PATH. `is_on_session_path`: whether sshd's PATH leads to its Python. `user`: the
    name under which one logs in, "" for that of who runs the tests. `late_s`: of each of the first
    connections, the seconds for which it hangs before it is refused. `source`: where it was seen.
    """

    name: str
    source: str
    python: str = ""
    names: tuple[str, ...] = ("python", "python3")
    has_pip: bool = True
    is_managed: bool = False
    is_writable: bool = True
    is_on_session_path: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    late_s: tuple[float, ...] = ()

    @property
    def for_runs(self) -> dict[str, str]:
        """Return what a run is to see of the ENV: nothing that is the provider's secret or belongs to one
        process.
        """
        return {name: value for name, value in self.env.items() if name not in ("RUNPOD_API_KEY", "HOSTNAME")}

    def walls(self, folder: Path) -> Walls:
        """Furnish the folder, unless it is already, and return how a machine is started from it."""
        root, bare = folder / "root", folder / "root" / "usr" / "bin"
        if not root.exists():
            making = folder / f"making-{os.getpid()}"
            _put_programs(making / "usr" / "bin")
            if self.python:
                _install_python(making / self.python, self)
            making.rename(root)
        own = str(root / self.python / "bin") if self.python else ""
        path = os.pathsep.join(dict.fromkeys(part for part in (own, str(bare)) if part))
        packages = root / self.python / _packages()
        mounts: tuple[str, ...] = () if self.is_writable else ("--ro-bind", str(packages), str(packages))
        if self.user:
            # Another name of who runs the tests: files of these are not open to anybody else.
            accounts = folder / "passwd"
            accounts.write_text(
                f"{self.user}:x:{os.getuid()}:{os.getgid()}::/:/bin/sh\n{Path('/etc/passwd').read_text()}"
            )
            mounts += ("--ro-bind", str(accounts), "/etc/passwd")
        session = path if self.is_on_session_path else str(bare)
        return Walls(mounts, {"PATH": path, **self.env}, session)


class _OfTheTests(Image):
    """An image with the Python of the tests, by its ENV's PATH only, and with the programs of this
    machine.
    """

    def walls(self, folder: Path) -> Walls:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        return Walls((), {"PATH": path, **self.env}, PLAIN_PATH)


CONDA_OF_THE_TESTS = _OfTheTests("tests", "the virtual environment of the tests takes the place of conda's")

CONDA = Image(
    "conda",
    "pytorch/pytorch and continuumio images: ENV PATH /opt/conda/bin:$PATH; runpod/containers #70, #99",
    python="opt/conda",
    env={
        "HF_HOME": "/workspace/hf",
        "NCCL_DEBUG": "WARN",
        "RUNPOD_API_KEY": "rpa_of_the_pod",
        "HOSTNAME": "pod",
    },
)
UBUNTU_24_04 = Image(
    "ubuntu-24.04",
    "Ubuntu 24.04: Python 3.12 as python3 only, without pip, and PEP 668",
    python="usr",
    names=("python3",),
    has_pip=False,
    is_managed=True,
    is_on_session_path=True,
)
RUNPOD_24_04 = Image(
    "runpod-24.04",
    "runpod/containers, official-templates/base: Ubuntu 24.04 with pip and ENV PIP_BREAK_SYSTEM_PACKAGES=1",
    python="usr",
    is_managed=True,
    is_on_session_path=True,
    env={"PIP_BREAK_SYSTEM_PACKAGES": "1", "PIP_ROOT_USER_ACTION": "ignore"},
)
UBUNTU_22_04 = Image(
    "ubuntu-22.04",
    "Lambda Stack on Ubuntu 22.04: python3 with pip, for the user ubuntu, who may not write to the system",
    python="usr",
    names=("python3",),
    is_writable=False,
    is_on_session_path=True,
    user="ubuntu",
)
NO_PYTHON = Image("no-python", "nvidia/cuda and ubuntu images have no Python", late_s=(0.0, 1.0))

IMAGES = (CONDA, UBUNTU_24_04, RUNPOD_24_04, UBUNTU_22_04, NO_PYTHON)


def _packages() -> str:
    return f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


def _put_programs(folder: Path) -> None:
    """Put links to this machine's programs into the folder, without any Python."""
    folder.mkdir(parents=True)
    for place in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for program in Path(place).iterdir():
            if not program.name.startswith(_HIDDEN) and not os.path.lexists(folder / program.name):
                (folder / program.name).symlink_to(program)


def _install_python(prefix: Path, image: Image) -> None:
    """Install the Python of the tests: a program and a library of its own, which has nothing but pip."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library, real = prefix / "lib" / version, Path(sysconfig.get_path("stdlib"))
    (prefix / "bin").mkdir(parents=True, exist_ok=True)
    (library / "site-packages").mkdir(parents=True)
    for entry in real.iterdir():
        if entry.name not in (
            "site-packages",
            "dist-packages",
            "EXTERNALLY-MANAGED",
            *(() if image.has_pip else ("ensurepip",)),
        ):
            (library / entry.name).symlink_to(entry)
    for shared in (Path(sys.base_prefix) / "lib").glob("libpython*"):
        (prefix / "lib" / shared.name).symlink_to(shared)
    # A copy, because Python looks for its library beside the file that a link leads to.
    shutil.copy(Path(sys.base_prefix) / "bin" / version, prefix / "bin" / version)
    for name in image.names:
        (prefix / "bin" / name).symlink_to(version)
    if image.is_managed:
        (library / "EXTERNALLY-MANAGED").write_text(
            "[externally-managed]\nError=This environment is externally managed\n"
        )
    if image.has_pip:
        import pip

        (library / "site-packages" / "pip").symlink_to(Path(str(pip.__file__)).parent)
        about = next(Path(str(pip.__file__)).parents[1].glob("pip-*.dist-info"))
        (library / "site-packages" / about.name).symlink_to(about)
        for name in {"pip3", image.names[0].replace("python", "pip")}:
            (prefix / "bin" / name).write_text(f'#!/bin/sh\nexec "${{0%/*}}/{version}" -m pip "$@"\n')
            (prefix / "bin" / name).chmod(0o755)
