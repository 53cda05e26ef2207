"""Sends the alerts in the outbox to the notifiers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from prime_train.alerts.port import BatchNotifier, Notifier, StatusDisplay
from prime_train.errors import NotHere, PermanentError, TemporaryError
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.run import ACTIVE_STATES, Alert, Run, Severity, with_heartbeat
from prime_train.watch.context import Context, Failures
from prime_train.watch.means import KNOWN_S, named, other_notifiers

OUTBOX_MAX = 200
"""Maximum number of alerts sent to each notifier at a time."""
CLAIM_S = 300
"""Seconds for which other watchers do not send a claimed alert: longer than any notifier takes to send
one.
"""
REFRESH_S = 600
"""Seconds between refreshes of the display of a training run."""
LEFT_S = 600
"""Seconds after which this process tries again to send what it has left to another one."""
ALERT_S_MAX = 86_400
QUIET_S_MAX = 1800
"""Seconds until an alert that only mirrors a state is dropped: it is soon outdated, and must not fill the
outbox.
"""

_SAID = "left"


def deliver(
    context: Context, now_s: int, failures: Failures | None = None, *, clock: Callable[[], int] | None = None
) -> int:
    """Send the alerts in the outbox and return the number that no longer wait. An alert is claimed before it
    is sent, so that only one of several watchers sends it, and marked afterwards, so that a crash repeats an
    alert instead of losing it.

    Each notifier gets the alerts it lacks, whichever process sent the others: a notifier that is unreachable
    or fails delays no alert of the others. An alert waits also for the notifiers that only other watchers of
    this control plane have. An alert that a notifier of this watcher could not take for `ALERT_S_MAX` is
    dropped for it, with a log line. Failures are raised at the end, or collected in `failures`. With a
    `clock`, each claim starts at its own second, because a slow notifier may take longer for all alerts than
    a claim lasts.
    """
    own = failures if failures is not None else Failures()
    done = 0
    if context.store.outbox(1):
        mine = named(context.notifiers)
        turn = _Turn(context, own, tuple(mine), now_s, clock, others=other_notifiers(context, now_s))
        for name, notifier in mine.items():
            with own.collected():
                done += turn.deliver_to(name, notifier)
        with own.collected():
            done += turn.give_up()
    if failures is None:
        own.raised()
    return done


def refresh(context: Context, run_ids: Sequence[str], now_s: int, failures: Failures) -> None:
    """Refresh displays of the state of runs from time to time. A failed refresh is repeated at the next
    interval.
    """
    for run_id in run_ids:
        if context.shown.get(run_id, 0) + REFRESH_S > now_s:
            continue
        context.shown[run_id] = now_s
        record = failures.load(context.store, run_id)
        if record is None or record.run.state not in ACTIVE_STATES:
            continue
        quiet = Alert(
            f"{run_id}/shown/{now_s}",
            run_id,
            AlertKind.SHOWN,
            Severity.QUIET,
            record.run.state.value,
            "",
            now_s,
            record.run.attempt,
        )
        for name, notifier in named(context.notifiers).items():
            if record.run.origin is None and not (
                isinstance(notifier, StatusDisplay) and notifier.shows(run_id)
            ):
                continue
            _is_done(
                context,
                name,
                notifier,
                quiet,
                with_heartbeat(record.run, record.lease),
                failures,
                now_s=now_s,
            )


def enqueue(context: Context, alert: Alert) -> None:
    """Put an alert that belongs to no run into the outbox. It is put there only once, even if several
    processes find its reason.
    """
    if (alert.key, "") not in context.notified:
        context.store.enqueue_alert(alert)
        context.notified.add((alert.key, ""))


@dataclass(frozen=True)
class _Turn:
    """The progress of one pass through the outbox. `others`: the notifiers that only other watchers have.
    `untaken`: the notifiers that could not take an alert for now, by its key.
    """

    context: Context
    failures: Failures
    names: tuple[str, ...]
    now_s: int
    clock: Callable[[], int] | None
    others: tuple[str, ...] = ()
    untaken: dict[str, list[str]] = field(default_factory=dict)

    def deliver_to(self, name: str, notifier: Notifier) -> int:
        """Send the notifier the alerts that it has not handled; return the number of alerts that no longer
        wait for any notifier.
        """
        store, notified, done = self.context.store, self.context.notified, 0
        # The keys of the alerts that this notifier has left to another process, and does not try again yet.
        alerts = self.context.elsewhere.alerts
        for at in [at for at, until_s in alerts.items() if until_s <= self.now_s]:
            del alerts[at]
        left = {key for key, whose in alerts if whose == name}
        waiting = [
            alert for alert in store.outbox(OUTBOX_MAX + len(left), lacking=name) if alert.key not in left
        ]
        if waiting and isinstance(notifier, BatchNotifier):
            waiting = [
                alert for alert in waiting if (alert.key, name) in notified or self._claims(name, alert)
            ]
            notifier.announce(waiting)
        for alert in waiting:
            if (alert.key, name) not in notified:
                if not self._claims(name, alert):
                    continue
                if not self._sent(name, notifier, alert):
                    self.untaken.setdefault(alert.key, []).append(name)
                    self._claims(name, alert, for_s=0)
                    continue
            notified.add((alert.key, name))
            done += not store.mark_sent(alert.key, name, among=(*self.names, *self.others))
            notified.discard((alert.key, name))
        return done

    def _claims(self, name: str, alert: Alert, for_s: int = CLAIM_S) -> bool:
        """Claim the alert, and return whether this watcher may send it. It may not if another watcher has
        claimed it within the last `CLAIM_S` seconds, which is still sending it or has crashed.
        """
        now_s = self.now_s if self.clock is None else self.clock()
        return self.context.store.claim(
            alert.key, name, self.context.owner, now_s=now_s, until_s=now_s + for_s
        )

    def give_up(self) -> int:
        """Drop alerts that have waited too long, or all if there is no notifier; return their number. One
        that another watcher's notifier lacks is dropped only for the own ones.
        """
        done, lacking = 0, self._lacking()
        left = self.context.elsewhere.alerts
        for alert in self.context.store.outbox(OUTBOX_MAX + len(left)):
            others = lacking.get(alert.key, ()) if alert.severity is not Severity.QUIET else ()
            if others:
                self._say_left(alert, others)
            kept_s = QUIET_S_MAX if alert.severity is Severity.QUIET else ALERT_S_MAX
            if (self.names or others) and self.now_s < alert.at_s + kept_s:
                continue
            untaken = [name for name in self.untaken.get(alert.key, ()) if (alert.key, name) not in left]
            is_left = others or (
                any(key == alert.key for key, _ in left) and self.now_s < alert.at_s + KNOWN_S
            )
            if is_left and not untaken:
                continue
            if self.names:
                lacks = ", ".join(untaken) or "somebody"
                self.context.watched(
                    alert.run_id, "AlertGivenUp", f"{alert.kind}: {lacks} never accepted the alert"
                )
            if is_left:
                done += sum(
                    not self.context.store.mark_sent(alert.key, name, among=(*self.names, *self.others))
                    for name in untaken
                )
                continue
            self.context.store.mark_sent(alert.key)
            done += 1
        return done

    def _lacking(self) -> dict[str, list[str]]:
        """Return the notifiers of other watchers that have not handled an alert yet, by its key."""
        lacking: dict[str, list[str]] = {}
        for name in self.others:
            for alert in self.context.store.outbox(
                OUTBOX_MAX + len(self.context.elsewhere.alerts), lacking=name
            ):
                lacking.setdefault(alert.key, []).append(name)
        return lacking

    def _say_left(self, alert: Alert, others: Sequence[str]) -> None:
        """Say once to which notifiers of other watchers the alert is left."""
        if (alert.key, _SAID) not in self.context.notified:
            self.context.notified.add((alert.key, _SAID))
            self.context.watched(
                alert.run_id,
                "AlertLeft",
                f"{alert.kind}: it waits for another watcher, which has {', '.join(others)}",
            )

    def _sent(self, name: str, notifier: Notifier, alert: Alert) -> bool:
        """Send the alert and return whether the notifier is done with it. If the run's record is unreadable,
        the alert is sent without it; after a temporary failure it waits.
        """
        record = self.failures.load(self.context.store, alert.run_id)
        if isinstance(self.failures.unread.get(alert.run_id), TemporaryError):
            return False
        run = with_heartbeat(record.run, record.lease) if record else None
        return _is_done(self.context, name, notifier, alert, run, self.failures, now_s=self.now_s)


def _is_done(
    context: Context,
    name: str,
    notifier: Notifier,
    alert: Alert,
    run: Run | None,
    failures: Failures,
    *,
    now_s: int,
) -> bool:
    """Return whether this notifier, of this name, is done with the alert: it took it, or refused it
    permanently.
    """
    try:
        notifier.send(alert, run)
    except NotHere as error:
        if alert.severity is not Severity.QUIET:
            context.watched(alert.run_id, "AlertLeft", f"{error}; it is left to another watcher")
        context.elsewhere.alerts[alert.key, name] = now_s + LEFT_S
        return False
    except TemporaryError as error:
        context.watched(alert.run_id, "AlertFailed", f"{error}; retried later")
        return False
    except PermanentError as error:
        context.watched(alert.run_id, "AlertRefused", str(error))
    except Exception as error:  # a bug of prime-train: the next alert may succeed
        error.add_note(f"while {type(notifier).__name__} was notified of {alert.key}")
        failures.collect(error)
        return False
    return True
