"""Loads the configs to check: each given path with the files that it refers to. Nothing is checked here."""

import os
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Variables
from pathlib import Path
from types import MappingProxyType

from prime_train.configs.bug_findings import bug_as_finding
from prime_train.configs.loaded import LoadedConfig, is_folder
from prime_train.configs.parsing import Config, TrainerConfigFile, read_config, read_trainer_config
from prime_train.configs.run_config import TOML, of_config, resumed
from prime_train.configs.run_secrets import listed
from prime_train.core.config_tree.merge import with_nulls
from prime_train.core.finding import Finding, Severity
from prime_train.core.registry.trainers import TRAINERS
from prime_train.reports.errors import is_debugging
from prime_train.rules.detect import format_of_toml, format_of_yaml, is_complete, is_spec, looks_like_config
from prime_train.rules.rule import ConfigFormat, Document, Subject

__all__ = ["LoadedConfig", "load_configs"]

FILES_MAX = 10_000
SUFFIXES = (".yaml", ".yml", TOML)
_NONE: Variables[str, str] = MappingProxyType({})
_SKIPPED = frozenset(("node_modules", "__pycache__", "site-packages"))


def load_configs(paths: Sequence[Path], environment: Variables[str, str] = _NONE) -> list[LoadedConfig]:
    """Return every config in the given order; those of a folder are sorted by name. A trainer config that a spec names is checked with that
    spec and not listed again. `environment`: the variables with the operator's list of secrets. Raises UsageError if that list is
    invalid."""
    debug, secrets = is_debugging(environment), listed(environment)
    folders = {path for path in paths if is_folder(path)}
    named = [(file, path not in folders) for path in paths for file in (_inside(path) if path in folders else [path])]
    once = {os.path.realpath(file): (file, by_name) for file, by_name in reversed(named)}
    files = [once[real] for real in dict.fromkeys(os.path.realpath(file) for file, _ in named)]
    specs = {file: _read_alone(file, by_name, secrets, debug=debug) for file, by_name in files if file.suffix != TOML}
    used = frozenset(other for loaded in specs.values() for other in loaded.others)
    found = [
        specs.get(file) or _read_alone(file, by_name, secrets, debug=debug) for file, by_name in files if os.path.realpath(file) not in used
    ]
    return [loaded for loaded in found if loaded.is_config]


def _inside(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder that may be configs, sorted by name and `FILES_MAX` at most; hidden folders are skipped."""
    seen = 0
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        for name in sorted(files):
            if name.endswith(SUFFIXES) and not name.startswith("."):
                seen += 1
                if seen > FILES_MAX:
                    return
                yield Path(here) / name


# ------------------------------------------------------------------------------------------------------------------- one file


def _read_alone(file: Path, by_name: bool, run_secrets: Sequence[str], *, debug: bool) -> LoadedConfig:
    try:
        return _of_toml(file, by_name) if file.suffix == TOML else _of_yaml(file, by_name, run_secrets)
    except Exception as error:
        return LoadedConfig(str(file), None, (bug_as_finding(str(file), error, debug=debug),))


def _of_yaml(file: Path, by_name: bool, run_secrets: Sequence[str]) -> LoadedConfig:
    config = read_config(file)
    if config.root is None:
        return _unread(config, by_name)
    config_format = format_of_yaml(config.root)
    if config_format:
        return _bare(read_trainer_config(file), config_format)
    if not by_name and not is_spec(config.root):
        return LoadedConfig(config.file, None, is_config=False)
    return of_config(config, run_secrets)


def _of_toml(file: Path, by_name: bool) -> LoadedConfig:
    parsed = read_trainer_config(file)
    if parsed.root is None:
        return _unread(parsed, by_name)
    config_format = format_of_toml(parsed.root)
    if config_format and (by_name or is_complete(parsed.root)):
        return _bare(parsed, config_format)
    message = "this is not the config of a known trainer: only its syntax was checked"
    note = Finding("PT009", message, parsed.file, severity=Severity.NOTE)
    return LoadedConfig(parsed.file, None, (*parsed.findings, note), {parsed.file: parsed.source}, is_config=by_name)


def _unread(file: Config | TrainerConfigFile, by_name: bool) -> LoadedConfig:
    return LoadedConfig(file.file, None, file.findings, {file.file: file.source}, is_config=by_name or looks_like_config(file.source))


def _bare(parsed: TrainerConfigFile, config_format: ConfigFormat) -> LoadedConfig:
    sources = {parsed.file: parsed.source}
    if parsed.root is None:
        return LoadedConfig(parsed.file, None, parsed.findings, sources)
    null = TRAINERS[config_format].null if config_format in TRAINERS else ""
    root = with_nulls(parsed.root, null) if null else parsed.root
    subject = Subject(trainer=Document(parsed.file, root, parsed.source), format=config_format, files=resumed(parsed.file, root))
    return LoadedConfig(parsed.file, subject, parsed.findings, sources)
