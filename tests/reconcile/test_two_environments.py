"""Two watchers of one control plane with different environments: the one that lacks the means leaves the work
to the other one and says so; nothing is lost, and nothing is told twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from secrets import token_hex

from prime_train.alerts.port import Notifier
from prime_train.alerts.url import webhooks_from
from prime_train.buckets.port import Bucket
from prime_train.errors import PermanentError
from prime_train.github.notifier import GitHubNotifier
from prime_train.providers.by_name import PodsByProvider
from prime_train.providers.memory import MemoryPods
from prime_train.runs.offer import Offer
from prime_train.runs.run import Attempt, Change, Origin, Run, RunState
from prime_train.runs.verdict import TrackerObserved
from prime_train.spec.causes import Cause
from prime_train.tracker.port import NoTracker, Tracker
from prime_train.watch.context import Context, Elsewhere, UnreadableRuns
from prime_train.watch.means import AWAY_S, KNOWN_S, NEAR_S
from prime_train.watch.outbox import ALERT_S_MAX
from prime_train.watch.sweeps import sweep
from tests import builders as b
from tests.fakes.http import Response, ScriptedServer
from tests.reconcile.ports import DictBucket, Faults, Outside, RecordingNotifier

OK = Response(200, b"ok")


class Placed(RecordingNotifier):
    """A notifier with a place of its own."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place


@dataclass
class Marks:
    """A tracker that received the run's last report `late_s` seconds ago, at a step that rises, and what was
    marked on it.
    """

    w: Outside
    late_s: int = 0
    marked: list[int] = field(default_factory=list)

    def look(self, run: Run) -> TrackerObserved | None:
        return TrackerObserved(self.w.now_s, self.w.now_s - self.late_s)

    def mark_lost(self, run: Run, attempt: Attempt) -> bool:
        self.marked.append(attempt.number)
        return True


@dataclass
class Watcher:
    """One watcher of the control plane `w`, with an environment of its own. `said`: what it said it did."""

    w: Outside
    context: Context
    said: list[str]

    def sweeps(self, seconds: int = 0) -> None:
        for _ in range(max(1, seconds // 15)):
            sweep(self.context, self.w.now_s)
            self.w.after(15 if seconds else 0)

    def said_of(self, what: str) -> list[str]:
        return [line for line in self.said if line.startswith(what)]


def watcher(
    w: Outside,
    *,
    notifiers: Sequence[Notifier] = (),
    tracker: Tracker | None = None,
    providers: dict[str, MemoryPods] | None = None,
    bucket: Bucket | None = None,
) -> Watcher:
    """Return a watcher on the store of `w`. `providers`: those that are set up for it; None: the one of
    `w`.
    """
    said: list[str] = []
    pods = PodsByProvider(providers, ("prime",)) if providers is not None else w.pods
    context = replace(
        w.world,
        notifiers=tuple(notifiers),
        tracker=tracker or NoTracker(),
        pods=pods,
        providers=pods.names if isinstance(pods, PodsByProvider) else None,
        bucket=bucket or w.bucket,
        watched=lambda run_id, what, text: said.append(f"{what} {text}"),
        owner=token_hex(8),
        notified=set(),
        shown={},
        followed={},
        unmarked={},
        marked={},
        unreadable=UnreadableRuns(),
        elsewhere=Elsewhere(),
    )
    return Watcher(w, context, said)


def prime(w: Outside) -> MemoryPods:
    return MemoryPods(offers=[Offer("prime", "p-1", 0.5, spot=True, disk_gib=1000)], clock=lambda: w.now_s)


# ------------------------------------------------------------------------------------------------------------
# notify


def test_what_a_watcher_cannot_send_is_sent_once_by_the_one_that_can() -> None:
    w, log, slack = Outside(), Placed("log"), Placed("slack")
    full, poor = watcher(w, notifiers=(log, slack)), watcher(w, notifiers=(log,))
    full.sweeps()  # the store knows now what the control plane has
    before = len(slack.alerts)
    w.add("second")
    poor.sweeps(60)
    assert len(slack.alerts) == before, "nobody has sent them yet"
    assert poor.said_of("AlertLeft")
    waiting = w.store.outbox(99)
    for _ in range(3):
        full.sweeps()
        poor.sweeps()
    assert [alert.key for alert in slack.alerts[before:]] == [alert.key for alert in waiting]
    assert sorted(alert.key for alert in log.alerts) == sorted(alert.key for alert in slack.alerts), (
        "and each of them once"
    )
    assert w.store.outbox(99) == []


def test_a_watcher_without_any_notifier_drops_nothing_that_others_can_send() -> None:
    w, slack = Outside(), Placed("slack")
    full, bare = watcher(w, notifiers=(slack,)), watcher(w)
    full.sweeps()
    before = len(slack.alerts)
    w.add("second")
    bare.sweeps(30)
    full.sweeps()
    assert len(slack.alerts) > before


def test_two_places_of_one_kind_are_two_notifiers() -> None:
    w, one, two = Outside(), Placed("one"), Placed("two")
    first, second = watcher(w, notifiers=(one,)), watcher(w, notifiers=(two,))
    first.sweeps()
    second.sweeps()
    w.add("second")
    for _ in range(3):
        first.sweeps(15)
        second.sweeps(15)
    keys = [[alert.key for alert in notifier.alerts if alert.run_id == "second"] for notifier in (one, two)]
    assert keys[0] == keys[1] != []
    assert w.store.outbox(99) == []


def test_an_alert_waits_for_days_for_the_watcher_that_can_send_it_and_not_for_ever() -> None:
    w, log, slack = Outside(), Placed("log"), Placed("slack")
    full, poor = watcher(w, notifiers=(log, slack)), watcher(w, notifiers=(log,))
    full.sweeps()
    w.add("second")
    poor.sweeps()
    before = len(slack.alerts)
    w.after(3 * ALERT_S_MAX)
    poor.sweeps()
    full.sweeps()
    assert len(slack.alerts) > before
    w.add("third")
    poor.sweeps()
    w.after(KNOWN_S + ALERT_S_MAX)
    poor.sweeps()
    assert w.store.outbox(99) == []
    assert poor.said_of("AlertGivenUp")


def test_a_url_that_only_one_environment_has_gets_its_alerts_from_there() -> None:
    w = Outside({"alerts": {"webhook": "TEAM_URL"}})
    with ScriptedServer(OK) as team:
        poor, full = (
            watcher(w, notifiers=webhooks_from({}, None)),
            watcher(w, notifiers=webhooks_from({"TEAM_URL": team.url}, None)),
        )
        poor.sweeps(30)
        assert any("this watcher's environment has no TEAM_URL" in line for line in poor.said_of("AlertLeft"))
        waiting = len(w.store.outbox(99))
        assert waiting > 0
        full.sweeps()
        poor.sweeps()
        assert len(team.requests) == waiting
    assert w.store.outbox(99) == []


def test_a_token_for_one_repository_settles_no_alert_of_another() -> None:
    w = Outside()
    run = w.run()
    origin = Origin("acme/other", "c" * 40, "configs/tiny.yaml", "key")
    assert w.store.save(replace_run(run, origin=origin))
    notifier = GitHubNotifier(lambda repository: None, w.store.load, only="acme/this")  # type: ignore[arg-type, return-value]
    poor = watcher(w, notifiers=(notifier,))
    poor.sweeps(30)
    assert w.store.outbox(99)
    assert any("acme/this" in line for line in poor.said_of("AlertLeft"))


def replace_run(run: Run, **values: object) -> Change:
    return Change(replace(run, version=run.version + 1, **values))  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------------
# track


def silent_run(w: Outside, full: Watcher) -> int:
    """Let the run train, and its heartbeats stop; return the seconds of silence after which a watcher
    replaces it.
    """
    w.trains()
    full.sweeps()
    return w.run().spec.health.silence_s + 300


def test_a_run_that_trains_on_by_its_tracker_is_not_taken_from_its_machine_by_a_watcher_that_cannot_read_it() -> (
    None
):
    w = Outside({"wandb": {"project": "p"}})
    full, poor = watcher(w, tracker=Marks(w)), watcher(w)
    for _ in range(2 * silent_run(w, full) // NEAR_S + 1):
        poor.sweeps(NEAR_S - 60)
        full.sweeps()
    assert (w.run().attempt, w.run().state) == (1, RunState.TRAINING)


def test_a_silent_run_is_replaced_although_the_watcher_with_the_tracker_has_gone() -> None:
    w = Outside({"wandb": {"project": "p"}})
    full, poor = watcher(w, tracker=Marks(w)), watcher(w)
    silence_s = silent_run(w, full)
    poor.sweeps(NEAR_S + silence_s)
    assert w.run().attempts[0].fenced_s is not None


def test_a_lost_attempt_is_marked_on_the_tracker_by_the_watcher_that_has_it_and_once() -> None:
    w = Outside({"wandb": {"project": "p"}})
    marks = Marks(w)
    full, poor = watcher(w, tracker=marks), watcher(w)
    w.trains()
    full.sweeps()
    w.exit(Cause.PREEMPTED)
    poor.sweeps()
    assert w.run().attempts[0].fenced_s is not None
    assert poor.said_of("LeftToOthers attempt 1 is marked as lost by a watcher that has the tracker")
    for _ in range(3):
        w.after(15)
        full.sweeps()
    assert marks.marked == [1]


# ------------------------------------------------------------------------------------------------------------
# rent, terminate


def rented() -> tuple[Outside, MemoryPods, Watcher, Watcher]:
    """Return a queued run for prime, and two watchers of which the second lacks prime's key."""
    w = Outside({"hardware": {"provider": "prime"}})
    pods, log = prime(w), Placed("log")
    full, poor = (
        watcher(w, providers={"prime": pods}, notifiers=(log,)),
        watcher(w, providers={}, notifiers=(log,)),
    )
    w.reported = log
    return w, pods, full, poor


def test_a_machine_is_rented_by_the_watcher_that_can_as_soon_as_it_comes() -> None:
    w, pods, full, poor = rented()
    pods.set_stock("p-1", 0)
    full.sweeps()  # nothing to rent yet
    pods.set_stock("p-1", 5)
    w.after(120)
    version, backoffs = w.run().version, w.run().backoffs
    poor.sweeps(900)
    assert (w.run().version, w.run().backoffs) == (version, backoffs), "its time is not put off"
    assert len(poor.said_of("LeftToOthers")) == 1
    full.sweeps()
    assert [pod.name for pod in pods.list()] == [f"pt-{b.RUN_ID}-e1"]


def test_people_are_told_once_that_a_run_waits_for_a_watcher_that_does_not_come() -> None:
    w, pods, full, poor = rented()
    pods.set_stock("p-1", 0)
    full.sweeps()
    w.after(AWAY_S)
    poor.sweeps(600)
    told = [alert for alert in w.reported.alerts if "waits for a watcher" in alert.title]
    assert len(told) == 1
    assert "provider prime is not set up for this watcher" in told[0].text


def test_a_lost_machine_is_given_back_by_the_watcher_that_can() -> None:
    w, pods, full, poor = rented()
    full.sweeps()
    w.world = full.context
    w.trains()
    w.exit(Cause.PREEMPTED)
    poor.sweeps(60)
    assert w.run().attempts[0].fenced_s is not None
    assert [pod.name for pod in pods.list()] == [f"pt-{b.RUN_ID}-e1"], (
        "it is paid for until somebody gives it back"
    )
    assert poor.said_of("TerminateFailed")
    full.sweeps()
    w.after(15)
    full.sweeps()
    assert [pod.name for pod in pods.list()] == [f"pt-{b.RUN_ID}-e2"]
    assert w.run().attempts[0].ended_s is not None


def test_an_orphan_is_given_back_by_the_watcher_that_can_and_told_once() -> None:
    w, pods, full, poor = rented()
    full.sweeps()
    pods.create("pt-nobody-e1", pods.offers(w.run().spec.hardware)[0], w.run().spec.hardware)
    for _ in range(3):
        poor.sweeps(15)
        full.sweeps(15)
    assert [pod.name for pod in pods.list()] == [f"pt-{b.RUN_ID}-e1"]
    assert w.reported.kinds().count("orphan") == 1


# ------------------------------------------------------------------------------------------------------------
# bucket


def test_a_bucket_that_refuses_one_watcher_is_used_by_the_other_as_soon_as_it_comes() -> None:
    w = Outside()
    closed = Faults()
    closed.fail["bucket"] = PermanentError("403 Forbidden")
    log = Placed("log")
    full, poor = watcher(w, notifiers=(log,)), watcher(w, notifiers=(log,), bucket=DictBucket(closed))
    w.trains()
    w.save_checkpoint(10)
    w.exit(Cause.PREEMPTED)
    poor.sweeps(300)
    assert w.run().attempts[0].fenced_s is not None
    assert (w.run().state, w.run().resume_chosen) == (RunState.QUEUED, False)
    assert len(poor.said_of("LeftToOthers 403 Forbidden")) == 1
    assert log.kinds().count("bucket") == 1
    full.sweeps()
    run = w.run()
    assert run.resume is not None
    assert (run.attempt, run.resume.step) == (2, 10)
