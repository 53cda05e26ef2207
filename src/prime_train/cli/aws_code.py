"""What is brought to AWS: the template, our own files as they run here, and the pins of what they depend on."""

import io
import zipfile
from importlib.util import find_spec
from pathlib import Path

from prime_train.cli.exits import Exit, Refused

LAMBDAS = "prime_lambdas"


def template() -> str:
    return (_folder() / "template.yaml").read_text(encoding="utf-8")


def pins() -> bytes:
    return (_folder() / "requirements.txt").read_bytes()


def own() -> dict[str, bytes]:
    """By the names they have in the zip. The wheel that machines get is in it as files: its parts are what the watcher sends them."""
    from prime_train.adapters.pushing.parcel import pack

    wheel = next(data for name, data in pack().files.items() if name.endswith(".whl"))
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    folder = _folder()
    mine = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return files | {f"{LAMBDAS}/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in mine}


def _folder() -> Path:
    spec = find_spec(LAMBDAS)
    places = list(spec.submodule_search_locations or []) if spec else []
    if not places or not Path(places[0]).is_dir():
        raise Refused(
            f"{LAMBDAS} is not there as files", fix="install prime-train from its wheel or its checkout", code=Exit.OUTSIDE_REFUSED
        )
    return Path(places[0])
