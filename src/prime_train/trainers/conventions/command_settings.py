"""What kind of command it is, and settings in it in the form of hydra: KEY=VALUE, +KEY=VALUE or
++KEY=VALUE.
"""

import re
import shlex
from pathlib import PurePosixPath

_SETTING = re.compile(r"\+{0,2}([A-Za-z_][\w.]*)=(.*)", re.DOTALL)


def is_script(command: str) -> bool:
    """Return whether the command is a Python script or module with its arguments, and not a program that
    starts the training itself.
    """
    first = command.split(maxsplit=1)[:1]
    return first == ["-m"] or any(PurePosixPath(word).suffix == ".py" for word in first)


def settings_in(command: str) -> dict[str, str]:
    """Return the settings by their keys; of a key that occurs more than once the last value. Empty if a shell
    would refuse the command.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return {}
    return {found[1]: found[2] for word in words if (found := _SETTING.fullmatch(word))}
