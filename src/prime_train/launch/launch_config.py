"""Launch a run from a config file: read it, check it as `validate` does, pack the working tree and store the
run.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from prime_train.advice import Advice, Call, Operation
from prime_train.app.home import Home
from prime_train.checks.spec_rules import only_installs
from prime_train.checks.validate import check_run_config
from prime_train.configs.history.policy import policy_findings
from prime_train.configs.unset_secrets import place_of
from prime_train.environment import BUCKET
from prime_train.errors import UsageError
from prime_train.launch.allowed import NOTHING_ALLOWED, Allowed
from prime_train.launch.code.archive import CodeSnapshot
from prime_train.launch.command_config import CommandConfig
from prime_train.launch.launch import LaunchPlan, Unfit, launch, on_provider, plan, renamed
from prime_train.launch.preconditions import found_for, not_rehearsed, unfit_here
from prime_train.launch.probe import ProbeLimits, probe_spec
from prime_train.launch.start import Start, check_start, start_of
from prime_train.planning.market_for_run import config_forecast
from prime_train.runs.forecast import NO_FORECAST, Forecast
from prime_train.runs.run import Probe, Run
from prime_train.spec.config_format import words
from prime_train.spec.finding import Finding, has_errors
from prime_train.spec.overrides import ChosenSetting, config_text, setting_of, text_setting, with_settings
from prime_train.spec.reader import read_config, read_text
from prime_train.spec.spec import RunSpec
from prime_train.spec.tree import plain


@dataclass(frozen=True)
class Checked:
    """A config that can be launched. `findings`: findings that are not errors; `sources`: the text of each
    file; `text`: the config itself, with the values that replaced its own; `start`: the checkpoint of another
    run that the run starts from, None for step 0; `forecast`: what is estimated of the config, by which
    machines are compared; `probe`: what the run measures before it ends, None for an ordinary run; `file`:
    the config's, as findings name it.
    """

    spec: RunSpec
    plan: LaunchPlan
    findings: tuple[Finding, ...]
    sources: dict[str, str]
    text: str
    start: Start | None = None
    forecast: Forecast = NO_FORECAST
    probe: Probe | None = None
    file: str = ""


class InvalidConfig(Unfit):
    """The config cannot be launched. `findings` give the reasons, and `sources` the text of each file they
    refer to.
    """

    def __init__(self, findings: tuple[Finding, ...], sources: dict[str, str]) -> None:
        super().__init__(findings)
        self.sources = sources


def settings_of(values: Mapping[str, object], label: str) -> list[ChosenSetting]:
    """Return values for keys such as `trainer.steps`, to replace a config's. `label`: what findings name in
    place of a file. Raises UsageError for a key that no config has, or a value that the key does not allow.
    """
    return [setting_of(key, value, label) for key, value in values.items()]


def checked(
    home: Home,
    config: Path | CommandConfig,
    *,
    name: str | None = None,
    settings: Sequence[ChosenSetting] = (),
    start_from: str | None = None,
    probe: ProbeLimits | None = None,
    allowed: Allowed = NOTHING_ALLOWED,
) -> Checked:
    """Read and check the config and the working tree, changing nothing. `name`: a name that replaces the
    config's; `settings`: values that replace the config's; `start_from`: RUN or RUN@STEP, a checkpoint of
    another run to start from; `probe`: launch only a probe of the config, within these limits; `allowed`:
    what the person at the terminal allows to be uploaded beyond what a config may ask for.

    Raises InvalidConfig if the config or the working tree has errors, UsageError if `name` is invalid or the
    run cannot start from that checkpoint, and ExternalError if an external service fails.
    """
    read = (
        read_config(config, settings=settings)
        if isinstance(config, Path)
        else read_text(config.text, config.label, settings=settings)
    )
    if read.spec is None or read.root is None:
        raise InvalidConfig(*check_run_config(read))
    spec = on_provider(renamed(read, name) if name else read.spec, home)
    launched = spec if probe is None else probe_spec(spec, probe)
    beyond = policy_findings(home.policy(), launched, read.file, read.source, is_remote=home.is_remote)
    unproven = not_rehearsed(read, spec) if probe is None and not allowed.without_rehearsal else ()
    found, sources = found_for(
        read, spec, home, (*unfit_here(read, spec, home), *beyond, *unproven), allowed_folders=allowed.folders
    )
    if has_errors(found):
        raise InvalidConfig(found, sources)
    try:
        made = plan(spec, file=read.file, allowed=allowed)
    except Unfit as error:
        raise InvalidConfig((*found, *error.findings), sources) from error
    start = start_of(home, start_from) if start_from is not None else None
    if start is not None:
        check_start(start, spec)
    root = with_settings(read.root, [text_setting(("name",), spec.name, "")])
    forecast = config_forecast(read, spec)
    measures = (
        probe.probe(spec, done=start.manifest.step if start is not None else 0) if probe is not None else None
    )
    return Checked(
        launched,
        made,
        (*found, *made.findings),
        sources,
        config_text(plain(root)),
        start,
        forecast,
        measures,
        read.file,
    )


def save_config(what: Checked, path: Path) -> None:
    """Write the checked config to a new file. Raises UsageError if the file exists."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(what.text)
    except FileExistsError as error:
        raise UsageError(f"{path} already exists and was not changed", fix="choose another file") from error


def launch_checked(home: Home, what: Checked) -> Run:
    """Queue a checked run and return it.

    Raises InvalidConfig if the working tree cannot be packed or lacks the command's script, UsageError if the
    process that serves this home uses another bucket or the checkpoint to start from has been deleted, and
    ExternalError if the store or the bucket fails.
    """
    refuse_missing_script(what)
    serving = home.serving()
    if serving is not None and serving.bucket_url != home.bucket_url:
        message = (
            f"the control plane that serves {home.root} uses the bucket {serving.bucket_url}, but "
            "the "
            f"bucket here is {home.bucket_url}"
        )
        fix = Advice(
            f"export {BUCKET}={serving.bucket_url}; or end it, if it is in the background: ",
            Call(Operation.DOWN),
        )
        raise UsageError(message, fix=fix)
    try:
        return launch(home, what.spec, what.plan, start=what.start, forecast=what.forecast, probe=what.probe)
    except Unfit as error:
        raise InvalidConfig((*what.findings, *error.findings), what.sources) from error


def refuse_missing_script(what: Checked) -> None:
    """Raise InvalidConfig if the command starts a script that no machine can have."""
    missing = missing_script(what.spec, what.plan.snapshot, what.file, what.sources.get(what.file, ""))
    if missing is not None:
        raise InvalidConfig((missing,), what.sources)


_SCRIPT = re.compile(r"(?:\./)?[\w][\w./-]*\.(?:py|sh)")
_SEVERAL = frozenset(("cd", "&&", ";", "||", "|", "if", "for"))
_OTHER_CODE = frozenset(("-m", "-c"))
"""With these, Python runs no script but a module, or code in the command."""


def missing_script(spec: RunSpec, snapshot: CodeSnapshot | None, file: str, source: str) -> Finding | None:
    """Return a finding if the command starts a script that no machine can have: its path is relative, it is
    not in the folder that is packed, and all that the set-up does is to install packages. None for whatever
    is less certain: code of a repository, a command of several parts, a module, a set-up that may make the
    script. `file` and `source`: of the config, for the place of the finding.
    """
    if snapshot is None or spec.trainer.code.repo is not None:
        return None
    packed = {str(PurePosixPath(name)) for name, _ in snapshot.files}
    carried_out = [spec.variant(number) for number in range(len(spec.hardware.variants))] or [spec]
    for one in carried_out:
        name = _script(one.trainer.command)
        if name and str(PurePosixPath(name)) not in packed and only_installs(one.setup):
            line, column = place_of(source, name)
            return Finding(
                "PT030",
                f"{name} is not in {snapshot.folder.absolute()}, the folder that is packed, so the command "
                "would fail on every machine",
                file,
                line,
                column,
                fix="check the path; if a command makes or fetches the script on the machine, write that "
                "command under setup",
                value=name,
            )
    return None


def _script(command: str) -> str:
    """Return the script that the command starts, as it is named there; empty if it starts none, or that is
    not certain.
    """
    split = words(command)
    if _SEVERAL & set(split) or any(word.endswith(";") for word in split):
        return ""
    at = next((at for at, word in enumerate(split) if _SCRIPT.fullmatch(word)), None)
    before = split[:at] if at is not None else ()
    return (
        split[at]
        if at is not None and not _OTHER_CODE & set(before) and ".." not in split[at].split("/")
        else ""
    )
