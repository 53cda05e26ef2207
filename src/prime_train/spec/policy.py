"""Decides by the operator's policy what a config may choose: providers, images, folders, dollars, and who may
launch.

The right to write a config does not include access to the control plane's own machine, nor to more money than
the operator allows. `beyond` is the only place that decides. It is asked where a remote client stores or
resumes a run, by the watcher right before it rents, because clients of a DynamoDB table write the store
themselves, and by whoever reports the same earlier.
"""

import glob
import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from prime_train.providers.kinds import LOCAL, OWN_MACHINES, PROVIDERS, allowed_providers
from prime_train.runs.run import Origin
from prime_train.spec.spec import NameIn, RunSpec
from prime_train.spec.volumes import WRITABLE, wanted
from prime_train.text.safe import neutralized

OPERATOR = "operator"
"""The caller that holds the master key and states no repository."""
CHARS_MAX = 1000
"""Longest value that a message and a line repeat; the longest image reference has fewer characters."""
ROWS_MAX = 200
_WORD = re.compile(r"[a-z][a-z_-]*")

Glob = Annotated[str, StringConstraints(min_length=1, max_length=CHARS_MAX)]
Usd = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Policy(BaseModel):
    """What configs may choose. A key that is left out limits nothing, except for `providers` and
    `volumes`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    providers: tuple[Annotated[str, NameIn(PROVIDERS)], ...] | None = Field(default=None, max_length=ROWS_MAX)
    """The providers. By default all that rent out machines; and `local` and `ssh`, the operator's own
    machines, only where no other provider is set up, and not for remote callers.
    """
    images: tuple[Glob, ...] | None = Field(default=None, max_length=ROWS_MAX)
    """Patterns of `hardware.image` and `image.base`, such as ghcr.io/our-team/*."""
    folders: tuple[Glob, ...] | None = Field(default=None, max_length=ROWS_MAX)
    """Patterns of `trainer.code.folder`, such as `.` or tasks/*."""
    volumes: tuple[Glob, ...] | None = Field(default=None, max_length=ROWS_MAX)
    """Patterns of volumes in `hardware.volumes`, such as kubernetes/datasets, or kubernetes/datasets/public/*
    for a part of one; with :rw at the end they may be written to as well. By default any, and none for remote
    callers.
    """
    usd_max: Usd | None = None
    """The most dollars of a run: the highest `budget.usd`."""
    usd_per_hour_max: Usd | None = None
    """The most dollars an hour of a run's machine: the highest `hardware.usd_per_hour_max`, which a config
    must then set.
    """
    callers: tuple[Glob, ...] | None = Field(default=None, max_length=ROWS_MAX)
    """Patterns of remote callers that may launch and resume: owner/name of a repository, @login of a person,
    or `operator`, whoever holds the master key and states no repository.
    """


@dataclass(frozen=True)
class InForce:
    """The policy of a control plane, with what it is judged against.

    `where`: the file or environment variable that the operator changes; `rents_from`: providers set up there
    that rent out machines; `named`: those of `local` and `ssh` that the control plane's settings name;
    `defaults`: the providers of a config that names none.
    """

    policy: Policy = field(default_factory=Policy)
    where: str = ""
    rents_from: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()

    def providers(self, *, is_remote: bool) -> tuple[str, ...]:
        """Return the providers that a config may choose."""
        if self.policy.providers is not None:
            return self.policy.providers
        owned = (
            OWN_MACHINES
            if not is_remote and not self.rents_from
            else tuple(name for name in OWN_MACHINES if name in self.named)
        )
        return tuple(name for name in PROVIDERS if name not in OWN_MACHINES or name in owned)


@dataclass(frozen=True)
class Caller:
    """The caller that launches or resumes a run. `is_remote`: not a person at the control plane's own home.
    Repository and person are those that the run states of itself; empty if it states none."""

    is_remote: bool = False
    repository: str = ""
    actor: str = ""

    @classmethod
    def of(cls, origin: Origin | None, *, is_remote: bool) -> "Caller":
        return cls(is_remote) if origin is None else cls(is_remote, origin.repository, origin.actor)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names by which a policy may allow the caller."""
        return tuple(filter(None, (self.repository, f"@{self.actor}" if self.actor else ""))) or (OPERATOR,)


@dataclass(frozen=True)
class Excess:
    """What a config asks beyond the policy. `key`: the config's key, a path; `line`: the line of the policy
    that would allow it, empty if the config has to say what it wants first; `instead`: what to write into the
    config then.
    """

    key: tuple[str, ...]
    message: str
    line: str
    where: str = ""
    instead: str = ""

    @property
    def fix(self) -> str:
        return (
            self.instead
            or f"the operator of the control plane can allow it by this line in {self.where}: {self.line}"
        )

    @property
    def text(self) -> str:
        return f"{self.message}; {self.fix}"


def beyond(in_force: InForce, spec: RunSpec, caller: Caller) -> tuple[Excess, ...]:
    """Return what the spec asks beyond the policy; empty if the caller may launch it."""
    return (
        *_callers(in_force, caller),
        *_providers(in_force, spec, caller),
        *_images(in_force, spec),
        *_folder(in_force, spec),
        *_volumes(in_force, spec, caller),
        *_dollars(in_force, spec),
    )


def placed(in_force: InForce, spec: RunSpec, *, is_remote: bool) -> RunSpec:
    """Return the spec with its providers set: those that it names, or else the default ones. Of several,
    those that the policy does not allow are left out, because the config has not chosen them; if it allows
    none of them, the spec is returned as it is.
    """
    allowed = in_force.providers(is_remote=is_remote)
    names = tuple(name for name in in_force.defaults if name in allowed)
    if allowed_providers(spec.hardware) or not names:
        return spec
    chosen = {"provider": names[0]} if len(names) == 1 else {"providers": names}
    return spec.model_copy(update={"hardware": spec.hardware.model_copy(update=chosen)})


def in_words(found: Sequence[Excess]) -> str:
    return "; ".join(one.text for one in found)


def _callers(in_force: InForce, caller: Caller) -> Iterator[Excess]:
    allowed = in_force.policy.callers
    if allowed is None or not caller.is_remote or any(_matches(name, allowed) for name in caller.names):
        return
    name = caller.names[0]
    yield Excess(
        (),
        f"{_shown(name)} may not launch runs here",
        _line("callers", (*allowed, glob.escape(name))),
        in_force.where,
    )


def _providers(in_force: InForce, spec: RunSpec, caller: Caller) -> Iterator[Excess]:
    named, allowed = allowed_providers(spec.hardware), in_force.providers(is_remote=caller.is_remote)
    for name in named or in_force.defaults:
        if name in allowed:
            continue
        message = f"hardware.provider: {name} {_why_off(in_force, name, caller)}"
        if not named:
            # No line is suggested: nobody has asked for this provider, and the line might open the operator's
            # own machines to strangers.
            message = (
                "hardware.provider: is not set, and the default one is not allowed: "
                f"{message.partition(': ')[2]}"
            )
            instead = (
                "write hardware.provider, one of "
                f"{', '.join(allowed) or 'none, because the policy allows none'}"
            )
            yield Excess(("hardware", "provider"), message, "", in_force.where, instead)
            continue
        # A list that names only the new one would forbid those that are used without being listed.
        listed = (
            in_force.policy.providers
            if in_force.policy.providers is not None
            else (*in_force.rents_from, *in_force.named)
        )
        yield Excess(
            ("hardware", "provider"),
            message,
            _line("providers", dict.fromkeys((*listed, name))),
            in_force.where,
        )


def _why_off(in_force: InForce, name: str, caller: Caller) -> str:
    if in_force.policy.providers is not None or name not in OWN_MACHINES:
        return "is not among the providers that configs may choose"
    what = (
        "runs the command on the control plane's own machine"
        if name == LOCAL
        else "runs the command on the operator's own machines"
    )
    if caller.is_remote:
        return f"{what}, which a run that is launched from elsewhere may not choose"
    return f"{what}, which no run may choose where machines are rented ({', '.join(in_force.rents_from)})"


def _images(in_force: InForce, spec: RunSpec) -> Iterator[Excess]:
    allowed = in_force.policy.images
    if allowed is None:
        return
    chosen = (
        (("hardware", "image"), spec.hardware.image),
        (("image", "base"), spec.image.base if spec.image is not None else None),
    )
    for key, image in chosen:
        if image is not None and not _matches(image, allowed):
            message = f"{'.'.join(key)}: {_shown(image)} is not among the images that configs may choose"
            yield Excess(key, message, _line("images", (*allowed, glob.escape(image))), in_force.where)


def _folder(in_force: InForce, spec: RunSpec) -> Iterator[Excess]:
    allowed, code = in_force.policy.folders, spec.trainer.code
    if allowed is None or code.repo is not None:
        return
    folder = posixpath.normpath(code.folder)
    if not _matches(folder, allowed):
        message = f"trainer.code.folder: {_shown(folder)} is not among the folders that configs may choose"
        yield Excess(
            ("trainer", "code", "folder"),
            message,
            _line("folders", (*allowed, glob.escape(folder))),
            in_force.where,
        )


def _volumes(in_force: InForce, spec: RunSpec, caller: Caller) -> Iterator[Excess]:
    allowed = in_force.policy.volumes
    if allowed is None and not caller.is_remote:
        return
    for path, volume in spec.hardware.volumes.items():
        name = wanted(spec.hardware.provider or "", volume)
        if not any(_allows(pattern, name) for pattern in allowed or ()):
            how = "read" if volume.read_only else "write to"
            message = (
                f"hardware.volumes: {path} mounts {_shown(name)}, which is not among the volumes "
                "that "
                f"configs may {how}"
            )
            line = _line("volumes", (*(allowed or ()), glob.escape(name)))
            yield Excess(("hardware", "volumes", path), message, line, in_force.where)


def _allows(pattern: str, name: str) -> bool:
    """Return whether the pattern allows the volume, or the part of it, of that name. One of a volume allows
    all of its parts; one without `:rw` allows no writing.
    """
    place, may_write = pattern.removesuffix(WRITABLE), pattern.endswith(WRITABLE)
    if name.endswith(WRITABLE) and not may_write:
        return False
    provider, _, rest = name.removesuffix(WRITABLE).partition("/")
    volume = f"{provider}/{rest.partition('/')[0]}"
    return fnmatchcase(name.removesuffix(WRITABLE), place) or fnmatchcase(volume, place)


def _dollars(in_force: InForce, spec: RunSpec) -> Iterator[Excess]:
    run_max, hour_max = in_force.policy.usd_max, in_force.policy.usd_per_hour_max
    if run_max is not None and spec.budget.usd > run_max:
        message = f"budget.usd: ${spec.budget.usd:,.2f} is more than the ${run_max:,.2f} that a run may cost"
        yield Excess(("budget", "usd"), message, f"usd_max: {spec.budget.usd:.15g}", in_force.where)
    price = spec.hardware.usd_per_hour_max
    if hour_max is not None and (price is None or price > hour_max):
        key = ("hardware", "usd_per_hour_max")
        said = (
            "is not set, so that a machine of any price would be rented"
            if price is None
            else f"${price:,.2f} is too much"
        )
        message = (
            f"hardware.usd_per_hour_max: {said}; a machine may cost ${hour_max:,.2f} an hour: "
            "write "
            f"{hour_max:.15g}, or less"
        )
        line = f"usd_per_hour_max: {price:.15g}" if price is not None else "usd_per_hour_max: null"
        yield Excess(key, message, line, in_force.where)


def _matches(text: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)


def _line(key: str, values: Iterable[str]) -> str:
    """Return the line as YAML reads it, which JSON's quotes are part of."""
    return f"{key}: [{', '.join(_word(value) for value in values)}]"


def _word(value: str) -> str:
    return value if _WORD.fullmatch(value) else json.dumps(value[:CHARS_MAX])


def _shown(text: str) -> str:
    return neutralized(text[:CHARS_MAX])
