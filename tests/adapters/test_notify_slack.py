"""Alerts in Slack, through its real SDK, against a Slack on loopback."""

import json
import logging
import re
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from prime_train.alerts.slack.api import PAGE_MESSAGES, Api, Hook
from prime_train.alerts.slack.batches import FEW_MAX
from prime_train.alerts.slack.blocks import safe_text
from prime_train.alerts.slack.bot import EDITS_BURST, POSTS_BURST, SlackBot
from prime_train.alerts.slack.hook import SlackHook
from prime_train.alerts.slack.message_metadata import head_mark
from prime_train.alerts.slack.rate_limits import MUTE_S
from prime_train.alerts.slack.settings import slack_from
from prime_train.errors import ExternalError, PermanentError, TemporaryError
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.run import Alert, Change, DesiredState, Origin, Run, RunState, Severity
from prime_train.runs.store import RunRecord
from prime_train.spec.causes import Cause
from prime_train.watch.outbox import deliver
from tests import builders as b
from tests.fakes.http import ALWAYS, CutRequest, Fault, Hang, LoseResponse, Replace, Response
from tests.fakes.slack import CHANNEL, TOKEN, FakeSlack
from tests.reconcile.ports import Outside

SWEEP_S = 15


class Reported:
    """A workspace, the existing runs, and a bot that reports on them."""

    def __init__(self, slack: FakeSlack, *, mention: str = "", timeout_s: int = 5) -> None:
        self.slack, self.mention, self.timeout_s = slack, mention, timeout_s
        self.runs: dict[str, RunRecord] = {b.RUN_ID: b.record()}
        self.restart()

    def restart(self) -> None:
        """Let another process send the alerts from now on."""
        api = Api(TOKEN, CHANNEL, url=self.slack.url, timeout_s=self.timeout_s)
        self.bot = SlackBot(api, self.runs.get, mention=self.mention, clock=self.slack.clock)

    def send(self, alert: Alert | None = None) -> None:
        alert = alert if alert is not None else b.alert()
        record = self.runs.get(alert.run_id)
        self.bot.send(alert, record.run if record else None)

    def raised(self, alert: Alert | None = None) -> ExternalError:
        with pytest.raises(ExternalError) as caught:
            self.send(alert)
        return caught.value

    def stands(self, record: RunRecord) -> None:
        self.runs[record.run.run_id] = record

    @property
    def heads(self) -> list[str]:
        return [message["text"] for message in self.slack.channel.top]

    def replies(self, head: int = 0) -> list[str]:
        """Return the complete messages of the thread as text."""
        ts = self.slack.channel.top[head]["ts"]
        return [shown(message) for message in self.slack.channel.thread(ts)[1:]]


def _nothing(run_id: str) -> None:
    return None


def shown(message: dict[str, object]) -> str:
    return json.dumps(message["blocks"], ensure_ascii=False)


def quiet(key: str = "tiny-1/shown/1") -> Alert:
    return b.alert(key, kind=AlertKind.SHOWN, severity=Severity.QUIET, title="training", text="")


def several(count: int, **changes: object) -> list[Alert]:
    return [
        b.alert(f"{b.RUN_ID}/e1/note/v{number}", title=f"note {number}", **changes) for number in range(count)
    ]


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with FakeSlack(clock_s=b.T0_S + 3600.0) as fake:
        yield fake


@pytest.fixture
def reported(slack: FakeSlack) -> Reported:
    return Reported(slack)


# ------------------------------------------------------------------------------------------------------------
# one thread a run


def test_a_run_has_one_thread_and_each_alert_is_a_reply(reported: Reported) -> None:
    reported.send(b.alert("a", title="tiny-1: training at step 1"))
    reported.send(b.alert("b", title="tiny-1: machine lost", text="the provider took it"))

    assert reported.heads == ["tiny-1 is training, step 10, $0.36 of $5.00"]
    first, second = reported.replies()
    assert "*tiny-1: training at step 1*" in first
    assert "the provider took it" in second


def test_head_and_alerts_lead_to_where_the_run_is_tracked_and_was_requested(reported: Reported) -> None:
    origin = Origin("acme/m", "c0", "c.yaml", "k", pull=7)
    run = b.run(RunState.TRAINING, spec=b.spec(wandb={"project": "a|b>", "entity": "acme"}), origin=origin)
    reported.stands(b.record(run))
    reported.send()
    leading = (
        "<https://wandb.ai/acme/a%7Cb%3E/runs/tiny-1|W&amp;B> · <https://github.com/acme/m/pull/7|pull "
        "request>"
    )
    assert leading in shown(reported.slack.channel.top[0])
    assert leading in reported.replies()[0]


def test_the_head_is_edited_in_place_also_where_nobody_is_notified(
    reported: Reported, slack: FakeSlack
) -> None:
    reported.send()
    reported.stands(b.record(heartbeat=b.heartbeat(9, step=4321)))
    reported.send(quiet())

    assert ["step 4,321" in head for head in reported.heads] == [True]
    assert len(reported.replies()) == 1
    assert slack.requested.count("chat.update") == 1


def test_a_head_that_says_it_already_is_left_alone(reported: Reported, slack: FakeSlack) -> None:
    reported.send()
    reported.send(quiet("a"))
    reported.send(quiet("b"))

    assert "chat.update" not in slack.requested


def test_nobody_is_bothered_with_a_run_of_which_there_is_nothing_to_tell(
    reported: Reported, slack: FakeSlack
) -> None:
    reported.send(quiet())

    assert slack.channel.messages == []


def test_another_process_finds_the_thread(reported: Reported) -> None:
    reported.send(b.alert("a"))
    reported.restart()
    reported.send(b.alert("b"))
    reported.restart()
    reported.send(b.alert("b"))

    assert len(reported.heads) == 1
    assert len(reported.replies()) == 2


def test_the_thread_is_found_among_many_messages(reported: Reported, slack: FakeSlack) -> None:
    reported.send(b.alert("a"))
    for _ in range(2 * PAGE_MESSAGES + 1):
        slack.channel.post("B0OTHER01", {"text": "chatter"})
    reported.restart()
    reported.send(b.alert("b"))

    assert len(reported.replies()) == 2
    assert slack.requested.count("conversations.history") == 1 + 3


def test_what_another_bot_says_of_a_run_is_not_ours(reported: Reported, slack: FakeSlack) -> None:
    forged = {"text": "tiny-1 has succeeded", "blocks": [], "metadata": head_mark(b.RUN_ID).to_dict()}
    slack.channel.post("B0OTHER01", forged)
    reported.send()

    assert len(reported.heads) == 2
    assert len(reported.replies(1)) == 1


def test_a_thread_that_somebody_deleted_is_begun_anew(reported: Reported, slack: FakeSlack) -> None:
    reported.send(b.alert("a"))
    slack.channel.delete(slack.channel.top[0]["ts"])
    error = reported.raised(b.alert("b"))
    slack.advance(2)
    reported.send(b.alert("b"))

    assert isinstance(error, TemporaryError)
    assert (len(reported.heads), len(reported.replies(-1))) == (1, 1)


def test_an_alert_of_a_run_that_nobody_keeps_any_more_is_reported_without_a_thread(
    reported: Reported, slack: FakeSlack
) -> None:
    reported.runs.clear()
    reported.send()
    reported.restart()
    reported.send(b.alert(at_s=b.T0_S + 1))

    assert reported.heads == ["attempt 1: machine lost"]


# ------------------------------------------------------------------------------------------------------------
# never twice


@pytest.mark.parametrize("post", [1, 2], ids=["head", "alert"])
@pytest.mark.parametrize("fault", [LoseResponse(), CutRequest(), Response(500, b"{}")])
@pytest.mark.parametrize("restarted", [False, True])
def test_an_alert_whose_answer_is_lost_is_posted_once(
    reported: Reported, slack: FakeSlack, post: int, fault: Response, restarted: bool
) -> None:
    slack.fail(fault, path="chat.postMessage", first=post)
    error = reported.raised()
    slack.advance(MUTE_S)
    if restarted:
        reported.restart()
    reported.send()
    reported.send()

    assert isinstance(error, TemporaryError)
    assert len(reported.heads) == 1
    assert len(reported.replies()) == 1


def test_a_post_that_was_done_and_called_a_failure_is_not_done_again_a_moment_later(
    reported: Reported, slack: FakeSlack
) -> None:
    slack.fail(Replace(Response(503, headers={"Retry-After": "2"})), path="chat.postMessage", times=2)
    for _ in range(3):
        with suppress(TemporaryError):
            reported.send()
        slack.advance(2)

    assert len(reported.heads) == 1
    assert len(reported.replies()) == 1


def test_the_sdk_posts_nothing_again_by_itself(reported: Reported, slack: FakeSlack) -> None:
    slack.fail(LoseResponse(), path="chat.postMessage", times=ALWAYS)
    reported.raised()

    assert slack.requested.count("chat.postMessage") == 1


def test_a_head_that_cannot_be_edited_now_is_edited_later_and_the_alert_is_reported_once(
    reported: Reported, slack: FakeSlack
) -> None:
    reported.send(b.alert("a"))
    reported.stands(b.record(heartbeat=b.heartbeat(9, step=4321)))
    slack.fail(Response(503), path="chat.update")
    reported.raised(b.alert("b"))
    slack.advance(MUTE_S)
    reported.send(b.alert("b"))

    assert "step 4,321" in reported.heads[0]
    assert len(reported.replies()) == 2


# ------------------------------------------------------------------------------------------------------------
# many at once


def test_many_alerts_are_one_message(reported: Reported, slack: FakeSlack) -> None:
    alerts = several(FEW_MAX + 1)
    reported.bot.announce(alerts)
    for alert in alerts:
        reported.send(alert)

    (digest,) = slack.channel.messages
    assert digest["text"] == f"{FEW_MAX + 1} alerts of one run"
    assert all(f"note {number}" in shown(digest) for number in range(FEW_MAX + 1))


def test_a_few_are_reported_one_by_one(reported: Reported, slack: FakeSlack) -> None:
    alerts = several(FEW_MAX)
    reported.bot.announce(alerts)
    reported.send(alerts[0])
    reported.send(alerts[1])

    assert len(reported.replies()) == 2


@pytest.mark.parametrize("restarted", [False, True])
def test_a_digest_whose_answer_is_lost_is_posted_once(
    reported: Reported, slack: FakeSlack, restarted: bool
) -> None:
    alerts = several(FEW_MAX + 1)
    slack.fail(LoseResponse(), path="chat.postMessage")
    reported.bot.announce(alerts)
    reported.raised(alerts[0])
    slack.advance(MUTE_S)
    if restarted:
        reported.restart()
    reported.bot.announce(alerts)
    for alert in alerts:
        reported.send(alert)

    assert len(slack.channel.messages) == 1


def test_an_outbox_of_many_runs_is_drained_in_a_few_messages_and_nothing_is_reported_twice(
    reported: Reported, slack: FakeSlack
) -> None:
    w = Outside()
    w.world = replace(w.world, notifiers=(reported.bot,))
    for number in range(60):
        alert = b.alert(f"run-{number}/e1/lost/v2", run_id=f"run-{number}", title=f"run-{number}: lost")
        run = b.run(RunState.TRAINING, run_id=alert.run_id)
        reported.stands(b.record(run))
        w.store.create(run)
        w.store.save(Change(replace(run, version=2), alerts=(alert,)))
    sent = [_delivered(w, slack) for _ in range(2)]

    assert sum(sent) == 60
    assert len(slack.channel.messages) == 2
    assert sorted(shown_runs(slack)) == sorted(f"run-{number}" for number in range(60))


def _delivered(w: Outside, slack: FakeSlack) -> int:
    slack.advance(15)
    return deliver(w.world, w.now_s)


def shown_runs(slack: FakeSlack) -> list[str]:
    return [
        name
        for message in slack.channel.messages
        for name in re.findall(r"(run-[0-9]+): lost", shown(message))
    ]


# ------------------------------------------------------------------------------------------------------------
# with the watcher


class Watching(Outside):
    """A watcher that sweeps and sends alerts to Slack."""

    def __init__(self, slack: FakeSlack) -> None:
        super().__init__({"trainer": {"steps": 100}})
        self.slack = slack
        bot = SlackBot(Api(TOKEN, CHANNEL, url=slack.url), self.store.load, clock=lambda: self.now_s)
        self.world = replace(self.world, notifiers=(bot,))
        self.settle()

    def goes_on(self, *steps: int | None) -> None:
        """Run a sweep for each step, after a heartbeat with that step; None: without a heartbeat."""
        for step in steps:
            self.after(SWEEP_S)
            self.slack.channel.clock_s = self.now_s
            if step is not None:
                self.heartbeat(step=step)
            self.sweep()


def test_a_run_that_trains_is_shown_anew_though_nothing_happens(slack: FakeSlack) -> None:
    w = Watching(slack)
    w.goes_on(0, 0, *range(1, 99))

    (head,) = slack.channel.top
    shown_step = re.search(r"step (\d+) of 100", head["text"])
    assert shown_step is not None
    assert int(shown_step[1]) > 50
    assert len(slack.channel.thread(head["ts"])) == 1 + len(["launched", "training"])


def test_a_run_that_loses_its_machine_has_its_complete_story_in_one_thread(slack: FakeSlack) -> None:
    w = Watching(slack)
    w.goes_on(0, 0, *[10] * 6)
    w.pods.real.preempt("memory-1")
    w.goes_on(*[None] * 10, 0, 0, *[5] * 6)
    w.exit(Cause.IMPORT_ERROR, step=5)
    w.goes_on(None)

    (head,) = slack.channel.top
    assert head["text"].startswith("tiny-1 has failed")
    assert [message["text"].removeprefix("tiny-1: ") for message in slack.channel.thread(head["ts"])[1:]] == [
        "attempt 1 has a machine",
        "training at step 10",
        "attempt 1: machine preempted",
        "attempt 2 has a machine",
        "training at step 5",
        "run failed",
    ]


# ------------------------------------------------------------------------------------------------------------
# pace


def test_more_than_a_message_a_second_is_left_for_later_without_asking(
    reported: Reported, slack: FakeSlack
) -> None:
    for alert in several(POSTS_BURST - 1):  # and the head
        reported.send(alert)
    requested = len(slack.requested)
    error = reported.raised(b.alert("more"))
    slack.advance(1)

    assert isinstance(error, TemporaryError)
    assert 0 < error.delay_s <= 1
    assert len(slack.requested) == requested
    reported.send(b.alert("more"))


def test_edits_have_a_pace_of_their_own(reported: Reported, slack: FakeSlack) -> None:
    reported.send()
    for step in range(EDITS_BURST):
        reported.stands(b.record(heartbeat=b.heartbeat(9, step=100 + step)))
        reported.send(quiet())
    reported.stands(b.record(heartbeat=b.heartbeat(9, step=999)))

    assert isinstance(reported.raised(quiet()), TemporaryError)
    assert slack.requested.count("chat.update") == EDITS_BURST


def test_slack_is_left_alone_for_as_long_as_it_asks(reported: Reported, slack: FakeSlack) -> None:
    slack.fail(
        Response(429, b'{"ok": false, "error": "ratelimited"}', headers={"Retry-After": "90"}),
        path="chat.postMessage",
    )
    first = reported.raised()
    requested = len(slack.requested)
    slack.advance(60)
    second = reported.raised()
    slack.advance(30)

    assert isinstance(first, TemporaryError)
    assert isinstance(second, TemporaryError)
    assert (first.delay_s, second.delay_s) == (90.0, 30.0)
    assert len(slack.requested) == requested
    reported.send()


# ------------------------------------------------------------------------------------------------------------
# what goes wrong


@pytest.mark.parametrize(
    "fault",
    [
        Response(500),
        Response(503, b"<html>"),
        Response(200, b"what?"),
        Response(200, b"[]"),
        Response(200, b"\xff\xfe"),
        CutRequest(),
    ],
)
def test_a_slack_that_fails_is_left_for_later_and_left_alone(
    reported: Reported, slack: FakeSlack, fault: Response
) -> None:
    slack.fail(fault, times=ALWAYS)
    first = reported.raised()
    requested = len(slack.requested)
    second = reported.raised()

    assert isinstance(first, TemporaryError)
    assert isinstance(second, TemporaryError)
    assert 0 < second.delay_s <= MUTE_S
    assert len(slack.requested) == requested == 1


def test_a_slack_that_says_nothing_is_not_waited_for(slack: FakeSlack) -> None:
    reported = Reported(slack, timeout_s=1)
    slack.fail(Hang())

    assert isinstance(reported.raised(), TemporaryError)


def _revoked(slack: FakeSlack) -> None:
    slack.revoked = True


def _not_invited(slack: FakeSlack) -> None:
    slack.channel.members.clear()


def _archived(slack: FakeSlack) -> None:
    slack.channel.archived = True


def _may_not_read(slack: FakeSlack) -> None:
    slack.scopes.discard("channels:history")


@pytest.mark.parametrize(
    ("problem", "remedy"),
    [
        (_revoked, "token_revoked: install the app again"),
        (_not_invited, "not_in_channel: invite the bot"),
        (_archived, "is_archived: unarchive"),
        (_may_not_read, "missing_scope: give the app the scopes chat:write and channels:history"),
    ],
)
def test_a_refusal_is_for_good_and_says_what_to_do(
    reported: Reported, slack: FakeSlack, problem: object, remedy: str
) -> None:
    assert callable(problem)
    problem(slack)
    error = reported.raised()

    assert isinstance(error, PermanentError)
    assert remedy in str(error)


@pytest.mark.parametrize(
    ("token", "channel", "word"),
    [("xoxb-other", CHANNEL, "invalid_auth"), (TOKEN, "C0ELSEWHERE", "channel_not_found")],
)
def test_a_wrong_token_or_channel_is_reported(slack: FakeSlack, token: str, channel: str, word: str) -> None:
    bot = SlackBot(Api(token, channel, url=slack.url), lambda run_id: None, clock=slack.clock)
    with pytest.raises(PermanentError, match=word):
        bot.send(b.alert(), None)


@pytest.mark.parametrize(
    "fault", [Response(500, TOKEN.encode()), CutRequest(), Response(400, b"no s3cr3tPath")]
)
def test_no_secret_is_in_an_error_or_a_log(
    reported: Reported, slack: FakeSlack, fault: Response, caplog: pytest.LogCaptureFixture
) -> None:
    slack.fail(fault, times=ALWAYS)
    hook = SlackHook(Hook(slack.hook_url), _nothing, clock=slack.clock)
    with caplog.at_level(logging.DEBUG):
        errors = [reported.raised()]
        # The second one is not even sent, where the first was and got no answer.
        with pytest.raises(ExternalError) as caught:
            for key in ("a", "b"):
                hook.send(b.alert(key), None)

    text = caplog.text + "".join(
        "".join(traceback.format_exception(error)) for error in [*errors, caught.value]
    )
    assert TOKEN not in text
    assert "s3cr3tPath" not in text


# ------------------------------------------------------------------------------------------------------------
# what is shown


def test_what_a_trainer_printed_calls_nobody_and_links_nowhere(reported: Reported, slack: FakeSlack) -> None:
    evil = "<!channel> <@U0ANN0001> @here <https://evil.example|log> & a<b"
    reported.stands(b.record(b.run(RunState.FAILED, why=evil)))
    reported.send(b.alert(title=evil, text=evil))

    assert slack.mentions == []
    assert (
        "&lt;!channel&gt; &lt;@U0ANN0001&gt; @here &lt;https://evil.example|log&gt; &amp; a&lt;b"
        in reported.replies()[0]
    )


@pytest.mark.parametrize("char", ["x", "<", "&", "\n", "é", "🟢", "\x00", "\u202e", "`"])
def test_texts_of_any_length_are_taken(reported: Reported, char: str) -> None:
    reported.stands(b.record(b.run(RunState.FAILED, why=char * 50_000)))
    reported.send(b.alert(kind=AlertKind.FAILED, title="tiny-1: " + char * 50_000, text=char * 50_000))

    assert len(reported.replies()) == 1


def test_a_long_digest_is_taken(reported: Reported, slack: FakeSlack) -> None:
    alerts = [b.alert(f"{b.RUN_ID}/e1/{'k' * 60}/v{number}", title="<" * 500) for number in range(200)]
    reported.bot.announce(alerts)
    reported.send(alerts[0])

    assert len(slack.channel.messages) == 1


def test_a_cut_leaves_no_half_of_an_escape() -> None:
    assert safe_text("ab<<<", 8) == "ab&lt;…"
    assert safe_text("a&b", 7) == "a&amp;b"


@pytest.mark.parametrize(
    ("state", "changes", "kind", "called"),
    [
        (RunState.FAILED, {}, "failed", ["<!here>"]),
        (RunState.STOPPED, {}, "stopped", ["<!here>"]),
        (RunState.STOPPED, {"desired": DesiredState.STOP}, "stopped", []),
        (RunState.TRAINING, {}, "lost", []),
    ],
)
def test_people_are_called_where_one_has_to_look(
    slack: FakeSlack, state: RunState, changes: dict[str, Any], kind: str, called: list[str]
) -> None:
    reported = Reported(slack, mention="<!here>")
    reported.stands(b.record(b.run(state, **changes)))
    reported.send(b.alert(kind=kind))

    assert slack.mentions == called


@pytest.mark.parametrize(
    ("run", "called"),
    [(b.run(RunState.FAILED), ["<!here>"]), (b.run(RunState.STOPPED, desired=DesiredState.STOP), [])],
)
def test_one_message_for_many_calls_people_where_one_of_its_alerts_does(
    slack: FakeSlack, run: Run, called: list[str]
) -> None:
    reported = Reported(slack, mention="<!here>")
    reported.stands(b.record(run))
    alerts = [*several(FEW_MAX, run_id=run.run_id), b.alert(kind=run.state.value)]
    reported.bot.announce(alerts)
    reported.send(alerts[0])

    assert slack.mentions == called


def test_a_run_that_is_over_shows_where_the_money_went(reported: Reported) -> None:
    reported.stands(b.record(b.run(RunState.SUCCEEDED)))
    reported.send(b.alert(kind=AlertKind.SUCCEEDED, severity=Severity.INFO, title="tiny-1: run succeeded"))

    (reply,) = reported.replies()
    assert "Paid time" in reply
    assert "▁" in reply
    assert "█" in reply


# ------------------------------------------------------------------------------------------------------------
# incoming webhook


def test_a_webhook_gets_each_alert_once_and_no_quiet_one(slack: FakeSlack) -> None:
    hook = SlackHook(Hook(slack.hook_url), _nothing, clock=slack.clock)
    for alert in (b.alert("a"), b.alert("a"), quiet(), b.alert("b")):
        hook.send(alert, None)

    assert [message["text"] for message in slack.channel.messages] == [b.alert().title] * 2


def test_a_webhook_gets_many_alerts_as_one_message(slack: FakeSlack) -> None:
    hook = SlackHook(Hook(slack.hook_url), _nothing, clock=slack.clock)
    alerts = several(20)
    hook.announce(alerts)
    for alert in alerts:
        hook.send(alert, None)

    assert [message["text"] for message in slack.channel.messages] == ["20 alerts of one run"]


@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        (Response(404, b"no_service"), PermanentError, "no_service: add an incoming webhook"),
        (Response(403, b"action_prohibited"), PermanentError, "action_prohibited"),
        (Response(410, b"channel_is_archived"), PermanentError, "unarchive"),
        (Response(400, b"<html>"), PermanentError, "400"),
        (Response(429, b"rate_limited", headers={"Retry-After": "7"}), TemporaryError, "rate_limited"),
        (Response(503, b"busy"), TemporaryError, "503"),
    ],
)
def test_a_webhook_that_fails_says_whether_it_may_work_later(
    slack: FakeSlack, fault: Response, kind: type, text: str
) -> None:
    slack.fail(fault)
    with pytest.raises(kind, match=text):
        SlackHook(Hook(slack.hook_url), _nothing, clock=slack.clock).send(b.alert(), None)


@pytest.mark.parametrize("fault", [LoseResponse(), Hang(done=True)])
def test_what_a_webhook_was_sent_and_did_not_answer_counts_as_reported(
    slack: FakeSlack, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise Slack would post the alert again each time, as long as its responses are late."""
    slack.fail(fault, times=ALWAYS)
    w = Outside()
    w.world = replace(
        w.world, notifiers=(SlackHook(Hook(slack.hook_url, timeout_s=1), w.store.load, clock=slack.clock),)
    )
    w.settle()
    assert len(w.store.outbox(9)) == 1
    for _ in range(3):
        deliver(w.world, w.now_s)
        slack.advance(MUTE_S)

    assert len(slack.channel.messages) == 1
    assert w.store.outbox(9) == []
    assert "counts as sent" in caplog.text
    assert slack.hook_url not in caplog.text


def test_a_webhook_that_was_not_answered_is_left_alone_for_a_while(slack: FakeSlack) -> None:
    slack.fail(LoseResponse())
    hook = SlackHook(Hook(slack.hook_url), _nothing, clock=slack.clock)
    hook.send(b.alert("a"), None)
    with pytest.raises(TemporaryError, match="no messages are sent to Slack for a while"):
        hook.send(b.alert("b"), None)
    slack.advance(MUTE_S)
    hook.send(b.alert("b"), None)

    assert len(slack.channel.messages) == 2


def test_a_webhook_that_nobody_listens_at_was_sent_nothing() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        hook = SlackHook(Hook(f"http://127.0.0.1:{probe.getsockname()[1]}/x"), _nothing)
        with pytest.raises(TemporaryError, match="did not answer"):
            hook.send(b.alert(), None)


# ------------------------------------------------------------------------------------------------------------
# settings


def test_without_settings_there_is_no_slack() -> None:
    assert slack_from({}, _nothing) is None
    assert (
        slack_from({"PRIME_TRAIN_SLACK_WEBHOOK": "", "PRIME_TRAIN_SLACK_MENTION": "nobody at all"}, _nothing)
        is None
    )


@pytest.mark.parametrize("name", ["PRIME_TRAIN_SLACK_WEBHOOK", "SLACK_WEBHOOK_URL"])
def test_a_webhook_url_is_enough(slack: FakeSlack, name: str) -> None:
    notifier = slack_from({name: slack.hook_url}, _nothing)
    assert notifier is not None
    notifier.send(b.alert(), None)

    assert len(slack.channel.messages) == 1


def test_a_token_and_a_channel_make_threads(slack: FakeSlack) -> None:
    record = b.record()
    settings = {
        "PRIME_TRAIN_SLACK_TOKEN": f"{TOKEN}\n",
        "PRIME_TRAIN_SLACK_CHANNEL": CHANNEL,
        "PRIME_TRAIN_SLACK_API": slack.url,
    }
    notifier = slack_from(
        settings | {"PRIME_TRAIN_SLACK_MENTION": "here, U0ANN0001, S0ONCALL1", "SLACK_WEBHOOK_URL": "x"},
        lambda run_id: record,
    )
    assert notifier is not None
    notifier.send(b.alert(kind=AlertKind.FAILED), record.run)

    assert len(slack.channel.top) == 1
    assert slack.mentions == ["<!here>", "<@U0ANN0001>", "<!subteam^S0ONCALL1>"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"PRIME_TRAIN_SLACK_TOKEN": TOKEN}, "PRIME_TRAIN_SLACK_CHANNEL is not set"),
        ({"PRIME_TRAIN_SLACK_CHANNEL": CHANNEL}, "PRIME_TRAIN_SLACK_TOKEN is not set"),
        (
            {"PRIME_TRAIN_SLACK_TOKEN": TOKEN, "PRIME_TRAIN_SLACK_CHANNEL": "#runs"},
            "must be the channel's id",
        ),
        ({"PRIME_TRAIN_SLACK_TOKEN": "xapp-s3cr3t", "PRIME_TRAIN_SLACK_CHANNEL": CHANNEL}, "not a bot token"),
        ({"SLACK_WEBHOOK_URL": "https://hooks.slack.com/s3cr3t\nx"}, "not an http or https URL"),
        ({"SLACK_WEBHOOK_URL": "hooks.slack.com/services/s3cr3t"}, "not an http or https URL"),
        ({"SLACK_WEBHOOK_URL": "https://x", "PRIME_TRAIN_SLACK_MENTION": "ann"}, "not 'ann'"),
    ],
)
def test_a_setting_that_is_not_possible_is_reported(settings: dict[str, str], text: str) -> None:
    with pytest.raises(PermanentError, match=text) as caught:
        slack_from(settings, _nothing)
    assert "s3cr3t" not in str(caught.value)


def test_a_missing_sdk_is_reported_with_its_remedy() -> None:
    program = """
import sys
sys.modules["slack_sdk"] = None
from prime_train.alerts.slack.settings import slack_from
slack_from({"SLACK_WEBHOOK_URL": "https://hooks.slack.com/services/s3cr3t"}, print)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert "as prime-train[slack]" in ended.stderr.splitlines()[-1]
    assert "s3cr3t" not in ended.stderr.splitlines()[-1]
