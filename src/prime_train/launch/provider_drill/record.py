"""The record of a drill, as a file: what the provider answered, without secrets, and how that compares with
what was known.
"""

import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.launch.provider_drill.play import Drill

FORM = 1
"""Number of the form of the file; a change of what a field means raises it."""
NUMBERS_MAX = 100


def record_of(drill: Drill, now: datetime) -> dict[str, object]:
    """Return the record's content. `now`: the time of day."""
    hide = drill.recorder.text
    return {
        "form": FORM,
        "provider": drill.provider,
        "at": now.strftime("%Y-%m-%dT%H:%MZ"),
        "version": version("prime-train"),
        "usd": round(drill.usd, 4),
        "interrupted": drill.interrupted,
        "steps": [
            {
                "step": one.step.value,
                "outcome": one.outcome.value,
                "text": hide(one.text),
                "at_s": _rounded(one.at_s),
            }
            for one in drill.steps
        ],
        "loss": {
            "told_as": drill.loss.told_as,
            "told_s": _rounded(drill.loss.told_s),
            "unlisted_s": _rounded(drill.loss.unlisted_s),
        }
        if drill.loss is not None
        else None,
        "known_answers": [
            {
                "what": one.what,
                "says": one.says,
                "source": one.source,
                "verdict": one.verdict.value,
                "times": one.times,
                "why": list(one.why),
            }
            for one in drill.judged
        ],
        "answers_left_out": drill.recorder.left_out,
        "answers": drill.recorder.rows(),
    }


def write_record(drill: Drill, folder: Path) -> Path:
    """Write the record to a new file `drill-PROVIDER-DATE.json`, with a number if there is one from the same
    day, and return its path. Raises UsageError if it cannot be written.
    """
    now = datetime.now(UTC)
    text = json.dumps(record_of(drill, now), indent=1, ensure_ascii=True) + "\n"
    stem = f"drill-{drill.provider}-{now:%Y-%m-%d}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(1, NUMBERS_MAX):
            path = folder / (f"{stem}.json" if number == 1 else f"{stem}-{number}.json")
            with suppress(FileExistsError):
                with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                    file.write(text)
                return path
    except OSError as error:
        raise UsageError(
            f"the record cannot be written to {folder}: {error.strerror}", code=Exit.EXTERNAL_REFUSED
        ) from error
    raise UsageError(f"{folder} has {NUMBERS_MAX - 1} records of {stem}", fix="move them away")


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
