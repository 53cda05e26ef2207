"""The page docs/cli.md, made of the commands themselves: `python -m prime_train.cli.help.reference >
docs/cli.md`.
"""

import inspect
from collections.abc import Iterator
from typing import Any

from prime_train.cli.help.examples import EXAMPLES
from prime_train.cli.help.json_fields import JSON_FIELDS
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
only the result: `prime-train run -q` prints the id alone.

The suffix of a field's name is its unit: `_s` seconds, `_usd` dollars, `_gib` 2^30 bytes, `_bytes` bytes, `_pct` percent, `_c` degrees
Celsius, `_w` watts. Times such as `created_s` are seconds since 1970 by the control plane's clock. `null` means unknown, or not yet known.
In the tables below `[]` stands for each item of a list, `*` for any key, and `**` for everything below.
"""
_FULL = "status RUN"
"""The command whose fields other commands include. Only its own table lists them; the other tables refer to
it.
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
        f"| `{_named(option)}` | {_cell(option.help)} |" for option in command.params if _is_shown(option)
    ]
    if rows:
        yield "\n".join(("| option | |", "|---|---|", *rows, ""))
    for key in [
        key
        for key in JSON_FIELDS
        if key.removesuffix(" RUN").removesuffix(" --dry-run").removesuffix(" --verify") == name
    ]:
        fields = [f"| `{field}` | {_cell(text)} |" for field, text in _folded(key).items()]
        yield f"`prime-train {key} --json`:\n\n" + "\n".join(("| field | |", "|---|---|", *fields, ""))


def _folded(key: str) -> dict[str, str]:
    fields, full = dict(JSON_FIELDS[key]), JSON_FIELDS[_FULL]
    for before in ("", "[].", "status."):
        if key != _FULL and all(f"{before}{name}" in fields for name in full):
            kept = {
                name: text
                for name, text in fields.items()
                if name.removeprefix(before) not in full or not name.startswith(before)
            }
            fields = {f"{before}**": f"as `prime-train {_FULL} --json` has it", **kept}
    return fields


def _help(command: Any) -> str:
    return inspect.cleandoc(command.help or "")


def _is_shown(option: Any) -> bool:
    return option.param_type_name == "option" and not option.hidden and "--help" not in option.opts


def _named(option: Any) -> str:
    return ", ".join(sorted((*option.opts, *option.secondary_opts), key=len)) + (
        f" {option.metavar}" if option.metavar else ""
    )


def _cell(text: str) -> str:
    return (text or "").replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    print(markdown(), end="")
