"""Save the current state of a config as a version."""

from dataclasses import dataclass
from pathlib import Path

from prime_train.app.home import Home
from prime_train.configs.history.versions import (
    Texts,
    Version,
    requires_trainer_file,
    spec_of,
    trainer_file,
    versions_of,
)
from prime_train.errors import UsageError
from prime_train.spec.reader import redacted

NOTE_CHARS_MAX = 200


@dataclass(frozen=True)
class SavedVersion:
    """A version with the current state of a config. `is_new`: False if nothing has changed since the newest
    version, which is then this one. `folder`: where the versions are. `missing_file`: the trainer's file that
    the config names, if it does not exist. `is_valid`: whether the config could be launched.
    """

    version: Version
    is_new: bool
    folder: Path
    missing_file: Path | None
    is_valid: bool


def save_version(home: Home, config: Path, note: str = "", name: str = "") -> SavedVersion:
    """Save the config together with the trainer's file, unless nothing has changed since the newest version,
    which then gets the name. If that has a name already, it keeps it, and a version with the same files gets
    the new one. `note`: of at most `NOTE_CHARS_MAX` printable characters, others are left out. Raises
    UsageError if the config cannot be read or contains a secret, or if the name is not possible or taken.
    """
    versions = versions_of(home, config)
    texts = versions.now()
    _refuse_secrets(config, texts)
    saved = versions.all()
    is_new = not saved or saved[-1].texts != texts or bool(name and saved[-1].name and saved[-1].name != name)
    if name:
        versions.check_name(name, of=None if is_new else saved[-1].number)
    version = (
        versions.add(texts, "".join(char for char in note if char.isprintable())[:NOTE_CHARS_MAX], name)
        if is_new
        else saved[-1]
    )
    if name and version.name != name:
        version = versions.rename(version, name)
    missing = (
        trainer_file(texts.config, config)
        if texts.trainer is None and requires_trainer_file(texts.config)
        else None
    )
    return SavedVersion(version, is_new, versions.folder, missing, is_valid=spec_of(texts.config) is not None)


def _refuse_secrets(config: Path, texts: Texts) -> None:
    for text in (texts.config, texts.trainer or ""):
        if redacted(text) != text:
            raise UsageError(
                f"{config} contains a secret in plain text, so it was not saved",
                fix="set the secret as an environment variable, and list its name under secrets",
            )
