"""Builds the zip of the functions' code: the running code, its dependencies for AWS's machines, and the
compiled files of both.

Lambda unpacks it read-only, so anything not compiled here would be compiled at every cold start. The compiled
files are marked as not to be checked against their sources, whose times a zip does not keep.
"""

import hashlib
import io
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.errors import PermanentError, TemporaryError

MACHINES: Mapping[str, str] = {"arm64": "aarch64", "x86_64": "x86_64"}
"""CPU architectures: Lambda's name of each, and the name used in wheels."""
LIBRARIES = ("manylinux2014", *(f"manylinux_2_{minor}" for minor in range(17, 35)))
"""Platform tags that Lambda's Python 3.12 and later can load (glibc 2.34). pip does not derive one tag from
another, so all are listed.
"""
PYTHONS = ("3.12", "3.13")
SERVICES = frozenset({"dynamodb", "lambda", "s3", "secretsmanager", "sso", "sso-oidc", "sts"})
"""AWS services whose API descriptions are kept in the zip; boto3 comes with those of four hundred
services.
"""
ROOT = "/var/task"
"""Folder in which Lambda unpacks the code; used as the path in tracebacks."""
MADE = (1980, 1, 1, 0, 0, 0)
ELF = b"\x7fELF"
"""What a file begins with that the machine can run or load."""
UNPACKED_BYTES_MAX = 250 * 2**20
INSTALL_S_MAX = 600.0
ERROR_LINES_MAX = 3
ELSEWHERE = Advice(
    "on a machine that can download packages, run ",
    *(
        Call(Operation.SAVE_CODE, "FOLDER"),
        " to build the code, then use it here with ",
        Option(SettingAdvice.CODE, "FOLDER/code.zip"),
    ),
)
COMPILE_S_MAX = 300.0


@dataclass(frozen=True)
class Target:
    """The architecture and the Python version for which the code is built."""

    machine: str = "arm64"
    python: str = PYTHONS[0]

    def __post_init__(self) -> None:
        if self.machine not in MACHINES:
            raise PermanentError(
                f"Lambda functions do not run on {self.machine!r}; use {' or '.join(MACHINES)}"
            )
        if self.python not in PYTHONS:
            raise PermanentError(
                f"the functions do not support Python {self.python!r}; use {' or '.join(PYTHONS)}"
            )


@dataclass(frozen=True)
class Package:
    """A zip, and its unpacked size."""

    data: bytes = field(repr=False)
    unpacked_bytes: int


def digest_of(own: Mapping[str, bytes], pins: bytes, target: Target, *, compiled: bool) -> str:
    """Return the name of the zip that `package` builds from these inputs: the same for the same sources, pins
    and target. `compiled`: whether a suitable interpreter is available.
    """
    digest = hashlib.sha256(
        f"{target.machine} {target.python} {'compiled' if compiled else 'plain'}\n".encode()
    )
    for name, data in sorted([*own.items(), ("", pins)]):
        digest.update(f"{name} {hashlib.sha256(data).hexdigest()}\n".encode())
    return digest.hexdigest()[:32]


def package(
    own: Mapping[str, bytes], pins: bytes, target: Target, progress: Callable[[str], object]
) -> Package:
    """Build the zip. `own`: prime-train's own files, by name. `pins`: the dependencies with their hashes.
    `progress` is called with a line about each step. The code is compiled if there is an `interpreter` of the
    target's version.
    """
    with tempfile.TemporaryDirectory(prefix="prime-train-") as made:
        folder = Path(made) / "code"
        progress(f"downloading the dependencies, for Python {target.python} on {target.machine}")
        _install(pins, target, folder)
        _prune(folder)
        for name, data in own.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        python = interpreter(target.python)
        if python is not None:
            compile_all(folder, python)
        return zipped(folder)


def interpreter(version: str) -> str | None:
    """Return a Python of that version that actually runs, or None: a version manager may leave one on the
    PATH that only prints an error.
    """
    candidates = (sys.executable, shutil.which(f"python{version}"))
    script = "import sys; print('%d.%d' % sys.version_info[:2])"
    for candidate in filter(None, candidates):
        done = subprocess.run(
            [candidate, "-I", "-c", script],
            capture_output=True,
            text=True,
            timeout=COMPILE_S_MAX,
            check=False,
        )
        if done.returncode == 0 and done.stdout.strip() == version:
            return candidate
    return None


def compile_all(folder: Path, python: str) -> None:
    """Compile the files with `python`, an interpreter of the version that will run them."""
    command = [
        python,
        "-I",
        "-m",
        "compileall",
        "-q",
        "-f",
        "--invalidation-mode",
        "unchecked-hash",
        "-s",
        str(folder),
        "-p",
        ROOT,
    ]
    # Files that do not compile (a template, a file for another version) are not ours, and are not imported.
    subprocess.run([*command, str(folder)], capture_output=True, timeout=COMPILE_S_MAX, check=False)


def zipped(folder: Path) -> Package:
    """Return the folder as a zip. Raises PermanentError if it is larger than Lambda allows."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    size = sum(path.stat().st_size for path in files.values())
    if size > UNPACKED_BYTES_MAX:
        raise PermanentError(
            f"the code is {size / 2**20:.0f} MiB, but Lambda accepts at most {UNPACKED_BYTES_MAX // 2**20} "
            "MiB"
        )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            member = zipfile.ZipInfo(name, MADE)
            data = files[name].read_bytes()
            # Libraries and programs, whatever their names: the package wandb starts one of its own.
            member.compress_type, member.external_attr = (
                zipfile.ZIP_DEFLATED,
                (0o755 if data.startswith(ELF) else 0o644) << 16,
            )
            archive.writestr(member, data)
    return Package(out.getvalue(), size)


def _install(pins: bytes, target: Target, folder: Path) -> None:
    file = folder.with_name("pins.txt")
    file.write_bytes(pins)
    wanted = ["--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "-r", str(file)]
    command = [*_installer(target), f"--target={folder}", *wanted]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S_MAX, check=False)
    except subprocess.TimeoutExpired as error:
        raise TemporaryError(
            f"the functions' dependencies could not be downloaded within {INSTALL_S_MAX:.0f} s"
        ) from error
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()] or [
            "there was no error message"
        ]
        raise PermanentError(
            f"the functions' dependencies cannot be downloaded: {' '.join(lines[-ERROR_LINES_MAX:])[:500]}",
            fix=ELSEWHERE,
        )


def _installer(target: Target) -> list[str]:
    """Return the install command: uv's if available, because it takes a tenth of the time, else pip's. Both
    install for the target's machine type, not for this one's.
    """
    machine, version = MACHINES[target.machine], f"--python-version={target.python}"
    uv = shutil.which("uv")
    if uv is not None:
        return [uv, "pip", "install", "--no-config", f"--python-platform={machine}-manylinux_2_28", version]
    if find_spec("pip") is None:
        raise PermanentError(
            "neither uv nor pip is installed to download the functions' dependencies; install one of them"
        )
    platforms = [f"--platform={library}_{machine}" for library in LIBRARIES]
    quiet = ["--disable-pip-version-check", "--no-input", "--no-compile", "--implementation=cp"]
    return [sys.executable, "-m", "pip", "install", *quiet, *platforms, version]


def _prune(folder: Path) -> None:
    shutil.rmtree(folder / "bin", ignore_errors=True)
    for path in (folder / "botocore" / "data").glob("*"):
        if path.is_dir() and path.name not in SERVICES:
            shutil.rmtree(path)
