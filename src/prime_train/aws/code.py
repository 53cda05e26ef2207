"""What is uploaded to AWS: the template, prime-train's own files as installed here, and its pinned
dependencies.
"""

import hashlib
import io
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from prime_train.advice import Advice, Call, Operation
from prime_train.aws.package import Target, digest_of, interpreter, package
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.providers.install.agent_bundle import pack

LAMBDAS = "prime_lambdas"
CODE = "code.zip"
"""The template's reference to the code archive, until `placed` replaces it."""
CODE_BYTES_MAX = 250 * 2**20
NOT_COMPILED = (
    "Python {python} is not installed on this machine, so the code is not compiled and a cold start takes "
    "twice as long; put python{python} on PATH and repeat the command"
)


def template() -> str:
    return (_folder() / "template.yaml").read_text(encoding="utf-8")


def placed(bucket: str, key: str) -> str:
    """Return the template with its reference to the code replaced by the uploaded archive's address in S3."""
    return template().replace(f"CodeUri: {CODE}", f"CodeUri: s3://{bucket}/{key}")


def parameter_names() -> tuple[str, ...]:
    """Return the names of the template's parameters."""
    _, _, rest = template().partition("\nParameters:\n")
    block = re.split(r"^(?=\S)", rest, maxsplit=1, flags=re.MULTILINE)[0]
    return tuple(re.findall(r"^  (\w+):$", block, re.MULTILINE))


def pins() -> bytes:
    return (_folder() / "requirements.txt").read_bytes()


def own() -> dict[str, bytes]:
    """Return prime-train's own files by their paths in the zip. The wheel for machines is included unpacked,
    because the watcher sends machines its parts.
    """
    wheel = next(data for name, data in pack().files.items() if name.endswith(".whl"))
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    folder = _folder()
    mine = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return files | {f"{LAMBDAS}/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in mine}


@dataclass(frozen=True)
class Code:
    """A code archive. `name`: identifies its content; `make`: builds it; `lacks`: a shortcoming of this
    archive and its remedy, empty if there is none. If there is one, `better` is the name of the archive
    without that shortcoming, which another machine may have uploaded from the same sources.
    """

    name: str
    make: Callable[[], bytes]
    lacks: str = ""
    better: str = ""


def code(target: Target, given: Path | None, progress: Callable[[str], object]) -> Code:
    """Return the code archive to deploy, built from this installation unless `given` names an existing zip.
    `progress` is called with progress messages. Raises UsageError if that zip is too large or lacks the
    functions' code.
    """
    if given is not None:
        data = _read(given)
        return Code(f"{hashlib.sha256(data).hexdigest()[:32]}.zip", lambda: data)
    files, fixed = own(), pins()

    def make() -> bytes:
        made = package(files, fixed, target, progress)
        progress(f"code: {len(made.data) / 2**20:.1f} MiB, unpacked {made.unpacked_bytes / 2**20:.0f} MiB")
        return made.data

    plain, compiled = (
        f"{digest_of(files, fixed, target, compiled=is_compiled)}.zip" for is_compiled in (False, True)
    )
    if interpreter(target.python) is not None:
        return Code(compiled, make)
    return Code(plain, make, NOT_COMPILED.format(python=target.python), compiled)


def _read(path: Path) -> bytes:
    if path.stat().st_size > CODE_BYTES_MAX:
        raise UsageError(f"{path} is over {CODE_BYTES_MAX >> 20} MiB, which Lambda does not accept")
    handler = f"{LAMBDAS}/webhook.py"
    if not zipfile.is_zipfile(path) or handler not in zipfile.ZipFile(path).namelist():
        raise UsageError(
            f"{path} is not a zip file that contains {handler}",
            fix=Advice(Call(Operation.SAVE_CODE, "FOLDER"), " builds one"),
        )
    return path.read_bytes()


def _folder() -> Path:
    spec = find_spec(LAMBDAS)
    places = list(spec.submodule_search_locations or []) if spec else []
    if not places or not Path(places[0]).is_dir():
        raise UsageError(
            f"{LAMBDAS} is not installed as files",
            fix="install prime-train from its wheel or its checkout",
            code=Exit.EXTERNAL_REFUSED,
        )
    return Path(places[0])
