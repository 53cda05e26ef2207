"""Combines a run's spec with the trainer config that it names, keeping the file and position of each value."""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, cast

from prime_train.configs.code_folder import folder_outside, leads_out, outside_finding
from prime_train.configs.loaded import LoadedConfig, is_file, is_folder, mode
from prime_train.configs.parsing import Config, TrainerConfigFile, read_trainer_config
from prime_train.configs.parsing.files import read_source
from prime_train.configs.parsing.nodes import ParseAborted, finding
from prime_train.core.access.run_secrets import DEFAULT
from prime_train.core.config_tree import Mapping as Tree
from prime_train.core.config_tree import Scalar, find, place_of
from prime_train.core.config_tree.merge import merged, nested, with_nulls
from prime_train.core.finding import Finding
from prime_train.core.image.requirements import problems
from prime_train.core.offers import Offer, variant_of
from prime_train.core.registry.definitions import OwnConfig
from prime_train.core.registry.trainers import TRAINERS
from prime_train.core.text.redaction import HIDDEN
from prime_train.core.trainer_conventions.own_scripts import SCRIPT_BYTES_MAX, scripts_of
from prime_train.rules.command_line import changes
from prime_train.rules.detect import format_of_command, format_of_toml, format_of_yaml
from prime_train.rules.launchers import config_named, config_taken
from prime_train.rules.rule import ConfigFormat, Document, Subject
from prime_train.rules.spec_rules import named_files

if TYPE_CHECKING:
    from prime_train.core.spec import RunSpec

TREES_UP_MAX = 4
NAMES_MAX = 1000
"""Maximum number of file names listed from one folder."""
TOML = ".toml"


def of_config(config: Config, run_secrets: Sequence[str] = DEFAULT, allowed_folders: Sequence[Path] = ()) -> LoadedConfig:
    """Return a run's spec with the trainer config that it names, as far as that config is on this machine, and the same for each of its
    variants. `run_secrets`: the names of the secrets that the control plane hands to runs; `allowed_folders`: folders outside of the
    repository that the person at the terminal named. No file is read in another folder outside."""
    outside = _outside(config, allowed_folders)
    if outside is not None:
        sources = {config.file: config.source}
        return LoadedConfig(config.file, None, (*config.findings, outside), sources)
    loaded = _of_one(config, run_secrets)
    loaded = replace(loaded, findings=(*loaded.findings, *_of_requirements(config)))
    variants = config.spec.hardware.variants if config.spec is not None else ()
    if not variants:
        return loaded
    read = [(f"variant {at + 1} ({one.title})", _of_one(_of_variant(config, at), run_secrets)) for at, one in enumerate(variants)]
    return replace(
        loaded,
        variants=tuple((title, one.subject) for title, one in read if one.subject is not None),
        findings=tuple(dict.fromkeys((*loaded.findings, *(finding for _, one in read for finding in one.findings)))),
        sources={file: text for one in (loaded, *(one for _, one in read)) for file, text in one.sources.items()},
        others=loaded.others.union(*(one.others for _, one in read)),
    )


def _outside(config: Config, allowed: Sequence[Path]) -> Finding | None:
    """Return a finding if the folder of the code lies where a config alone may not look."""
    node = find(config.root, ("trainer", "code", "folder")) if config.root is not None else None
    if not isinstance(node, Scalar) or node.text == ".":
        return None
    real = folder_outside(node.text, config.file, allowed)
    return outside_finding(real, config.file, line=node.place.line, column=node.place.column) if real is not None else None


def _of_requirements(config: Config) -> list[Finding]:
    """Return what keeps the requirements of the image from being installed, as far as they are on this machine."""
    spec, root = config.spec, config.root
    if spec is None or root is None or spec.image is None or spec.trainer.code.ref is not None:
        return []
    code = spec.trainer.code
    found = []
    for at, name in enumerate(spec.image.requirements):
        trees = _trees(config.file, code.folder)
        path = _found([tree for tree in trees if not leads_out(tree / name, tree)], name)
        if path is not None:
            found += requirement_findings(path)
        elif _found(trees, name) is not None:
            place = place_of(root, ("image", "requirements", at))
            message = f"{name} is a link that leads out of the working tree, and is not followed"
            fix = "put the file itself into the working tree"
            found.append(Finding("PT025", message, config.file, place.line, place.column, fix=fix, value=name))
        elif code.repo is None:
            place = place_of(root, ("image", "requirements", at))
            message = f"there is no file {name} in the working tree, from which the image's requirements are read"
            fix = "check the path, which is relative to the working tree"
            found.append(Finding("PT025", message, config.file, place.line, place.column, fix=fix, value=name))
    return found


def requirement_findings(path: Path) -> list[Finding]:
    """Return what is wrong with a file of requirements."""
    try:
        text = read_source(path)
    except ParseAborted as halt:
        return [finding(str(path), halt.draft)]
    return [
        Finding("PT025", one.message, str(path), one.line, fix=one.fix, value=HIDDEN if one.is_secret else "") for one in problems(text)
    ]


def _of_variant(config: Config, number: int) -> Config:
    """Return the config as machines of a variant get it; its values have the places of those of the variant."""
    from prime_train.configs.parsing.settings import Setting, with_settings

    spec, root = config.spec, config.root
    assert spec is not None
    assert root is not None
    count, changed = find(root, ("hardware", "variants", number, "count")), find(root, ("hardware", "variants", number, "set"))
    settings = [Setting(("hardware", "count"), count)] if count is not None else []
    settings += [Setting(tuple(entry.key.split(".")), entry.value) for entry in (changed.entries if isinstance(changed, Tree) else ())]
    return replace(config, spec=spec.variant(number, _kinds(spec, number)), root=with_settings(root, settings))


def _kinds(spec: "RunSpec", number: int) -> tuple[str, ...]:
    """Return the kinds of GPU that get this variant; all, if none of them is known to."""
    chosen = spec.hardware.variants[number]
    offers = {kind: Offer("", "", 0.0, False, kind, chosen.count) for kind in spec.hardware.gpus}
    return tuple(kind for kind, offer in offers.items() if variant_of(offer, spec.hardware) == number)


def _of_one(config: Config, run_secrets: Sequence[str]) -> LoadedConfig:
    if config.root is None or config.spec is None:
        # A trainer config that the spec names is checked with the spec once the spec is valid: alone it may lack values that the spec
        # supplies.
        return LoadedConfig(config.file, None, config.findings, {config.file: config.source}, _named_by(config.file, config.root))
    document = Document(config.file, config.root, config.source)
    subject = Subject(spec=config.spec, config=document, run_secrets=tuple(run_secrets), now_s=int(time.time()))
    if config.spec.trainer.code.ref is not None:
        # The files here may be of another version than the checked-out ref, so only the command itself is checked.
        checked = _by_command(config, subject)
        return LoadedConfig(config.file, checked, config.findings, {config.file: config.source}, _named_by(config.file, config.root))
    own_config = TRAINERS[config.spec.trainer.kind].own_config
    if own_config is None:
        return _of_command(config, subject)
    return _of_own(config, subject, own_config(config.spec, config.root, config.file))


def resumed(file: str, root: Tree) -> frozenset[str]:
    """Return the folder that a prime-rl config resumes from, if it exists relative to the current folder or to the config's folder."""
    node = find(root, ("resume", "dir"))
    name = node.text if isinstance(node, Scalar) else ""
    there = any(mode(base / name) for base in (Path(), Path(file).parent))
    return frozenset([name] if name and there else [])


def _of_own(config: Config, subject: Subject, own: OwnConfig) -> LoadedConfig:
    assert config.spec is not None
    kind = config.spec.trainer.kind
    parsed = _trainer_configs(_trees(config.file, config.spec.trainer.code.folder), [name for _, name in own.files])
    found = [(path, parsed[name].root if name in parsed else None) for path, name in own.files]
    roots = [nested(path, root, root.place) for path, root in found if root is not None]
    if len(roots) < len(own.files):
        return _loaded_config(config, subject, parsed, None)
    root = reduce(merged, (*roots, *own.settings))
    return _loaded_config(config, subject, parsed, with_nulls(root, TRAINERS[kind].null), cast("ConfigFormat", kind))


def _of_command(config: Config, subject: Subject) -> LoadedConfig:
    spec, document = subject.spec, subject.config
    assert spec is not None
    assert document is not None
    place = replace(place_of(document.root, ("trainer", "command")), file=document.file)
    name = config_named(spec.trainer.command)
    if name is None:
        config_format = format_of_command(spec.trainer.command, spec.trainer.kind)
        settings = changes(_with_settings(spec), config_format, place) if config_format else None
        return _loaded_config(config, subject, {}, settings, config_format)
    parsed = _trainer_configs(_trees(config.file, spec.trainer.code.folder), [name])
    root = parsed[name].root if name in parsed else None
    if root is None:
        # A file that comes with AReaL's own code, which the set-up fetches: the command still says what it changes of it.
        own_format = format_of_command(spec.trainer.command, spec.trainer.kind) if name not in parsed else ""
        if own_format != "areal":
            return _loaded_config(config, subject, parsed, None)
        return _loaded_config(config, subject, {}, changes(_with_settings(spec), own_format, place), own_format)
    config_format = format_of_toml(root) if name.endswith(TOML) else format_of_yaml(root)
    if config_taken(spec.trainer.command) is not None:
        config_format = "hf"  # axolotl and LLaMA-Factory hand these settings to the Trainer
    own = merged(root, changes(_with_settings(spec), config_format, place)) if config_format else None
    return _loaded_config(config, subject, parsed, own, config_format)


def _with_settings(spec: "RunSpec") -> str:
    """Return the command with the settings that every launch appends."""
    settings = TRAINERS[spec.trainer.kind].settings
    return " ".join((spec.trainer.command, *(f"{key}={value}" for key, value in (settings(spec) if settings else {}).items())))


def _by_command(config: Config, subject: Subject) -> Subject:
    assert config.spec is not None
    assert subject.config is not None
    command = config.spec.trainer.command
    config_format = format_of_command(command, config.spec.trainer.kind)
    place = replace(place_of(subject.config.root, ("trainer", "command")), file=config.file)
    trainer = Document(config.file, changes(_with_settings(config.spec), config_format, place), config.source) if config_format else None
    return replace(subject, trainer=trainer, format=config_format)


def _present(file: str, subject: Subject, read: Iterable[str]) -> frozenset[str] | None:
    """Return the files that were read and the files named in the command that exist in the working tree; None if the tree is a repository,
    whose files are not known here."""
    assert subject.spec is not None
    if subject.spec.trainer.code.repo:
        return None
    trees = _trees(file, subject.spec.trainer.code.folder)
    return frozenset((*read, *(name for _, name in named_files(subject.spec) if _found(trees, name))))


def _has_code(file: str, spec: "RunSpec") -> bool:
    """Return whether the code of the spec is on this machine. A repository is assumed to be the current one if any file that the spec names
    exists here, or if the spec names none."""
    trees = _trees(file, spec.trainer.code.folder)
    if spec.trainer.code.repo is None:
        return any(map(is_folder, trees))
    part = getattr(spec.trainer, TRAINERS[spec.trainer.kind].config_section, None)
    named = [*([part.config] if part is not None else []), *(name for _, name in named_files(spec))]
    return not named or any(_found(trees, name) for name in named)


def _scripts(file: str, spec: "RunSpec") -> tuple[str, ...]:
    """Return the texts of the user's own scripts in the working tree, for kinds of trainers that do not know how theirs resume."""
    if TRAINERS[spec.trainer.kind].layout is not None or spec.trainer.code.repo:
        return ()
    trees = _trees(file, spec.trainer.code.folder)
    found = (_found([tree for tree in trees if not leads_out(tree / name, tree)], name) for name in scripts_of(spec.trainer.command))
    return tuple(_text_of(path) for path in found if path is not None)


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as script:
            return script.read(SCRIPT_BYTES_MAX).decode(errors="replace")
    except OSError:
        return ""


def _files_nearby(file: str, subject: Subject, present: frozenset[str] | None) -> frozenset[str]:
    """Return the other files in those folders of the working tree that lack a file named by the spec."""
    assert subject.spec is not None
    missing = {name for _, name in named_files(subject.spec) if present is not None and name not in present}
    if not missing:
        return frozenset()
    trees = _trees(file, subject.spec.trainer.code.folder)
    return frozenset(other for folder in {name.rpartition("/")[0] for name in missing} for other in _names(trees, folder))


def _names(trees: Sequence[Path], folder: str) -> list[str]:
    there = next((tree / folder for tree in trees if is_folder(tree / folder)), None)
    names = [entry.name for entry in islice(os.scandir(there), NAMES_MAX)] if there is not None else []
    return [str(PurePosixPath(folder, name)) for name in names]


def _named_by(file: str, root: Tree | None) -> frozenset[str]:
    """Return the real path of the trainer config that the spec names, even if the spec is not entirely valid."""
    nodes = (
        [find(root, ("trainer", row.config_section, "config")) for row in TRAINERS.values() if row.config_section]
        if root is not None
        else []
    )
    node = next((node for node in nodes if node is not None), None)
    folder = find(root, ("trainer", "code", "folder")) if root is not None else None
    if not isinstance(node, Scalar):
        return frozenset()
    path = _found(_trees(file, folder.text if isinstance(folder, Scalar) else "."), node.text)
    return frozenset((os.path.realpath(path),)) if path is not None else frozenset()


def _trees(file: str, folder: str) -> list[Path]:
    """Return the folders that may be the working tree: relative to the current folder, as for a launch, or to one of the folders above the
    spec."""
    return [Path(folder), *(around / folder for around in Path(file).parents[:TREES_UP_MAX])]


def _found(trees: Sequence[Path], name: str) -> Path | None:
    """Return the path of the file in the first tree that contains it. Absolute names and names with ".." are not followed."""
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        return None
    return next((tree / name for tree in trees if is_file(tree / name)), None)


def _trainer_configs(trees: Sequence[Path], names: Sequence[str]) -> dict[str, TrainerConfigFile]:
    """Return the files that exist in the working tree, by the names used for them. A file with several names is read once."""
    found = [(name, path) for name, path in ((name, _found(trees, name)) for name in names) if path is not None]
    once = {os.path.realpath(path): path for _, path in reversed(found)}
    read = {real: read_trainer_config(path, file=str(path)) for real, path in once.items()}
    return {name: read[os.path.realpath(path)] for name, path in found}


def _loaded_config(
    config: Config, subject: Subject, parsed: Mapping[str, TrainerConfigFile], root: Tree | None, config_format: ConfigFormat = ""
) -> LoadedConfig:
    first = next(iter(parsed.values()), None)
    file, source = (first.file, first.source) if first is not None else (config.file, config.source)
    sources = {config.file: config.source} | {one.file: one.source for one in parsed.values()}
    assert subject.spec is not None
    files = _present(config.file, subject, (*parsed, *(resumed(file, root) if root is not None else ())))
    combined = replace(
        subject,
        trainer=Document(file, root, source) if root is not None else None,
        format=config_format if root is not None else "",
        files=files,
        files_nearby=_files_nearby(config.file, subject, files),
        has_code=_has_code(config.file, subject.spec),
        sources=tuple(sources.items()),
        scripts=_scripts(config.file, subject.spec),
    )
    findings = (*config.findings, *(finding for one in parsed.values() for finding in one.findings))
    return LoadedConfig(
        config.file,
        combined,
        findings,
        sources,
        frozenset(os.path.realpath(one.file) for one in parsed.values()),
    )
