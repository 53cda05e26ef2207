"""Configs of prime-rl for tests: a valid one, the same with one mistake, and runs that use it."""

from dataclasses import dataclass
from pathlib import Path

from prime_train.checks.engine import findings_with_ignored
from prime_train.configs.loader import load_configs
from prime_train.spec.finding import Finding
from prime_train.trainers.prime_rl.rules.all_rules import RULES

CONFIGS = Path(__file__).parents[1] / "data" / "prime_rl_configs"
GOOD = (CONFIGS / "good.toml").read_text(encoding="utf-8")

KNOWN = "559b4477" + "0" * 32
SPEC = """\
name: arithmetic
trainer:
  kind: prime_rl
  steps: 200
  prime_rl:
    config: rl.toml
    ref: {ref}
  code: {{folder: {folder}}}
hardware:
  gpus: [H100_80GB]
  count: 8
checkpoints:
  every_steps: 10
budget: {{usd: 20}}
"""


@dataclass(frozen=True)
class Mistake:
    """A mistake, with `at` and `says` as in mistakes.txt."""

    name: str
    code: str
    text: str
    at: str
    says: str


def mistakes() -> list[Mistake]:
    _, *blocks = (CONFIGS / "mistakes.txt").read_text(encoding="utf-8").split("\n== ")
    return [_mistake(block) for block in blocks]


def _mistake(block: str) -> Mistake:
    title, *rows = block.strip().splitlines()
    code, _, name = title.partition(" ")
    message = {row[0]: row[1:].strip() for row in rows if row[0] in "@?"}
    text, old, new = f"\n{GOOD}", "", ""
    for row in rows:
        if old and row[0] in ".@":
            text, old, new = changed(text, (f"\n{old}", f"\n{new}")), "", ""
        old += f"{row[1:]}\n" if row[0] == "-" else ""
        new += f"{row[1:]}\n" if row[0] == "+" else ""
    return Mistake(name, code, text[1:], message["@"], message.get("?", ""))


def changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in it"
        text = text.replace(old, new)
    return text


def line(text: str, at: str) -> int:
    """Return the number of the first line that begins with this text."""
    lines = text.splitlines()
    return next(number for number, here in enumerate(lines, 1) if here.strip().startswith(at)) if at else 1


def found(path: Path) -> tuple[Finding, ...]:
    """Return the findings of the rules about prime-rl alone."""
    (loaded,) = load_configs([path])
    assert loaded.subject is not None, loaded.findings
    return findings_with_ignored(loaded.subject, rules=RULES)


def found_in(folder: Path, text: str) -> tuple[Finding, ...]:
    path = folder / "rl.toml"
    path.write_text(text, encoding="utf-8")
    return found(path)


def found_in_run(folder: Path, text: str, *changes: tuple[str, str], ref: str = KNOWN) -> tuple[Finding, ...]:
    """Return the findings about a run whose config is `text`, with its spec changed."""
    (folder / "rl.toml").write_text(text, encoding="utf-8")
    path = folder / "run.yaml"
    path.write_text(changed(SPEC.format(ref=ref, folder=folder), *changes), encoding="utf-8")
    return found(path)
