"""What keeps secrets out of the code that a launch uploads: files of variables that git does not track and homes of control planes stay
here, and a file in which something looks like a secret refuses the launch."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import PurePosixPath

from prime_train.advice import Option, Setting
from prime_train.launch.code.archive import CodeSnapshot, is_dotenv, tracked_files
from prime_train.spec.finding import SECRET, Finding, Severity
from prime_train.text.invocations import flag
from prime_train.text.safe import neutralized

FINDINGS_MAX = 20
MASTER_KEY = "master.key"
"""The file in the home of a control plane from which all its keys are derived."""


def looked_through(snapshot: CodeSnapshot, allowed: Sequence[str]) -> CodeSnapshot:
    """Return the snapshot without files of variables that git does not track, without homes of control planes, and with a finding for each
    file with a secret. `allowed`: paths of files that are let through."""
    let_through = frozenset(PurePosixPath(name).as_posix() for name in allowed)
    names = [name for name, _ in snapshot.files]
    tracked = tracked_files(snapshot.folder) or frozenset()
    variables = [name for name in names if is_dotenv(name) and name not in tracked and name not in let_through]
    homes = sorted({name.removesuffix(MASTER_KEY) for name in names if name.endswith(f"/{MASTER_KEY}") and name not in let_through})
    left = {*variables, *(name for name in names if name.startswith(tuple(homes)))}
    kept = tuple(file for file in snapshot.files if file[0] not in left)
    found = (*(_left_out(snapshot, name) for name in variables), *(_home_left_out(snapshot, home) for home in homes[:FINDINGS_MAX]))
    found = (*found, *_secrets(replace(snapshot, files=kept), let_through))
    return replace(snapshot, files=kept, findings=(*snapshot.findings, *found))


def _home_left_out(snapshot: CodeSnapshot, home: str) -> Finding:
    message = f"{neutralized(home)} looks like the home of a control plane, because it has a {MASTER_KEY}, so it is not uploaded"
    fix = f"move it out of the code, or add it to .gitignore; if it is another folder: {_flag(home + MASTER_KEY)}"
    return Finding("PT030", message, str(snapshot.folder / home), severity=Severity.WARNING, fix=fix)


def _left_out(snapshot: CodeSnapshot, name: str) -> Finding:
    message = f"{neutralized(name)} holds variables and is not tracked by git, so it is not uploaded"
    fix = f"name its variables under environment or secrets, or let it through: {_flag(name)}"
    return Finding("PT030", message, str(snapshot.folder / name), severity=Severity.WARNING, fix=fix)


def _flag(name: str) -> str:
    return flag(Option(Setting.ALLOW_SECRET_FILE, neutralized(name)))


def _secrets(snapshot: CodeSnapshot, let_through: frozenset[str]) -> list[Finding]:
    # Imported here because the detector takes a third of a second to load, and only a launch needs it.
    from prime_train.launch.code.secrets import secrets_in

    found = secrets_in(snapshot.folder, (name for name, _ in snapshot.files), let_through)
    return [
        Finding(
            SECRET,
            f"{neutralized(one.path)} would be uploaded, and line {one.line} looks like a secret: {neutralized(one.kind)}",
            str(snapshot.folder / one.path),
            one.line,
            fix=f"remove the secret, replacing it where it is valid; or add the file to .gitignore; or let it through: {_flag(one.path)}",
        )
        for one in islice(found, FINDINGS_MAX)
    ]
