"""The page docs/cli.md, made of the commands themselves: `python -m prime_train.cli.help.reference > docs/cli.md`."""

import inspect
from collections.abc import Iterator
from typing import Any

import typer.main

from prime_train.cli.help.examples import EXAMPLES
from prime_train.cli.help.groups import GROUPS
from prime_train.cli.help.json_fields import JSON_FIELDS

_HEAD = """\
# Commands

Made of the commands themselves by `python -m prime_train.cli.help.reference > docs/cli.md`.

`prime-train -h` lists all commands, `prime-train COMMAND -h` explains one. `prime-train --install-completion` makes your shell (bash, zsh,
fish) complete commands and options.

Exit codes: 0 ok, 1 findings, or a run that did not succeed, 2 a call that cannot be carried out, 3 something outside failed for now, 4
something outside refused, 70 a defect of prime-train, 130 interrupted. If a command is about several runs, a failure does not keep the
others from being handled, and the code is that of the first failure.

A run is named by its id, by the start of its id, or by its config's name, which means its run that goes on, or else its newest.

**For scripts.** Every command that reads takes `--json`. Results go to standard output, warnings and errors to standard error. `-q` prints
no more than was asked for: `prime-train run -q` prints the id alone.

Units are last in a field's name: `_s` seconds, `_usd` dollars, `_gib` 2^30 bytes, `_bytes` bytes, `_pct` percent, `_c` degrees Celsius,
`_w` watts. Moments such as `created_s` are seconds since 1970 by the control plane's clock. `null` means not known, or not yet. In the
tables below `[]` stands for each item of a list, `*` for any key, and `**` for whatever is below.
"""
_FULL = "status RUN"
"""The record that others contain; it is written out once."""


def markdown() -> str:
    """Return the page."""
    from prime_train.cli.verbs import app

    # The library has no types of its own for this.
    root: Any = typer.main.get_command(app)
    parts = [_HEAD]
    for title, names in GROUPS.items():
        shown = [name for name in names if name != "gha"]
        parts += [f"## {title}\n", *(part for name in shown for part in _command(name, root.commands[name]))]
    return "\n".join(parts)


def _command(name: str, command: Any) -> Iterator[str]:
    inner = getattr(command, "commands", None)
    if inner is not None:
        yield f"{_help(command)}\n"
        for word, one in inner.items():
            yield from _one(f"{name} {word}", one)
    else:
        yield from _one(name, command)


def _one(name: str, command: Any) -> Iterator[str]:
    yield f"### {name}\n\n{_help(command)}\n"
    yield "```sh\n" + "\n".join(f"{call}  # {purpose}" for purpose, call in EXAMPLES[name]) + "\n```\n"
    rows = [f"| `{_named(option)}` | {_cell(option.help)} |" for option in command.params if _is_shown(option)]
    if rows:
        yield "\n".join(("| option | |", "|---|---|", *rows, ""))
    for key in [key for key in JSON_FIELDS if key.removesuffix(" RUN").removesuffix(" --dry-run") == name]:
        fields = [f"| `{field}` | {_cell(text)} |" for field, text in _folded(key).items()]
        yield f"`prime-train {key} --json`:\n\n" + "\n".join(("| field | |", "|---|---|", *fields, ""))


def _folded(key: str) -> dict[str, str]:
    fields, full = dict(JSON_FIELDS[key]), JSON_FIELDS[_FULL]
    for before in ("", "[].", "standing."):
        if key != _FULL and all(f"{before}{name}" in fields for name in full):
            kept = {name: text for name, text in fields.items() if name.removeprefix(before) not in full or not name.startswith(before)}
            fields = {f"{before}**": f"as `prime-train {_FULL} --json` has it", **kept}
    return fields


def _help(command: Any) -> str:
    return inspect.cleandoc(command.help or "")


def _is_shown(option: Any) -> bool:
    return option.param_type_name == "option" and not option.hidden and "--help" not in option.opts


def _named(option: Any) -> str:
    return ", ".join(sorted((*option.opts, *option.secondary_opts), key=len)) + (f" {option.metavar}" if option.metavar else "")


def _cell(text: str) -> str:
    return (text or "").replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    print(markdown(), end="")
