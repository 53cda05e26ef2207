"""Runs displayed on GitHub: status and comment follow every change of state, through outages, and no one else
is notified.
"""

import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest

from prime_train.alerts.log import LogNotifier
from prime_train.alerts.url import WebhookNotifier
from prime_train.errors import NoCapacity
from prime_train.github.api import GitHub
from prime_train.github.deployments import new_deployment
from prime_train.github.notifier import GitHubNotifier
from prime_train.runs.change import requested
from prime_train.runs.headline import says
from prime_train.runs.run import DesiredState, Origin, Run, RunState, Severity
from prime_train.spec.causes import Cause
from prime_train.watch.outbox import REFRESH_S, deliver
from prime_train.watch.sweeps import sweep
from tests import builders as b
from tests.fakes.github import FakeGitHub
from tests.fakes.http import ALWAYS, Response, ScriptedServer
from tests.reconcile.ports import Outside

REPO = "acme/models"
SWEEP_S = 15
AWAY = Response(408)
"""A failure like any other, after which the request is not repeated at once."""


@dataclass
class Shown:
    """An environment whose runs from `REPO` are displayed on GitHub."""

    fake: FakeGitHub
    w: Outside
    permissions: dict[str, str]

    def client(self, repository: str) -> GitHub:
        return GitHub(
            repository,
            self.fake.job_token(repository, self.permissions),
            url=self.fake.url,
            clock=lambda: self.w.now_s,
        )

    def launched(self, run_id: str = "shown", *, pull: int | None = 1, deployment: bool = True) -> "Shown":
        writer = GitHub(REPO, self.fake.job_token(REPO, {"deployments": "write"}), url=self.fake.url)
        made = new_deployment(writer, run_id, "main", "") if deployment else None
        origin = Origin(
            REPO, self.fake.pull(REPO, 1)["head"]["sha"], "configs/a.yaml", run_id, pull, made, "ann"
        )
        self.w.store.create(
            Run(run_id, b.spec(trainer={"steps": 100}), created_s=self.w.now_s, origin=origin)
        )
        return self

    def reported(self) -> None:
        """Deliver the alerts once, as another watcher would."""
        deliver(self.w.world, self.w.now_s)

    @property
    def comments(self) -> list[str]:
        return [comment["body"] for comment in self.fake.comments(REPO, 1)]

    @property
    def statuses(self) -> list[dict[str, Any]]:
        return list(self.fake.deployments(REPO)[0]["statuses"])

    def is_true(self, run_id: str = "shown") -> bool:
        """Return whether both status and comment show the run's state."""
        words, (comment,) = says(self.w.run(run_id)), self.comments
        return words in comment.splitlines()[1] and self.statuses[-1]["description"].startswith(words)


@pytest.fixture
def shown() -> Iterator[Shown]:
    w = Outside()
    with FakeGitHub() as fake:
        fake.add_repo(REPO, files={"configs/a.yaml": "name: a\n"})
        fake.add_user("ann", repo=REPO, role="write")
        fake.add_pull(REPO, "change", author="ann", files={"configs/a.yaml": "name: b\n"})
        world = Shown(fake, w, {"pull-requests": "write", "deployments": "write"})
        github = GitHubNotifier(world.client, w.store.load, clock=lambda: w.now_s)
        w.world = replace(w.world, notifiers=(w.reported, github))
        yield world
        assert fake.violations == []


def happens(shown: Shown) -> Iterator[RunState]:
    """Yield a run's life, change by change, with the displayed state within half a minute after each."""
    w, run_id = shown.w, "shown"
    yield RunState.BOOTING
    w.heartbeat(run_id)
    yield RunState.STARTING
    w.heartbeat(run_id, step=10)
    yield RunState.TRAINING
    for pod in w.pods.real.list():
        if run_id in pod.name:
            w.pods.real.preempt(pod.pod_id)
    w.after(60)
    yield RunState.BOOTING
    w.heartbeat(run_id)
    yield RunState.STARTING
    w.heartbeat(run_id, step=12)
    yield RunState.TRAINING
    w.after(30).exit(Cause.FINISHED, run_id, step=100)
    yield RunState.SUCCEEDED


def test_every_change_of_state_is_shown_within_half_a_minute(shown: Shown) -> None:
    shown.launched()
    for state in happens(shown):
        shown.w.sweeps(30)
        assert (shown.w.run("shown").state, shown.is_true()) == (state, True)
    assert "100 of 100 (100%)" in shown.comments[0]
    assert "machine preempted" in shown.comments[0]
    states = [status["state"] for status in shown.statuses]
    assert (states[-1], set(states)) == ("success", {"pending", "in_progress", "success"})
    assert len({(status["state"], status["description"]) for status in shown.statuses}) == len(states)


def test_a_run_that_nobody_has_a_machine_for_is_shown_as_waiting(shown: Shown) -> None:
    shown.w.fail["create"] = NoCapacity("sold out")
    shown.launched()
    for _ in range(20):
        shown.w.after(60).sweep()
        assert shown.is_true()


def test_another_watcher_that_shows_what_is_half_done_is_not_the_last_word(shown: Shown) -> None:
    shown.w.fail["create"] = NoCapacity("sold out")
    shown.w.faults.looking_on = lambda call: shown.reported() if call == "create" else None
    shown.launched()
    for _ in range(20):
        shown.w.after(60).sweep()
        assert shown.is_true()


def test_a_run_that_is_asked_to_stop_says_so_and_then_that_it_has(shown: Shown) -> None:
    shown.launched().w.trains("shown")
    shown.w.store.save(requested(shown.w.run("shown"), DesiredState.STOP, shown.w.now_s))
    shown.w.sweep()
    assert shown.is_true()
    assert "A stop is requested." in shown.comments[0]
    shown.w.after(30).exit(Cause.STOPPED_GRACEFULLY, "shown", step=12)
    shown.w.sweep()
    assert shown.w.run("shown").is_over
    assert shown.is_true()
    assert "requested." not in shown.comments[0]


def test_while_it_trains_it_is_shown_anew_every_ten_minutes(shown: Shown) -> None:
    shown.launched().w.trains("shown")
    shown.w.sweep()
    seen = []
    for number in range(4 * REFRESH_S // SWEEP_S):
        shown.w.after(SWEEP_S).heartbeat("shown", step=11 + number)
        shown.w.sweep()
        seen.append(shown.comments[0])
    changes = [place for place in range(1, len(seen)) if seen[place] != seen[place - 1]]
    assert 3 <= len(changes) <= 4
    assert min(after - before for before, after in pairwise(changes)) * SWEEP_S >= REFRESH_S
    assert len(shown.comments) == 1


def test_an_outage_of_an_hour_loses_no_state_and_repeats_no_comment(shown: Shown) -> None:
    shown.launched().w.sweep()
    shown.fake.fail(AWAY, times=ALWAYS)
    for _ in happens(shown):
        shown.w.sweeps(30)
    shown.w.sweeps(3600, every_s=600)
    assert shown.w.run("shown").state is RunState.SUCCEEDED
    assert "waits for its machine to boot" in shown.comments[0]
    shown.fake.heal()
    shown.w.sweeps(180)
    assert shown.is_true()
    assert len(shown.comments) == 1
    assert not [alert.kind for alert in shown.w.store.outbox(100)]


def test_a_github_that_is_down_is_queried_seldom_and_others_hear_at_once(shown: Shown) -> None:
    shown.launched()
    shown.fake.fail(AWAY, times=ALWAYS)
    requests = []
    for _ in happens(shown):
        before = len(shown.fake.requests)
        shown.w.sweeps(30)
        requests.append(len(shown.fake.requests) - before)
    assert {"launched", "training", "lost", "relaunched", "recovered", "succeeded"} <= set(
        shown.w.reported.kinds()
    )
    assert max(requests) <= 3
    keys = [alert.key for alert in shown.w.reported.alerts]
    assert len(keys) == len(set(keys))


def test_a_limit_of_githubs_is_waited_for(shown: Shown) -> None:
    shown.launched().w.sweep()
    shown.fake.fail("403", times=1)
    shown.w.heartbeat("shown")
    while shown.w.run("shown").state is not RunState.STARTING:
        shown.w.after(5).sweep()
    requests = len(shown.fake.requests)
    shown.w.sweeps(45)
    assert len(shown.fake.requests) == requests
    shown.w.sweeps(30)
    assert shown.is_true()


def test_all_that_happens_in_one_moment_is_shown_once(shown: Shown) -> None:
    shown.launched().w.trains("shown")
    before = len(shown.fake.requests)
    assert len(shown.w.store.outbox(100)) >= 4
    shown.w.sweep()
    assert len(shown.fake.requests) - before <= 4
    assert shown.is_true()


def test_a_watcher_that_is_overtaken_while_it_writes_writes_what_is_true_in_the_end(shown: Shown) -> None:
    shown.launched().w.trains("shown")
    held = shown.w.store.load("shown")
    shown.w.exit(Cause.FINISHED, "shown", step=100)
    shown.w.settle("shown")
    found = [held]
    slow = GitHubNotifier(
        shown.client,
        lambda run_id: found.pop() if found else shown.w.store.load(run_id),
        clock=lambda: shown.w.now_s,
    )
    assert held is not None
    slow.send(b.alert(run_id="shown"), held.run)
    assert shown.w.run("shown").state is RunState.SUCCEEDED
    assert shown.is_true()


def test_a_deployment_that_may_not_be_written_keeps_no_comment_from_being(shown: Shown) -> None:
    shown.permissions = {"pull-requests": "write", "deployments": "read"}
    shown.launched().w.trains("shown")
    shown.w.sweep()
    assert "is training" in shown.comments[0]
    assert shown.statuses == []
    assert "AlertRefused" in shown.w.received


@pytest.mark.parametrize(("pull", "deployment"), [(None, True), (1, False), (None, False)])
def test_a_run_is_shown_where_there_is_a_place_for_it(
    shown: Shown, pull: int | None, deployment: bool
) -> None:
    shown.launched(pull=pull, deployment=deployment).w.trains("shown")
    shown.w.sweep()
    assert len(shown.comments) == (pull is not None)
    assert [status["state"] for made in shown.fake.deployments(REPO) for status in made["statuses"]][-1:] == [
        "in_progress"
    ] * deployment


def test_runs_from_nowhere_cause_no_call_and_no_quiet_word(shown: Shown) -> None:
    shown.w.trains()
    shown.w.sweeps(1500)
    assert shown.fake.requests == []
    assert Severity.QUIET not in [alert.severity for alert in shown.w.reported.alerts]


def test_what_is_quiet_is_neither_in_the_log_nor_sent_to_anybody(
    shown: Shown, caplog: pytest.LogCaptureFixture
) -> None:
    with ScriptedServer(Response(200)) as people, caplog.at_level(logging.DEBUG, "prime_train.alerts"):
        shown.w.world = replace(
            shown.w.world, notifiers=(LogNotifier(), WebhookNotifier({}, people.url), shown.w.reported)
        )
        shown.launched()
        for _ in happens(shown):
            shown.w.sweeps(30)
        shown.w.sweeps(60)
        sent = [json.loads(request.body) for request in people.requests]
    logged = [re.match(r"\[(\w+)\] (\w+)", record.getMessage()) for record in caplog.records]
    quiet = [alert.kind for alert in shown.w.reported.alerts if alert.severity is Severity.QUIET]
    assert {"launching", "starting", "settled", "shown"} <= set(quiet)
    of_posts = [each["kind"] for each in sent if each["run"] == "shown"]
    of_lines = [line[1] for line in logged if line is not None and line[2] == "shown"]
    for kinds in (of_posts, of_lines):
        assert (kinds.count("training"), kinds.count("succeeded")) == (1, 1)
        assert not {"launching", "starting", "settled", "shown"} & set(kinds)


def test_a_watcher_that_dies_before_it_has_reported_leaves_it_to_the_next(shown: Shown) -> None:
    shown.launched().w.settle("shown")
    assert shown.comments == []
    sweep(shown.w.world, shown.w.now_s)
    assert shown.is_true()
