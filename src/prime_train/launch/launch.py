"""Launch a run from a spec: pack the working tree, upload it to the bucket and store the run as queued."""

import hashlib
import secrets
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath

from prime_train.advice import Option, SettingAdvice
from prime_train.app.home import Home
from prime_train.buckets.keys import code_key, run_of
from prime_train.buckets.open import open_bucket
from prime_train.buckets.upload import upload
from prime_train.configs.code_folder import folder_outside, outside_finding
from prime_train.environment import PROVIDER
from prime_train.errors import PrimeTrainError, UsageError
from prime_train.exit_codes import Exit
from prime_train.launch.allowed import NOTHING_ALLOWED, Allowed
from prime_train.launch.code.archive import (
    CodeSnapshot,
    checkout_of,
    commit_of,
    is_commit,
    is_dotenv,
    pack,
    same_repository,
    survey,
    tracked_files,
)
from prime_train.launch.start import Start, started
from prime_train.providers.configured import default_providers, rents
from prime_train.providers.kinds import allowed_providers
from prime_train.runs.forecast import NO_FORECAST, Forecast
from prime_train.runs.run import Origin, Probe, Run, Totals
from prime_train.spec.finding import SECRET, Finding, Severity, has_errors
from prime_train.spec.policy import InForce, Policy, placed
from prime_train.spec.reader import Config
from prime_train.spec.spec import RunSpec
from prime_train.text.invocations import flag
from prime_train.text.safe import neutralized
from prime_train.trainers.of_spec import trainer_for

SUFFIX_CHARS = 5
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
TRIES_MAX = 5
NOTHING_USED = Totals()


class Unfit(PrimeTrainError):
    """The run cannot be launched; `findings` give the reasons."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("; ".join(finding.message for finding in findings))
        self.findings = findings


@dataclass(frozen=True)
class LaunchPlan:
    """What a launch would start from. `snapshot`: the folder to pack, None if the code comes from a
    repository; `commit`: the commit of the code.
    """

    snapshot: CodeSnapshot | None
    commit: str
    findings: tuple[Finding, ...] = ()


def plan(spec: RunSpec, *, file: str = "", allowed: Allowed | None = NOTHING_ALLOWED) -> LaunchPlan:
    """Return what a launch would start from, without changing anything. `allowed`: what the person at the
    terminal allows to be uploaded; None: the folder was made by prime-train itself of code that was looked
    through before. Raises Unfit if the working tree cannot be used, and ExternalError if a remote repository
    cannot be queried.
    """
    made = _repository(spec, file) if spec.trainer.code.repo else _folder(spec, file, allowed)
    if has_errors(made.findings):
        raise Unfit(made.findings)
    return made


def launch(
    home: Home,
    spec: RunSpec,
    made: LaunchPlan,
    *,
    start: Start | None = None,
    forecast: Forecast = NO_FORECAST,
    probe: Probe | None = None,
) -> Run:
    """Store a run as queued and return it. The code snapshot is uploaded before the run becomes visible.
    `start`: the checkpoint of another run that it starts from; `forecast`: what is estimated of the config;
    `probe`: what it measures before it ends. Raises Unfit if the folder cannot be packed, UsageError if no
    free id is found or the checkpoint has been deleted, and ExternalError if the store or the bucket fails.
    """
    for _ in range(TRIES_MAX):
        run = launch_as(home, new_id(spec.name), spec, made, start=start, forecast=forecast, probe=probe)
        if run is not None:
            return run
    raise UsageError(f"no free id was found for {spec.name}", code=Exit.EXTERNAL_FAILED)


def launch_as(
    home: Home,
    run_id: str,
    spec: RunSpec,
    made: LaunchPlan,
    *,
    origin: Origin | None = None,
    start: Start | None = None,
    forecast: Forecast = NO_FORECAST,
    probe: Probe | None = None,
    used: Totals = NOTHING_USED,
) -> Run | None:
    """Launch as `launch` does, under the given id. `used`: what of the budget was used before the run. Return
    None and change nothing if a run with this id exists.
    """
    store = home.store()
    if store.load(run_id) is not None:
        return None
    now_s = store.now_s()
    placed = on_provider(spec, home)
    run = Run(
        run_id,
        placed,
        created_s=now_s,
        next_check_s=now_s,
        commit=made.commit,
        origin=origin,
        forecast=forecast,
    )
    run = replace(run, probe=probe, folded=used, from_elsewhere=home.is_remote)
    if not home.elsewhere:
        home.make_bucket()
    if made.snapshot is not None:
        run = replace(run, code_sha256=put_code(home, made.snapshot, code_key(run_id)))
    if start is not None:
        run = started(home, run, start)
    return run if store.create(run) else None


def on_provider(spec: RunSpec, home: Home) -> RunSpec:
    """Return the spec with its providers set, because the control plane's default may change later.

    The default is that of the process which serves the home, because its environment has the provider's key
    and this one may not. If the control plane is elsewhere and this environment has the key, this process
    rents, and its own default counts. Of several, those that the operator's policy does not allow are left
    out: the config has not chosen them.
    """
    is_ours = bool(home.environment.get(PROVIDER)) or (bool(home.elsewhere) and rents(home.environment))
    if allowed_providers(spec.hardware):
        return spec
    serving = None if is_ours else home.serving()
    defaults = serving.providers if serving is not None else default_providers(home.environment)
    # A control plane elsewhere that says no policy judges the launch itself.
    in_force = home.policy() or InForce(Policy(providers=defaults))
    return placed(replace(in_force, defaults=defaults), spec, is_remote=home.is_remote)


def renamed(config: Config, name: str) -> RunSpec:
    """Return the config's spec under another name. Raises UsageError if `name` is invalid."""
    assert config.spec is not None
    try:
        return RunSpec.model_validate({**config.spec.model_dump(), "name": name})
    except ValueError as error:
        raise UsageError(
            f"{name!r} is not a valid run name",
            fix="use at most 32 lower-case letters, digits and inner hyphens",
        ) from error


def new_id(name: str) -> str:
    return f"{name}-{''.join(secrets.choice(_ALPHABET) for _ in range(SUFFIX_CHARS))}"


def _folder(spec: RunSpec, file: str, allowed: Allowed | None) -> LaunchPlan:
    folder = Path(spec.trainer.code.folder)
    outside = folder_outside(str(folder), file, allowed.folders) if allowed is not None else None
    if outside is not None:
        return LaunchPlan(None, "", (outside_finding(outside, file or "."),))
    snapshot = survey(folder, without=trainer_for(spec).output_folders(spec))
    if allowed is not None and not has_errors(snapshot.findings):
        snapshot = looked_through(snapshot, allowed.secret_files)
    checkout = checkout_of(folder) if not has_errors(snapshot.findings) else None
    return LaunchPlan(snapshot, checkout.name if checkout else "", snapshot.findings)


def _repository(spec: RunSpec, file: str) -> LaunchPlan:
    """Return a plan with the commit that every attempt checks out: that of `ref`; otherwise that of the
    current checkout, if it is one of this repository; otherwise that of the default branch.
    """
    repo, ref = spec.trainer.code.repo or "", spec.trainer.code.ref
    if ref is not None:
        return LaunchPlan(None, ref if is_commit(ref) else commit_of(repo, ref))
    checkout = checkout_of(Path())
    if checkout is None or not any(same_repository(repo, remote) for remote in checkout.remotes):
        return LaunchPlan(None, commit_of(repo, None))
    findings = []
    if checkout.is_dirty:
        findings.append(
            Finding(
                "PT030",
                "the checkout has uncommitted changes",
                file or ".",
                fix="commit them, or set trainer.code.ref",
            )
        )
    if not checkout.is_pushed:
        message = f"commit {checkout.commit[:12]} is not pushed, so machines could not fetch it"
        findings.append(Finding("PT030", message, file or ".", fix="push it, or set trainer.code.ref"))
    return LaunchPlan(None, checkout.commit, tuple(findings))


def put_code(home: Home, snapshot: CodeSnapshot, key: str) -> str:
    """Pack the folder, upload the archive to the bucket under `key`, and return the archive's SHA-256 in hex.
    Raises Unfit if the folder cannot be packed, and ExternalError if the upload fails.
    """
    with tempfile.TemporaryDirectory(prefix="prime-train-") as folder:
        packed = Path(folder) / "code.tar.gz"
        finding = pack(snapshot, packed)
        if finding is not None:
            raise Unfit((finding,))
        _upload(home, key, packed)
        with packed.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def _upload(home: Home, key: str, packed: Path) -> None:
    """Upload the archive; with a launch key, which opens no bucket, to the URL that the control plane gives
    for it.
    """
    if home.launch_key is None:
        home.bucket().put_file(key, packed)
        return
    url = home.remote().code_url(run_of(key), packed.stat().st_size)
    if url:
        upload(url, packed)
    else:
        open_bucket(home.bucket_url, home.environment).put_file(key, packed)


# What keeps secrets out of the code that a launch uploads: files of variables that git does not track and
# homes of control planes stay here, and a file in which something looks like a secret refuses the launch.
FINDINGS_MAX = 20
MASTER_KEY = "master.key"
"""The file in the home of a control plane from which all its keys are derived."""


def looked_through(snapshot: CodeSnapshot, allowed: Sequence[str]) -> CodeSnapshot:
    """Return the snapshot without files of variables that git does not track, without homes of control
    planes, and with a finding for each file with a secret. `allowed`: paths of files that are let through.
    """
    let_through = frozenset(PurePosixPath(name).as_posix() for name in allowed)
    names = [name for name, _ in snapshot.files]
    tracked = tracked_files(snapshot.folder) or frozenset()
    variables = [
        name for name in names if is_dotenv(name) and name not in tracked and name not in let_through
    ]
    homes = sorted(
        {
            name.removesuffix(MASTER_KEY)
            for name in names
            if name.endswith(f"/{MASTER_KEY}") and name not in let_through
        }
    )
    left = {*variables, *(name for name in names if name.startswith(tuple(homes)))}
    kept = tuple(file for file in snapshot.files if file[0] not in left)
    found = (
        *(_left_out(snapshot, name) for name in variables),
        *(_home_left_out(snapshot, home) for home in homes[:FINDINGS_MAX]),
    )
    found = (*found, *_secrets(replace(snapshot, files=kept), let_through))
    return replace(snapshot, files=kept, findings=(*snapshot.findings, *found))


def _home_left_out(snapshot: CodeSnapshot, home: str) -> Finding:
    message = (
        f"{neutralized(home)} looks like the home of a control plane, because it has a "
        f"{MASTER_KEY}, "
        "so it is not uploaded"
    )
    fix = (
        "move it out of the code, or add it to .gitignore; if it is another "
        "folder: "
        f"{_flag(home + MASTER_KEY)}"
    )
    return Finding("PT030", message, str(snapshot.folder / home), severity=Severity.WARNING, fix=fix)


def _left_out(snapshot: CodeSnapshot, name: str) -> Finding:
    message = f"{neutralized(name)} holds variables and is not tracked by git, so it is not uploaded"
    fix = f"name its variables under environment or secrets, or let it through: {_flag(name)}"
    return Finding("PT030", message, str(snapshot.folder / name), severity=Severity.WARNING, fix=fix)


def _flag(name: str) -> str:
    return flag(Option(SettingAdvice.ALLOW_SECRET_FILE, neutralized(name)))


def _secrets(snapshot: CodeSnapshot, let_through: frozenset[str]) -> list[Finding]:
    # Imported here because the detector takes a third of a second to load, and only a launch needs it.
    from prime_train.launch.code.secrets import secrets_in

    found = secrets_in(snapshot.folder, (name for name, _ in snapshot.files), let_through)
    return [
        Finding(
            SECRET,
            f"{neutralized(one.path)} would be uploaded, and line {one.line} looks like a secret: "
            f"{neutralized(one.kind)}",
            str(snapshot.folder / one.path),
            one.line,
            fix="remove the secret, replacing it where it is valid; or add the file to .gitignore; or let "
            f"it through: {_flag(one.path)}",
        )
        for one in islice(found, FINDINGS_MAX)
    ]
