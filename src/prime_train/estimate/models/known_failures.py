"""Combinations of a model and a use that others have tried, and that fail whatever the settings are."""

import re
from dataclasses import dataclass
from enum import StrEnum


class Use(StrEnum):
    VLLM_UPDATES = "vllm updates"
    """A training that sends new weights to a vLLM server, as RL does."""


@dataclass(frozen=True)
class KnownFailure:
    """`models`: a pattern of the ids without their owner; `seen`: the date of the newest report; `source`:
    the reports.
    """

    models: str
    use: Use
    text: str
    seen: str
    source: str

    @property
    def message(self) -> str:
        return f"{self.text} (seen {self.seen}: {self.source})"


FAILURES = (
    KnownFailure(
        r"gpt-oss-\d+b.*",
        Use.VLLM_UPDATES,
        "a vLLM server does not take new weights of gpt-oss (load_weights gets an unexpected argument "
        "weight_name), so RL ends at its first update",
        "2026-01-02",
        "vllm-project/vllm#23577, modelscope/ms-swift#7270",
    ),
)


def failures_of(model: str, use: Use | None = None) -> tuple[KnownFailure, ...]:
    """Return what is known to fail with the model of that id, in this use or in any."""
    name = model.strip().rstrip("/").rpartition("/")[2].lower()
    return tuple(one for one in FAILURES if re.fullmatch(one.models, name) and use in (None, one.use))
