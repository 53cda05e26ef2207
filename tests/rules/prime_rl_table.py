"""Makes the table of prime-rl's settings at one commit from the JSON schema of its `RLConfig` there.

    python tests/rules/prime_rl_table.py SCHEMA.json COMMIT DATE >
    src/prime_train/trainers/prime_rl/reference/prime_rl_COMMIT.py

The settings of an environment itself are left out. The newest table is named in `prime_rl_fields` and
`prime_rl_keys`, and its commit in the timeline, which is written by hand.
"""

import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = "RLConfig"
OPEN = {("TrainSourceConfig", "env"), ("EvalSourceConfig", "env")}
TRUE_AS_WELL = {("trainer.ModelConfig", "full_offload")}
"""Sections that `true` switches on, by a validator that no schema shows."""
HEAD = '''"""Settings of prime-rl at {commit} ({date}), made by tests/rules/prime_rl_table.py from its own schema; not to be edited.

`prime_train.trainers.prime_rl.rules.fields` says how a row is read.
"""

COMMIT = "{commit}"
DATE = "{date}"
FIELDS = """\\
{rows}
"""
'''


def short(reference: str) -> str:
    """prime_rl__configs__trainer__ModelConfig -> trainer.ModelConfig"""
    steps = reference.rsplit("/", 1)[-1].split("__")
    return f"{steps[-2]}.{steps[-1]}" if len(steps) > 1 else steps[0]


def kinds(part: dict[str, Any]) -> list[str]:
    """Return the alternatives of one setting, null first and lists last."""
    if "anyOf" in part:
        found = [kind for option in part["anyOf"] for kind in kinds(option)]
        return sorted(found, key=lambda kind: (kind != "null", kind.startswith(("list:", "map:"))))
    if "$ref" in part:
        return [f"@{short(part['$ref'])}"]
    if "oneOf" in part:
        by = part["discriminator"]
        return [
            f"by:{by['propertyName']}({','.join(f'{word}@{short(to)}' for word, to in by['mapping'].items())})"
        ]
    words = part.get("enum", [part["const"]] if "const" in part else [])
    if words:
        return [f"'{word}'" for word in words]
    match part.get("type"):
        case "array":
            return [f"list:{'|'.join(kinds(part.get('items', {})))}"]
        case "object":
            values = part.get("additionalProperties", True)
            return [f"map:{'|'.join(kinds(values)) if isinstance(values, dict) else 'any'}"]
        case "integer" | "number" as name:
            return [("int" if name == "integer" else name) + bounds(part)]
        case "string":
            return ["text"]
        case "boolean":
            return ["bool"]
        case "null":
            return ["null"]
        case _:
            return ["any"]


def bounds(part: dict[str, Any]) -> str:
    low, high = part.get("minimum"), part.get("maximum")
    above, below = part.get("exclusiveMinimum"), part.get("exclusiveMaximum")
    if low is None and high is None and above is None and below is None:
        return ""
    first = f"({above:g}" if above is not None else f"[{low:g}" if low is not None else "("
    last = f"{below:g})" if below is not None else f"{high:g}]" if high is not None else ")"
    return f"{first}..{last}"


def default(part: dict[str, Any], required: bool) -> str:
    if required:
        return " !"
    tag = part["discriminator"]["propertyName"] if "discriminator" in part else None
    if tag is not None and isinstance(part.get("default"), dict):
        return f" = {json.dumps(part['default'][tag])}"
    if "default" not in part or isinstance(part["default"], list | dict):
        return ""
    return f" = {json.dumps(part['default'])}" if len(str(part["default"])) < 60 else ""


def section(name: str, part: dict[str, Any]) -> Iterator[str]:
    yield name + (" +" if part.get("additionalProperties") else "")
    for field, value in part.get("properties", {}).items():
        found = ["any"] if (name, field) in OPEN else kinds(value)
        found += ["bool"] if (name, field) in TRUE_AS_WELL else []
        row = f"{field} {'|'.join(found)}{default(value, field in part.get('required', []))}"
        yield textwrap.indent(
            " \\\n".join(textwrap.wrap(row.replace(",", ", ").replace("|", " | "), 130)), "  "
        )


def reached(name: str, parts: dict[str, Any], seen: set[str]) -> None:
    if name in seen:
        return
    seen.add(name)
    for row in section(name, parts[name]):
        for word in row.replace("(", ",").split("@")[1:]:
            reached(word.split(",")[0].split(" ")[0].rstrip(")\\\n"), parts, seen)


def main(path: str, commit: str, date: str) -> None:
    schema = json.loads(Path(path).read_text(encoding="utf-8"))
    parts = {short(name): part for name, part in schema["$defs"].items()} | {ROOT: schema}
    seen: set[str] = set()
    # The root needs nothing: what is shared is filled into its parts, which are made where they are missing.
    schema["required"] = []
    reached(ROOT, parts, seen)
    names = [ROOT, *sorted(seen - {ROOT})]
    rows = "\n".join(row for name in names for row in section(name, parts[name]))
    sys.stdout.write(HEAD.format(commit=commit, date=date, rows=rows))


if __name__ == "__main__":
    main(*sys.argv[1:4])
