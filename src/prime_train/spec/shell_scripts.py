"""The command that a shell script starts a training with, as far as its text shows it.

Only what run scripts are written with is understood: assignments, arrays, defaults such as ${NAME:-8}, arguments,
and commands over several lines. Nothing is executed. What cannot be known here, such as a variable of the
machine or the output of a command, stays in the text as it is written, with its $.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

CHARS_MAX = 40_000
"""Characters of a script that are read."""
COMMAND_CHARS_MAX = 20_000
USES_MAX = 400
"""Variables in one part of a statement that are filled in."""
SUFFIXES = (".sh", ".slurm", ".sbatch")
_SHELLS = ("bash", "sh", "zsh")
_PROGRAMS = re.compile(
    r"(?:python[\d.]*|torchrun|accelerate|deepspeed|swift|megatron|llamafactory-cli|lmf|axolotl|trl|uv|poetry)"
)
_BEFORE = frozenset(("nohup", "exec", "time", "srun", "sudo", "env", "stdbuf"))
"""Programs that start another one."""
_ASSIGNED = re.compile(r"(?:export|local|declare|readonly)?\s*([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_ARRAY = re.compile(r"(?:declare\s+-a\s+|local\s+)?([A-Za-z_]\w*)\+?=\((.*)\)\s*", re.DOTALL)
_USED = re.compile(
    r"\$(?:\{(?P<name>[A-Za-z_]\w*)(?:\[[@*]\])?(?::?[-=](?P<default>(?:[^{}]|\$\{[^{}]*\})*))?\}"
    r"|(?P<plain>[A-Za-z_]\w*)|\{?(?P<at>\d|@|\*)(?::?-(?P<at_default>[^{}]*))?\}?)"
)


_MANY = re.compile(r'"\$(?:@|\{@\}|\{\w+\[@\]\})"')
"""What stands for several words even in double quotes: all arguments, or an array."""
_ARGUMENTS = re.compile(r"\$\{?[@*]")


@dataclass(frozen=True)
class ScriptCommand:
    """A command in a script. `text` is one line, with variables set before it; `line` counts from 1.
    `hands_on`: it gets the script's own arguments, too.
    """

    text: str
    line: int
    hands_on: bool = False


def script_named(command: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the shell script that the command consists of, with its arguments; None if it is another
    command.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    while words and _is_variable(words[0]):
        words = words[1:]
    if words and PurePosixPath(words[0]).name in _SHELLS:
        words = [word for at, word in enumerate(words) if at > 0 and (at > 1 or not word.startswith("-"))]
    if not words or not words[0].endswith(SUFFIXES) or {"&&", ";", "|"} & set(words):
        return None
    return words[0], tuple(words[1:])


def inline_script(command: str) -> str | None:
    """Return the script that the command itself contains, as `bash -c '...'` does; None if it does not."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    at = next(
        (at for at, word in enumerate(words) if word not in _BEFORE and not _is_variable(word)), len(words)
    )
    rest = words[at:]
    if len(rest) < 3 or PurePosixPath(rest[0]).name not in _SHELLS or not re.fullmatch(r"-\w*c", rest[1]):
        return None
    return rest[2]


def _is_variable(word: str) -> bool:
    return re.match(r"[A-Za-z_]\w*=", word) is not None


def training_command(text: str, arguments: Sequence[str] = ()) -> ScriptCommand | None:
    """Return the command of the script that has the most settings; None if it starts no program that is known
    to train in its first `CHARS_MAX` characters.
    """
    text = text[:CHARS_MAX]
    variables: dict[str, str] = {str(at): word for at, word in enumerate(arguments, 1)}
    variables["@"] = variables["*"] = shlex.join(arguments)
    exported: dict[str, str] = {}
    hands_on = _ARGUMENTS.search(_uncommented(text)) is not None
    found: list[ScriptCommand] = []
    for line, statement in _statements(text):
        if (array := _ARRAY.fullmatch(statement)) is not None:
            held = _uncommented(array[2])
            before = variables.get(array[1], "") if "+=(" in statement else ""
            variables[array[1]] = f"{before} {_filled(held, variables)}".strip()[:COMMAND_CHARS_MAX]
        elif (given := _ASSIGNED.fullmatch(statement)) is not None and len(_words(given[3])) <= 1:
            value = _filled(given[3], variables)
            own = _words(value)
            value = own[0] if len(own) == 1 else value
            before = variables.get(given[1], "") if given[2] else ""
            variables[given[1]] = (before + value)[:COMMAND_CHARS_MAX]
            if statement.startswith("export"):
                exported[given[1]] = variables[given[1]]
        elif (filled := _started(_filled(statement, variables))) is not None:
            found.append(ScriptCommand(_with_exports(filled, exported), line, hands_on))
    return max(found, key=lambda one: len(_words(one.text)), default=None)


def _with_exports(command: str, exported: Mapping[str, str]) -> str:
    kept = [f"{name}={shlex.quote(value)}" for name, value in exported.items() if name.startswith("NPROC")]
    return " ".join((*kept, command))


def _started(statement: str) -> str | None:
    """Return the part of a statement from the program on that may train; None if there is none."""
    words = _words(statement)
    at = next((at for at, word in enumerate(words) if not _is_variable(word)), len(words))
    variables = words[:at]
    if at < len(words) and words[at] in _BEFORE:
        at = next((later for later, word in enumerate(words) if _is_program(word)), len(words))
    if at == len(words) or not _is_program(words[at]) or "-c" in words[at + 1 : at + 2]:
        return None
    ends = [end for end, word in enumerate(words) if word in ("|", "&&", ";", "&", "2>&1", ">")]
    return shlex.join((*variables, *words[at : min(ends, default=len(words))]))[:COMMAND_CHARS_MAX]


def _is_program(word: str) -> bool:
    return _PROGRAMS.fullmatch(PurePosixPath(word).name) is not None


def _words(text: str) -> list[str]:
    try:
        return shlex.split(_uncommented(text))
    except ValueError:
        return []


def _uncommented(text: str) -> str:
    """Return the text without its comments, which begin with a # at the start of a word."""
    kept, quote, before, is_comment = [], "", " ", False
    for letter in text:
        if is_comment:
            is_comment = letter != "\n"
        elif quote:
            quote = "" if letter == quote and before != "\\" else quote
        elif letter in "'\"" and before != "\\":
            quote = letter
        else:
            is_comment = letter == "#" and before.isspace()
        kept.append("" if is_comment else letter)
        before = letter
    return "".join(kept)


def _filled(text: str, variables: Mapping[str, str]) -> str:
    """Return the text with the variables that are known; in single quotes, as in any shell, none is."""
    text = _MANY.sub(lambda used: used[0][1:-1], text)
    parts = (
        part
        if part.startswith("'")
        else _USED.sub(lambda used: _value(used, variables), part, count=USES_MAX)
        for part in _outside_quotes(text)
    )
    return "".join(parts)[: 4 * COMMAND_CHARS_MAX]


def _outside_quotes(text: str) -> Iterator[str]:
    """Yield the parts of a text, those in single quotes by themselves with the quotes."""
    start, quote = 0, ""
    for at, letter in enumerate(text):
        if letter == '"' and quote != "'":
            quote = "" if quote == '"' else '"'
        elif letter == "'" and quote == "'":
            yield text[start : at + 1]
            start, quote = at + 1, ""
        elif letter == "'" and not quote:
            yield text[start:at]
            start, quote = at, "'"
    yield text[start:]


def _value(used: re.Match[str], variables: Mapping[str, str]) -> str:
    if used["at"] is not None:
        return variables.get(used["at"], used["at_default"] or "")
    name = used["name"] or used["plain"]
    if variables.get(name):
        return variables[name]
    default: str | None = used["default"]
    if default is None:
        return used[0]
    own = _words(default) if default[:1] in ("'", '"') else []
    # A default may name other variables, and these have defaults without further ones.
    return _filled(own[0] if len(own) == 1 else default, variables)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield every statement with the number of its first line: lines joined where one goes on, by a backslash,
    an open quote or an open array. Of a choice only what is tried first is taken.
    """
    held, start, skipped = "", 0, 0
    lines = text.split("\n")
    for at, line in enumerate(lines, 1):
        stripped = line.strip()
        if not held:
            if stripped.startswith("#") or not stripped:
                continue
            word = stripped.split(maxsplit=1)[0].rstrip(";")
            if word in ("else", "elif") and not skipped:
                skipped = 1
                continue
            if word == "fi":
                skipped = 0
                continue
            if skipped:
                continue
            start = at
        elif stripped.startswith("#") and _is_open_array(held):
            continue
        held = f"{held}\n{line}" if _is_open(held) else f"{held} {stripped}" if held else stripped
        if held.rstrip().endswith("\\"):
            held = held.rstrip()[:-1]
            if at < len(lines) and len(held) < COMMAND_CHARS_MAX:
                continue
        if at < len(lines) and len(held) < COMMAND_CHARS_MAX and _is_open(held):
            continue
        yield start, held.strip()
        held = ""


def _is_open(statement: str) -> bool:
    return _is_open_array(statement) or _has_open_quote(statement)


def _is_open_array(statement: str) -> bool:
    return re.match(
        r"(?:\w+\s+)?[A-Za-z_]\w*\+?=\(", statement
    ) is not None and not statement.rstrip().endswith(")")


def _has_open_quote(statement: str) -> bool:
    quote, before = "", ""
    for letter in statement:
        if quote:
            quote = "" if letter == quote and not (quote == '"' and before == "\\") else quote
        elif letter in "'\"" and before != "\\":
            quote = letter
        elif letter == "#" and before.isspace():
            return False
        before = letter
    return bool(quote)
