"""The types of the registry's rows."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from prime_train.spec.tree import Mapping as Tree


class ConfiguredPrimeRl(Protocol):
    """The section `trainer.prime_rl` of a config."""

    @property
    def config(self) -> str: ...
    @property
    def output(self) -> str: ...
    @property
    def run_name(self) -> str: ...
    @property
    def folder(self) -> str: ...


class ConfiguredProgress(Protocol):
    """The section `trainer.progress` of a config."""

    @property
    def kind(self) -> str: ...
    @property
    def first(self) -> int: ...


class ConfiguredTrainer(Protocol):
    """The section `trainer` of a config."""

    @property
    def kind(self) -> str: ...
    @property
    def command(self) -> str: ...
    @property
    def resume(self) -> str: ...
    @property
    def steps(self) -> int | None: ...
    @property
    def progress(self) -> ConfiguredProgress: ...
    @property
    def prime_rl(self) -> ConfiguredPrimeRl | None: ...


class ConfiguredCheckpoints(Protocol):
    """The section `checkpoints` of a config."""

    @property
    def folder(self) -> str: ...
    @property
    def pattern(self) -> str: ...
    @property
    def also(self) -> tuple[str, ...]: ...
    @property
    def first(self) -> int | None: ...
    @property
    def every_steps(self) -> int | None: ...


class ConfiguredWandb(Protocol):
    """The section `wandb` of a config."""

    @property
    def project(self) -> str: ...


class Configured(Protocol):
    """What the conventions of trainers read of a spec, which is checked and filled in by them."""

    @property
    def name(self) -> str: ...
    @property
    def trainer(self) -> ConfiguredTrainer: ...
    @property
    def checkpoints(self) -> ConfiguredCheckpoints: ...
    @property
    def wandb(self) -> ConfiguredWandb | None: ...


@dataclass(frozen=True)
class Layout:
    """Settings that a trainer determines itself: fields of `checkpoints`, the file of `trainer.progress`, and
    `trainer.resume`. They are filled in where a config omits them; other values of `folder`, `pattern` and
    `sentinel` are refused.
    """

    folder: str | None
    """The folder where it saves; None: the config decides."""
    pattern: str
    sentinel: str | None = None
    files: tuple[str, ...] = ()
    progress_file: str | None = None
    resume: str | None = None
    """The default of `trainer.resume`; None: that of the spec."""

    @property
    def fixed(self) -> dict[str, str | None]:
        """Return the fields of `checkpoints` for which a config may have no other value."""
        folder = {} if self.folder is None else {"folder": self.folder}
        return {**folder, "sentinel": self.sentinel, "pattern": self.pattern}


@dataclass(frozen=True)
class OwnConfig:
    """A trainer's own config, as a run has it. `files`: the paths of its files in the working tree, the
    config itself first, each with the keys under which it is merged; `settings`: trees that are merged over
    the files, first the user's, then prime-train's.
    """

    files: tuple[tuple[tuple[str, ...], str], ...]
    settings: tuple[Tree, ...]


@dataclass(frozen=True)
class TrainerKind:
    """A kind of trainer; its key in the registry is the value of `trainer.kind`."""

    implementation: str
    """The class that implements the port of trainers, as `package.module:Class`; it is created without
    arguments.
    """
    summary: str
    """The action of the kind, as the end of a sentence that begins with the kind's name."""
    config_section: str = ""
    """The section of `trainer` that this kind requires and that no other kind may have."""
    command_advice: str = ""
    """What to do instead of setting `trainer.command`, for a kind with a command of its own; empty: the kind
    needs `trainer.command`.
    """
    needs_steps: str = ""
    """Why the kind needs `trainer.steps`; empty: it does not."""
    starts_workers: bool = False
    """Whether it starts `trainer.workers` processes itself."""
    restores_any_count: bool = True
    """Whether a checkpoint can be restored on another number of GPUs than it was saved on; of a script of
    one's own, this is not known.
    """
    names_folder: bool = False
    """Whether it tells the trainer the folder of checkpoints itself, so that `command` need not contain
    it.
    """
    layout: Callable[[Configured], Layout] | None = field(default=None, repr=False)
    """A function that returns where the trainer saves; None: the config decides."""
    gathered_in: Callable[[Configured], str] | None = field(default=None, repr=False)
    """A function that returns the folder in which the agent gathers and restores checkpoints; None:
    `checkpoints.folder`.
    """
    settings: Callable[[Configured], dict[str, str]] | None = field(default=None, repr=False)
    """A function that returns settings that every launch appends to `command`, as KEY=VALUE; None: there are
    none that rules need to know.
    """
    conflicts: Callable[[Configured], tuple[str, ...]] = field(default=lambda spec: (), repr=False)
    """A function that describes what in the command or its resume arguments would make the trainer save
    nothing, or start over instead of resuming. Each description ends with advice, after a semicolon.
    """
    own_config: Callable[[Configured, Tree, str], OwnConfig] | None = field(default=None, repr=False)
    """A function that returns the trainer's own config for a spec, its tree and its file; the section then
    has the key `config`, and rules know the config by the kind's name. None: the command names the trainer's
    config, if it has one.
    """
    tokens_per_s: tuple[str, ...] = ()
    """Names under which it reports the whole run's tokens per second, beside the usual ones. Figures of a
    single GPU, such as torchtitan's `tps` and verl's `perf/throughput`, would have to be multiplied by a
    number of GPUs that the metrics do not contain.
    """
    null: str = ""
    """The spelling of null in the trainer's own config; empty: there is none."""


@dataclass(frozen=True)
class VolumeForm:
    """How a provider mounts volumes. `title`: what it calls one; `most`: the highest number on a machine."""

    title: str
    most: int
    has_sub_paths: bool
    can_be_read_only: bool
