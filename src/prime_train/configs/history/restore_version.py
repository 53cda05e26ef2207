"""Replace a config by one of its versions."""

from dataclasses import dataclass
from pathlib import Path

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.app.home import Home
from prime_train.configs.history.versions import Version, trainer_file, versions_of
from prime_train.errors import UsageError


@dataclass(frozen=True)
class RestoredVersion:
    """A version whose texts are in `files` again: the config, and the trainer's file if the version has
    one.
    """

    version: Version
    files: tuple[Path, ...]


def restore_version(home: Home, config: Path, name: str, *, force: bool = False) -> RestoredVersion:
    """Write the texts of the version with this number or name into the config and the trainer's file. Raises
    UsageError if there is no such version, or if current content would be lost because no version has it;
    with `force` it is replaced.
    """
    versions = versions_of(home, config)
    version = versions.find(name)
    files = _files(config, version)
    lost = [path for path, text in files.items() if not force and _is_lost(path, text, versions.all())]
    if lost:
        fix = Advice(Call(Operation.SAVE_CONFIG, str(config)), ", or add ", Option(SettingAdvice.FORCE))
        raise UsageError(
            f"the current content of {lost[0]} is not saved as a version and would be lost", fix=fix
        )
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}-restored")
        draft.write_text(text, encoding="utf-8", newline="")
        draft.replace(path)
    return RestoredVersion(version, tuple(files))


def _files(config: Path, version: Version) -> dict[Path, str]:
    trainers = trainer_file(version.texts.config, config)
    return {config: version.texts.config} | (
        {trainers: version.texts.trainer}
        if trainers is not None and version.texts.trainer is not None
        else {}
    )


def _is_lost(path: Path, text: str, saved: tuple[Version, ...]) -> bool:
    """Return whether overwriting the file with `text` would lose contents that no version has."""
    if not path.is_file():
        return False
    there = path.read_bytes().decode("utf-8", "replace")
    kept = {one for version in saved for one in (version.texts.config, version.texts.trainer)}
    return there != text and there not in kept
