"""Progress of prime-rl, parsed from its metrics file, console output or JSON log, all written by both trainer
and orchestrator.

The orchestrator is a step ahead and reports step N before the trainer has made it. So only the trainer's
lines count as progress, and a reward is kept until the trainer's line of its step. The trainer writes several
rows a step. After a launch that failed, the next launch writes rows for the same steps again, and the last
row counts.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from prime_train.spec.spec import ProgressSpec
from prime_train.trainers.log_lines import clean
from prime_train.trainers.progress import JsonReader, Progress, RegexReader

WAITING_MAX = 64
"""Maximum number of kept rewards for steps that the trainer has not made yet; it is never that far behind."""

_TRAINED = ("loss/mean", "optim/lr")
_REWARDS = ("reward/all/mean", "reward/mean")
_MESSAGES = ("message", "msg", "text")
_NUMBER = r"[-+0-9.,eE]+"
_LOSS = ProgressSpec(kind="regex", pattern=rf"\bStep (?P<step>\d+) \|.*\bLoss:? (?P<loss>{_NUMBER}|nan|inf)")
_REWARD = ProgressSpec(
    kind="regex", pattern=rf"\bStep (?P<step>\d+) \|.*\| Reward:? (?P<reward>{_NUMBER}|nan|inf)"
)


class PrimeRlReader:
    """Reader of prime-rl's progress, which keeps a reward until the trainer reports its step."""

    def __init__(self) -> None:
        self._row = JsonReader(
            ProgressSpec(loss=_TRAINED[0], grad_norm="optim/grad_norm", learning_rate=_TRAINED[1])
        )
        self._rewards = tuple((f'"{name}"', JsonReader(ProgressSpec(reward=name))) for name in _REWARDS)
        self._loss, self._reward = RegexReader(_LOSS), RegexReader(_REWARD)
        self._newest = -1
        self._waiting: dict[int, Progress] = {}

    def read(self, line: str) -> Progress | None:
        text = clean(line).strip()
        if not text.startswith("{"):
            return self._console(text)
        if any(f'"{name}"' in text for name in _TRAINED):
            return self._trained(self._row.read(text))
        for name, reader in self._rewards:
            if name in text:
                return self._rewarded(reader.read(text))
        return self._console(_message(text))

    def _console(self, text: str) -> Progress | None:
        return self._trained(self._loss.read(text)) or self._rewarded(self._reward.read(text))

    def _trained(self, made: Progress | None) -> Progress | None:
        if made is None:
            return None
        self._newest = made.step
        ahead = self._waiting.pop(made.step, None)
        if ahead is None:
            return made
        return replace(
            made, reward=ahead.reward, not_finite=made.not_finite | (ahead.not_finite & {"reward"})
        )

    def _rewarded(self, ahead: Progress | None) -> Progress | None:
        if ahead is None or (ahead.reward is None and "reward" not in ahead.not_finite):
            return None
        if ahead.step <= self._newest:
            return ahead
        self._waiting[ahead.step] = ahead
        for old in sorted(self._waiting)[:-WAITING_MAX]:
            del self._waiting[old]
        return None


def merged(lines: Iterable[str]) -> dict[int, dict[str, object]]:
    """Return the rows of the metrics file by step, with both components' rows merged; if a figure occurs
    twice, the last value counts.
    """
    rows: dict[int, dict[str, object]] = {}
    reader = JsonReader(ProgressSpec())
    for line in lines:
        made = reader.read(line)
        if made is not None:
            rows.setdefault(made.step, {}).update(_fields(clean(line).strip()))
    return {step: rows[step] for step in sorted(rows)}


def _message(text: str) -> str:
    """Return the message in a line of a JSON log; "" if there is none."""
    fields = _fields(text)
    return next((str(fields[name]).strip() for name in _MESSAGES if isinstance(fields.get(name), str)), "")


def _fields(text: str) -> Mapping[str, object]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}
