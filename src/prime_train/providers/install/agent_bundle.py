"""The files a machine needs to run the agent: a wheel of the code that runs here, and the pinned versions of
its dependencies.

The wheel is neither built from sources, which an installed control plane lacks, nor downloaded, since this
version may not be published. It is zipped from the imported packages, which works alike for a checkout and an
installation. Two machines with the same files produce the same bytes, so the hash shows whether a pod already
has it.
"""

import base64
import hashlib
import io
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from prime_train.errors import PermanentError
from prime_train.spec.image_contents import digest_of

DISTRIBUTION = "prime-train"
PACKAGES = ("prime_train", "prime_agent")
PINS = "runtime.txt"
BRING_UP = Path(__file__).with_name("bring_up.sh")
"""The script that installs the agent on a machine and starts it."""
PINS_INSIDE = f"prime_train/providers/install/{PINS}"
FILES_MAX = 5_000
MADE = (1980, 1, 1, 0, 0, 0)
"""Timestamp of every file in a wheel: the earliest that zip supports."""
WHEEL = "Wheel-Version: 1.0\nGenerator: prime-train\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@dataclass(frozen=True)
class Parcel:
    """Files by name, and the hash over all of them."""

    files: Mapping[str, bytes] = field(repr=False)
    digest: str

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.files.values()))


@cache
def pack() -> Parcel:
    """Return the parcel, built once per process. Raises PermanentError if the running code is not available
    as files.
    """
    found = _distribution()
    name, files = f"prime_train-{found.version}-py3-none-any.whl", _packed(found)
    if len(files) > FILES_MAX:
        raise PermanentError(
            f"{len(files)} files are too many for a wheel of prime-train; check its folders for other files"
        )
    parts = {name: _zipped(files), PINS: _pins()}
    return Parcel(parts, digest_of(parts))


def package_folders() -> tuple[Path, ...]:
    """Return the folders of the packages that are sent. Raises PermanentError if they are not available as
    files.
    """
    return tuple(map(_folder, PACKAGES))


def _distribution() -> Distribution:
    try:
        return distribution(DISTRIBUTION)
    except PackageNotFoundError:
        raise PermanentError(
            f"{DISTRIBUTION} is imported but not installed here; install it so that the agent can be sent"
        ) from None


def _packed(found: Distribution) -> dict[str, bytes]:
    """Return all files of the wheel by name, including its RECORD."""
    about = f"prime_train-{found.version}.dist-info"
    files = {name: path.read_bytes() for package in PACKAGES for name, path in _files(package)} | {
        PINS_INSIDE: _pins()
    }
    for name in ("METADATA", "entry_points.txt"):
        files[f"{about}/{name}"] = (found.read_text(name) or "").encode()
    files[f"{about}/WHEEL"] = WHEEL.encode()
    files = dict(sorted(files.items()))
    return files | {f"{about}/RECORD": _record(files, f"{about}/RECORD")}


def _files(package: str) -> Iterator[tuple[str, Path]]:
    root = _folder(package)
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root)
        if path.is_file() and "__pycache__" not in inside.parts:
            yield f"{package}/{inside.as_posix()}", path


def _folder(package: str) -> Path:
    spec = find_spec(package)
    folder = Path(next(iter((spec and spec.submodule_search_locations) or [package])))
    if not folder.is_dir():
        raise PermanentError(f"{package} is not installed as files, so it cannot be sent: {folder}")
    return folder


def _pins() -> bytes:
    """Return the pinned versions of the dependencies, from the package or from the checkout."""
    known = (Path(__file__).with_name(PINS), Path(__file__).parents[4] / "requirements" / PINS)
    path = next((path for path in known if path.exists()), None)
    if path is None:
        raise PermanentError(
            f"there is no {PINS} with the pinned dependencies of the agent, neither {known[0]} nor {known[1]}"
        )
    return path.read_bytes()


def _record(files: Mapping[str, bytes], own_name: str) -> bytes:
    def line(name: str, data: bytes) -> str:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        return f"{name},sha256={digest},{len(data)}\n"

    return ("".join(line(name, data) for name, data in files.items()) + f"{own_name},,\n").encode()


def _zipped(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            member = zipfile.ZipInfo(name, MADE)
            member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(member, data)
    return out.getvalue()
