"""Alerts that wait, sent to whoever is to hear of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from prime_train.control_plane.reconcile.context import Context, Failures
from prime_train.core.figures import heard
from prime_train.core.run import ATTENDED, SHOWN, Alert, Run, Severity
from prime_train.ports import Foreseeing, Notifier, PermanentError, Showing, TemporaryError

OUTBOX_MAX = 200
"""So many are sent to each notifier at a time."""
CLAIM_S = 300
"""So long other watchers leave an alert to the one that has claimed it: longer than any notifier takes for one."""
REFRESH_S = 600
"""How often the state of a run that trains is shown anew where it is shown."""
ALERT_S_MAX = 86_400
QUIET_S_MAX = 1800
"""What only mirrors a state is soon overtaken, and must not fill the outbox while one notifier is away."""


def deliver(context: Context, now_s: int, failures: Failures | None = None, *, clock: Callable[[], int] | None = None) -> int:
    """Sends what waits in the outbox: claimed first, so that of several watchers one sends it; marked after it was sent, so that a crash
    repeats an alert rather than loses it. The number of alerts that wait no longer.

    Each notifier is sent what it lacks, whichever process told it of the rest: one that is away, or fails in whatever way, keeps no alert
    from the others. What it could not take for `ALERT_S_MAX` is given up, in the log. What fails is raised in the end, or left in
    `failures`. With a `clock`, each claim has its own second: a notifier that is slow may take longer for all than a claim lasts.
    """
    own = failures if failures is not None else Failures()
    done = 0
    if context.store.outbox(1):
        named = _named(context.notifiers)
        turn = _Turn(context, own, tuple(named), now_s, clock)
        for name, notifier in named.items():
            with own.kept():
                done += turn.deliver_to(name, notifier)
        with own.kept():
            done += turn.give_up()
    if failures is None:
        own.raised()
    return done


def refresh(context: Context, run_ids: Sequence[str], now_s: int, failures: Failures) -> None:
    """Where the state of a run is shown, it is brought up to date now and then. What fails comes again by itself."""
    for run_id in run_ids:
        if context.shown.get(run_id, 0) + REFRESH_S > now_s:
            continue
        context.shown[run_id] = now_s
        held = failures.load(context.store, run_id)
        if held is None or held.run.state not in ATTENDED:
            continue
        quiet = Alert(f"{run_id}/shown/{now_s}", run_id, SHOWN, Severity.QUIET, held.run.state.value, "", now_s, held.run.attempt)
        for notifier in context.notifiers:
            if held.run.origin is None and not (isinstance(notifier, Showing) and notifier.shows(run_id)):
                continue
            _is_done(context, notifier, quiet, heard(held.run, held.lease), failures)


def tell(context: Context, alert: Alert) -> None:
    """Of what belongs to no run: it waits in the outbox like any other, and is put there once, whichever process comes upon it."""
    if (alert.key, "") not in context.told:
        context.store.tell(alert)
        context.told.add((alert.key, ""))


def _named(notifiers: Sequence[Notifier]) -> dict[str, Notifier]:
    """By names that are the same in every process: those of their classes, numbered where there are several of one."""
    named: dict[str, Notifier] = {}
    for notifier in notifiers:
        kind = type(notifier).__name__
        number = 1 + sum(type(other) is type(notifier) for other in named.values())
        named[kind if number == 1 else f"{kind} {number}"] = notifier
    return named


@dataclass(frozen=True)
class _Turn:
    """Once through the outbox. `untaken`: which notifiers could not take an alert for now, by its key."""

    context: Context
    failures: Failures
    names: tuple[str, ...]
    now_s: int
    clock: Callable[[], int] | None
    untaken: dict[str, list[str]] = field(default_factory=dict)

    def deliver_to(self, name: str, notifier: Notifier) -> int:
        """What that notifier lacks; the number of alerts that it was the last to take."""
        store, told, done = self.context.store, self.context.told, 0
        waiting = store.outbox(OUTBOX_MAX, lacking=name)
        if waiting and isinstance(notifier, Foreseeing):
            waiting = [alert for alert in waiting if (alert.key, name) in told or self._claims(name, alert)]
            notifier.foresee(waiting)
        for alert in waiting:
            if (alert.key, name) not in told:
                if not self._claims(name, alert):
                    continue
                if not self._sent(notifier, alert):
                    self.untaken.setdefault(alert.key, []).append(name)
                    self._claims(name, alert, for_s=0)
                    continue
            told.add((alert.key, name))
            done += not store.mark_sent(alert.key, name, among=self.names)
            told.discard((alert.key, name))
        return done

    def _claims(self, name: str, alert: Alert, for_s: int = CLAIM_S) -> bool:
        """Whether it is for this watcher to send: another one that has claimed it is at it, or has died less than `CLAIM_S` ago."""
        now_s = self.now_s if self.clock is None else self.clock()
        return self.context.store.claim(alert.key, name, self.context.owner, now_s=now_s, until_s=now_s + for_s)

    def give_up(self) -> int:
        """What has waited for too long, and, where there is no notifier, everything; the number of them."""
        done = 0
        for alert in self.context.store.outbox(OUTBOX_MAX):
            kept_s = QUIET_S_MAX if alert.severity is Severity.QUIET else ALERT_S_MAX
            if self.names and self.now_s < alert.at_s + kept_s:
                continue
            if self.names:
                lacks = ", ".join(self.untaken.get(alert.key, ())) or "somebody"
                self.context.watched(alert.run_id, "AlertGivenUp", f"{alert.kind}: {lacks} never took it")
            self.context.store.mark_sent(alert.key)
            done += 1
        return done

    def _sent(self, notifier: Notifier, alert: Alert) -> bool:
        """Of a run that cannot be read people are told without it; one that cannot be read just now is waited for."""
        held = self.failures.load(self.context.store, alert.run_id)
        if isinstance(self.failures.unread.get(alert.run_id), TemporaryError):
            return False
        return _is_done(self.context, notifier, alert, heard(held.run, held.lease) if held else None, self.failures)


def _is_done(context: Context, notifier: Notifier, alert: Alert, run: Run | None, failures: Failures) -> bool:
    """Whether this notifier is done with the alert: it took it, or refused it for good."""
    try:
        notifier.send(alert, run)
    except TemporaryError as error:
        context.watched(alert.run_id, "AlertFailed", f"{error}; sent again later")
        return False
    except PermanentError as error:
        context.watched(alert.run_id, "AlertRefused", str(error))
    except Exception as error:  # a fault of ours: the next alert may be well
        error.add_note(f"while {type(notifier).__name__} was told of {alert.key}")
        failures.keep(error)
        return False
    return True
