"""The table of rules for people: the page docs/rules.md, and its summary in a terminal."""

from collections.abc import Iterator

from prime_train.core.finding import CODES, FAMILIES
from prime_train.rules.rule import Rule
from prime_train.rules.table import all_rules, by_code

_HEAD = """\
# What is looked for in a config

Made from the table of rules by `prime-train rules --markdown`.

An error makes `validate` fail and keeps `run` from launching; a warning and a note do neither. Whatever is about machines for rent is not
asked of a run on one's own (`provider: local`). A finding that is meant to stay is ignored by a comment on its line, or alone on the line
before it, which says why:

```yaml
hardware:
  disk_gib: 20  # prime-train: ignore[HW105] the model is on a volume of its own
```
"""
_READING = """\
## Reading

What keeps a file from being understood, and what any text may have in it. All are errors but for PT009, PT021 and those of the ignores,
which are notes."""


def markdown() -> str:
    parts = [_HEAD, _READING, "", "| code | what it is |", "|---|---|", *(f"| {code} | {title} |" for code, title in CODES.items())]
    for family in _families():
        parts += [
            "",
            f"## {family[0].upper()}{family[1:]}",
            "",
            "| code | severity | what it is | why | what to do |",
            "|---|---|---|---|---|",
        ]
        parts += [_row(rule) for rule in all_rules() if rule.family == family]
    return "\n".join(parts) + "\n"


def lines() -> Iterator[str]:
    """Yield one line for each code."""
    yield from (f"{code}  {title}" for code, title in CODES.items())
    yield from (f"{rule.code}  {rule.title} ({rule.severity.value})" for rule in all_rules())


def records() -> list[dict[str, str]]:
    """Return everything the table has, one record for each code, in order."""
    reading = [
        {"code": code, "severity": "", "family": FAMILIES[code[:3]], "title": title, "why": "", "fix": ""} for code, title in CODES.items()
    ]
    rules = [
        {
            "code": rule.code,
            "severity": rule.severity.value,
            "family": FAMILIES[rule.code[:3]],
            "title": rule.title,
            "why": rule.why,
            "fix": rule.fix,
        }
        for rule in all_rules()
    ]
    return [*reading, *rules]


def explained(code: str) -> str | None:
    """Return everything the table has on one code; None for any other word."""
    rule = by_code().get(code)
    if rule is None:
        return f"{code}: {CODES[code]}" if code in CODES else None
    about = FAMILIES[code[:3]]
    return f"{code} ({rule.severity.value}, {about}): {rule.title}\n\n{rule.why}\n\nwhat to do: {rule.fix}"


def _families() -> list[str]:
    return list(dict.fromkeys(rule.family for rule in all_rules()))


def _row(rule: Rule) -> str:
    return f"| {rule.code} | {rule.severity.value} | {_cell(rule.title)} | {_cell(rule.why)} | {_cell(rule.fix)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
