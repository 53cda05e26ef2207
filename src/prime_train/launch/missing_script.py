"""The script of a command, looked for in what a machine will get."""

import re
from pathlib import PurePosixPath

from prime_train.checks.spec_rules import only_installs
from prime_train.configs.unset_secrets import place_of
from prime_train.launch.code.archive import CodeSnapshot
from prime_train.spec.config_format import words
from prime_train.spec.finding import Finding
from prime_train.spec.spec import RunSpec

_SCRIPT = re.compile(r"(?:\./)?[\w][\w./-]*\.(?:py|sh)")
_SEVERAL = frozenset(("cd", "&&", ";", "||", "|", "if", "for"))
_OTHER_CODE = frozenset(("-m", "-c"))
"""With these, Python runs no script but a module, or code in the command."""


def missing_script(spec: RunSpec, snapshot: CodeSnapshot | None, file: str, source: str) -> Finding | None:
    """Return a finding if the command starts a script that no machine can have: its path is relative, it is not in the folder that is
    packed, and all that the set-up does is to install packages. None for whatever is less certain: code of a repository, a command of
    several parts, a module, a set-up that may make the script. `file` and `source`: of the config, for the place of the finding."""
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
                f"{name} is not in {snapshot.folder.absolute()}, the folder that is packed, so the command would fail on every machine",
                file,
                line,
                column,
                fix="check the path; if a command makes or fetches the script on the machine, write that command under setup",
                value=name,
            )
    return None


def _script(command: str) -> str:
    """Return the script that the command starts, as it is named there; empty if it starts none, or that is not certain."""
    split = words(command)
    if _SEVERAL & set(split) or any(word.endswith(";") for word in split):
        return ""
    at = next((at for at, word in enumerate(split) if _SCRIPT.fullmatch(word)), None)
    before = split[:at] if at is not None else ()
    return split[at] if at is not None and not _OTHER_CODE & set(before) and ".." not in split[at].split("/") else ""
