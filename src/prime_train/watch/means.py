"""What a control plane works with outside: notifiers, trackers and providers. They belong to the control
plane, and its store knows them.

The watchers of one control plane may have different environments, such as a server and a scheduled job on
GitHub. Each of them says at every sweep what it has. A watcher that lacks something leaves the work that
needs it to one that has it: it does not settle that work, nor put off its time, and says once to whom it is
left.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from prime_train.alerts.port import Notifier, PlacedNotifier
from prime_train.providers.kinds import allowed_providers
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.breaker import Watch
from prime_train.runs.run import Alert, Run, Severity
from prime_train.text.formatting import span
from prime_train.tracker.port import NoTracker
from prime_train.watch.context import Context

KNOWN_S = 7 * 86_400
"""Seconds for which something belongs to the control plane after the last sweep of a watcher that had it:
whoever takes it away on purpose does not keep alerts waiting for ever.
"""
NEAR_S = 900
"""Seconds since its last sweep for which another watcher is waited for where this one could act alone, only
less well.
"""
LEFT_S = 60
"""Seconds after which this process looks again at a run that it left to others."""
AWAY_S = 3600
"""Seconds without a watcher that could rent for a run, after which people are told."""
SAVES_MAX = 20
TRACKER = "tracker"
_NOTIFIER, _PROVIDER, _SERVED = "notifier ", "provider ", "at home"


def named(notifiers: Sequence[Notifier]) -> dict[str, Notifier]:
    """Return the notifiers by names that are the same in every process: class and place, numbered if there
    are several of one name.
    """
    found: dict[str, Notifier] = {}
    kinds: Counter[str] = Counter()
    for notifier in notifiers:
        place = notifier.place if isinstance(notifier, PlacedNotifier) else ""
        kind = f"{type(notifier).__name__} {place}".rstrip()
        kinds[kind] += 1
        found[kind if kinds[kind] == 1 else f"{kind} {kinds[kind]}"] = notifier
    return found


def own_means(context: Context) -> frozenset[str]:
    """Return the names of what this watcher has."""
    names = {_NOTIFIER + name for name in named(context.notifiers)} | {
        _PROVIDER + name for name in context.providers or ()
    }
    if not isinstance(context.tracker, NoTracker):
        names.add(TRACKER)
    return frozenset(names if context.is_guest else names | {_SERVED})


def may_deliver(context: Context, now_s: int) -> bool:
    """Return whether this watcher sends alerts. One that serves a remote control plane beside that one's own
    watcher does not while the store does not know that watcher's notifiers, as with an older version there.
    """
    return context.delivers or _SERVED in _known(context.elsewhere.means, now_s)


def with_means(watch: Watch, own: Iterable[str], now_s: int) -> Watch:
    """Return the watchers' shared state in which this watcher has what it has now, without what nobody has
    had for `KNOWN_S`.
    """
    kept = {name: at_s for name, at_s in watch.means.items() if now_s - at_s < KNOWN_S}
    return replace(watch, means={**kept, **dict.fromkeys(own, now_s)})


def say_means(context: Context, now_s: int) -> None:
    """Save what this watcher has. Called if its state of this sweep was not saved because another watcher was
    first; it may be the only sweep of its process.
    """
    for _ in range(SAVES_MAX):
        watch = context.store.watch()
        if context.store.save_watch(
            replace(with_means(watch, own_means(context), now_s), version=watch.version + 1),
            version=watch.version,
        ):
            return


def other_notifiers(context: Context, now_s: int) -> tuple[str, ...]:
    """Return the names of the notifiers of this control plane that only other watchers have."""
    own = named(context.notifiers)
    names = (
        name.removeprefix(_NOTIFIER)
        for name in _known(context.elsewhere.means, now_s)
        if name.startswith(_NOTIFIER)
    )
    return tuple(sorted(name for name in names if name not in own))


def tracker_elsewhere(context: Context, now_s: int) -> str:
    """Return why silence proves nothing to this watcher: it cannot read the tracker, and one that can is
    near. Empty if it may judge.
    """
    at_s = context.elsewhere.means.get(TRACKER)
    if at_s is None or not isinstance(context.tracker, NoTracker) or now_s - at_s > NEAR_S:
        return ""
    return (
        "this watcher cannot read the run's tracker; one that can was here "
        f"{span(max(0, now_s - at_s))} "
        "ago, and judges the run"
    )


def marks_elsewhere(context: Context, now_s: int) -> bool:
    """Return whether other watchers of this control plane have a tracker."""
    return TRACKER in _known(context.elsewhere.means, now_s)


def providers_elsewhere(context: Context, run: Run, now_s: int) -> tuple[str, ...]:
    """Return the providers for which this run is left to other watchers: none of those that it may use is
    here, or one that is not has been elsewhere within `NEAR_S`.
    """
    if context.providers is None:
        return ()
    allowed = allowed_providers(run.spec.hardware)
    known = _known(context.elsewhere.means, now_s)
    lacking = [name for name in allowed if name not in context.providers and _PROVIDER + name in known]
    if len(lacking) < len(allowed):
        lacking = [name for name in lacking if now_s - known[_PROVIDER + name] <= NEAR_S]
    return tuple(lacking)


def leave_run(context: Context, run: Run, why: str, now_s: int, for_s: int = LEFT_S) -> None:
    """Leave the run to other watchers for a while. It stays due in the store. Said once, until this watcher
    has done something for it.
    """
    if run.run_id not in context.elsewhere.runs:
        context.watched(run.run_id, "LeftToOthers", why)
    context.elsewhere.runs[run.run_id] = now_s + for_s


def why_left(context: Context, providers: Sequence[str], now_s: int) -> str:
    """Return why a launch is left to others, and when one of them was last here."""
    return (
        f"provider {' and '.join(providers)} is not set up for this watcher; one that has it was "
        "here "
        f"{_ago(context, providers, now_s)} ago"
    )


def away_alert(context: Context, run: Run, providers: Sequence[str], now_s: int) -> Alert | None:
    """Return the alert that a run waits for a watcher that has not come for long; None while it may come
    yet.
    """
    at_s = max(context.elsewhere.means[_PROVIDER + name] for name in providers)
    if now_s - at_s < AWAY_S:
        return None
    title = f"{run.run_id}: it waits for a watcher that can rent for it"
    text = f"{why_left(context, providers, now_s)}; start that watcher, or give its credentials to this one"
    return Alert(
        f"{run.run_id}/away/{at_s}",
        run.run_id,
        AlertKind.UNKNOWN,
        Severity.WARNING,
        title,
        text,
        now_s,
        run.attempt,
    )


def is_left(context: Context, run_id: str, now_s: int) -> bool:
    return context.elsewhere.runs.get(run_id, 0) > now_s


def _ago(context: Context, providers: Sequence[str], now_s: int) -> str:
    return span(max(0, now_s - max(context.elsewhere.means[_PROVIDER + name] for name in providers)))


def _known(means: Mapping[str, int], now_s: int) -> dict[str, int]:
    return {name: at_s for name, at_s in means.items() if now_s - at_s < KNOWN_S}
