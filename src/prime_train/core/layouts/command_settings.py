"""Settings in a command, in the form of hydra: KEY=VALUE, +KEY=VALUE or ++KEY=VALUE."""

import re
import shlex

_SETTING = re.compile(r"\+{0,2}([A-Za-z_][\w.]*)=(.*)", re.DOTALL)


def settings_in(command: str) -> dict[str, str]:
    """Return the settings by their keys; of a key that occurs more than once the last value. Empty if a shell would refuse the command."""
    try:
        words = shlex.split(command)
    except ValueError:
        return {}
    return {found[1]: found[2] for word in words if (found := _SETTING.fullmatch(word))}
