"""The alerts of a run that people have been sent and whose reason has not passed."""

from dataclasses import dataclass

from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.run import Run
from prime_train.text.redaction import redacted


@dataclass(frozen=True)
class OpenAlert:
    """An alert whose reason has not passed. `at_s`: the second at which people were notified."""

    kind: AlertKind
    text: str
    at_s: int


def open_alerts(run: Run) -> tuple[OpenAlert, ...]:
    """Return the open alerts of the run, oldest first; none once it is over. Without recorded words, the kind
    stands for them.
    """
    notices = () if run.is_over else sorted(run.notices, key=lambda notice: notice.at_s)
    return tuple(
        OpenAlert(notice.kind, redacted(notice.text) or notice.kind.replace("_", " "), notice.at_s)
        for notice in notices
    )
