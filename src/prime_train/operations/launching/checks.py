"""Checks for problems that prevent launching a config from this machine now, although the config itself is valid."""

import resource
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from prime_train.adapters.config_yaml import Config
from prime_train.configs.unset_secrets import place_of, unset_secrets
from prime_train.control_plane.wiring.home import Home
from prime_train.core.finding import Finding
from prime_train.core.registry.providers import is_own_machine
from prime_train.core.spec import RunSpec
from prime_train.operations.validate import judged
from prime_train.rules.spec import named_files, only_installs
from prime_train.trainers import trainer_for

ZEROS_MAX = 16
"""A real commit hash practically never ends in this many zeros."""


def found_for(
    read: Config, spec: RunSpec, run_secrets: Sequence[str], more: tuple[Finding, ...] = ()
) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """Return all findings on the spec as it would be launched, and the text of each file. The findings are those of `validate`, those on
    what is missing on this machine, and `more`. `run_secrets`: the names of the secrets that the control plane hands to runs."""
    found = (*_placeholder(spec, read), *_left_behind(spec, read), *unset_secrets(spec, read.file, read.source), *more)
    return judged(replace(read, spec=spec), found, run_secrets=run_secrets)


def unfit_here(read: Config, spec: RunSpec, home: Home) -> tuple[Finding, ...]:
    """Return findings for what would make every attempt fail on this machine, if it is the provider (`local`). Empty if the control plane
    is elsewhere, because nothing is known of its machine."""
    if not is_own_machine(spec.hardware.provider) or home.elsewhere:
        return ()
    return (*_too_few_files(read, spec, home), *_no_offer(read, spec, home))


def _too_few_files(read: Config, spec: RunSpec, home: Home) -> Iterator[Finding]:
    wanted = spec.hardware.open_files_min
    hard = _hard_limit(home)
    if wanted is None or hard == resource.RLIM_INFINITY or hard >= wanted or _can_raise(wanted):
        return
    message = f"a process may open {hard:,} files here (ulimit -Hn), and hardware.open_files_min is {wanted:,}: no attempt would start"
    fix = "raise the limit where prime-train serve runs, or leave hardware.open_files_min out: what this machine has is taken then"
    line, column = place_of(read.source, "open_files_min")
    yield Finding("PT023", message, read.file, line, column, fix=fix)


def _hard_limit(home: Home) -> int:
    """Return the hard limit of open files of the process that serves the home, because it starts the attempts; of this process if none
    serves it."""
    serving = home.serving()
    if serving is not None and hasattr(resource, "prlimit"):
        try:
            return resource.prlimit(serving.pid, resource.RLIMIT_NOFILE)[1]
        except OSError:
            pass  # the process has just ended, or belongs to another user
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def _can_raise(wanted: int) -> bool:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, wanted))
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    except (ValueError, OSError):
        return False
    return True


def _no_offer(read: Config, spec: RunSpec, home: Home) -> Iterator[Finding]:
    """Yield a finding if no offer of this machine can ever fit the spec. Offers that are only taken now count as fitting, because they
    become free again."""
    from prime_train.core.offers import rank

    ranked = rank(home.pods().offers(spec.hardware), spec.hardware)
    if ranked.best or not ranked.left_out:
        return
    why = "; ".join(dict.fromkeys(row.why for row in ranked.left_out))
    line, column = place_of(read.source, "hardware")
    fix = "ask for what this machine has, or set provider: prime under hardware to rent one"
    yield Finding("PT023", f"this machine (provider local) {why}", read.file, line, column, fix=fix)


def _placeholder(spec: RunSpec, read: Config) -> tuple[Finding, ...]:
    """Return a finding if the commit of prime-rl is a placeholder, as in the examples. Otherwise a rented machine would be the first to
    find out."""
    part = spec.trainer.prime_rl
    if part is None or not part.ref.endswith("0" * ZEROS_MAX):
        return ()
    line, column = place_of(read.source, part.ref)
    said = f"trainer.prime_rl.ref is a placeholder: {part.ref}"
    fix = "write the whole commit of prime-rl: git ls-remote, or git rev-parse HEAD in a checkout of it"
    return (Finding("PT022", said, read.file, line, column, fix=fix),)


def _left_behind(spec: RunSpec, read: Config) -> Iterator[Finding]:
    """Yield a finding for each named file that is beside the config or above it, but not in the folder that is packed: `validate` finds
    such a file, and a machine would not."""
    tree = spec.trainer.tree
    if tree.repo is not None or not only_installs(spec.setup):
        return
    config = trainer_for(spec).config_file(spec)
    for name in dict.fromkeys([*([config] if config is not None else []), *(name for _, name in named_files(spec))]):
        around = next((folder for folder in Path(read.file).parents if (folder / tree.folder / name).is_file()), None)
        if around is not None and not (Path(tree.folder) / name).is_file():
            line, column = place_of(read.source, name)
            packed = Path(tree.folder).absolute()
            said = f"{name} is in {around / tree.folder}, and not in the working tree, {packed}: no machine would have it"
            yield Finding("PT030", said, read.file, line, column, fix=f"call this in {around}")
