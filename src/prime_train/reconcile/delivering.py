"""Alerts that wait, sent to whoever is to hear of them."""

from prime_train.core.run import Alert, Run
from prime_train.ports import PermanentError, TemporaryError
from prime_train.reconcile.world import World

OUTBOX_MAX = 200
ALERT_S_MAX = 86_400


def deliver(world: World, now_s: int | None = None) -> int:
    """Sends what waits in the outbox: sent first, marked after, so that a crash repeats an alert rather than loses it.

    One notifier's failure keeps no alert from the others. What a notifier could not take for `ALERT_S_MAX` is given up, in the log.
    """
    done = 0
    for alert in world.store.outbox(OUTBOX_MAX):
        held = world.store.load(alert.run_id)
        waits = [_sent(world, alert, held.run if held else None, place) for place in range(len(world.notifiers))].count(False)
        if waits and (now_s is None or now_s < alert.at_s + ALERT_S_MAX):
            continue
        if waits:
            world.watched(alert.run_id, "AlertGivenUp", f"{alert.kind}: {waits} of {len(world.notifiers)} notifiers never took it")
        world.store.mark_sent(alert.key)
        world.told.difference_update([(alert.key, place) for place in range(len(world.notifiers))])
        done += 1
    return done


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
