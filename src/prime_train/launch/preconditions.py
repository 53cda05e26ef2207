"""Checks for problems that prevent launching a config from this machine now, although the config itself is
valid.
"""

import resource
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from prime_train.advice import Call, Operation, Option, SettingAdvice
from prime_train.app.home import Home
from prime_train.checks.spec_rules import only_installs
from prime_train.checks.validate import check_run_config
from prime_train.configs.unset_secrets import place_of, unset_secrets
from prime_train.providers.configured import is_set_up
from prime_train.providers.kinds import PROVIDERS, allowed_providers, is_own_machine, is_rented
from prime_train.runs.offer import fits
from prime_train.spec.finding import Finding
from prime_train.spec.image import violation_of_image
from prime_train.spec.launchers import named_files
from prime_train.spec.reader import Config
from prime_train.spec.rehearsed import WAIVED, rehearsal_digest
from prime_train.spec.spec import RunSpec
from prime_train.text.invocations import command, flag
from prime_train.trainers.of_spec import trainer_for
from prime_train.trainers.registry import TRAINERS

ZEROS_MAX = 16
"""Number of zeros at the end of a commit hash above which it counts as a placeholder; a real hash practically
never ends in that many.
"""


def found_for(
    read: Config,
    spec: RunSpec,
    home: Home,
    more: tuple[Finding, ...] = (),
    *,
    allowed_folders: Sequence[Path] = (),
) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """Return all findings on the spec as it would be launched, and the text of each file. The findings are
    those of `validate`, those on what is missing on this machine, and `more`. `allowed_folders`: folders that
    the person at the terminal named.
    """
    found = (
        *_image_not_taken(spec, read),
        *_placeholder(spec, read),
        *_left_behind(spec, read),
        *unset_secrets(spec, home.environment, read.file, read.source),
        *more,
    )
    return check_run_config(
        replace(read, spec=spec), found, run_secrets=home.run_secrets, allowed_folders=allowed_folders
    )


def unfit_here(read: Config, spec: RunSpec, home: Home) -> tuple[Finding, ...]:
    """Return findings for problems of this machine that would make every attempt fail, if the run uses the
    provider `local`. Empty if the control plane is elsewhere, because its machine is not known.
    """
    if not is_own_machine(allowed_providers(spec.hardware)) or home.elsewhere:
        return ()
    return (*_too_few_files(read, spec, home), *_no_offer(read, spec, home))


def not_rehearsed(read: Config, spec: RunSpec) -> tuple[Finding, ...]:
    """Return a finding if the run is a script of one's own on a rented machine, and no rehearsal of it as it
    is configured is named.
    """
    is_own = TRAINERS[spec.trainer.kind].layout is None
    if not is_own or not is_rented(allowed_providers(spec.hardware)) or spec.rehearsed == WAIVED:
        return ()
    if spec.rehearsed == rehearsal_digest(spec):
        return ()
    line, column = place_of(read.source, "rehearsed" if spec.rehearsed is not None else "trainer")
    message = (
        "nothing has shown that this script resumes from what it saves: it was not rehearsed"
        if spec.rehearsed is None
        else "the script was rehearsed with another command, resume, progress or checkpoints than these"
    )
    subject = read.file if Path(read.file).is_file() else "-- COMMAND"
    fix = (
        f"rehearse it, which takes a minute and costs nothing ({command(Call(Operation.TRY, subject))}); or launch "
        f"it as it is, by {flag(Option(SettingAdvice.WITHOUT_REHEARSAL))} or by `rehearsed: {WAIVED}` in the config"
    )
    return (Finding("PT028", message, read.file, line, column, fix=fix),)


def why_not_rented(home: Home, spec: RunSpec) -> str:
    """Return why no machine can be rented for the run by the control plane as it is now; empty if one can, or
    if it is not known yet.
    """
    names, serving = allowed_providers(spec.hardware), home.last_serving()
    if (
        not is_rented(names)
        or serving is None
        or not all(is_set_up(name, home.environment) for name in names)
    ):
        return ""
    providers = home.providers(serving.public_url)
    reasons = [providers.of(name).unreachable_reason() for name in names]
    return reasons[0] if all(reasons) else ""


def _too_few_files(read: Config, spec: RunSpec, home: Home) -> Iterator[Finding]:
    wanted = spec.hardware.open_files_min
    hard = _hard_limit(home)
    if wanted is None or hard == resource.RLIM_INFINITY or hard >= wanted or _can_raise(wanted):
        return
    message = (
        f"a process may open only {hard:,} files on this machine (ulimit -Hn), but hardware.open_files_min "
        f"is {wanted:,}, so attempts would fail to start"
    )
    fix = (
        "raise the limit where the control plane runs, or delete hardware.open_files_min to accept this "
        "machine's limit"
    )
    line, column = place_of(read.source, "open_files_min")
    yield Finding("PT023", message, read.file, line, column, fix=fix)


def _hard_limit(home: Home) -> int:
    """Return the hard limit of open files of the process that serves the home, because it starts the
    attempts; of this process if none serves it.
    """
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
    """Yield a finding if no offer of this machine can ever fit the spec. Offers that are in use now count as
    fitting, because they become free again.
    """
    reasons = [fits(offer, spec.hardware) for offer in home.pods().offers(spec.hardware)]
    if not reasons or None in reasons:
        return
    why = "; ".join(dict.fromkeys(filter(None, reasons)))
    line, column = place_of(read.source, "hardware")
    rented = " or ".join(name for name, row in PROVIDERS.items() if row.is_rented)
    fix = f"request what this machine has, or set hardware.provider to {rented} to rent a machine"
    yield Finding("PT023", f"this machine (provider local) {why}", read.file, line, column, fix=fix)


def _image_not_taken(spec: RunSpec, read: Config) -> tuple[Finding, ...]:
    """Return a finding if the provider starts no machine from the image. A config without a provider was read
    without this check.
    """
    violation = violation_of_image(allowed_providers(spec.hardware), spec.hardware.image)
    if violation is None:
        return ()
    message, _, fix = violation.rpartition("; ")
    line, column = place_of(read.source, spec.hardware.image or "")
    return (Finding("PT026", message, read.file, line, column, fix=fix, value=spec.hardware.image or ""),)


def _placeholder(spec: RunSpec, read: Config) -> tuple[Finding, ...]:
    """Return a finding if the commit of prime-rl is a placeholder, as in the examples. Without this check,
    the mistake would only show on a rented machine.
    """
    commit = trainer_for(spec).commit(spec)
    if not commit.endswith("0" * ZEROS_MAX):
        return ()
    line, column = place_of(read.source, commit)
    message = f"the trainer's commit is a placeholder: {commit}"
    fix = "write its full commit hash, as git ls-remote or, in a checkout, git rev-parse HEAD prints it"
    return (Finding("PT022", message, read.file, line, column, fix=fix),)


def _names(spec: RunSpec) -> Iterator[str]:
    """Yield the files of the working tree that the spec names."""
    config = trainer_for(spec).config_file(spec)
    if config is not None:
        yield config
    yield from (name for _, name in named_files(spec.trainer.command, spec.setup))


def _left_behind(spec: RunSpec, read: Config) -> Iterator[Finding]:
    """Yield a finding for each named file that is beside the config or above it, but not in the folder that
    is packed: `validate` finds such a file, but it would be missing on the machine.
    """
    code = spec.trainer.code
    if code.repo is not None:
        return
    carried_out = [spec.variant(number) for number in range(len(spec.hardware.variants))] or [spec]
    for name in dict.fromkeys(
        name for one in carried_out if only_installs(one.setup) for name in _names(one)
    ):
        around = next(
            (folder for folder in Path(read.file).parents if (folder / code.folder / name).is_file()), None
        )
        if around is not None and not (Path(code.folder) / name).is_file():
            line, column = place_of(read.source, name)
            packed = Path(code.folder).absolute()
            message = (
                f"{name} is in {around / code.folder}, but not in the working tree, {packed}, so "
                "no machine would receive it"
            )
            yield Finding("PT030", message, read.file, line, column, fix=f"run the command in {around}")
