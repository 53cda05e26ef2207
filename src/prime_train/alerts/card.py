"""The card of an alert, from which the messages for Slack, Discord and plain JSON are made."""

from dataclasses import dataclass

from prime_train.alerts.facts import facts_of
from prime_train.alerts.sparkline import sparkline
from prime_train.runs.alert_kinds import AlertKind, policy_of
from prime_train.runs.figures import figures
from prime_train.runs.headline import stopped_by_user
from prime_train.runs.links import links
from prime_train.runs.run import Alert, Lease, Run, Severity
from prime_train.text.redaction import redacted


@dataclass(frozen=True)
class AlertCard:
    """An alert with its facts and links. Texts are plain: they contain no markup and nothing that looks like
    a secret.
    """

    key: str
    run_id: str
    kind: str
    severity: Severity
    title: str
    text: str
    at_s: int
    attempt: int = 0
    facts: tuple[tuple[str, str], ...] = ()
    """Pairs of name and value, the most important first."""
    links: tuple[tuple[str, str], ...] = ()
    """Pairs of name and URL; the URLs need no escaping."""
    image: str = ""
    """The step over time as one line of bar characters; empty unless the run succeeded."""
    calls: bool = False
    """Whether a person must look at the run."""


def card_of(alert: Alert, run: Run | None, now_s: int, *, lease: Lease | None = None) -> AlertCard:
    """Return the card of an alert. `run` and `lease` are the current ones; without `run` the card has no
    facts.
    """
    return AlertCard(
        key=alert.key,
        run_id=alert.run_id,
        kind=alert.kind,
        severity=alert.severity,
        title=redacted(alert.title),
        text=redacted(alert.text),
        at_s=alert.at_s,
        attempt=alert.attempt,
        facts=tuple((name, redacted(value)) for name, value in facts_of(alert, figures(run, lease, now_s)))
        if run is not None
        else (),
        links=links(run) if run is not None else (),
        image=sparkline(run, lease, now_s) if run is not None and alert.kind is AlertKind.SUCCEEDED else "",
        calls=policy_of(alert.kind).needs_person and not (run is not None and stopped_by_user(run)),
    )
