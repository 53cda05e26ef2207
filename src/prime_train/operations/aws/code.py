"""What is brought to AWS: the template, our own files as they run here, and the pins of what they depend on."""

import hashlib
import io
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.adapters.aws_deploy import Target

LAMBDAS = "prime_lambdas"
CODE = "code.zip"
"""What the template calls the code, as long as it lies beside it."""
CODE_BYTES_MAX = 250 * 2**20
NOT_COMPILED = (
    "Python {python} is not on this machine, so the code is not compiled and a cold start takes twice as long; put python{python} on PATH "
    "and do this again"
)


def template() -> str:
    return (_folder() / "template.yaml").read_text(encoding="utf-8")


def placed(bucket: str, key: str) -> str:
    """The template with the code where it was brought."""
    return template().replace(f"CodeUri: {CODE}", f"CodeUri: s3://{bucket}/{key}")


def parameter_names() -> tuple[str, ...]:
    """What the template lets one choose."""
    _, _, rest = template().partition("\nParameters:\n")
    block = re.split(r"^(?=\S)", rest, maxsplit=1, flags=re.MULTILINE)[0]
    return tuple(re.findall(r"^  (\w+):$", block, re.MULTILINE))


def pins() -> bytes:
    return (_folder() / "requirements.txt").read_bytes()


def own() -> dict[str, bytes]:
    """By the names they have in the zip. The wheel that machines get is in it as files: its parts are what the watcher sends them."""
    from prime_train.adapters.provisioning.parcel import pack

    wheel = next(data for name, data in pack().files.items() if name.endswith(".whl"))
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    folder = _folder()
    mine = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return files | {f"{LAMBDAS}/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in mine}


@dataclass(frozen=True)
class Code:
    """`name` tells it from any other, and `make` makes it. `lacks`: what is worse about it than it could be, and what to do; empty:
    nothing. Otherwise `better` is the name of what another machine may have brought of the same sources."""

    name: str
    make: Callable[[], bytes]
    lacks: str = ""
    better: str = ""


def code(target: "Target", given: Path | None, said: Callable[[str], object]) -> Code:
    """`given`: a zip that was made before."""
    from prime_train.adapters.aws_deploy import digest_of, interpreter, package

    if given is not None:
        data = _read(given)
        return Code(f"{hashlib.sha256(data).hexdigest()[:32]}.zip", lambda: data)
    files, fixed = own(), pins()

    def make() -> bytes:
        made = package(files, fixed, target, said)
        said(f"code: {len(made.data) / 2**20:.1f} MiB, unpacked {made.unpacked_bytes / 2**20:.0f} MiB")
        return made.data

    plain, compiled = (f"{digest_of(files, fixed, target, compiled=is_compiled)}.zip" for is_compiled in (False, True))
    if interpreter(target.python) is not None:
        return Code(compiled, make)
    return Code(plain, make, NOT_COMPILED.format(python=target.python), compiled)


def _read(path: Path) -> bytes:
    if path.stat().st_size > CODE_BYTES_MAX:
        raise UsageError(f"{path} is over {CODE_BYTES_MAX >> 20} MiB: Lambda does not take it")
    handler = f"{LAMBDAS}/webhook.py"
    if not zipfile.is_zipfile(path) or handler not in zipfile.ZipFile(path).namelist():
        raise UsageError(f"{path} is no zip with {handler} in it", fix="prime-train deploy --save FOLDER makes one")
    return path.read_bytes()


def _folder() -> Path:
    spec = find_spec(LAMBDAS)
    places = list(spec.submodule_search_locations or []) if spec else []
    if not places or not Path(places[0]).is_dir():
        raise UsageError(
            f"{LAMBDAS} is not there as files", fix="install prime-train from its wheel or its checkout", code=Exit.OUTSIDE_REFUSED
        )
    return Path(places[0])
