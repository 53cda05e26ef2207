"""What the processes of a local pod can see of this machine: by environment, and inside bubblewrap's walls by
files and processes.

A command on the provider `local` runs as the user of the control plane. It gets an environment by a list of
what is harmless, and a home folder of its own. Where bubblewrap works, it also sees no other process, and
neither the control plane's home nor what programs keep in hidden files and folders of the user's home: keys,
log-ins, histories. Everything else, such as data sets and GPUs, stays usable.

A program outside that takes orders by a socket would run them outside, as its user: tmux, screen, a desktop,
an editor, D-Bus, Docker. So `/run` is empty, `/tmp` and `/var/tmp` are the pod's own, and whatever other
sockets with a name there are when it starts are hidden one by one. The network is shared, and with it sockets
without a file, whose names Linux keeps with the network.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from prime_train import bubblewrap

_NAMES = frozenset(
    {
        *("PATH", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR", "SHELL", "USER", "LOGNAME", "LD_LIBRARY_PATH"),
        *("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONUTF8", "PYTHONHASHSEED"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT"),
        *(
            "PIP_INDEX_URL",
            "PIP_EXTRA_INDEX_URL",
            "PIP_FIND_LINKS",
            "PIP_NO_INDEX",
            "PIP_TRUSTED_HOST",
            "PIP_CONFIG_FILE",
        ),
        *(
            "UV_INDEX",
            "UV_INDEX_URL",
            "UV_DEFAULT_INDEX",
            "UV_EXTRA_INDEX_URL",
            "UV_FIND_LINKS",
            "UV_PYTHON_INSTALL_MIRROR",
        ),
        *(
            "HF_ENDPOINT",
            "HF_HUB_CACHE",
            "HF_HUB_OFFLINE",
            "HF_HUB_ENABLE_HF_TRANSFER",
            "HF_DATASETS_CACHE",
            "HF_DATASETS_OFFLINE",
        ),
    }
)
"""Variables that a pod's processes inherit, in upper case; proxies are also read in lower case."""
_PREFIXES = (
    *("LC_", "CUDA_", "NVIDIA_", "NCCL_", "ROCR_", "ROCM_", "HIP_", "HSA_"),
    *(
        "OMP_",
        "MKL_",
        "OPENBLAS_",
        "NUMEXPR_",
        "TORCH_",
        "TORCHINDUCTOR_",
        "PYTORCH_",
        "TRITON_",
        "TOKENIZERS_",
        "XLA_",
    ),
)
_SECRET = re.compile(
    r"(^|_)(TOKENS?|SECRETS?|PASS(WORD|WD|PHRASE)?|CREDENTIALS?|(API)?KEYS?)(_|$)", re.IGNORECASE
)
_ADDRESS = re.compile(r"://[^/\s]*@")

DEVICES = ("nvidia*", "dri", "kfd", "infiniband", "dxg")
"""Devices of GPUs and of networks between them, below /dev."""
OWN = ("/tmp", "/var/tmp")
"""Folders of which each pod has its own, on its disk: what is there belongs to this machine's other
programs.
"""
TMP = "tmp"
"""The folder for it in the home folder of the pod."""
_EMPTY = ("/run",)
_LINKS = ("/run/current-system", "/run/booted-system", "/run/opengl-driver", "/run/shm")
"""Links to programs and memory that systems keep in there."""
_USABLE = ("/etc/resolv.conf", "/run/media")
"""What is needed of it, if it is there: the file that says how to look up names, and disks that were plugged
in.
"""
_RUNTIME = ("XDG_RUNTIME_DIR", "SCREENDIR")
"""Variables with folders of sockets; tmux has a folder of its own in that of its variable."""
_SOCKETS = Path("/proc/net/unix")
_HARMLESS = ("/var/lib/sss/pipes/nss",)
"""Sockets that only answer questions, such as which name a user has."""
_SYSTEM = ("/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/opt", "/sbin", "/srv", "/usr", "/var")
"""What root could change so that it is run outside of the walls; any other user cannot change it anyway."""
HIDDEN_MAX = 1000


def allowed_environment(own: Mapping[str, str]) -> dict[str, str]:
    """Return those of this process's variables that a pod's processes inherit. An address of a package index
    with a log-in is left out.
    """
    return {name: value for name, value in own.items() if _is_allowed(name, value)}


def environment_of_machine(own: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a machine that is there for its runs alone, such as those of its image, without
    the control plane's own settings and what looks like a secret.
    """
    return {
        name: value
        for name, value in own.items()
        if not (_SECRET.search(name) or name.upper().startswith("PRIME_"))
    }


def _is_allowed(name: str, value: str) -> bool:
    upper = name.upper()
    if _SECRET.search(name) or not (upper in _NAMES or name.startswith(_PREFIXES)):
        return False
    return upper.endswith("_PROXY") or not _ADDRESS.search(value)


@dataclass(frozen=True)
class Walls:
    """The walls of the pods of one home. `home`: the control plane's; `bucket_url`: its bucket, which a pod's
    agent writes to. `is_read_only`: inside of them nothing of this machine can be changed but the pod's own
    disk and home.
    """

    home: Path
    bucket_url: str
    is_read_only: bool = False

    @property
    def why_none(self) -> str:
        """Return why there are no walls here; empty if there are. Found out once in a process."""
        return _why_none()

    def around(self, disk: Path, home: Path) -> list[str]:
        """Return the words that come before the command of a pod whose disk and home folder these are; none
        if there are no walls. Its own folder for what is temporary is made there.
        """
        program = bubblewrap.program()
        if program is None or self.why_none:
            return []
        (home / TMP).mkdir(mode=0o700, exist_ok=True)
        emptied = [
            Path(place) for place in (*_EMPTY, *OWN) if Path(place).is_dir() and not Path(place).is_symlink()
        ]
        user = Path.home()
        root = "--ro-bind" if self.is_read_only else "--bind"
        words = [program, *_base(root)]
        for place in emptied:
            words += ["--bind", str(home / TMP), str(place)] if str(place) in OWN else ["--tmpfs", str(place)]
        words += _usable()
        if user.is_dir() and any(user != place and user.is_relative_to(place) for place in emptied):
            words += [root, str(user), str(user)]
        else:
            user = home
        hidden: list[Path] = []
        for path in (self.home, *self._hidden()):
            # Not in what is empty or hidden already: a file would be made there for it.
            if not _is_below(path, hidden) and (path.is_relative_to(user) or not _is_below(path, emptied)):
                hidden.append(path)
        words += [word for path in hidden for word in _hiding(path)]
        for path in self._needed([*emptied, *hidden]):
            words += ["--ro-bind", str(path), str(path)]
        for path in (*self._bucket(), disk, home):
            words += ["--bind", str(path), str(path)]
        return [*words, "--setenv", "TMPDIR", "/tmp", "--chdir", str(disk), "--"]

    def _hidden(self) -> Iterator[Path]:
        """Yield what is hidden besides the control plane's home: the hidden entries of the user's home, and
        doors out of the walls.
        """
        yield from _hidden_in(Path.home())
        folders = [Path(os.environ[name]) for name in _RUNTIME if os.environ.get(name)]
        if os.environ.get("TMUX_TMPDIR"):
            folders.append(Path(os.environ["TMUX_TMPDIR"]) / f"tmux-{os.getuid()}")
        yield from (path for path in folders if path.is_absolute() and path.is_dir())
        yield from _sockets()

    def _needed(self, hidden: Iterable[Path]) -> list[Path]:
        """Return the folders of this Python that would be hidden: its own, the one that it is made from, and
        those of its packages.
        """
        places = [
            Path(place)
            for place in (sys.prefix, sys.base_prefix, *sys.path)
            if place and Path(place).is_dir()
        ]
        both = dict.fromkeys(path for place in places for path in (place, place.resolve()))
        covered = tuple(hidden)
        return [path for path in both if _is_below(path, covered) and path != self.home]

    def _bucket(self) -> list[Path]:
        parts = urlsplit(self.bucket_url)
        folder = Path(unquote(parts.path))
        return [folder] if parts.scheme == "file" and folder.is_dir() else []


def _is_below(path: Path, places: Iterable[Path]) -> bool:
    return any(path.is_relative_to(place) for place in places)


def _usable() -> list[str]:
    """Return the words for what stays usable of folders that are emptied."""
    words = [
        word
        for link in map(Path, _LINKS)
        if link.is_symlink()
        for word in ("--symlink", str(link.readlink()), str(link))
    ]
    found = {str(Path(place).resolve()) for place in _USABLE if Path(place).exists()}
    return [
        *words,
        *(
            word
            for place in sorted(found)
            if _is_below(Path(place), map(Path, _EMPTY))
            for word in ("--bind", place, place)
        ),
    ]


def _sockets() -> list[Path]:
    """Return the sockets of this machine that have a file, as far as this user can reach them, without those
    of pods themselves.
    """
    try:
        lines = _SOCKETS.read_text(errors="surrogateescape").splitlines()[1:]
    except OSError:
        return []  # a system that does not say it; what has a usual place is hidden there
    names = sorted(
        {fields[7] for line in lines if len(fields := line.split(None, 7)) == 8 and fields[7].startswith("/")}
    )
    shown = [Path(name) for name in names if not name.startswith(_HARMLESS)]
    return [path for path in shown if _is_socket(path)][:HIDDEN_MAX]


def _is_socket(path: Path) -> bool:
    try:
        return path.is_socket()
    except OSError:
        return False


def _hidden_in(home: Path) -> Sequence[Path]:
    """Return the hidden files and folders of a user's home. Links lead elsewhere; what even its owner cannot
    look at needs no hiding.
    """
    try:
        with os.scandir(home) as entries:
            names = sorted(
                entry.path for entry in entries if entry.name.startswith(".") and not entry.is_symlink()
            )
    except OSError:
        return ()  # a user without a home has nothing in it
    return [Path(name) for name in names[:HIDDEN_MAX] if os.access(name, os.F_OK)]


def _base(root: str = "--bind") -> list[str]:
    """Return the words for what all pods share: this machine's files without its devices, but for those of
    GPUs. `root`: the word by which the files are there.
    """
    words = [*bubblewrap.COMMON, root, "/", "/"]
    if os.geteuid() == 0:
        words += [
            word
            for place in map(Path, _SYSTEM)
            if place.is_dir() and not place.is_symlink()
            for word in _locked(place)
        ]
    words += ["--dev", "/dev", "--proc", "/proc"]
    devices = (device for name in DEVICES for device in sorted(Path("/dev").glob(name)))
    return [*words, *(word for device in devices for word in ("--dev-bind", str(device), str(device)))]


def _locked(place: Path) -> tuple[str, ...]:
    return ("--ro-bind", str(place), str(place))


def _hiding(path: Path) -> tuple[str, ...]:
    return ("--tmpfs", str(path)) if path.is_dir() else ("--ro-bind", "/dev/null", str(path))


@cache
def _why_none() -> str:
    program = bubblewrap.program()
    return bubblewrap.why_not([program, *_base(), "--"]) if program is not None else bubblewrap.MISSING
