"""The page docs/json.md, made of the table of JSON fields: `python -m prime_train.cli.help.json_reference >
docs/json.md`.
"""

import re
from collections.abc import Iterator

from prime_train.cli.help.json_fields import JSON_FIELDS
from prime_train.cli.verbs import VERBS

_HEAD = """\
# JSON of the commands

Generated from the commands by `python -m prime_train.cli.help.json_reference > docs/json.md`. What the commands do: [cli.md](cli.md).

Every command that reads takes `--json`. Results go to standard output, warnings and errors to standard error.

The suffix of a field's name is its unit: `_s` seconds, `_usd` dollars, `_gib` 2^30 bytes, `_bytes` bytes, `_pct` percent, `_c` degrees
Celsius, `_w` watts. Times such as `created_s` are seconds since 1970 by the control plane's clock. `null` means unknown, or not yet known.
In the tables `[]` stands for each item of a list, `*` for any key, and `**` for everything below.
"""
_FULL = "status RUN"
"""The command whose fields other commands include. Only its own table lists them; the other tables refer to
it.
"""


def markdown() -> str:
    """Return the text of docs/json.md."""
    names = [one.name for verbs in VERBS.values() for verb in verbs for one in verb.verbs or (verb,)]
    return "\n".join((_HEAD, *(part for name in names for part in _tables(name))))


def documented(name: str) -> list[str]:
    """Return the calls of a command whose JSON is documented, such as `run` and `run --dry-run`."""
    return [key for key in JSON_FIELDS if re.split(r" (?:RUN|--)", key)[0] == name]


def link(name: str) -> str:
    """Return a sentence for docs/cli.md that leads to the JSON of a command; empty: it has none."""
    calls = " and ".join(f"`prime-train {key} --json`" for key in documented(name))
    return f"Fields of {calls}: [json.md](json.md#{name.replace(' ', '-')})." if calls else ""


def cell(text: str) -> str:
    """Return the text as it may stand in a cell of a table."""
    return (text or "").replace("|", "\\|").replace("\n", " ")


def _tables(name: str) -> Iterator[str]:
    calls = documented(name)
    if calls:
        yield f"## {name}\n"
    for key in calls:
        fields = [f"| `{field}` | {cell(text)} |" for field, text in _folded(key).items()]
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


if __name__ == "__main__":
    print(markdown(), end="")
