"""Loads the configs to check: each given path with the files that it refers to. Nothing is checked here."""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from prime_train.adapters.config_yaml import Config, Sheet, read_config, read_sheet
from prime_train.configs.loaded import Matter, is_folder
from prime_train.configs.run_config import TOML, of_config, resumed
from prime_train.configs.shielding import shielded
from prime_train.core.config_tree.merge import with_nulls
from prime_train.core.finding import Finding, Severity
from prime_train.core.prime_rl import arguments as prime_rl_arguments
from prime_train.rules.detect import is_meant, is_spec, is_whole, kind_of_toml, kind_of_yaml
from prime_train.rules.rule import Document, Kind, Subject

__all__ = ["Matter", "matters", "of_config"]

FILES_MAX = 10_000
SUFFIXES = (".yaml", ".yml", TOML)
_SKIPPED = frozenset(("node_modules", "__pycache__", "site-packages"))


def matters(paths: Sequence[Path], *, plainly: bool = False) -> list[Matter]:
    """Return every config in the given order; those of a folder are sorted by name. A trainer config that a spec names is checked with that
    spec and not listed again. `plainly` has the same meaning as in `read_config`."""
    folders = {path for path in paths if is_folder(path)}
    named = [(file, path not in folders) for path in paths for file in (_inside(path) if path in folders else [path])]
    once = {os.path.realpath(file): (file, by_name) for file, by_name in reversed(named)}
    files = [once[real] for real in dict.fromkeys(os.path.realpath(file) for file, _ in named)]
    specs = {file: _read_alone(file, partial(_of_yaml, file, by_name, plainly)) for file, by_name in files if file.suffix != TOML}
    used = frozenset(other for matter in specs.values() for other in matter.others)
    found = [
        specs.get(file) or _read_alone(file, partial(_of_toml, file, by_name))
        for file, by_name in files
        if os.path.realpath(file) not in used
    ]
    return [matter for matter in found if matter.is_config]


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


def _read_alone(file: Path, read: Callable[[], Matter]) -> Matter:
    return shielded(str(file), read, lambda finding: Matter(str(file), None, (finding,)))


def _of_yaml(file: Path, by_name: bool, plainly: bool) -> Matter:
    config = read_config(file, plainly=plainly)
    if config.root is None:
        return _unread(config, by_name)
    kind = kind_of_yaml(config.root)
    if kind:
        return _bare(read_sheet(file), kind)
    if not by_name and not is_spec(config.root):
        return Matter(config.file, None, is_config=False)
    return of_config(config)


def _of_toml(file: Path, by_name: bool) -> Matter:
    sheet = read_sheet(file)
    if sheet.root is None:
        return _unread(sheet, by_name)
    kind = kind_of_toml(sheet.root)
    if kind and (by_name or is_whole(sheet.root)):
        return _bare(sheet, kind)
    said = "the config of no trainer that is known: nothing but its form was checked"
    note = Finding("PT009", said, sheet.file, severity=Severity.NOTE)
    return Matter(sheet.file, None, (*sheet.findings, note), {sheet.file: sheet.source}, is_config=by_name)


def _unread(file: Config | Sheet, by_name: bool) -> Matter:
    return Matter(file.file, None, file.findings, {file.file: file.source}, is_config=by_name or is_meant(file.source))


def _bare(sheet: Sheet, kind: Kind) -> Matter:
    sources = {sheet.file: sheet.source}
    if sheet.root is None:
        return Matter(sheet.file, None, sheet.findings, sources)
    root = with_nulls(sheet.root, prime_rl_arguments.NULL) if kind == "prime_rl" else sheet.root
    subject = Subject(trainer=Document(sheet.file, root, sheet.source), kind=kind, files=resumed(sheet.file, root))
    return Matter(sheet.file, subject, sheet.findings, sources)
