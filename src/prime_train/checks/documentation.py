"""The table of rules for people: the page docs/rules.md, and its summary in a terminal."""

from collections.abc import Iterator

from prime_train.checks.all_rules import all_rules, by_code
from prime_train.spec.finding import CODE_PREFIXES, CODES
from prime_train.spec.rule import Rule

_HEAD = """\
# The rules that check a config

Generated from the table of rules.

An error makes `validate` fail and keeps `run` from launching; a warning and a note do neither. Rules about
machines for rent do not apply to a run on your own machine (`provider: local`). To keep a line as it is, ignore its finding by a comment on
that line, or alone on the line before it, which gives the reason:

```yaml
hardware:
  disk_gib: 20  # prime-train: ignore[HW105] the model is on a volume of its own
```
"""
_READING = """\
## Reading

Problems that keep a file from being read, and problems that any text may have. All are errors except PT009, PT021 and those of
the ignore comments, which are notes."""


def markdown() -> str:
    parts = [
        _HEAD,
        _READING,
        "",
        "| code | what it is |",
        "|---|---|",
        *(f"| {code} | {title} |" for code, title in CODES.items()),
    ]
    for topic in list(dict.fromkeys(rule.topic for rule in all_rules())):
        parts += [
            "",
            f"## {topic[0].upper()}{topic[1:]}",
            "",
            "| code | severity | what it is | why | what to do |",
            "|---|---|---|---|---|",
        ]
        parts += [_row(rule) for rule in all_rules() if rule.topic == topic]
    return "\n".join(parts) + "\n"


def lines() -> Iterator[str]:
    """Yield one line for each code."""
    yield from (f"{code}  {title}" for code, title in CODES.items())
    yield from (f"{rule.code}  {rule.title} ({rule.severity.value})" for rule in all_rules())


def records() -> list[dict[str, str]]:
    """Return all columns of the table, as one record for each code, in order."""
    reading = [
        {
            "code": code,
            "severity": "",
            "family": CODE_PREFIXES[code[:3]],
            "title": title,
            "why": "",
            "fix": "",
        }
        for code, title in CODES.items()
    ]
    rules = [
        {
            "code": rule.code,
            "severity": rule.severity.value,
            "family": CODE_PREFIXES[rule.code[:3]],
            "title": rule.title,
            "why": rule.why,
            "fix": rule.fix,
        }
        for rule in all_rules()
    ]
    return [*reading, *rules]


def explained(code: str) -> str | None:
    """Return all that the table contains on one code; None for any other word."""
    rule = by_code().get(code)
    if rule is None:
        return f"{code}: {CODES[code]}" if code in CODES else None
    about = CODE_PREFIXES[code[:3]]
    return f"{code} ({rule.severity.value}, {about}): {rule.title}\n\n{rule.why}\n\nwhat to do: {rule.fix}"


def _row(rule: Rule) -> str:
    return (
        f"| {rule.code} | {rule.severity.value} | {_cell(rule.title)} | {_cell(rule.why)} "
        "| "
        f"{_cell(rule.fix)} |"
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
