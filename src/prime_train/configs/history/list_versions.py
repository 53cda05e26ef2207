"""List the versions of a config, with the runs that used each, and all configs that have versions."""

from dataclasses import dataclass
from pathlib import Path

from prime_train.app.home import Home
from prime_train.configs.history.version_users import runs_of, users
from prime_train.configs.history.versions import SavedVersions, Version, versions_of
from prime_train.runs.run import Run


@dataclass(frozen=True)
class VersionList:
    """The versions of a config, oldest first, and the runs that used each, by its number."""

    of: SavedVersions
    versions: tuple[Version, ...]
    runs: dict[int, tuple[Run, ...]]

    def same(self) -> Version | None:
        """Return the newest version with the current texts of the files; None if there is none. Raises
        UsageError if the config cannot be read.
        """
        now = self.of.now()
        return next((version for version in reversed(self.versions) if version.texts == now), None)


def list_versions(home: Home, config: Path) -> VersionList:
    """Return the versions of the config. Raises UsageError if one is damaged."""
    versions = versions_of(home, config)
    saved = versions.all()
    return VersionList(versions, saved, users(saved, runs_of(home)) if saved else {})


def saved_configs(home: Home) -> tuple[VersionList, ...]:
    """Return the versions of all configs of the home that have any, in the order of their names. Raises
    UsageError if one is damaged.
    """
    folders = sorted(folder for folder in (home.root / "configs").glob("*") if folder.is_dir())
    every = (list_versions(home, Path(f"{folder.name}.yaml")) for folder in folders)
    return tuple(one for one in every if one.versions)
