"""The page docs/cli.md, made of the commands themselves: `python -m prime_train.cli.help.reference >
docs/cli.md`.
"""

import inspect
from collections.abc import Iterator
from typing import Any

from prime_train.cli.help import json_reference
from prime_train.cli.help.examples import EXAMPLES
from prime_train.cli.lazy import Verb
from prime_train.cli.verbs import VERBS

_HEAD = """\
# Commands

Generated from the commands by `python -m prime_train.cli.help.reference > docs/cli.md`.

`prime-train -h` lists all commands, `prime-train COMMAND -h` explains one. `prime-train --install-completion` makes your shell (bash, zsh,
fish) complete commands and options.

Exit codes: 0 ok, 1 findings, or a run that did not succeed, 2 a usage error, 3 an external service failed and may work later, 4 an
external service refused permanently, 70 a bug in prime-train, 130 interrupted. If a command handles several runs, a failure of one does not
stop the others, and the exit code is that of the first failure.

A run is named by its id, by the start of its id, or by its config's name, which means its active run, or else its newest.

**For scripts.** Every command that reads takes `--json`. Results go to standard output, warnings and errors to standard error. `-q` prints
only the result: `prime-train run -q` prints the id alone. The fields of all: [json.md](json.md).
"""


def markdown() -> str:
    """Return the text of docs/cli.md."""
    parts = [_HEAD]
    for title, verbs in VERBS.items():
        parts += [f"## {title}\n", *(part for verb in verbs if verb.name != "gha" for part in _command(verb))]
    return "\n".join(parts)


def _command(verb: Verb) -> Iterator[str]:
    if verb.verbs:
        yield f"{_help(verb.command)}\n"
    for one in verb.verbs or (verb,):
        yield from _one(one.name, one.command)


def _one(name: str, command: Any) -> Iterator[str]:
    yield f"### {name}\n\n{_help(command)}\n"
    yield "```sh\n" + "\n".join(f"{call}  # {purpose}" for purpose, call in EXAMPLES[name]) + "\n```\n"
    rows = [
        f"| `{_named(option)}` | {json_reference.cell(option.help)} |"
        for option in command.params
        if _is_shown(option)
    ]
    if rows:
        yield "\n".join(("| option | |", "|---|---|", *rows, ""))
    if fields := json_reference.link(name):
        yield f"{fields}\n"


def _help(command: Any) -> str:
    return inspect.cleandoc(command.help or "")


def _is_shown(option: Any) -> bool:
    return option.param_type_name == "option" and not option.hidden and "--help" not in option.opts


def _named(option: Any) -> str:
    return ", ".join(sorted((*option.opts, *option.secondary_opts), key=len)) + (
        f" {option.metavar}" if option.metavar else ""
    )


if __name__ == "__main__":
    print(markdown(), end="")
