"""Delivery of alerts to several notifiers, some of which are unavailable, by processes that start and end."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from secrets import token_hex

import pytest

from prime_train.alerts.port import Notifier
from prime_train.alerts.url import webhooks_from
from prime_train.errors import TemporaryError
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.change import alert_for as alert_of
from prime_train.runs.run import Alert, Change, Run, Severity
from prime_train.watch.context import Context
from prime_train.watch.outbox import ALERT_S_MAX, CLAIM_S, deliver
from prime_train.watch.sweeps import sweep
from tests import builders as b
from tests.fakes.http import Response, ScriptedServer
from tests.reconcile.ports import Crash, Outside, RacedStore, RecordingNotifier

DOWN = TemporaryError("HTTP 503")
OK: Response = Response(200, b"ok")
BUSY: Response = Response(429)


def fresh(w: Outside, *notifiers: Notifier) -> Context:
    """Return the context of another process, which has no state."""
    return replace(
        w.world, notifiers=notifiers, owner=token_hex(8), notified=set(), shown={}, followed={}, unmarked={}
    )


def happens(w: Outside, title: str) -> None:
    """Let something happen that people are notified of."""
    run = w.run()
    alert = alert_of(run, w.now_s, AlertKind.SILENT, Severity.WARNING, title, "")
    assert w.store.save(Change(replace(run, version=run.version + 1), alerts=(alert,)))


def titles(reported: RecordingNotifier) -> list[str]:
    return [alert.title.partition(": ")[2] for alert in reported.alerts]


@pytest.mark.parametrize(
    "order", [lambda well, away: (well, away), lambda well, away: (away, well)], ids=["first", "last"]
)
def test_who_was_reported_is_not_reported_again_by_other_processes_while_another_is_away(
    order: Callable[[RecordingNotifier, RecordingNotifier], tuple[RecordingNotifier, RecordingNotifier]],
) -> None:
    w, well, away = Outside(), RecordingNotifier(), RecordingNotifier(error=DOWN)
    happens(w, "one")
    for _ in range(12):
        w.after(300)
        deliver(fresh(w, *order(well, away)), w.now_s)
    assert titles(well) == ["one"]
    away.error = None
    happens(w, "two")
    for _ in range(3):
        deliver(fresh(w, *order(well, away)), w.now_s)
    assert titles(well) == titles(away) == ["one", "two"]
    assert w.store.outbox(9) == []


def test_a_url_that_was_reported_is_not_reported_again_by_other_processes_while_the_url_of_the_spec_is_away() -> (
    None
):
    w = Outside({"alerts": {"webhook": "OWN_URL"}})
    happens(w, "one")
    with ScriptedServer(OK) as there, ScriptedServer(BUSY, BUSY, OK) as own:
        for _ in range(3):
            deliver(fresh(w, *webhooks_from({"OWN_URL": own.url}, there.url)), w.now_s)
        assert (len(there.requests), len(own.requests)) == (1, 3)
    assert w.store.outbox(9) == []


def test_a_spec_that_names_the_url_of_every_alert_has_it_reported_once() -> None:
    w = Outside({"alerts": {"webhook": "OWN_URL"}})
    happens(w, "one")
    with ScriptedServer(OK) as there:
        deliver(fresh(w, *webhooks_from({"OWN_URL": there.url}, there.url)), w.now_s)
        assert len(there.requests) == 1


def test_one_that_is_away_hides_nothing_from_the_others_however_much_waits_for_it() -> None:
    w, well, away = Outside(), RecordingNotifier(), RecordingNotifier(error=DOWN)
    names = [str(number) for number in range(450)]
    for name in names:
        happens(w.after(1), name)
        deliver(fresh(w, away, well), w.now_s)
    assert titles(well) == names
    away.error = None
    for _ in range(3):
        deliver(fresh(w, away, well), w.now_s)
    assert titles(away) == titles(well) == names
    assert w.store.outbox(9) == []


def test_one_that_is_set_up_later_is_reported_what_still_waits() -> None:
    w, well, away, new = Outside(), RecordingNotifier(), RecordingNotifier(error=DOWN), RecordingNotifier()
    happens(w, "one")
    deliver(fresh(w, well, away), w.now_s)
    deliver(fresh(w, well, away, new), w.now_s)
    assert titles(well) == titles(new) == ["one"]


def test_what_one_could_not_take_for_a_day_is_given_up_and_only_for_it() -> None:
    w, well, away = Outside(), RecordingNotifier(), RecordingNotifier(error=DOWN)
    message: list[str] = []
    happens(w, "one")
    for after_s in (0, ALERT_S_MAX - 1, 1):
        w.after(after_s)
        world = replace(
            fresh(w, well, away), watched=lambda run_id, what, text: message.append(f"{what} {text}")
        )
        deliver(world, w.now_s)
        assert len(w.store.outbox(9)) == (1 if after_s != 1 else 0)
    assert titles(well) == ["one"]
    assert [line for line in message if line.startswith("AlertGivenUp")] == [
        "AlertGivenUp silent: RecordingNotifier 2 never accepted the alert"
    ]


def test_an_alert_that_one_watcher_is_sending_is_not_sent_by_another_one_at_the_same_time() -> None:
    w, other = Outside(), RecordingNotifier()
    happens(w, "one")
    slow = RecordingNotifier(meanwhile=lambda: deliver(fresh(w, other), w.now_s))
    assert deliver(fresh(w, slow), w.now_s) == 1
    assert titles(slow) == ["one"]
    assert titles(other) == []


def test_an_alert_whose_watcher_dies_while_it_sends_is_sent_by_another_one_later() -> None:
    w, well = Outside(), RecordingNotifier()
    happens(w, "one")
    (waiting,) = w.store.outbox(9)
    assert w.store.claim(
        waiting.key, "RecordingNotifier", "the dead one", now_s=w.now_s, until_s=w.now_s + CLAIM_S
    )
    deliver(fresh(w, well), w.now_s + CLAIM_S - 1)
    assert titles(well) == []
    deliver(fresh(w, well), w.now_s + CLAIM_S)
    assert titles(well) == ["one"]
    assert w.store.outbox(9) == []


def test_an_alert_that_one_watcher_cannot_send_is_left_to_the_others_at_once() -> None:
    w, away, well = Outside(), RecordingNotifier(error=DOWN), RecordingNotifier()
    happens(w, "one")
    deliver(fresh(w, away), w.now_s)
    deliver(fresh(w, well), w.now_s)
    assert titles(well) == ["one"]


@dataclass
class Choking(RecordingNotifier):
    """A notifier that fails for one alert."""

    at: str = ""

    def send(self, alert: Alert, run: Run | None) -> None:
        if alert.title.endswith(self.at):
            raise Crash
        super().send(alert, run)


def test_an_alert_that_a_notifier_breaks_at_keeps_no_other_alert_from_it_and_none_from_the_others() -> None:
    w, choking, well = Outside(), Choking(at="two"), RecordingNotifier()
    for title in ("one", "two", "three"):
        happens(w, title)
    for _ in range(2):
        with pytest.raises(Crash):
            deliver(fresh(w, choking, well), w.now_s)
    assert (titles(choking), titles(well)) == (["one", "three"], ["one", "two", "three"])
    assert [alert.title for alert in w.store.outbox(9)] == ["tiny-1: two"]


class Unmarking(RacedStore):
    """A store that for a while cannot record which notifier got an alert."""

    is_full = False

    def mark_sent(self, key: str, notifier: str | None = None, *, among: object = ()) -> bool:
        if self.is_full:
            raise TemporaryError("the disk is full")
        return super().mark_sent(key, notifier, among=among)  # type: ignore[arg-type]


def test_while_the_store_cannot_note_who_was_reported_a_process_tells_once() -> None:
    w, store = Outside(), Unmarking()
    w.store, w.world = store, replace(w.world, store=store)
    w.add(b.RUN_ID)
    happens(w, "one")
    store.is_full = True
    for _ in range(3):
        with pytest.raises(TemporaryError, match="disk is full"):
            deliver(w.world, w.now_s)
    store.is_full = False
    assert deliver(w.world, w.now_s) == 1
    assert titles(w.reported) == ["one"]


def test_a_machine_of_nobodys_is_reported_once_by_all_processes_together_and_waits_for_who_is_away() -> None:
    w, well, away = Outside().trains(), RecordingNotifier(), RecordingNotifier(error=DOWN)
    w.sweep()
    pod = w.pods.real.create("pt-nobody-e1", b.offer("memory-spot"), w.run().spec.hardware)
    for _ in range(4):
        w.pods.ghosts = [pod]  # the provider lists it for a while yet
        sweep(fresh(w.after(15), well, away), w.now_s)
    assert well.kinds() == ["orphan"]
    away.error, w.pods.ghosts = None, []
    w.heartbeat(step=20)
    sweep(fresh(w.after(15), well, away), w.now_s)
    assert (well.kinds(), away.kinds()) == (["orphan"], ["orphan"])
