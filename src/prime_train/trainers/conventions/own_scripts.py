"""How a user's own script is told to resume, by its command and by the options that its text defines."""

import re
import shlex
from itertools import pairwise

from prime_train.spec.choices import RESUME_ARGUMENTS

SCRIPT_BYTES_MAX = 2**20
"""Most bytes of a script that are read."""
SELF = "--resume-step"
"""The option of prime-train's own examples, which a script that has it is given by itself."""

_DEFINED = re.compile(
    r"""["'](?P<option>--[A-Za-z][\w-]{0,60})(?:/--[\w-]{1,60})?["'](?P<rest>[^()]{0,300})"""
)
_NAMES = re.compile(
    r"resume|restore|(?:^|[-_.])(?:load|continue)(?:[-_]|$)|(?:load|init|start)[-_](?:from|ckpt|checkpoint)|"
    r"ckpt[-_]path",
    re.IGNORECASE,
)
"""Names of options that say what to resume from."""
_IS_SWITCH = re.compile(r"store_true|store_false|is_flag\s*=\s*True|BooleanOptionalAction")
_WORD = re.compile(r"""["'](resume|latest|last|auto)["']""")
"""A value of such an option, other than a path, with which the script finds its checkpoint."""
_MAY_STAND_ALONE = re.compile(r"""nargs\s*=\s*["']\?["']""")
_NOT_THE_RUN = re.compile(r"pretrain|teacher|vae|tokenizer|data|worker|bit|balanc", re.IGNORECASE)
_LOOKS = re.compile(
    r"exists\(|is_?file\(|is_?dir\(|\bi?glob\b|listdir\(|iterdir\(|scandir\(|get_last_checkpoint|"
    r"latest_checkpoint"
)
_LOADS = re.compile(r"load\w*\(|restore\w*\(|resume_from_checkpoint\s*=")
_RESUMES = re.compile(r"resum|restor|latest|newest|last_?(?:ckpt|checkpoint)", re.IGNORECASE)
_OFF = frozenset(("", "0", "false", "no", "none", "null", "off", "never", "disable", "disabled", "scratch"))


def scripts_of(command: str) -> tuple[str, ...]:
    """Return the paths of the scripts that the command may start, as the words name them; empty if a shell
    would refuse the command.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return ()
    modules = (f"{word.replace('.', '/')}.py" for before, word in pairwise(words) if before == "-m")
    return (*(word for word in words if word.endswith((".py", ".sh"))), *modules)


def is_given_step(command: str, text: str) -> bool:
    """Return whether a script with this text has the option of our own examples, and the command leaves it to
    us.
    """
    return SELF in text and SELF not in command


def resume_arguments(text: str) -> str:
    """Return the arguments with which a script with this text is probably told to resume, as `trainer.resume`
    has them; empty if its text defines no such option.
    """
    return next(iter(resume_candidates(text)), "")


def resume_candidates(text: str) -> tuple[str, ...]:
    """Return all arguments with which a script with this text, or this help, may be told to resume, the
    likeliest first, as `trainer.resume` has them.
    """
    if SELF in text:
        return (RESUME_ARGUMENTS,)
    found: list[str] = []
    for option in _DEFINED.finditer(text):
        name = option["option"]
        if not _NAMES.search(name[2:]) or _NOT_THE_RUN.search(name):
            continue
        if _IS_SWITCH.search(option["rest"]):
            found.append(name)
            continue
        number = next((field for field in ("step", "epoch") if name.endswith(field)), "checkpoint")
        word = _WORD.search(option["rest"])
        found += [f"{name} {word[1]}"] if word else []
        found.append(f"{name} {{{number}}}")
        found += [name] if _MAY_STAND_ALONE.search(option["rest"]) else []
    return tuple(dict.fromkeys(found))


def finds_by_itself(text: str) -> bool:
    """Return whether a script with this text seems to look for its newest checkpoint at each start, without
    being told.
    """
    return all(pattern.search(text) for pattern in (_LOOKS, _LOADS, _RESUMES)) and not resume_arguments(text)


def is_told_to_resume(command: str) -> bool:
    """Return whether each start of the command says by itself that the script is to resume, as `--resume
    auto` and `resume=true` do.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    for at, word in enumerate(words):
        name, sign, value = word.lstrip("-+").partition("=")
        is_option = word.startswith("--")
        if (
            not (is_option or sign)
            or not _NAMES.search(name)
            or _NOT_THE_RUN.search(name)
            or name.startswith("no")
        ):
            continue
        after = words[at + 1] if at + 1 < len(words) and not words[at + 1].startswith("-") else "true"
        if (value if sign else after).lower() not in _OFF:
            return True
    return False
