"""Loads the configs to check, each with all that is known of it on this machine: format, tree, spec, the
trainer's config that it names, and the files of the working tree that both name. Nothing is checked here.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Mapping as Variables
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from prime_train.advice import Advice, Call, Operation
from prime_train.configs.bug_findings import bug_as_finding
from prime_train.configs.code_folder import folder_outside, outside_finding
from prime_train.configs.image_requirements import findings_on_requirements
from prime_train.configs.working_tree import WorkingTree, is_folder, mode
from prime_train.errors import UsageError
from prime_train.runs.offer import Offer, variant_of
from prime_train.spec.access_run_secrets import DEFAULT
from prime_train.spec.config_format import (
    ConfigFormat,
    changes,
    format_of_command,
    format_of_toml,
    format_of_yaml,
    is_complete,
    is_spec,
    looks_like_config,
)
from prime_train.spec.finding import Finding, Severity
from prime_train.spec.launchers import config_named, config_taken, hydra_config, launcher_config, named_files
from prime_train.spec.merge import merged, nested, with_nulls
from prime_train.spec.reader import Config, TrainerConfigFile, read_config, read_trainer_config
from prime_train.spec.rule import Document, Subject
from prime_train.spec.run_secrets import listed
from prime_train.spec.shell_scripts import SUFFIXES as SCRIPTS
from prime_train.spec.shell_scripts import ScriptCommand, inline_script, script_named, training_command
from prime_train.spec.spec import HardwareSpec
from prime_train.spec.tree import Mapping as Tree
from prime_train.spec.tree import Scalar, SourcePosition, find, place_of
from prime_train.text.explained_errors import is_debugging
from prime_train.trainers.conventions.own_scripts import SCRIPT_BYTES_MAX, scripts_of
from prime_train.trainers.registry import TRAINERS

if TYPE_CHECKING:
    from prime_train.spec.spec import RunSpec

FILES_MAX = 10_000
TOML = ".toml"
SUFFIXES = (".yaml", ".yml", TOML)
_COMES_WITH_FILES = frozenset(("areal", "verl", "torchtitan"))
"""Trainers that come with files of settings, or names of them, which a command may change."""
_NAMING = (("deepspeed",), ("dist_config", "config_file"), ("fsdp_config",))
"""Settings of trainers that name another file."""
_NONE: Variables[str, str] = MappingProxyType({})
_SKIPPED = frozenset(("node_modules", "__pycache__", "site-packages"))


@dataclass(frozen=True)
class LoadedConfig:
    """A config file that is to be checked, together with every file that was read for it. `subject` is None
    if the file cannot be parsed. `others` are the real paths of the further files.
    """

    file: str
    subject: Subject | None
    findings: tuple[Finding, ...] = ()
    sources: dict[str, str] = field(default_factory=dict, repr=False)
    others: frozenset[str] = frozenset()
    variants: tuple[tuple[str, Subject], ...] = ()
    """The config as machines of each of its variants get it, with the variant in words; empty if it has
    none.
    """
    is_config: bool = True
    """False for a file found in a folder that is not a config of any known kind."""

    @property
    def spec(self) -> "RunSpec | None":
        """The config as it was written, with all its variants; None if it cannot be parsed, or is a
        trainer's.
        """
        return self.subject.spec if self.subject is not None else None

    @property
    def judged(self) -> tuple[tuple[str, Subject], ...]:
        """What machines can get: the variants, or the config itself without a name if it has none. Empty if
        it cannot be parsed.
        """
        return self.variants or ((("", self.subject),) if self.subject is not None else ())


def load_configs(paths: Sequence[Path], environment: Variables[str, str] = _NONE) -> list[LoadedConfig]:
    """Return every config in the given order; those of a folder are sorted by name. A trainer config that a
    spec names is checked with that spec and not listed again. `environment`: the variables with the
    operator's list of secrets. Raises UsageError if that list is invalid.
    """
    debug, secrets = is_debugging(environment), listed(environment)
    folders = {path for path in paths if is_folder(path)}
    named = [
        (file, path not in folders)
        for path in paths
        for file in (_inside(path) if path in folders else [path])
    ]
    once = {os.path.realpath(file): (file, by_name) for file, by_name in reversed(named)}
    files = [once[real] for real in dict.fromkeys(os.path.realpath(file) for file, _ in named)]
    specs = {
        file: _load(file, by_name, secrets, debug=debug) for file, by_name in files if file.suffix != TOML
    }
    used = frozenset(other for loaded in specs.values() for other in loaded.others)
    found = [
        specs.get(file) or _load(file, by_name, secrets, debug=debug)
        for file, by_name in files
        if os.path.realpath(file) not in used
    ]
    return [loaded for loaded in found if loaded.is_config]


def _inside(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder that may be configs, sorted by name and `FILES_MAX` at most; hidden folders
    are skipped.
    """
    seen = 0
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        for name in sorted(files):
            if name.endswith(SUFFIXES) and not name.startswith("."):
                seen += 1
                if seen > FILES_MAX:
                    return
                yield Path(here) / name


# ------------------------------------------------------------------------------------------------------------
# one file


def _load(file: Path, by_name: bool, run_secrets: Sequence[str], *, debug: bool) -> LoadedConfig:
    """Read one file. `by_name`: it was named itself, and not found in a folder."""
    try:
        if file.suffix == TOML:
            parsed = read_trainer_config(file)
            config_format = format_of_toml(parsed.root) if parsed.root is not None else ""
            if config_format and parsed.root is not None and (by_name or is_complete(parsed.root)):
                return _of_trainer_alone(parsed, config_format)
            return _of_unknown(parsed, by_name)
        if file.suffix in SCRIPTS:
            return _of_script_alone(file)
        config = read_config(file)
        config_format = format_of_yaml(config.root) if config.root is not None else ""
        if config_format:
            return _of_trainer_alone(read_trainer_config(file), config_format)
        if config.root is None:
            is_config = by_name or looks_like_config(config.source)
            return LoadedConfig(
                config.file, None, config.findings, {config.file: config.source}, is_config=is_config
            )
        if not by_name and not is_spec(config.root):
            return LoadedConfig(config.file, None, is_config=False)
        return of_config(config, run_secrets)
    except Exception as error:
        return LoadedConfig(str(file), None, (bug_as_finding(str(file), error, debug=debug),))


def _of_unknown(parsed: TrainerConfigFile, by_name: bool) -> LoadedConfig:
    """Return a TOML file that cannot be parsed, or is the config of no known trainer."""
    sources = {parsed.file: parsed.source}
    if parsed.root is None:
        is_config = by_name or looks_like_config(parsed.source)
        return LoadedConfig(parsed.file, None, parsed.findings, sources, is_config=is_config)
    message = "this is not the config of a known trainer: only its syntax was checked"
    note = Finding("PT009", message, parsed.file, severity=Severity.NOTE)
    return LoadedConfig(parsed.file, None, (*parsed.findings, note), sources, is_config=by_name)


def _of_trainer_alone(parsed: TrainerConfigFile, config_format: ConfigFormat) -> LoadedConfig:
    sources = {parsed.file: parsed.source}
    if parsed.root is None:
        return LoadedConfig(parsed.file, None, parsed.findings, sources)
    null = TRAINERS[config_format].null if config_format in TRAINERS else ""
    root = with_nulls(parsed.root, null) if null else parsed.root
    trainer = Document(parsed.file, root, parsed.source)
    named = _named_by_settings("", root, WorkingTree(parsed.file, "."))
    subject = Subject(trainer=trainer, format=config_format, files=_resumed(parsed.file, root), named=named)
    return LoadedConfig(parsed.file, subject, parsed.findings, sources)


def _of_script_alone(file: Path) -> LoadedConfig:
    """Return the settings of the training that a shell script starts."""
    name, text = str(file), _script_text(file)
    started = training_command(text)
    if started is None:
        message = "this script starts no training that is known: write the command of a run in a config"
        note = Finding("PT009", message, name, severity=Severity.NOTE)
        return LoadedConfig(name, None, (note,), {name: text})
    config_format = format_of_command(started.text, "command")
    root = changes(started.text, config_format, SourcePosition(started.line)) if config_format else None
    named = _named_by_settings(started.text, root, WorkingTree(name, "."))
    trainer = Document(name, root, text) if root is not None else None
    subject = Subject(trainer=trainer, format=config_format, named=named, started=started)
    return LoadedConfig(name, subject, (), {name: text})


def _resumed(file: str, root: Tree) -> frozenset[str]:
    """Return the folder that a prime-rl config resumes from, if it exists relative to the current folder or
    to the config's folder.
    """
    node = find(root, ("resume", "dir"))
    name = node.text if isinstance(node, Scalar) else ""
    there = any(mode(base / name) for base in (Path(), Path(file).parent))
    return frozenset([name] if name and there else [])


# ------------------------------------------------------------------------------------------------------------
# one run


def of_config(
    config: Config, run_secrets: Sequence[str] = DEFAULT, allowed_folders: Sequence[Path] = ()
) -> LoadedConfig:
    """Return a run's spec with the trainer config that it names, as far as that config is on this machine,
    and the same for each of its variants. `run_secrets`: the names of the secrets that the control plane
    hands to runs; `allowed_folders`: folders outside of the repository that the person at the terminal named.
    No file is read in another folder outside.
    """
    node = find(config.root, ("trainer", "code", "folder")) if config.root is not None else None
    if isinstance(node, Scalar) and node.text != ".":
        real = folder_outside(node.text, config.file, allowed_folders)
        if real is not None:
            outside = outside_finding(real, config.file, line=node.place.line, column=node.place.column)
            return LoadedConfig(config.file, None, (*config.findings, outside), {config.file: config.source})
    loaded = _of_one(config, run_secrets)
    if config.spec is None:
        return loaded
    loaded = replace(loaded, findings=(*loaded.findings, *findings_on_requirements(config)))
    variants = config.spec.hardware.variants
    if not variants:
        return loaded
    read = [
        (f"variant {at + 1} ({one.title})", _of_one(_of_variant(config, config.spec, at), run_secrets))
        for at, one in enumerate(variants)
    ]
    return replace(
        loaded,
        variants=tuple((title, one.subject) for title, one in read if one.subject is not None),
        findings=tuple(
            dict.fromkeys((*loaded.findings, *(finding for _, one in read for finding in one.findings)))
        ),
        sources={
            file: text for one in (loaded, *(one for _, one in read)) for file, text in one.sources.items()
        },
        others=loaded.others.union(*(one.others for _, one in read)),
    )


def _of_variant(config: Config, spec: "RunSpec", number: int) -> Config:
    """Return the config as machines of a variant get it; its values have the places of those of the
    variant.
    """
    from prime_train.spec.overrides import ChosenSetting, with_settings

    root, path = config.root, ("hardware", "variants", number)
    assert root is not None
    count, changed = find(root, (*path, "count")), find(root, (*path, "set"))
    settings = [ChosenSetting(("hardware", "count"), count)] if count is not None else []
    settings += [
        ChosenSetting(tuple(entry.key.split(".")), entry.value)
        for entry in (changed.entries if isinstance(changed, Tree) else ())
    ]
    # The kinds of GPU that get this variant; all, if none of them is known to.
    chosen = spec.hardware.variants[number]
    offers = {kind: Offer("", "", 0.0, False, kind, chosen.count) for kind in spec.hardware.gpus}
    kinds = tuple(kind for kind, offer in offers.items() if variant_of(offer, spec.hardware) == number)
    return replace(config, spec=spec.variant(number, kinds), root=with_settings(root, settings))


def _of_one(config: Config, run_secrets: Sequence[str]) -> LoadedConfig:
    """Return the config with the trainer's config that it names, its variants left aside."""
    spec, root, file, sources = config.spec, config.root, config.file, {config.file: config.source}
    if root is None or spec is None:
        # A trainer config that the spec names is checked with the spec once the spec is valid: alone it may
        # lack values that the spec supplies.
        return LoadedConfig(file, None, config.findings, sources, _named_by(file, root))
    tree = WorkingTree(file, spec.trainer.code.folder)
    # The files here may be of another version than a ref that is checked out, so only the command itself is
    # checked then.
    is_here = spec.trainer.code.ref is None
    started = _by_script(spec.trainer.command, tree) if is_here else None
    command = started.text if started is not None else spec.trainer.command
    own = (
        _trainers_own(spec, command, root, file, tree) if is_here else _by_command(spec, command, root, file)
    )
    first = next(iter(own.files.values()), config)
    trainer = Document(first.file, own.root, first.source) if own.root is not None else None
    there = _in_tree(spec, own, trainer, tree) if is_here else _InTree()
    sources |= {one.file: one.source for one in own.files.values()}
    subject = Subject(
        spec=spec,
        config=Document(file, root, config.source),
        trainer=trainer,
        format=own.format,
        files=there.files,
        files_nearby=there.nearby,
        has_code=there.has_code,
        scripts=there.scripts,
        sources=tuple(sources.items()),
        named=_named_by_settings(command, own.root, tree) if is_here else (),
        started=started,
        run_secrets=tuple(run_secrets),
        now_s=int(time.time()),
    )
    found = (*config.findings, *(finding for one in own.files.values() for finding in one.findings))
    others = (
        frozenset(os.path.realpath(one.file) for one in own.files.values())
        if is_here
        else _named_by(file, root)
    )
    return LoadedConfig(file, subject, found, sources, others)


def _named_by(file: str, root: Tree | None) -> frozenset[str]:
    """Return the real path of the trainer config that the spec names, even if the spec is not entirely
    valid.
    """
    if root is None:
        return frozenset()
    sections = (row.config_section for row in TRAINERS.values() if row.config_section)
    nodes = (find(root, ("trainer", section, "config")) for section in sections)
    node, folder = (
        next((node for node in nodes if node is not None), None),
        find(root, ("trainer", "code", "folder")),
    )
    if not isinstance(node, Scalar):
        return frozenset()
    path = WorkingTree(file, folder.text if isinstance(folder, Scalar) else ".").find(node.text)
    return frozenset((os.path.realpath(path),)) if path is not None else frozenset()


# ------------------------------------------------------------------------------------------- the trainer's
# config of a run


@dataclass(frozen=True)
class _TrainersOwn:
    """The trainer's own config of a run. `files`: its files that are here, by the names used for them;
    `root`: them and what the command changes, merged; None if that is not known.
    """

    files: Mapping[str, TrainerConfigFile]
    root: Tree | None = None
    format: ConfigFormat = ""


def _by_script(command: str, tree: WorkingTree) -> ScriptCommand | None:
    """Return the command with which a shell script starts the training: one of the working tree, or one in the
    command itself. None if the command is neither.
    """
    inline = inline_script(command)
    if inline is not None:
        return training_command(inline)
    script = script_named(command)
    path = tree.find(script[0], inside=True) if script is not None else None
    if script is None or path is None:
        return None
    return training_command(_script_text(path), script[1])


def _named_by_settings(command: str, own: Tree | None, tree: WorkingTree) -> tuple[tuple[str, Document], ...]:
    """Return the files of settings that the launcher or the trainer's own settings name and that are in the
    working tree.
    """
    named = [launcher_config(command)]
    nodes = (find(own, keys) for keys in _NAMING) if own is not None else ()
    named += [node.text for node in nodes if isinstance(node, Scalar)]
    there = [(name, path) for name in named if name and (path := tree.find(name, inside=True)) is not None]
    read = [(name, read_trainer_config(path, file=str(path))) for name, path in there]
    return tuple(
        (name, Document(one.file, one.root, one.source)) for name, one in read if one.root is not None
    )


def _trainers_own(spec: "RunSpec", command: str, root: Tree, file: str, tree: WorkingTree) -> _TrainersOwn:
    row = TRAINERS[spec.trainer.kind]
    if row.own_config is not None:
        own = row.own_config(spec, root, file)
        read = _read_files(tree, [name for _, name in own.files])
        named = [(path, read[name].root if name in read else None) for path, name in own.files]
        roots = [nested(path, found, found.place) for path, found in named if found is not None]
        if len(roots) < len(own.files):
            return _TrainersOwn(read)
        combined = with_nulls(reduce(merged, (*roots, *own.settings)), row.null)
        return _TrainersOwn(read, combined, cast("ConfigFormat", spec.trainer.kind))
    name = config_named(command) or hydra_config(command)
    read = _read_files(tree, [name]) if name is not None else {}
    written = read[name].root if name is not None and name in read else None
    if name is None or written is None:
        by_command = _by_command(spec, command, root, file)
        # A file that comes with AReaL's own code, which the set-up fetches: the command still says what it
        # changes of it.
        is_known = name is None or (name not in read and by_command.format in _COMES_WITH_FILES)
        return by_command if by_command.format and is_known else _TrainersOwn(read)
    config_format = format_of_toml(written) if name.endswith(TOML) else format_of_yaml(written)
    config_format = config_format or format_of_command(command, spec.trainer.kind)
    if config_taken(command) is not None:
        config_format = "hf"  # axolotl and LLaMA-Factory hand these settings to the Trainer
    if not config_format:
        return _TrainersOwn(read)
    given = _settings_of(spec, command, config_format, root, file)
    return _TrainersOwn(read, merged(written, given), config_format)


def _by_command(spec: "RunSpec", command: str, root: Tree, file: str) -> _TrainersOwn:
    """Return the settings in the command alone, if it says whose they are."""
    # A script may start something else besides, whose arguments are no settings of the trainer.
    is_script = command != spec.trainer.command
    kind = "command" if is_script and spec.trainer.kind in _COMES_WITH_FILES else spec.trainer.kind
    config_format = format_of_command(command, kind)
    given = _settings_of(spec, command, config_format, root, file) if config_format else None
    return _TrainersOwn({}, given, config_format)


def _read_files(tree: WorkingTree, names: Sequence[str]) -> dict[str, TrainerConfigFile]:
    """Return the files that exist in the working tree, by the names used for them. A file with several names
    is read once.
    """
    found = [(name, path) for name in names if (path := tree.find(name)) is not None]
    once = {os.path.realpath(path): path for _, path in reversed(found)}
    read = {real: read_trainer_config(path, file=str(path)) for real, path in once.items()}
    return {name: read[os.path.realpath(path)] for name, path in found}


def _settings_of(spec: "RunSpec", command: str, config_format: ConfigFormat, root: Tree, file: str) -> Tree:
    """Return the settings in the command, and those that every launch appends, all placed at the command."""
    settings = TRAINERS[spec.trainer.kind].settings
    appended = (f"{key}={value}" for key, value in (settings(spec) if settings else {}).items())
    place = replace(place_of(root, ("trainer", "command")), file=file)
    return changes(" ".join((command, *appended)), config_format, place)


@dataclass(frozen=True)
class _InTree:
    """What the working tree has of the files that a run names, as in `Subject`; by default what is known
    without it.
    """

    files: frozenset[str] | None = None
    nearby: frozenset[str] = frozenset()
    has_code: bool = True
    scripts: tuple[str, ...] = ()


def _in_tree(spec: "RunSpec", own: _TrainersOwn, trainer: Document | None, tree: WorkingTree) -> _InTree:
    """Return what the working tree has of the files that the spec and the trainer's config name. The tree of
    a repository is not here; it is assumed to be the current one if any file that the spec names exists here,
    or if it names none.
    """
    row = TRAINERS[spec.trainer.kind]
    named = [name for _, name in named_files(spec.trainer.command, spec.setup)]
    there = {name for name in named if tree.find(name) is not None}
    if spec.trainer.code.repo is not None:
        part = getattr(spec.trainer, row.config_section, None)
        settings_file = None if part is None else part.config
        has_code = bool(there) or (
            tree.find(settings_file) is not None if settings_file is not None else not named
        )
        return _InTree(has_code=has_code)
    resumed = _resumed(trainer.file, trainer.root) if trainer is not None else frozenset[str]()
    files = frozenset((*own.files, *resumed, *there))
    folders = {name.rpartition("/")[0] for name in named if name not in files}
    scripts = scripts_of(spec.trainer.command) if row.layout is None else ()
    paths = (tree.find(name, inside=True) for name in scripts)
    return _InTree(
        files,
        frozenset(other for folder in folders for other in tree.names_in(folder)),
        tree.exists,
        tuple(_script_text(path) for path in paths if path is not None),
    )


def _script_text(path: Path) -> str:
    try:
        with path.open("rb") as script:
            return script.read(SCRIPT_BYTES_MAX).decode(errors="replace")
    except OSError:
        return ""


def hardware_of(config: Path | None, environment: Mapping[str, str]) -> HardwareSpec:
    """Return the `hardware` of the config, or without one, hardware that every machine has. Raises UsageError
    if it is no run's config.
    """
    if config is None:
        return HardwareSpec(disk_gib=1)
    spec = loaded_config(config, environment).spec
    if spec is None:
        raise UsageError(
            f"{config} is a trainer's config, which contains no machine", fix="give the config of a run"
        )
    return spec.hardware


def loaded_config(config: Path, environment: Mapping[str, str]) -> LoadedConfig:
    """Read the config and the files it refers to. Raises UsageError if it cannot be parsed."""
    found = next(iter(load_configs([config], environment)), None)
    if found is None or not found.judged:
        fix = Advice(Call(Operation.VALIDATE, str(config)), " shows why")
        raise UsageError(f"{config} cannot be read as a config", fix=fix)
    return found
