"""Which rehearsal belongs to a config: a short digest of what a rehearsal proves, which the config names.

It covers how the script is started, saves, reports and resumes. Numbers in the command do not count, so a
rehearsal holds for all learning rates and lengths.
"""

import hashlib
import json
import re

from prime_train.spec.spec import RunSpec

WAIVED = "waived"
"""Stands in a config in place of a digest, where somebody decided that the script needs no rehearsal."""
DIGITS = 12
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d_.]*(?:[eE][-+]?\d+)?(?![\w])")


def rehearsal_digest(spec: RunSpec) -> str:
    """Return the digest of what a rehearsal of the config proves."""
    checkpoints = spec.checkpoints
    proven = {
        "kind": spec.trainer.kind,
        "command": _NUMBER.sub("0", spec.trainer.command.strip()),
        "resume": spec.trainer.resume,
        "progress": spec.trainer.progress.model_dump(mode="json"),
        "folder": checkpoints.folder,
        "pattern": checkpoints.pattern,
        "also": list(checkpoints.also),
        "first": checkpoints.first,
        "sentinel": checkpoints.sentinel,
        "files": list(checkpoints.files),
    }
    return hashlib.sha256(json.dumps(proven, sort_keys=True).encode()).hexdigest()[:DIGITS]
