"""The providers' credentials that a home keeps: one file for each variable, which only its owner may read.

A variable of the environment wins over the stored value, so that a shell or a service can use another key. An
empty or blank one counts as not set.
"""

import os
import secrets
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.providers.kinds import credentials

FOLDER = "credentials"
BYTES_MAX = 64 * 1024
"""Size limit in bytes of one credential, which may be a text of several lines."""


def file_of(root: Path, name: str) -> Path:
    """Return where the home below `root` keeps the value of this variable."""
    return root / FOLDER / name


def stored(root: Path) -> dict[str, str]:
    """Return the stored credentials by the names of their variables. Raises UsageError if one cannot be read,
    because a provider that silently lacked its key would look like one that has no machines.
    """
    if not (root / FOLDER).is_dir():
        return {}
    found = {name: _read(file_of(root, name)) for name in sorted(credentials())}
    return {name: value for name, value in found.items() if value}


def with_stored(root: Path, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment with the stored credentials that it does not set itself."""
    missing = {name: value for name, value in stored(root).items() if not has_value(name, environment)}
    return {**environment, **missing} if missing else environment


def has_value(name: str, environment: Mapping[str, str]) -> bool:
    """Return whether the environment sets the variable to more than white space."""
    return bool(environment.get(name, "").strip())


def keep(root: Path, values: Mapping[str, str]) -> None:
    """Store the credentials. Each file is replaced as a whole, and was never readable by others."""
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        (root / FOLDER).mkdir(exist_ok=True, mode=0o700)
        for name, value in values.items():
            _write(file_of(root, name), value)
    except OSError as error:
        raise UsageError(
            f"{error.filename or root}: {error.strerror}; nothing was stored there",
            code=Exit.EXTERNAL_REFUSED,
        ) from error


def forget(root: Path, names: Sequence[str]) -> list[Path]:
    """Delete the stored credentials with these names. Return the files that were deleted."""
    there = [file_of(root, name) for name in names if file_of(root, name).exists()]
    for path in there:
        path.unlink(missing_ok=True)
    return there


def exposed(root: Path) -> list[Path]:
    """Return the files with credentials that other users of this machine may read or change."""
    there = [file_of(root, name) for name in sorted(credentials())]
    return [
        path
        for path in there
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO)
    ]


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
        text = data.decode().strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}",
            fix="make it readable for you, or delete it",
            code=Exit.EXTERNAL_REFUSED,
        ) from error
    except UnicodeDecodeError:
        # Not chained: the error holds the value.
        raise UsageError(
            f"{path} is not text", fix="delete it, and add the provider again", code=Exit.EXTERNAL_REFUSED
        ) from None
    if len(data) > BYTES_MAX:
        raise UsageError(
            f"{path} is larger than {BYTES_MAX >> 10} KiB, so it is no credential",
            fix="delete it, and add the provider again",
        )
    return text


def _write(path: Path, value: str) -> None:
    draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{value}\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
