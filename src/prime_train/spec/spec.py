"""The user's request: one frozen `RunSpec`, parsed from `configs/NAME.yaml`.

Units come last in every name. Every default is defined here and nowhere else; the JSON schema for editors is
generated from these models.
"""

import json
import re
import string
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    JsonValue,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticKnownError
from pydantic_core.core_schema import no_info_after_validator_function

from prime_train.providers.kinds import PROVIDERS, ProviderKind, allowed_providers
from prime_train.spec.after_steps import violation_of_env
from prime_train.spec.causes import Cause
from prime_train.spec.checkpoint_names import EPOCH, STEP, counting_field
from prime_train.spec.choices import Compress, Migrate, OnDivergence, Spot, Verify
from prime_train.spec.image import BASE_IMAGE, is_reference, violation_of_image
from prime_train.spec.requirements import parse_requirement
from prime_train.spec.volumes import MOUNT_PATTERN, NAME_PATTERN, SUB_PATH_PATTERN, violation_of_volumes
from prime_train.text.deadline import parse_deadline
from prime_train.text.formatting import alternatives
from prime_train.text.globs import violation_of_outputs
from prime_train.text.gpu_names import memory_gb_in
from prime_train.text.paths import violation_of_folder
from prime_train.text.sizes import (
    NUMBER_MAX,
    SHOWN_CHARS,
    parse_gib,
    parse_hours,
    parse_integer_gib,
    parse_seconds,
    parse_size,
)
from prime_train.trainers.kind import TrainerKind
from prime_train.trainers.prime_rl import conventions as prime_rl
from prime_train.trainers.registry import TRAINERS

_FORM = re.compile(r"(0?[1-9][0-9]?d?)?")
_WIDE = re.compile(r"\(\?[a-zA-Z]*i.*-(?:\\[uUN]|[^\x00-\x7f])", re.DOTALL)
"""A case-insensitive range beyond ASCII, which `re` compiles by going through thousands of characters."""
PATTERN_CHARS_MAX = 500
LOG_RULES_MAX = 50
REQUIREMENTS_MAX = 20
STEPS_MAX = 20
"""Number of steps after training that a config may have."""
_STARTS_WORKERS = tuple(name for name, row in TRAINERS.items() if row.starts_workers)
_VARIANT_KEYS = (
    "trainer.command, workers, resume, prime_rl.config and prime_rl.overrides, environment.NAME, setup and "
    "smoke"
)
_VARIANT_KEY = re.compile(
    r"trainer\.(?:command|workers|resume|prime_rl\.(?:config|overrides))|setup|smoke(?:\.[a-z_]+)?"
    # The control plane looks for the run in W&B by these.
    r"|environment\.(?!WANDB_(?:BASE_URL|ENTITY|PROJECT|RUN_ID)$)[A-Za-z_][A-Za-z0-9_]{0,127}"
)
_ENV_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"
_TAG = r"^[a-z0-9]([a-z0-9._-]{0,30}[a-z0-9])?$"
_PACKAGE = r"^[a-z0-9][a-z0-9+.-]{0,99}(=[A-Za-z0-9.+:~-]{1,100})?$"


def _inside(value: str) -> str:
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or not value.strip() or "\0" in value:
        raise ValueError(f"{value!r} must be a relative path that stays inside the working tree")
    return str(path)


def _regex(value: str) -> str:
    if len(value) > PATTERN_CHARS_MAX or _WIDE.search(value):
        reason = (
            f"is not a regular expression of at most {PATTERN_CHARS_MAX} characters without "
            "ranges beyond ASCII under (?i)"
        )
        raise ValueError(f"{value[:40]!r} {reason}")
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{value[:200]!r} is not a regular expression: {error}") from error
    return value


def _deadline(value: str) -> str:
    parse_deadline(value)
    return value


Bytes = Annotated[int, BeforeValidator(parse_size, json_schema_input_type=int | str), Field(ge=0)]
InsidePath = Annotated[str, BeforeValidator(lambda v: _inside(v) if isinstance(v, str) else v)]
Regex = Annotated[str, BeforeValidator(lambda v: _regex(v) if isinstance(v, str) else v)]
Deadline = Annotated[str, BeforeValidator(lambda v: _deadline(v) if isinstance(v, str) else v)]
EnvName = Annotated[str, Field(pattern=_ENV_NAME)]
Tag = Annotated[str, Field(pattern=_TAG)]
Requirement = Annotated[str, AfterValidator(lambda line: parse_requirement(line).text)]
Package = Annotated[str, Field(pattern=_PACKAGE)]
MountPath = Annotated[str, Field(pattern=MOUNT_PATTERN)]
Seconds = Annotated[
    int, BeforeValidator(parse_seconds, json_schema_input_type=int | str), Field(ge=1, le=30 * 86400)
]
Hours = Annotated[float, BeforeValidator(parse_hours, json_schema_input_type=float | str), Field(gt=0)]
IntegerGib = Annotated[
    int, BeforeValidator(parse_integer_gib, json_schema_input_type=int | str), Field(ge=1, le=100_000)
]
Gib = Annotated[float, BeforeValidator(parse_gib, json_schema_input_type=float | str), Field(gt=0)]


class NameIn:
    """Annotation of a string that must be the name of one of these rows; the JSON schema lists the names with
    their summaries.
    """

    def __init__(self, rows: Mapping[str, TrainerKind] | Mapping[str, ProviderKind]) -> None:
        self.rows = rows

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_after_validator_function(self._known, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, object]:
        summaries = ". ".join(f"{name} {row.summary}" for name, row in self.rows.items())
        return {"description": f"{summaries}.", "enum": list(self.rows), "type": "string"}

    def _known(self, name: str) -> str:
        if name not in self.rows:
            raise PydanticKnownError("literal_error", {"expected": alternatives(map(repr, self.rows))})
        return name


class SpecSection(BaseModel):
    # The docstrings below fields are read from the source only when the schema is printed: pydantic would
    # read this file once per class at every start.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="after")
    @classmethod
    def _is_exact(cls, value: object) -> object:
        """Reject a number that no store, clock or sum of money can hold: it would crash every process that
        computes with it.
        """
        if isinstance(value, int | float) and abs(value) > NUMBER_MAX:
            raise ValueError(f"the number is too large: at most {NUMBER_MAX} is allowed")
        return value


PartT = TypeVar("PartT", bound=SpecSection)


class CodeSpec(SpecSection):
    """The working tree the trainer runs in: a repository at a pinned ref, or a local folder copied as it
    is.
    """

    repo: str | None = None
    """Repository to clone, such as https://github.com/owner/name."""
    ref: str | None = None
    """Commit, tag or branch of `repo`; a full commit is what makes a resume exact."""
    folder: str = "."
    """Folder of the launching machine that is copied, when there is no `repo`."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.ref and not self.repo:
            raise ValueError("ref needs repo: add the repository that the ref belongs to")
        if self.repo and self.folder != ".":
            raise ValueError("repo and folder cannot be combined; keep one")
        return self


class ProgressSpec(SpecSection):
    """How the trainer's step is read from its output or from a file."""

    kind: Literal["jsonl", "csv", "regex"] = "jsonl"
    """jsonl: one JSON object a line; csv: a header, then rows; regex: a pattern with a group named `step` or
    `epoch`.
    """
    file: InsidePath | None = None
    """File the trainer writes; without it, the trainer's own output is read. With wildcards, as in
    logs/version_*/metrics.csv, all such files are read.
    """
    pattern: Regex | None = None
    """For kind regex: a pattern with the group `step` and, optionally, `loss`, `reward`, `grad_norm` and
    `learning_rate`. With `epoch` instead, epochs are counted; with `epoch`, `batch` and `batches`, the step
    is epoch * batches + batch.
    """
    step: str = "step"
    """Name of the step, or of the epoch, in JSON or CSV."""
    loss: str = "loss"
    reward: str = "reward"
    grad_norm: str = "grad_norm"
    """Name of the norm of the gradients: if it is no finite number, a loss of 0 is none either."""
    learning_rate: str = "learning_rate"
    """Name of the learning rate, by which a schedule that begins anew after a resume is found."""
    first: int = Field(default=1, ge=0, le=1)
    """The number of the first step, or epoch, as the trainer reports it. 0: the number n says that n + 1 are
    completed, so the last of 20 is 19.
    """

    @model_validator(mode="after")
    def _pattern_goes_with_regex(self) -> Self:
        if (self.kind == "regex") != (self.pattern is not None):
            present = "kind" if self.pattern is None else "pattern"
            raise ValueError(f"{present}: kind regex needs pattern, and pattern needs kind regex")
        if self.pattern is not None and not {STEP, EPOCH} & re.compile(self.pattern).groupindex.keys():
            raise ValueError(r"pattern needs a group named step, such as step=(?P<step>\d+), or epoch")
        return self


def _placeholders(text: str) -> set[str]:
    """Return the names in braces. Raises ValueError if braces do not match, or a format could fail or produce
    a huge text.
    """
    found = set()
    for _, name, form, conversion in string.Formatter().parse(text):
        if name is None:
            continue
        if conversion or not _FORM.fullmatch(form or ""):
            raise ValueError(f"the format of {{{name}}} may only be a width, such as {{{name}:06d}}")
        if form and name not in (STEP, EPOCH):
            raise ValueError(f"{{{name}}} does not accept a format")
        found.add(name)
    return found


class PrimeRlSpec(SpecSection):
    """Settings of prime-rl, for kind prime_rl."""

    config: InsidePath
    """Path of prime-rl's TOML file inside the working tree, such as rl.toml."""
    ref: Annotated[str, Field(pattern=r"^[0-9a-f]{8,40}$")]
    """Commit of prime-rl, its first 8 digits or more: its settings change every few weeks, and a tag or
    branch would change under a run. All 40 are fetched soonest; fewer are looked up in the whole history.
    """
    overrides: tuple[str, ...] = ()
    """Further arguments, one word each, such as --trainer.optim.lr and 1e-5."""
    output: InsidePath = prime_rl.OUTPUT
    """Folder that prime-rl writes its runs to."""
    run_name: Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,99})?$")] = ""
    """Name of prime-rl's run and of its folder; by default the spec's name."""
    prompt_tokens: int | None = Field(default=None, ge=1)
    """Tokens of the longest prompt, in an environment of several turns with the turns before. By default
    those that are known of the environment, or 500; `profile` shows what was measured.
    """

    @model_validator(mode="after")
    def _overrides_are_not_ours(self) -> Self:
        for argument in self.overrides:
            why = prime_rl.refused(argument)
            if why is not None:
                raise ValueError(f"overrides: {why}")
        return self

    @property
    def folder(self) -> str:
        """Return the folder of its run, inside the working tree."""
        return prime_rl.run_folder(self.output, self.run_name)


class ExitCodesSpec(SpecSection):
    """Exit codes of the trainer for which the user orders what follows."""

    exit_codes: Annotated[tuple[Annotated[int, Field(ge=-64, le=255)], ...], Field(max_length=64)] = ()
    """Exit codes; a signal is given as 128 plus its number, or as its negative."""

    @field_validator("exit_codes")
    @classmethod
    def _are_failures(cls, codes: tuple[int, ...]) -> tuple[int, ...]:
        if 0 in codes:
            raise ValueError("exit code 0 is success; list codes of failures")
        return codes


class TrainerSpec(SpecSection):
    """The trainer: its command, its code and its progress."""

    kind: Annotated[str, NameIn(TRAINERS)] = "command"
    """The kind of trainer."""
    command: str = Field(default="", validate_default=True)
    """Command line, run by /bin/sh in the working tree. `{checkpoints}` is replaced by the absolute
    checkpoint folder. Required, except for kinds with a command of their own, which do not allow it.
    """
    prime_rl: PrimeRlSpec | None = None
    workers: int = Field(
        default=1, ge=1, le=64, description=f"Kinds that start them: {', '.join(_STARTS_WORKERS)}."
    )
    """Processes on the node, for kinds of trainers that start them."""
    resume: str = ""
    """Appended to `command` when a checkpoint was restored; `{checkpoint}` is replaced by the path of its
    folder or file, `{step}` and `{epoch}` by its number. By default nothing; an empty text says that the
    script finds its checkpoint by itself. A script with the option --resume-step gets `--resume-step {step}`,
    and kinds of trainers that know how theirs resumes have a default of their own.
    """
    steps: int | None = Field(default=None, ge=1)
    """The last step; the number of epochs, if progress counts epochs. If it is set, a run succeeds by
    reaching it, and exit code 0 alone is not enough.
    """
    code: CodeSpec = CodeSpec()
    progress: ProgressSpec = ProgressSpec()
    stop_s: Seconds = 120
    """Seconds between SIGTERM (save and exit) and SIGKILL."""
    recover_on: ExitCodesSpec = ExitCodesSpec()
    """Exit codes after which the run is resumed whatever the log says, within
    `budget.restarts_without_progress`.
    """
    stop_on: ExitCodesSpec = ExitCodesSpec()
    """Exit codes after which the run is stopped at once whatever the log says."""

    @field_validator("command")
    @classmethod
    def _is_given_where_it_is_needed(cls, value: str, info: ValidationInfo) -> str:
        kind = info.data.get("kind")
        if not value and kind is not None and not TRAINERS[kind].command_advice:
            raise ValidationError.from_exception_data(
                cls.__name__, [{"type": "missing", "loc": (), "input": value}]
            )
        return value

    @model_validator(mode="after")
    def _part_goes_with_kind(self) -> Self:
        row = TRAINERS[self.kind]
        for kind, part in (
            (name, other.config_section) for name, other in TRAINERS.items() if other.config_section
        ):
            if (kind == self.kind) != (getattr(self, part) is not None):
                raise ValueError(f"{part}: kind {kind} needs this section, and other kinds do not allow it")
        if row.command_advice and self.command:
            raise ValueError(
                f"command: kind {self.kind} has its own command; delete this key, and {row.command_advice}"
            )
        if row.needs_steps and self.steps is None:
            raise ValueError(f"steps: kind {self.kind} needs the number of steps, because {row.needs_steps}")
        return self

    @model_validator(mode="after")
    def _orders_do_not_contradict(self) -> Self:
        if both := sorted(set(self.recover_on.exit_codes) & set(self.stop_on.exit_codes)):
            raise ValueError(f"stop_on: exit code {both[0]} is also in recover_on; list it in one of them")
        return self

    @model_validator(mode="after")
    def _known_placeholders(self) -> Self:
        for field, text, known in (
            ("command", self.command, {"checkpoints"}),
            ("resume", self.resume, {STEP, EPOCH, "checkpoint"}),
        ):
            try:
                unknown = _placeholders(text) - known
            except ValueError as error:
                raise ValueError(f"{field}: {error}; write {{{{ and }}}} for plain braces") from error
            if unknown:
                raise ValueError(
                    f"{field}: unknown placeholder {{{min(unknown)}}}; known: {', '.join(sorted(known))}"
                )
        return self


class VariantSpec(SpecSection):
    """What is different on machines of one size."""

    count: int = Field(ge=0, le=16)
    """Number of GPUs in the machine; 0: a machine without one."""
    gpu_gb_min: int = Field(default=0, ge=0, le=10_000)
    """Smallest memory of each GPU in GB, as makers state it: 24 for an RTX 4090."""
    set: dict[str, JsonValue] = Field(default_factory=dict)
    """Values for these keys of the config, such as trainer.command. Keys: trainer.command, trainer.workers,
    trainer.resume, trainer.prime_rl.config, trainer.prime_rl.overrides, environment.NAME, setup, and those of
    smoke.
    """

    @field_validator("set")
    @classmethod
    def _only_what_a_machine_needs(cls, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """The control plane judges a run by everything else, so that must not depend on the machine."""
        for key in value:
            if not _VARIANT_KEY.fullmatch(key):
                raise ValueError(
                    f"{key[:SHOWN_CHARS]!r} cannot differ between variants; only {_VARIANT_KEYS} can"
                )
        parts = [key for key in value if key.startswith("smoke.")]
        if "smoke" in value and parts:
            raise ValueError(
                f"smoke and {parts[0]} set the same; write either the whole of smoke or parts of it"
            )
        return value

    @model_validator(mode="after")
    def _memory_is_of_a_gpu(self) -> Self:
        if self.gpu_gb_min and not self.count:
            raise ValueError(
                "gpu_gb_min: a machine with count 0 has no GPU, and so no memory of one; delete this key"
            )
        return self

    @property
    def title(self) -> str:
        """The condition, in words."""
        if not self.count:
            return "no GPU"
        memory = f" of {self.gpu_gb_min} GB or more" if self.gpu_gb_min else ""
        return f"{self.count} GPU{'s' if self.count > 1 else ''}{memory}"


class VolumeSpec(SpecSection):
    """An existing volume of the provider, such as one with data sets."""

    name: Annotated[str, Field(pattern=NAME_PATTERN)]
    """On Kubernetes the name of a PersistentVolumeClaim in the namespace of the pods; on RunPod the id of a
    network volume.
    """
    sub_path: Annotated[str, Field(pattern=SUB_PATH_PATTERN)] = ""
    """Folder of the volume that is mounted; by default all of it."""
    read_only: bool = True
    """Whether the run may only read it. RunPod's network volumes can be written to: `false` says that this is
    understood.
    """


class HardwareSpec(SpecSection):
    """The machine to rent."""

    provider: Annotated[str, NameIn(PROVIDERS)] | None = None
    """The only provider of machines; `local` is this machine. By default those that the control plane rents
    from.
    """
    providers: tuple[Annotated[str, NameIn(PROVIDERS)], ...] = ()
    """Several providers to rent from: all their offers are ranked together."""
    image: str | None = None
    """The image that the machine starts from: one of the provider's own, such as cuda_12_6_pytorch_2_7;
    template:ID, a template made with the provider; or registry/name@sha256:DIGEST, where the provider takes
    that. By default one that the control plane chooses.
    """
    gpus: tuple[str, ...] = ()
    """GPU kinds that may be rented; empty: any machine, with or without a GPU. The one on which the run is
    expected to cost the least to its end is rented; where that cannot be compared, they are tried in this
    order.
    """
    count: int = Field(default=1, ge=1, le=16)
    """Number of GPUs in the machine; without variants."""
    variants: tuple[VariantSpec, ...] = Field(default=(), max_length=16)
    """Sizes of machines that the run can use, and what to change for each: the first one that a machine fits
    is applied to it. Machines that fit none are not rented.
    """
    spot: Spot = Spot.PREFER
    """prefer: spot or on-demand, whichever is expected to cost less to the end of the run; only: spot alone;
    never: on-demand alone.
    """
    migrate: Migrate = Migrate.PROPOSE
    """What happens while the run trains and a machine is for rent on which the rest is expected to cost less,
    the move included. propose: people are told once, with the figures; auto: the run saves and moves there;
    never: nobody looks.
    """
    usd_per_hour_max: float | None = Field(default=None, gt=0)
    """Highest price of the whole machine in US dollars an hour."""
    disk_gib: IntegerGib = 10
    volumes: dict[MountPath, VolumeSpec] = Field(default_factory=dict)
    """Volumes of the provider with data sets, by the path at which each is mounted, such as /data.
    Checkpoints and outputs are kept in the bucket and not there. The machines that are rented are those that
    can mount them.
    """
    open_files_min: int | None = Field(default=None, ge=256)
    """Open-file limit the trainer needs. By default 65536 on rented machines, and on provider local the
    machine's own limit.
    """
    disk_mb_per_s_min: int | None = Field(default=None, ge=0, le=100_000)
    """MB/s at which a machine must write to its disk; 0: any. By default 50 on rented machines if disk_gib is
    20 or more, otherwise any.
    """
    download_mb_per_s_min: int | None = Field(default=None, ge=0, le=100_000)
    """MB/s at which the checkpoint to resume from must arrive from the bucket; 0: any. By default 10 on
    rented machines, for checkpoints of 256 MiB or more.
    """

    @model_validator(mode="after")
    def _providers_can_be_rented_from(self) -> Self:
        if self.provider is not None and self.providers:
            raise ValueError("providers: provider names one already; delete one of the two keys")
        if len(set(self.providers)) < len(self.providers):
            raise ValueError(f"providers: {', '.join(self.providers)} names one provider twice")
        own = [name for name in self.providers if not PROVIDERS[name].is_rented]
        if own:
            raise ValueError(
                f"providers: {own[0]} rents nothing; to train there and nowhere else, write provider: "
                f"{own[0]}"
            )
        return self

    @model_validator(mode="after")
    def _image_suits_the_provider(self) -> Self:
        violation = violation_of_image(allowed_providers(self), self.image)
        if violation is not None:
            raise ValueError(f"image: {violation}")
        return self

    @model_validator(mode="after")
    def _volumes_can_be_mounted(self) -> Self:
        violation = violation_of_volumes(self, self.volumes)
        if violation is not None:
            raise ValueError(f"volumes: {violation}")
        return self

    @model_validator(mode="after")
    def _fits_one_node(self) -> Self:
        if self.gpus and self.count not in (1, 2, 4, 8, 16):
            raise ValueError(f"count: {self.count} GPUs do not fit one node; use one of 1, 2, 4, 8")
        return self

    @model_validator(mode="after")
    def _every_variant_can_be_chosen(self) -> Self:
        if self.variants and self.count != 1:
            raise ValueError("count: each variant has its own; delete this key")
        for number, variant in enumerate(self.variants, start=1):
            if variant.count not in (0, 1, 2, 4, 8, 16):
                raise ValueError(f"variants: {variant.count} GPUs do not fit one node; use one of 1, 2, 4, 8")
            for earlier, other in enumerate(self.variants[: number - 1], start=1):
                if other.count == variant.count and other.gpu_gb_min <= variant.gpu_gb_min:
                    message = (
                        f"variant {number} ({variant.title}) is never used, because variant {earlier} "
                        f"({other.title}) comes first"
                    )
                    raise ValueError(f"variants: {message}; put the one with more memory first")
            if (why := self._why_never_offered(variant)) is not None:
                raise ValueError(f"variants: variant {number} ({variant.title}) is never used, because {why}")
        return self

    def _why_never_offered(self, variant: VariantSpec) -> str | None:
        """Return why no machine with one of `gpus` can have the variant; None if one can."""
        if self.gpus and not variant.count:
            return "gpus names kinds of GPU, so no machine without one is rented; delete one of the two"
        memory_gb = [memory_gb_in(gpu) for gpu in self.gpus]
        if memory_gb and all(memory_gb) and max(memory_gb) < variant.gpu_gb_min:
            return (
                f"of gpus none has more than {max(memory_gb)} GB; add a kind with more, or delete the variant"
            )
        return None


class VerifySpec(SpecSection):
    """Files that must exist after set-up, with their number and smallest size."""

    path: InsidePath
    """Glob pattern inside the working tree; `**` crosses folders."""
    exactly: int | None = Field(default=None, ge=0)
    at_least: int = Field(default=1, ge=0)
    size_min: Bytes = 0
    """Smallest size of each file in bytes or with a unit, such as 1 MB."""


class SmokeSpec(SpecSection):
    """A short run that must succeed before training starts."""

    command: str = Field(min_length=1)
    steps: int | None = Field(default=None, ge=1)
    """Steps that the short run must reach, read like the trainer's progress."""
    timeout_s: Seconds = 600


class KaggleSpec(SpecSection):
    """The ready step that packs weights, config and wheels as a Kaggle data set, from which a notebook
    without internet installs.
    """

    dataset: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{2,49}/[a-z0-9][a-z0-9-]{1,48}[a-z0-9]$")]
    """The data set, as owner/slug, such as me/arc-weights; the slug has 3 to 50 lower-case letters, digits
    and hyphens.
    """
    title: Annotated[str, Field(pattern=r"^(.{6,50})?$")] = ""
    """Its title, of 6 to 50 characters; by default made from the slug."""
    weights: tuple[InsidePath, ...] = ("**",)
    """Glob patterns of the files of the checkpoint that are packed, such as model.safetensors; by default
    all.
    """
    files: tuple[InsidePath, ...] = ()
    """Glob patterns of files in the working tree that are packed as well, such as the config of the model and
    the code that loads it.
    """
    requirements: tuple[InsidePath, ...] = ()
    """Files with the requirements whose wheels are packed, with all that they depend on; leave out what
    notebooks have, such as torch.
    """
    python: Annotated[str, Field(pattern=r"^(3[.][0-9]{1,2})?$")] = ""
    """The notebook's version of Python, such as "3.12": wheels for it are fetched, and a package without one
    is an error. By default wheels are fetched or built for the machine's Python.
    """
    folder: InsidePath = "kaggle"
    """Folder in the working tree that becomes the data set; one that has other files is not replaced."""


class AfterSpec(SpecSection):
    """A command that is run once training has succeeded, such as an evaluation, an export or an upload to the
    Hugging Face Hub.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$")]
    """Name of the step, by which its results are found: lower-case letters, digits and hyphens, at most
    32.
    """
    run: str = ""
    """Command line, run by /bin/sh in the working tree. PRIME_TRAIN_CHECKPOINT is the folder of the
    checkpoint, PRIME_TRAIN_STEP its step, and PRIME_TRAIN_RESULTS a file to which the command may write its
    results, as a JSON object of numbers.
    """
    kaggle: KaggleSpec | None = None
    """A ready step instead of `run`: packs a Kaggle data set."""
    env: dict[EnvName, str] = Field(default_factory=dict)
    """Environment variables of this step, besides those of the trainer."""
    timeout_s: Seconds = 3600
    """Longest time in seconds of one try, after which it is killed."""
    retries: int = Field(default=0, ge=0, le=10)
    """How often the command is run again if it fails."""
    required: bool = False
    """Whether the run fails if this step does. By default the run has succeeded, and people are notified of
    the step.
    """
    outputs: tuple[InsidePath, ...] = ()
    """Glob patterns of files that the step leaves, which are uploaded like the run's outputs; by default
    those that a ready step packs.
    """
    evaluate_every: int | None = Field(default=None, ge=1)
    """If set, the command is also run while training goes on, beside the trainer: on the newest complete
    checkpoint, once for each so many steps. While one runs, no other is started; checkpoints that were passed
    over are named.
    """

    @property
    def patterns(self) -> tuple[str, ...]:
        """The glob patterns of the files that the step leaves: its outputs, by default what a ready step
        packs.
        """
        return self.outputs or ((f"{self.kaggle.folder}/**",) if self.kaggle is not None else ())

    @model_validator(mode="after")
    def _does_one_thing(self) -> Self:
        if self.kaggle is None and not self.run:
            raise ValueError(
                "run: a step needs a command; write run: COMMAND, or a ready step such as kaggle"
            )
        if self.kaggle is not None and self.run:
            raise ValueError("run: the step has a ready step, too (kaggle); make two steps of them")
        if self.kaggle is not None and self.evaluate_every is not None:
            raise ValueError("evaluate_every: kaggle packs the last checkpoint; delete this key")
        return self

    @model_validator(mode="after")
    def _sets_no_variable_of_ours(self) -> Self:
        violation = violation_of_env(self.env)
        if violation is not None:
            raise ValueError(violation)
        return self


class CheckpointSpec(SpecSection):
    """Where the trainer saves, when a checkpoint is complete, and which ones are kept."""

    folder: InsidePath = "checkpoints"
    """Folder inside the working tree. With wildcards, as in runs/exp*/weights, the newest one that this
    attempt saves into counts.
    """
    pattern: str = "step_{step}"
    """Name of one checkpoint inside `folder`, a folder or a file; `{step}` or `{epoch}` is its number, padded
    with zeros or not, and `*` anything. Without a number, as in ckpt.pt, it is overwritten at each save, and
    each version is kept under the step reached by then.
    """
    also: tuple[str, ...] = Field(default=(), max_length=20)
    """Names of further files with the same number that belong to a checkpoint, such as
    optim_{step}_rank*.pt.
    """
    first: int | None = Field(default=None, ge=0, le=1)
    """The number of the first checkpoint's step or epoch. By default 1 for steps, so that names say how many
    are completed, and `trainer.progress.first` for epochs.
    """
    sentinel: InsidePath | None = None
    """File inside the checkpoint that the trainer writes last. Without it, a checkpoint is complete
    `settled_s` after its last change.
    """
    files: tuple[InsidePath, ...] = ()
    """Files that must be inside a complete checkpoint."""
    settled_s: Seconds = 30
    """Seconds without a change after which a checkpoint without `sentinel` is complete. On Linux a file is
    complete sooner: once no process of the trainer has it open for writing.
    """
    in_place: bool = False
    """Whether the trainer overwrites files of an older checkpoint; they are then copied before the upload,
    not linked.
    """
    every_steps: int | None = Field(default=None, ge=1)
    """Steps between two saves of the trainer; used to estimate the cost of a preemption."""
    keep: int = Field(default=3, ge=1, le=10_000)
    """Number of newest checkpoints kept in the bucket."""
    keep_every_steps: int | None = Field(default=None, ge=1)
    """Checkpoints whose step is a multiple of this are kept too."""
    keep_best: int = Field(default=0, ge=0, le=1000)
    """This many checkpoints with the best `best_by` are kept too."""
    best_by: Literal["loss", "reward"] = "reward"
    """reward: the highest is the best; loss: the lowest."""
    compress: Compress = Compress.AUTO
    """auto: whatever is measured to make a checkpoint durable soonest; off: no compression; else one codec
    for every file.
    """
    upload_mb_per_s_max: float | None = Field(default=None, gt=0)
    """Highest upload rate in megabytes (10^6 bytes) a second."""
    verify: Verify = Verify.AUTO
    """What is read back from the bucket and compared. last: the last checkpoint, before the run succeeds;
    all: also, while it trains, what new checkpoints share with older ones; off: neither. auto: all if the
    bucket is a folder, last if reading may cost money.
    """
    verify_mb_per_s: float = Field(default=20.0, gt=0)
    """Highest rate in megabytes (10^6 bytes) a second at which the bucket is read back while the run
    trains.
    """
    max_disk_gib: Gib | None = None
    """Most disk space in GiB for local checkpoints; beyond it the oldest committed ones are deleted."""

    @model_validator(mode="after")
    def _patterns_are_names(self) -> Self:
        for key, pattern in (("pattern", self.pattern), *(("also", one) for one in self.also)):
            unknown = _placeholders(pattern) - {STEP, EPOCH}
            if unknown or "/" in pattern:
                message = (
                    "must be one name, with {step} or {epoch} in it unless it is overwritten at each save, "
                    "such as step_{step}"
                )
                raise ValueError(f"{key} {pattern[:SHOWN_CHARS]!r} {message}")
            violation = violation_of_folder(pattern.format(step=0, epoch=0))
            if violation is not None:
                raise ValueError(
                    f"{key} {pattern[:SHOWN_CHARS]!r} {violation}; use a name such as step_{{step}}"
                )
            if not counting_field(self.pattern) and counting_field(pattern):
                raise ValueError(
                    f"also {pattern[:SHOWN_CHARS]!r} has a number, and pattern "
                    f"{self.pattern[:SHOWN_CHARS]!r} has none"
                )
        return self

    @model_validator(mode="after")
    def _first_is_of_a_number(self) -> Self:
        if self.first is not None and not counting_field(self.pattern):
            raise ValueError(
                f"first: the names of pattern {self.pattern[:SHOWN_CHARS]!r} have no number; delete this key"
            )
        return self


class LogRuleSpec(SpecSection):
    """A pattern in the trainer's output, and the cause that it indicates."""

    pattern: Regex
    cause: Cause = Cause.LOG_RULE
    stop: bool = True
    """Whether a match stops the trainer; if not, it only determines the cause once the trainer has failed."""


class HealthSpec(SpecSection):
    """Time limits after which a run counts as unhealthy."""

    heartbeat_s: Seconds = 30
    overdue_s: Seconds = 90
    """Seconds without a heartbeat after which people are notified."""
    silence_s: Seconds = 300
    """Seconds without a heartbeat after which the machine is replaced."""
    first_heartbeat_s: Seconds = 1200
    """Longest time in seconds from the create call to the agent's first heartbeat."""
    first_step_s: Seconds = 3600
    """Longest time in seconds from the first heartbeat to the first step, for set-up, download, restore and
    compilation.
    """
    stall_s: Seconds = 300
    """Shortest step deadline in seconds; the deadline is `stall_factor` times the duration of the run's slow
    steps.
    """
    stall_factor: float = Field(default=5.0, ge=1.5, le=100)
    settle_s: Seconds = 300
    """Seconds after which a create call without a response, or an installed agent without a heartbeat, counts
    as lost.
    """
    saving_s: Seconds = 1800
    """Seconds added to the step deadline while a checkpoint or evaluation is being made."""
    drain_s: Seconds = 600
    """Longest time in seconds for an ordered flush."""
    zero_reward_steps: int = Field(default=10, ge=0)
    """Steps in a row with reward 0 after which the run is saved and stopped; 0 turns this off."""
    gpu_idle_s: Seconds = 900
    """Seconds that all GPUs may be at 0 % and hold no memory during training."""
    inference_idle_s: Seconds = 180
    """Seconds that the inference server of prime-rl may be down without a step: less than the shortest step
    deadline, and more than the half minute that its own engine takes to detect it.
    """
    log_rules: Annotated[tuple[LogRuleSpec, ...], Field(max_length=LOG_RULES_MAX)] = ()
    on_divergence: OnDivergence = OnDivergence.STOP
    """When the loss is no finite number for `not_finite_steps`: alert only, stop the run, or go back to the
    last checkpoint with finite figures. People are notified at the first such step in any case.
    """
    not_finite_steps: int = Field(default=10, ge=1)
    """Steps in a row without a finite loss after which `on_divergence` applies."""
    rollback_times: int = Field(default=2, ge=1, le=100)
    """How often a run may go back before it is stopped."""
    rollback_arguments: str = ""
    """Arguments that are added to the trainer's command once the run has gone back, such as a lower learning
    rate or another seed.
    """

    @model_validator(mode="after")
    def _arguments_are_used(self) -> Self:
        if self.rollback_arguments and self.on_divergence is not OnDivergence.ROLLBACK:
            raise ValueError(
                "rollback_arguments: only used with on_divergence rollback, and it is "
                f"{self.on_divergence.value}"
            )
        if _placeholders(self.rollback_arguments):
            raise ValueError(
                "rollback_arguments: no {placeholders} are filled in here; write {{ and }} for braces"
            )
        return self

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.heartbeat_s < self.overdue_s <= self.silence_s:
            first, second = (
                ("heartbeat_s", "overdue_s")
                if self.heartbeat_s >= self.overdue_s
                else ("overdue_s", "silence_s")
            )
            name = first if self._times_usual(first) > 1 / self._times_usual(second) else second
            order = (
                f"heartbeat_s {self.heartbeat_s} < overdue_s {self.overdue_s} <= silence_s {self.silence_s}"
            )
            raise ValueError(f"{name}: {order} must hold; correct the values")
        return self

    def _times_usual(self, field: str) -> float:
        """Return the ratio of a time to its default."""
        return float(getattr(self, field) / type(self).model_fields[field].default)


class BudgetSpec(SpecSection):
    """Limits for all attempts together."""

    usd: float = Field(gt=0)
    hours: Hours | None = None
    """Hours of training over all attempts, each counted from its first step."""
    deadline: Deadline | None = None
    """Moment by which the run must be saved and its machine given back: a date-time with its offset, such as
    2026-12-01T18:00+01:00, or a date, which means its end in UTC.
    """
    upload_usd: float | None = Field(default=None, gt=0)
    """Most US dollars for keeping a machine after training while its last checkpoint or outputs cannot be
    uploaded; by default a tenth of `usd`.
    """
    restarts_without_progress: int = Field(default=3, ge=1)
    """Number of attempts in a row that may end without a new durable step; after the last of them the run is
    stopped.
    """


class AlertSpec(SpecSection):
    """The people and services that are told of a run."""

    webhook: EnvName | None = None
    """Name of the control plane's environment variable that holds a URL for JSON alerts."""


class ImageSpec(SpecSection):
    """The container image that is built from the config: the agent and the trainer's environment. On a
    machine that started from another image, the environment is installed instead.
    """

    base: str = BASE_IMAGE
    """Image to start from, with its digest; it needs Debian's or Ubuntu's packages and Python 3.11 or later
    with venv.
    """
    packages: tuple[Package, ...] = ()
    """Debian or Ubuntu packages to install, such as git; with a version, such as git=1:2.39.5-0+deb12u2, a
    build is reproducible.
    """
    requirements: tuple[InsidePath, ...] = ()
    """Files in the working tree with pinned requirements and their hashes, as `uv pip compile
    --generate-hashes` writes them. They are installed into the virtual environment .venv of the working tree,
    before `setup`.
    """
    root: bool = False
    """Whether the container runs as root, which providers need that log in to containers as root."""

    @field_validator("base")
    @classmethod
    def _is_pinned(cls, value: str) -> str:
        if not is_reference(value):
            raise ValueError(
                f"{value[:SHOWN_CHARS]!r} is not an image with its digest; write registry/name@sha256:DIGEST"
            )
        return value


class WandbSpec(SpecSection):
    project: str = Field(min_length=1)
    entity: str | None = None


class SuccessSpec(SpecSection):
    """What the trainer's metrics must show for the training to count as good. Each criterion is judged by the
    last value reported, once the run is over; whether the run has succeeded does not depend on it.
    """

    loss_below: float | None = None
    """The last loss must be below this."""
    reward_above: float | None = None
    """The last reward must be above this."""
    tokens_per_s_min: float | None = Field(default=None, gt=0)
    """The last number of tokens per second must be at least this. It is unknown if the trainer does not
    report such a number.
    """

    @model_validator(mode="after")
    def _names_a_criterion(self) -> Self:
        if all(value is None for value in (self.loss_below, self.reward_above, self.tokens_per_s_min)):
            raise ValueError(
                "names no criterion; set loss_below, reward_above or tokens_per_s_min, or delete the section"
            )
        return self


def _with(part: PartT, **values: object) -> PartT:
    """Return the part with these values in place of unset or empty fields."""
    given = {name for name in part.model_fields_set if getattr(part, name)}
    return part.model_copy(update={name: value for name, value in values.items() if name not in given})


class RunSpec(SpecSection):
    """The description of a run, as a file `configs/NAME.yaml` defines it."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$")]
    """Name of the run: lower-case letters, digits and hyphens, at most 32."""
    trainer: TrainerSpec
    budget: BudgetSpec
    hardware: HardwareSpec = HardwareSpec()
    image: ImageSpec | None = None
    setup: tuple[str, ...] = ()
    """Commands that prepare the working tree, in order."""
    verification: tuple[VerifySpec, ...] = ()
    smoke: SmokeSpec | None = None
    checkpoints: CheckpointSpec = CheckpointSpec()
    health: HealthSpec = HealthSpec()
    alerts: AlertSpec = AlertSpec()
    wandb: WandbSpec | None = None
    environment: dict[EnvName, str] = Field(default_factory=dict)
    secrets: tuple[EnvName, ...] = ()
    """Names of the control plane's environment variables that the trainer gets."""
    outputs: tuple[InsidePath, ...] = ()
    """Glob patterns of files in the working tree that are uploaded while the run trains and at its end, such
    as results/** or *.csv. A pattern that matches a folder stands for everything below it; checkpoints and
    hidden files are left out.
    """
    outputs_every_s: Seconds = 60
    """Seconds between uploads of outputs, logs and metrics while the run trains."""
    outputs_gib_max: Gib = 10.0
    """Largest size of all outputs of one attempt together."""
    output_file_gib_max: Gib = 2.0
    """Largest size of one output."""
    success: SuccessSpec | None = None
    after: tuple[AfterSpec, ...] = ()
    """Commands that are run, in order, once training has succeeded and all that it left is uploaded."""
    require: Annotated[tuple[Requirement, ...], Field(max_length=REQUIREMENTS_MAX)] = ()
    """What the results of a run on a pull request must be for its check to pass. Each line has a number's
    name, a comparison, and a value; `base` is the number of the newest run on the base branch, as in "loss <=
    base * 1.02".
    """
    rehearsed: Annotated[str, Field(pattern=r"^([0-9a-f]{12}|waived)$")] | None = None
    """Which rehearsal has shown that the script resumes; the rehearsal writes it. A launch of a script of
    one's own on a rented machine wants one that fits the config, or the word waived.
    """
    tags: tuple[Tag, ...] = ()
    """Words to find runs by, such as ablation or paper-2: lower-case letters, digits, dots, hyphens and
    underscores, at most 32 each.
    """

    @model_validator(mode="after")
    def _run_of_prime_rl_has_a_name(self) -> Self:
        if self.trainer.prime_rl is not None:
            named = _with(self.trainer.prime_rl, run_name=self.trainer.prime_rl.run_name or self.name)
            # The model is frozen; setting a field is safe because the spec is not in use before validation
            # ends.
            object.__setattr__(self, "trainer", self.trainer.model_copy(update={"prime_rl": named}))
        return self

    @model_validator(mode="after")
    def _has_one_environment(self) -> Self:
        if self.image is not None and self.image.requirements and self.trainer.prime_rl is not None:
            raise ValueError(
                "image.requirements: prime-rl is installed with its own locked requirements; delete this key"
            )
        return self

    @model_validator(mode="after")
    def _saved_where_the_trainer_saves(self) -> Self:
        """Fill in the paths that the trainer determines itself, here and nowhere else. Raises ValueError if
        the config names other paths.
        """
        layout_of = TRAINERS[self.trainer.kind].layout
        if layout_of is None:
            return self
        layout = layout_of(self)
        progress = _with(self.trainer.progress, file=layout.progress_file)
        fixed = layout.fixed
        kept = _with(self.checkpoints, **fixed, files=layout.files)
        for field, value in fixed.items():
            if getattr(kept, field) != value:
                required = "has no sentinel file" if value is None else f"requires {value}"
                message = (
                    f"checkpoints.{field}: kind {self.trainer.kind} {required}, "
                    "not "
                    f"{getattr(kept, field)}; delete this key"
                )
                raise ValueError(message)
        has_default = layout.resume is not None and "resume" not in self.trainer.model_fields_set
        resume = {"resume": layout.resume} if has_default else {}
        object.__setattr__(self, "trainer", self.trainer.model_copy(update={"progress": progress, **resume}))
        object.__setattr__(self, "checkpoints", kept)
        return self

    @model_validator(mode="after")
    def _secrets_are_not_spelled_out(self) -> Self:
        both = sorted(set(self.environment) & set(self.secrets))
        if both:
            raise ValueError(f"environment.{both[0]}: the name is also under secrets; keep it only there")
        return self

    @model_validator(mode="after")
    def _outputs_are_a_part_of_the_tree(self) -> Self:
        violation = violation_of_outputs(
            self.outputs, folder=self.checkpoints.folder, checkpoint=self.checkpoints.pattern
        )
        if violation is not None:
            raise ValueError(f"outputs: {violation}")
        return self

    @model_validator(mode="after")
    def _steps_after_training_are_distinct(self) -> Self:
        names = [step.name for step in self.after]
        if len(names) > STEPS_MAX:
            raise ValueError(f"after: {len(names)} steps are too many; at most {STEPS_MAX} are allowed")
        for number, step in enumerate(self.after):
            if step.name in names[:number]:
                raise ValueError(
                    f"after[{number}].name: another step is called {step.name}, too; give each step a name "
                    "of its own"
                )
            violation = violation_of_outputs(
                step.patterns, folder=self.checkpoints.folder, checkpoint=self.checkpoints.pattern
            )
            if violation is not None:
                raise ValueError(f"after[{number}].outputs: {violation}")
        return self

    @model_validator(mode="after")
    def _variants_are_configs(self) -> Self:
        variants = self.hardware.variants
        if (
            not TRAINERS[self.trainer.kind].restores_any_count
            and len({variant.count for variant in variants}) > 1
        ):
            message = (
                f"a checkpoint of kind {self.trainer.kind} can only be restored on as many GPUs as saved it"
            )
            raise ValueError(f"hardware.variants: {message}; give all variants the same count")
        for number in range(len(variants)):
            try:
                self.variant(number)
            except ValidationError as error:
                first = error.errors()[0]
                key, why = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
                raise ValueError(
                    f"hardware.variants: with variant {number + 1}, {f'{key}: ' if key else ''}{why}"
                ) from error
        return self

    @property
    def output_patterns(self) -> tuple[str, ...]:
        """The patterns of all outputs: those of the run, and those of the steps after training."""
        return tuple(
            dict.fromkeys([*self.outputs, *(pattern for step in self.after for pattern in step.patterns)])
        )

    def variant(self, number: int, gpus: tuple[str, ...] = ()) -> "RunSpec":
        """Return the config for machines of the variant at this place in the list, without variants. `gpus`:
        the kinds of GPU that it is for, by default all that the config names. Raises ValidationError if its
        values make no config.
        """
        chosen = self.hardware.variants[number]
        values = self.model_dump(mode="json")
        kinds = (gpus or self.hardware.gpus) if chosen.count else ()
        values["hardware"] |= {"variants": (), "count": max(1, chosen.count), "gpus": kinds}
        layout_of = TRAINERS[self.trainer.kind].layout
        if layout_of is not None and layout_of(self).resume == self.trainer.resume:
            del values["trainer"]["resume"]  # it was filled in, and may depend on the command
        for key, value in chosen.set.items():
            *path, last = key.split(".")
            part = values
            for name in path:
                part[name] = part.get(name) or {}
                part = part[name]
            part[last] = value
        # As strict as a config is read: a list counts as a tuple, but text is not a number.
        return RunSpec.model_validate_json(json.dumps(values), strict=True)
