"""Alerts that wait, sent to whoever is to hear of them."""

from collections.abc import Sequence

from prime_train.core.run import ATTENDED, SHOWN, Alert, Run, Severity
from prime_train.ports import Foreseeing, PermanentError, Showing, TemporaryError
from prime_train.reconcile.world import World

OUTBOX_MAX = 200
REFRESH_S = 600
"""How often the state of a run that trains is shown anew where it is shown."""
ALERT_S_MAX = 86_400
QUIET_S_MAX = 1800
"""What only mirrors a state is soon overtaken, and must not fill the outbox while one notifier is away."""


def deliver(world: World, now_s: int | None = None) -> int:
    """Sends what waits in the outbox: sent first, marked after, so that a crash repeats an alert rather than loses it.

    One notifier's failure keeps no alert from the others. What a notifier could not take for `ALERT_S_MAX` is given up, in the log.
    """
    done = 0
    waiting = world.store.outbox(OUTBOX_MAX)
    for notifier in world.notifiers:
        if waiting and isinstance(notifier, Foreseeing):
            notifier.foresee(waiting)
    for alert in waiting:
        held = world.store.load(alert.run_id)
        waits = [_sent(world, alert, held.run if held else None, place) for place in range(len(world.notifiers))].count(False)
        kept_s = QUIET_S_MAX if alert.severity is Severity.QUIET else ALERT_S_MAX
        if waits and (now_s is None or now_s < alert.at_s + kept_s):
            continue
        if waits:
            world.watched(alert.run_id, "AlertGivenUp", f"{alert.kind}: {waits} of {len(world.notifiers)} notifiers never took it")
        world.store.mark_sent(alert.key)
        world.told.difference_update([(alert.key, place) for place in range(len(world.notifiers))])
        done += 1
    return done


def refresh(world: World, run_ids: Sequence[str], now_s: int) -> None:
    """Where the state of a run is shown, it is brought up to date now and then. What fails comes again by itself."""
    for run_id in run_ids:
        if world.shown.get(run_id, 0) + REFRESH_S > now_s:
            continue
        world.shown[run_id] = now_s
        held = world.store.load(run_id)
        if held is None or held.run.state not in ATTENDED:
            continue
        quiet = Alert(f"{run_id}/shown/{now_s}", run_id, SHOWN, Severity.QUIET, held.run.state.value, "", now_s, held.run.epoch)
        for place, notifier in enumerate(world.notifiers):
            if held.run.origin is None and not (isinstance(notifier, Showing) and notifier.shows(run_id)):
                continue
            _sent(world, quiet, held.run, place)
            world.told.discard((quiet.key, place))


def announce(world: World, alert: Alert) -> None:
    """Of what belongs to no run, and so can wait in nobody's outbox: told at once, by this process once; who fails to take it is asked
    again with the next telling."""
    for place in range(len(world.notifiers)):
        _sent(world, alert, None, place)


def _sent(world: World, alert: Alert, run: Run | None, place: int) -> bool:
    """Whether this notifier is done with the alert: it took it, or refused it for good."""
    if (alert.key, place) in world.told:
        return True
    try:
        world.notifiers[place].send(alert, run)
    except TemporaryError as error:
        world.watched(alert.run_id, "AlertFailed", f"{error}; sent again later")
        return False
    except PermanentError as error:
        world.watched(alert.run_id, "AlertRefused", str(error))
    world.told.add((alert.key, place))
    return True
