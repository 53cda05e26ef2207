"""The master key of a control plane, in its environment or in a file."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from prime_train.advice import Advice, Call, Operation
from prime_train.environment import MASTER, STORE
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit

MASTER_BYTES = 32
FIX_MASTER = Advice(
    Call(Operation.SHOW_KEY),
    " prints it on the machine that serves the control plane; on AWS, use ",
    Call(Operation.SHOW_DEPLOYED_KEY),
)


def key_in(environment: Mapping[str, str]) -> bytes | None:
    """Return the key in the environment, or None if it names none. Raises UsageError if it is invalid, or
    missing for a named store.
    """
    named = environment.get(MASTER, "")
    if named:
        return _unhexed(named)
    if environment.get(STORE):
        raise UsageError(f"{STORE} is set, {MASTER} is not", fix=FIX_MASTER, code=Exit.USAGE)
    return None


def key_in_file(path: Path) -> bytes:
    """Return the key in the file, which is created with a new key if it is missing."""
    if not path.exists():
        _create_once(path, secrets.token_bytes(MASTER_BYTES))
    key = path.read_bytes()
    if len(key) != MASTER_BYTES:
        raise UsageError(
            f"{path} has {len(key)} bytes, not {MASTER_BYTES}",
            fix="restore it from a backup; running machines use its old value",
        )
    return key


def _unhexed(text: str) -> bytes:
    """Return the key. Errors are not chained and do not show the text, because it is a secret."""
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        key = b""
    if len(key) != MASTER_BYTES:
        raise UsageError(f"{MASTER} is not {2 * MASTER_BYTES} hex digits", fix=FIX_MASTER, code=Exit.USAGE)
    return key


def _create_once(path: Path, content: bytes) -> None:
    """Create the file completely or not at all; an existing file stays."""
    draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        draft.unlink()
