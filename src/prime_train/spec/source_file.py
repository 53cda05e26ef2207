"""Reads the text of a config file."""

import os
import stat
from pathlib import Path

from prime_train.spec.finding_drafts import FindingDraft, ParseAborted, SourcePosition
from prime_train.text.auto_run import is_git

BYTES_MAX = 1024 * 1024


def read_source(path: Path) -> str:
    """Return the file's text. Raises ParseAborted if the file cannot be read, is larger than 1 MiB, or is not
    UTF-8 text; and if it is git's own, also by a link: findings repeat lines of what is read, and a job's
    `.git/config` has its token.
    """
    try:
        if is_git(os.path.realpath(path)):
            message = f"{path} is a file of git itself, which may hold a token"
            raise ParseAborted(
                FindingDraft(
                    "PT001", SourcePosition(), message, fix="write the path of a file of the working tree"
                )
            )
        kind = path.stat().st_mode
        if stat.S_ISDIR(kind):
            raise ParseAborted(
                FindingDraft(
                    "PT001",
                    SourcePosition(),
                    f"{path} is a folder",
                    fix="write the path of the file inside it",
                )
            )
        if not stat.S_ISREG(kind):
            raise ParseAborted(FindingDraft("PT001", SourcePosition(), f"{path} is not a regular file"))
        with path.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
    except FileNotFoundError as error:
        raise ParseAborted(
            FindingDraft("PT001", SourcePosition(), f"there is no file {path}", fix="check the path")
        ) from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ParseAborted(
            FindingDraft("PT001", SourcePosition(), f"{path} cannot be read: {why}")
        ) from error
    if len(data) > BYTES_MAX:
        raise ParseAborted(
            FindingDraft(
                "PT002",
                SourcePosition(),
                f"{path} is larger than 1 MiB, so it is not a config",
                fix="write the path of the config, not of its data",
            )
        )
    return _decoded(path, data)


def _decoded(path: Path, data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        place = SourcePosition(before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1)
        raise ParseAborted(
            FindingDraft(
                "PT003", place, f"{path} is not UTF-8 text", fix="save it as UTF-8, or choose another file"
            )
        ) from error
    if "\0" in text:
        raise ParseAborted(
            FindingDraft(
                "PT003",
                SourcePosition(text[: text.index("\0")].count("\n") + 1),
                f"{path} is binary, not text",
                fix="choose another file",
            )
        )
    return text
