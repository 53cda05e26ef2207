"""Write a config as a task of another tool."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from prime_train.advice import Advice, Option, SettingAdvice
from prime_train.app.home import Home
from prime_train.checks.validate import check_run_config
from prime_train.environment import BUCKET
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.interop.export import Format
from prime_train.interop.export.dstack import dstack_task
from prime_train.interop.export.kubernetes import kubernetes_job
from prime_train.interop.export.machine_files import machine_files
from prime_train.interop.export.skypilot import skypilot_task
from prime_train.interop.export.task import Writer, Written, task_of
from prime_train.launch.allowed import NOTHING_ALLOWED, Allowed
from prime_train.launch.launch import Unfit, plan, renamed
from prime_train.launch.launch_config import InvalidConfig
from prime_train.planning.limits import USD_PER_HOUR_MAX
from prime_train.planning.memory import check_range
from prime_train.spec.access_run_secrets import is_allowed
from prime_train.spec.finding import Finding, has_errors
from prime_train.spec.image import is_reference
from prime_train.spec.overrides import ChosenSetting as ConfigSetting
from prime_train.spec.reader import read_config
from prime_train.spec.spec import RunSpec
from prime_train.text.formatting import usd

WRITERS: Mapping[Format, Writer] = {
    Format.SKYPILOT: skypilot_task,
    Format.KUBERNETES: kubernetes_job,
    Format.DSTACK: dstack_task,
}
FILES = "files"
SHOWN_CHARS = 100
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,499}")


@dataclass(frozen=True)
class Exported:
    """A task, with its name, and findings about the config that are no errors. `price`: how its dollars are
    counted.
    """

    task: str
    written: Written
    secrets: tuple[str, ...]
    findings: tuple[Finding, ...]
    sources: Mapping[str, str]
    price: Advice


def export(
    home: Home,
    config: Path,
    kind: Format,
    *,
    name: str | None = None,
    image: str | None = None,
    usd_per_hour: float | None = None,
    settings: Sequence[ConfigSetting] = (),
    allowed: Allowed = NOTHING_ALLOWED,
) -> Exported:
    """Return the config as a task, changing nothing. `name` replaces the config's; `image`: the container
    image that the task starts from; `usd_per_hour`: the price by which dollars are counted, instead of the
    highest one in the config; `allowed`: what the person at the terminal allows to be part of the task.

    Raises InvalidConfig if the config or its working tree has errors, UsageError if the tool cannot run it or
    the bucket is a folder of this machine alone, and ExternalError if an external service fails.
    """
    bucket_url = home.bucket_url
    if not home.elsewhere and not home.environment.get(BUCKET):
        raise UsageError(
            "the task's machines would have no bucket for their checkpoints",
            fix=f"set {BUCKET} to one that they reach, such as s3://bucket/prefix",
            code=Exit.USAGE,
        )
    if image is not None and not _IMAGE.fullmatch(image):
        raise UsageError(
            f"{image[:SHOWN_CHARS]!r} names no image",
            fix="write for example registry.example/name:tag",
            code=Exit.USAGE,
        )
    check_range(SettingAdvice.USD_PER_HOUR, usd_per_hour, 0, USD_PER_HOUR_MAX)
    read = read_config(config, settings=settings)
    if read.spec is None:
        raise InvalidConfig(*check_run_config(read))
    spec = renamed(read, name) if name else read.spec
    # Whatever this machine has or lacks says nothing of those on which the task will run. Which secrets a
    # config gets is decided as for a launch, because whoever starts the task gives them to it from an
    # environment like this one.
    found, sources = check_run_config(
        replace(read, spec=spec), run_secrets=home.run_secrets, allowed_folders=allowed.folders
    )
    if has_errors(found):
        raise InvalidConfig(found, sources)
    _check_alerts(spec, home)
    try:
        made = plan(spec, file=read.file, allowed=allowed)
        chosen = spec.variant(0) if spec.hardware.variants else spec
        price = usd_per_hour if usd_per_hour is not None else chosen.hardware.usd_per_hour_max
        contents = machine_files(spec, made, price)
    except Unfit as error:
        raise InvalidConfig((*found, *error.findings), sources) from error
    own = spec.hardware.image if spec.hardware.image is not None and is_reference(spec.hardware.image) else ""
    task = task_of(spec, contents, bucket_url, home.environment, image or own)
    written = WRITERS[kind](task)
    notes = (*_notes(spec, kind, bucket_url), *written.notes)
    return Exported(
        task.name,
        replace(written, notes=notes),
        task.secrets,
        (*found, *made.findings),
        sources,
        _priced(spec, price),
    )


def write(exported: Exported, folder: Path) -> Path:
    """Write the task into a new folder, and return its main file. Raises UsageError if the folder exists or
    cannot be made.
    """
    elsewhere = Option(SettingAdvice.OUTPUT, "FOLDER")
    try:
        folder.mkdir(parents=True)
        main = folder / exported.written.main
        main.write_text(exported.written.text, encoding="utf-8")
        if exported.written.files:
            (folder / FILES).mkdir()
        for name, data in exported.written.files.items():
            (folder / FILES / name).write_bytes(data)
    except FileExistsError as error:
        raise UsageError(
            f"{folder} already exists and was not changed", fix=Advice("choose another folder: ", elsewhere)
        ) from error
    except OSError as error:
        raise UsageError(
            f"{folder}: {error.strerror}",
            fix=Advice("choose another folder: ", elsewhere),
            code=Exit.USAGE,
        ) from error
    return main


def _check_alerts(spec: RunSpec, home: Home) -> None:
    """Raise UsageError if the address of alerts is a variable that no run may have: on the task's machine,
    the trainer can read it.
    """
    name = spec.alerts.webhook
    if name is not None and not is_allowed(name, (*home.run_secrets, "*")):
        fix = "keep the address in a variable of its own, such as ALERT_WEBHOOK"
        raise UsageError(
            f"alerts.webhook: {name} belongs to you and your control plane, and no task gets it",
            fix=fix,
            code=Exit.FINDINGS,
        )


def _notes(spec: RunSpec, kind: str, bucket_url: str) -> Iterator[str]:
    """Yield what holds for every tool."""
    if spec.hardware.variants:
        yield (
            "of hardware.variants the first one is exported, because the other tool does not choose between "
            "them"
        )
    if spec.hardware.volumes and (kind, spec.hardware.provider) != ("kubernetes", "kubernetes"):
        paths = ", ".join(spec.hardware.volumes)
        yield f"hardware.volumes are not exported: let the other tool mount the same data at {paths}"
    if urlsplit(bucket_url).scheme == "file":
        yield (
            f"the bucket is the folder {urlsplit(bucket_url).path}, which every machine must have "
            "mounted there"
        )


def _priced(spec: RunSpec, usd_per_hour: float | None) -> Advice:
    """Return how dollars are counted on machines whose price only the other tool knows."""
    if usd_per_hour is None:
        option = Option(SettingAdvice.USD_PER_HOUR, "PRICE")
        return Advice(
            "dollars are not limited, because no price is known; to limit them, set "
            "hardware.usd_per_hour_max, or give ",
            option,
        )
    return Advice(
        f"budget.usd, {usd(spec.budget.usd)}, is kept at {usd(usd_per_hour)} for each hour of a machine"
    )
