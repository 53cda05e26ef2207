"""An alert as the value that every message of it is made of: Slack's, Discord's, and plain JSON."""

from dataclasses import dataclass

from prime_train.core.figures import figures
from prime_train.core.run import Alert, Lease, Run, RunState, Severity
from prime_train.core.text.redaction import masked
from prime_train.core.tracker.pages import links
from prime_train.reports.alert_facts import facts_of
from prime_train.reports.pull_request import stopped_as_asked
from prime_train.reports.sparkline import spark

CALLING_KINDS = ("failed", "stopped", "funds")


@dataclass(frozen=True)
class AlertCard:
    """Texts are plain: no markup of any place, and nothing in them that looks like a secret."""

    key: str
    run_id: str
    kind: str
    severity: Severity
    title: str
    text: str
    at_s: int
    attempt: int = 0
    facts: tuple[tuple[str, str], ...] = ()
    """Name and value, the most telling first."""
    links: tuple[tuple[str, str], ...] = ()
    """Name and URL; the URLs need no escaping."""
    picture: str = ""
    """Step over time, as one line of bars; only where it succeeded."""
    calls: bool = False
    """Whether a person has to look."""


def card_of(alert: Alert, run: Run | None, now_s: int, *, lease: Lease | None = None) -> AlertCard:
    """`run` and `lease`: as they are now; without them the card has no facts."""
    return AlertCard(
        key=alert.key,
        run_id=alert.run_id,
        kind=alert.kind,
        severity=alert.severity,
        title=masked(alert.title),
        text=masked(alert.text),
        at_s=alert.at_s,
        attempt=alert.attempt,
        facts=tuple((name, masked(value)) for name, value in facts_of(alert, figures(run, lease, now_s))) if run is not None else (),
        links=links(run) if run is not None else (),
        picture=spark(run, lease, now_s) if run is not None and alert.kind == RunState.SUCCEEDED.value else "",
        calls=alert.kind in CALLING_KINDS and not (run is not None and stopped_as_asked(run)),
    )
