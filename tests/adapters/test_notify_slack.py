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

from prime_train.adapters.notify_slack import slack_from
from prime_train.adapters.notify_slack.blocks import said
from prime_train.adapters.notify_slack.bot import EDITS_BURST, POSTS_BURST, SlackBot
from prime_train.adapters.notify_slack.calling import PAGE_MESSAGES, Api, Hook
from prime_train.adapters.notify_slack.hook import SlackHook
from prime_train.adapters.notify_slack.marks import head_mark
from prime_train.adapters.notify_slack.pace import MUTE_S
from prime_train.adapters.notify_slack.waiting import FEW_MAX
from prime_train.control_plane.reconcile import deliver
from prime_train.core.causes import Cause
from prime_train.core.run import Alert, Change, DesiredState, Origin, Run, RunState, Severity
from prime_train.ports import OutsideError, PermanentError, RunRecord, TemporaryError
from tests import builders as b
from tests.fakes.prime.faults import ALWAYS, Answer, CutRequest, Fault, Hang, LoseAnswer, Replace
from tests.fakes.slack import CHANNEL, TOKEN, FakeSlack
from tests.reconcile.ports import Outside

SWEEP_S = 15


class Told:
    """A workspace, the runs that there are, and a bot that tells of them."""

    def __init__(self, slack: FakeSlack, *, mention: str = "", timeout_s: int = 5) -> None:
        self.slack, self.mention, self.timeout_s = slack, mention, timeout_s
        self.runs: dict[str, RunRecord] = {b.RUN_ID: b.held()}
        self.restart()

    def restart(self) -> None:
        """Another process tells from now on."""
        api = Api(TOKEN, CHANNEL, url=self.slack.url, timeout_s=self.timeout_s)
        self.bot = SlackBot(api, self.runs.get, mention=self.mention, clock=self.slack.clock)

    def send(self, alert: Alert | None = None) -> None:
        alert = alert if alert is not None else b.alert()
        held = self.runs.get(alert.run_id)
        self.bot.send(alert, held.run if held else None)

    def raised(self, alert: Alert | None = None) -> OutsideError:
        with pytest.raises(OutsideError) as caught:
            self.send(alert)
        return caught.value

    def stands(self, held: RunRecord) -> None:
        self.runs[held.run.run_id] = held

    @property
    def heads(self) -> list[str]:
        return [message["text"] for message in self.slack.channel.top]

    def replies(self, head: int = 0) -> list[str]:
        """Of the thread, the whole messages as text."""
        ts = self.slack.channel.top[head]["ts"]
        return [shown(message) for message in self.slack.channel.thread(ts)[1:]]


def _nothing(run_id: str) -> None:
    return None


def shown(message: dict[str, object]) -> str:
    return json.dumps(message["blocks"], ensure_ascii=False)


def quiet(key: str = "tiny-1/shown/1") -> Alert:
    return b.alert(key, kind="shown", severity=Severity.QUIET, title="training", text="")


def several(count: int, **changes: object) -> list[Alert]:
    return [b.alert(f"{b.RUN_ID}/e1/note/v{number}", title=f"note {number}", **changes) for number in range(count)]


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with FakeSlack(clock_s=b.T0_S + 3600.0) as fake:
        yield fake


@pytest.fixture
def told(slack: FakeSlack) -> Told:
    return Told(slack)


# ------------------------------------------------------------------------------------------------------------------ one thread a run


def test_a_run_has_one_thread_and_each_alert_is_a_reply(told: Told) -> None:
    told.send(b.alert("a", title="tiny-1: training at step 1"))
    told.send(b.alert("b", title="tiny-1: machine lost", text="the provider took it"))

    assert told.heads == ["tiny-1 is training, step 10, $0.36 of $5.00"]
    first, second = told.replies()
    assert "*tiny-1: training at step 1*" in first
    assert "the provider took it" in second


def test_head_and_alerts_lead_to_where_the_run_is_tracked_and_was_asked_for(told: Told) -> None:
    origin = Origin("acme/m", "c0", "c.yaml", "k", pull=7)
    run = b.run(RunState.TRAINING, spec=b.spec(wandb={"project": "a|b>", "entity": "acme"}), origin=origin)
    told.stands(b.held(run))
    told.send()
    leading = "<https://wandb.ai/acme/a%7Cb%3E/runs/tiny-1|W&amp;B> · <https://github.com/acme/m/pull/7|pull request>"
    assert leading in shown(told.slack.channel.top[0])
    assert leading in told.replies()[0]


def test_the_head_is_edited_in_place_also_where_nobody_is_told(told: Told, slack: FakeSlack) -> None:
    told.send()
    told.stands(b.held(heartbeat=b.heartbeat(9, step=4321)))
    told.send(quiet())

    assert ["step 4,321" in head for head in told.heads] == [True]
    assert len(told.replies()) == 1
    assert slack.asked.count("chat.update") == 1


def test_a_head_that_says_it_already_is_left_alone(told: Told, slack: FakeSlack) -> None:
    told.send()
    told.send(quiet("a"))
    told.send(quiet("b"))

    assert "chat.update" not in slack.asked


def test_nobody_is_bothered_with_a_run_of_which_there_is_nothing_to_tell(told: Told, slack: FakeSlack) -> None:
    told.send(quiet())

    assert slack.channel.messages == []


def test_another_process_finds_the_thread(told: Told) -> None:
    told.send(b.alert("a"))
    told.restart()
    told.send(b.alert("b"))
    told.restart()
    told.send(b.alert("b"))

    assert len(told.heads) == 1
    assert len(told.replies()) == 2


def test_the_thread_is_found_among_many_messages(told: Told, slack: FakeSlack) -> None:
    told.send(b.alert("a"))
    for _ in range(2 * PAGE_MESSAGES + 1):
        slack.channel.post("B0OTHER01", {"text": "chatter"})
    told.restart()
    told.send(b.alert("b"))

    assert len(told.replies()) == 2
    assert slack.asked.count("conversations.history") == 1 + 3


def test_what_another_bot_says_of_a_run_is_not_ours(told: Told, slack: FakeSlack) -> None:
    forged = {"text": "tiny-1 has succeeded", "blocks": [], "metadata": head_mark(b.RUN_ID).to_dict()}
    slack.channel.post("B0OTHER01", forged)
    told.send()

    assert len(told.heads) == 2
    assert len(told.replies(1)) == 1


def test_a_thread_that_somebody_deleted_is_begun_anew(told: Told, slack: FakeSlack) -> None:
    told.send(b.alert("a"))
    slack.channel.delete(slack.channel.top[0]["ts"])
    error = told.raised(b.alert("b"))
    slack.advance(2)
    told.send(b.alert("b"))

    assert isinstance(error, TemporaryError)
    assert (len(told.heads), len(told.replies(-1))) == (1, 1)


def test_an_alert_of_a_run_that_nobody_keeps_any_more_is_told_without_a_thread(told: Told, slack: FakeSlack) -> None:
    told.runs.clear()
    told.send()
    told.restart()
    told.send(b.alert(at_s=b.T0_S + 1))

    assert told.heads == ["attempt 1: machine lost"]


# ---------------------------------------------------------------------------------------------------------------- never twice


@pytest.mark.parametrize("post", [1, 2], ids=["head", "alert"])
@pytest.mark.parametrize("fault", [LoseAnswer(), CutRequest(), Answer(500, b"{}")])
@pytest.mark.parametrize("restarted", [False, True])
def test_an_alert_whose_answer_is_lost_is_posted_once(told: Told, slack: FakeSlack, post: int, fault: Answer, restarted: bool) -> None:
    slack.fail(fault, path="chat.postMessage", first=post)
    error = told.raised()
    slack.advance(MUTE_S)
    if restarted:
        told.restart()
    told.send()
    told.send()

    assert isinstance(error, TemporaryError)
    assert len(told.heads) == 1
    assert len(told.replies()) == 1


def test_a_post_that_was_done_and_called_a_failure_is_not_done_again_a_moment_later(told: Told, slack: FakeSlack) -> None:
    slack.fail(Replace(Answer(503, headers={"Retry-After": "2"})), path="chat.postMessage", times=2)
    for _ in range(3):
        with suppress(TemporaryError):
            told.send()
        slack.advance(2)

    assert len(told.heads) == 1
    assert len(told.replies()) == 1


def test_the_sdk_posts_nothing_again_by_itself(told: Told, slack: FakeSlack) -> None:
    slack.fail(LoseAnswer(), path="chat.postMessage", times=ALWAYS)
    told.raised()

    assert slack.asked.count("chat.postMessage") == 1


def test_a_head_that_can_not_be_edited_now_is_edited_later_and_the_alert_is_told_once(told: Told, slack: FakeSlack) -> None:
    told.send(b.alert("a"))
    told.stands(b.held(heartbeat=b.heartbeat(9, step=4321)))
    slack.fail(Answer(503), path="chat.update")
    told.raised(b.alert("b"))
    slack.advance(MUTE_S)
    told.send(b.alert("b"))

    assert "step 4,321" in told.heads[0]
    assert len(told.replies()) == 2


# --------------------------------------------------------------------------------------------------------------- many at once


def test_many_alerts_are_one_message(told: Told, slack: FakeSlack) -> None:
    alerts = several(FEW_MAX + 1)
    told.bot.foresee(alerts)
    for alert in alerts:
        told.send(alert)

    (digest,) = slack.channel.messages
    assert digest["text"] == f"{FEW_MAX + 1} alerts of one run"
    assert all(f"note {number}" in shown(digest) for number in range(FEW_MAX + 1))


def test_a_few_are_told_one_by_one(told: Told, slack: FakeSlack) -> None:
    alerts = several(FEW_MAX)
    told.bot.foresee(alerts)
    told.send(alerts[0])
    told.send(alerts[1])

    assert len(told.replies()) == 2


@pytest.mark.parametrize("restarted", [False, True])
def test_a_digest_whose_answer_is_lost_is_posted_once(told: Told, slack: FakeSlack, restarted: bool) -> None:
    alerts = several(FEW_MAX + 1)
    slack.fail(LoseAnswer(), path="chat.postMessage")
    told.bot.foresee(alerts)
    told.raised(alerts[0])
    slack.advance(MUTE_S)
    if restarted:
        told.restart()
    told.bot.foresee(alerts)
    for alert in alerts:
        told.send(alert)

    assert len(slack.channel.messages) == 1


def test_an_outbox_of_many_runs_is_drained_in_a_few_messages_and_nothing_is_told_twice(told: Told, slack: FakeSlack) -> None:
    w = Outside()
    w.world = replace(w.world, notifiers=(told.bot,))
    for number in range(60):
        alert = b.alert(f"run-{number}/e1/lost/v2", run_id=f"run-{number}", title=f"run-{number}: lost")
        run = b.run(RunState.TRAINING, run_id=alert.run_id)
        told.stands(b.held(run))
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
    return [name for message in slack.channel.messages for name in re.findall(r"(run-[0-9]+): lost", shown(message))]


# ------------------------------------------------------------------------------------------------------------ with the watcher


class Watching(Outside):
    """A watcher that sweeps, and tells Slack."""

    def __init__(self, slack: FakeSlack) -> None:
        super().__init__({"trainer": {"steps": 100}})
        self.slack = slack
        bot = SlackBot(Api(TOKEN, CHANNEL, url=slack.url), self.store.load, clock=lambda: self.now_s)
        self.world = replace(self.world, notifiers=(bot,))
        self.settle()

    def goes_on(self, *steps: int | None) -> None:
        """A sweep each, after a heartbeat that brings the step; None: no heartbeat."""
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


def test_a_run_that_loses_its_machine_has_its_whole_story_in_one_thread(slack: FakeSlack) -> None:
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
        "attempt 1: machine taken away",
        "attempt 2 has a machine",
        "training at step 5",
        "run failed",
    ]


# ------------------------------------------------------------------------------------------------------------------ pace


def test_more_than_a_message_a_second_is_left_for_later_without_asking(told: Told, slack: FakeSlack) -> None:
    for alert in several(POSTS_BURST - 1):  # and the head
        told.send(alert)
    asked = len(slack.asked)
    error = told.raised(b.alert("more"))
    slack.advance(1)

    assert isinstance(error, TemporaryError)
    assert 0 < error.delay_s <= 1
    assert len(slack.asked) == asked
    told.send(b.alert("more"))


def test_edits_have_a_pace_of_their_own(told: Told, slack: FakeSlack) -> None:
    told.send()
    for step in range(EDITS_BURST):
        told.stands(b.held(heartbeat=b.heartbeat(9, step=100 + step)))
        told.send(quiet())
    told.stands(b.held(heartbeat=b.heartbeat(9, step=999)))

    assert isinstance(told.raised(quiet()), TemporaryError)
    assert slack.asked.count("chat.update") == EDITS_BURST


def test_slack_is_left_alone_for_as_long_as_it_asks(told: Told, slack: FakeSlack) -> None:
    slack.fail(Answer(429, b'{"ok": false, "error": "ratelimited"}', headers={"Retry-After": "90"}), path="chat.postMessage")
    first = told.raised()
    asked = len(slack.asked)
    slack.advance(60)
    second = told.raised()
    slack.advance(30)

    assert isinstance(first, TemporaryError)
    assert isinstance(second, TemporaryError)
    assert (first.delay_s, second.delay_s) == (90.0, 30.0)
    assert len(slack.asked) == asked
    told.send()


# ------------------------------------------------------------------------------------------------------------ what goes wrong


@pytest.mark.parametrize(
    "fault", [Answer(500), Answer(503, b"<html>"), Answer(200, b"what?"), Answer(200, b"[]"), Answer(200, b"\xff\xfe"), CutRequest()]
)
def test_a_slack_in_trouble_is_left_for_later_and_left_alone(told: Told, slack: FakeSlack, fault: Answer) -> None:
    slack.fail(fault, times=ALWAYS)
    first = told.raised()
    asked = len(slack.asked)
    second = told.raised()

    assert isinstance(first, TemporaryError)
    assert isinstance(second, TemporaryError)
    assert 0 < second.delay_s <= MUTE_S
    assert len(slack.asked) == asked == 1


def test_a_slack_that_says_nothing_is_not_waited_for(slack: FakeSlack) -> None:
    told = Told(slack, timeout_s=1)
    slack.fail(Hang())

    assert isinstance(told.raised(), TemporaryError)


def _revoked(slack: FakeSlack) -> None:
    slack.revoked = True


def _not_invited(slack: FakeSlack) -> None:
    slack.channel.members.clear()


def _archived(slack: FakeSlack) -> None:
    slack.channel.archived = True


def _may_not_read(slack: FakeSlack) -> None:
    slack.scopes.discard("channels:history")


@pytest.mark.parametrize(
    ("trouble", "remedy"),
    [
        (_revoked, "token_revoked: install the app again"),
        (_not_invited, "not_in_channel: invite the bot"),
        (_archived, "is_archived: unarchive"),
        (_may_not_read, "missing_scope: give the app the scopes chat:write and channels:history"),
    ],
)
def test_a_refusal_is_for_good_and_says_what_to_do(told: Told, slack: FakeSlack, trouble: object, remedy: str) -> None:
    assert callable(trouble)
    trouble(slack)
    error = told.raised()

    assert isinstance(error, PermanentError)
    assert remedy in str(error)


@pytest.mark.parametrize(
    ("token", "channel", "word"), [("xoxb-other", CHANNEL, "invalid_auth"), (TOKEN, "C0ELSEWHERE", "channel_not_found")]
)
def test_a_wrong_token_or_channel_is_told(slack: FakeSlack, token: str, channel: str, word: str) -> None:
    bot = SlackBot(Api(token, channel, url=slack.url), lambda run_id: None, clock=slack.clock)
    with pytest.raises(PermanentError, match=word):
        bot.send(b.alert(), None)


@pytest.mark.parametrize("fault", [Answer(500, TOKEN.encode()), CutRequest(), Answer(400, b"no s3cr3tPath")])
def test_no_secret_is_in_an_error_or_a_log(told: Told, slack: FakeSlack, fault: Answer, caplog: pytest.LogCaptureFixture) -> None:
    slack.fail(fault, times=ALWAYS)
    hook = SlackHook(Hook(slack.hook_url), _nothing, clock=slack.clock)
    with caplog.at_level(logging.DEBUG):
        errors = [told.raised()]
        # The second one is not even sent, where the first was and got no answer.
        with pytest.raises(OutsideError) as caught:
            for key in ("a", "b"):
                hook.send(b.alert(key), None)

    text = caplog.text + "".join("".join(traceback.format_exception(error)) for error in [*errors, caught.value])
    assert TOKEN not in text
    assert "s3cr3tPath" not in text


# -------------------------------------------------------------------------------------------------------------- what is shown


def test_what_a_trainer_printed_calls_nobody_and_links_nowhere(told: Told, slack: FakeSlack) -> None:
    evil = "<!channel> <@U0ANN0001> @here <https://evil.example|log> & a<b"
    told.stands(b.held(b.run(RunState.FAILED, why=evil)))
    told.send(b.alert(title=evil, text=evil))

    assert slack.mentions == []
    assert "&lt;!channel&gt; &lt;@U0ANN0001&gt; @here &lt;https://evil.example|log&gt; &amp; a&lt;b" in told.replies()[0]


@pytest.mark.parametrize("char", ["x", "<", "&", "\n", "é", "🟢", "\x00", "\u202e", "`"])
def test_texts_of_any_length_are_taken(told: Told, char: str) -> None:
    told.stands(b.held(b.run(RunState.FAILED, why=char * 50_000)))
    told.send(b.alert(kind="failed", title="tiny-1: " + char * 50_000, text=char * 50_000))

    assert len(told.replies()) == 1


def test_a_long_digest_is_taken(told: Told, slack: FakeSlack) -> None:
    alerts = [b.alert(f"{b.RUN_ID}/e1/{'k' * 60}/v{number}", title="<" * 500) for number in range(200)]
    told.bot.foresee(alerts)
    told.send(alerts[0])

    assert len(slack.channel.messages) == 1


def test_a_cut_leaves_no_half_of_an_escape() -> None:
    assert said("ab<<<", 8) == "ab&lt;…"
    assert said("a&b", 7) == "a&amp;b"


@pytest.mark.parametrize(
    ("state", "changes", "kind", "called"),
    [
        (RunState.FAILED, {}, "failed", ["<!here>"]),
        (RunState.STOPPED, {}, "stopped", ["<!here>"]),
        (RunState.STOPPED, {"want": DesiredState.STOP}, "stopped", []),
        (RunState.TRAINING, {}, "lost", []),
    ],
)
def test_people_are_called_where_one_has_to_look(
    slack: FakeSlack, state: RunState, changes: dict[str, Any], kind: str, called: list[str]
) -> None:
    told = Told(slack, mention="<!here>")
    told.stands(b.held(b.run(state, **changes)))
    told.send(b.alert(kind=kind))

    assert slack.mentions == called


@pytest.mark.parametrize(("run", "called"), [(b.run(RunState.FAILED), ["<!here>"]), (b.run(RunState.STOPPED, want=DesiredState.STOP), [])])
def test_one_message_for_many_calls_people_where_one_of_its_alerts_does(slack: FakeSlack, run: Run, called: list[str]) -> None:
    told = Told(slack, mention="<!here>")
    told.stands(b.held(run))
    alerts = [*several(FEW_MAX, run_id=run.run_id), b.alert(kind=run.state.value)]
    told.bot.foresee(alerts)
    told.send(alerts[0])

    assert slack.mentions == called


def test_a_run_that_is_over_shows_where_the_money_went(told: Told) -> None:
    told.stands(b.held(b.run(RunState.SUCCEEDED)))
    told.send(b.alert(kind="succeeded", severity=Severity.INFO, title="tiny-1: run succeeded"))

    (reply,) = told.replies()
    assert "Paid time" in reply
    assert "▁" in reply
    assert "█" in reply


# ------------------------------------------------------------------------------------------------------------ incoming webhook


def test_a_webhook_gets_each_alert_once_and_no_quiet_one(slack: FakeSlack) -> None:
    hook = SlackHook(Hook(slack.hook_url), _nothing, clock=slack.clock)
    for alert in (b.alert("a"), b.alert("a"), quiet(), b.alert("b")):
        hook.send(alert, None)

    assert [message["text"] for message in slack.channel.messages] == [b.alert().title] * 2


def test_a_webhook_gets_many_alerts_as_one_message(slack: FakeSlack) -> None:
    hook = SlackHook(Hook(slack.hook_url), _nothing, clock=slack.clock)
    alerts = several(20)
    hook.foresee(alerts)
    for alert in alerts:
        hook.send(alert, None)

    assert [message["text"] for message in slack.channel.messages] == ["20 alerts of one run"]


@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        (Answer(404, b"no_service"), PermanentError, "no_service: add an incoming webhook"),
        (Answer(403, b"action_prohibited"), PermanentError, "action_prohibited"),
        (Answer(410, b"channel_is_archived"), PermanentError, "unarchive"),
        (Answer(400, b"<html>"), PermanentError, "400"),
        (Answer(429, b"rate_limited", headers={"Retry-After": "7"}), TemporaryError, "rate_limited"),
        (Answer(503, b"busy"), TemporaryError, "503"),
    ],
)
def test_a_webhook_that_fails_says_whether_it_may_work_later(slack: FakeSlack, fault: Answer, kind: type, text: str) -> None:
    slack.fail(fault)
    with pytest.raises(kind, match=text):
        SlackHook(Hook(slack.hook_url), _nothing, clock=slack.clock).send(b.alert(), None)


@pytest.mark.parametrize("fault", [LoseAnswer(), Hang(done=True)])
def test_what_a_webhook_was_sent_and_did_not_answer_counts_as_told(
    slack: FakeSlack, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    """Slack would say it once more each time, for as long as its answers come too late."""
    slack.fail(fault, times=ALWAYS)
    w = Outside()
    w.settle()
    assert len(w.store.outbox(9)) == 1
    world = replace(w.world, notifiers=(SlackHook(Hook(slack.hook_url, timeout_s=1), w.store.load, clock=slack.clock),))
    for _ in range(3):
        deliver(world, w.now_s)
        slack.advance(MUTE_S)

    assert len(slack.channel.messages) == 1
    assert w.store.outbox(9) == []
    assert "counts as told" in caplog.text
    assert slack.hook_url not in caplog.text


def test_a_webhook_that_was_not_answered_is_left_alone_for_a_while(slack: FakeSlack) -> None:
    slack.fail(LoseAnswer())
    hook = SlackHook(Hook(slack.hook_url), _nothing, clock=slack.clock)
    hook.send(b.alert("a"), None)
    with pytest.raises(TemporaryError, match="left alone"):
        hook.send(b.alert("b"), None)
    slack.advance(MUTE_S)
    hook.send(b.alert("b"), None)

    assert len(slack.channel.messages) == 2


def test_a_webhook_that_nobody_listens_at_was_told_nothing() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        hook = SlackHook(Hook(f"http://127.0.0.1:{probe.getsockname()[1]}/x"), _nothing)
        with pytest.raises(TemporaryError, match="did not come"):
            hook.send(b.alert(), None)


# -------------------------------------------------------------------------------------------------------------------- settings


def test_without_settings_there_is_no_slack() -> None:
    assert slack_from({}, _nothing) is None
    assert slack_from({"PRIME_TRAIN_SLACK_WEBHOOK": "", "PRIME_TRAIN_SLACK_MENTION": "nobody at all"}, _nothing) is None


@pytest.mark.parametrize("name", ["PRIME_TRAIN_SLACK_WEBHOOK", "SLACK_WEBHOOK_URL"])
def test_a_webhook_url_is_enough(slack: FakeSlack, name: str) -> None:
    notifier = slack_from({name: slack.hook_url}, _nothing)
    assert notifier is not None
    notifier.send(b.alert(), None)

    assert len(slack.channel.messages) == 1


def test_a_token_and_a_channel_make_threads(slack: FakeSlack) -> None:
    held = b.held()
    settings = {"PRIME_TRAIN_SLACK_TOKEN": f"{TOKEN}\n", "PRIME_TRAIN_SLACK_CHANNEL": CHANNEL, "PRIME_TRAIN_SLACK_API": slack.url}
    notifier = slack_from(
        settings | {"PRIME_TRAIN_SLACK_MENTION": "here, U0ANN0001, S0ONCALL1", "SLACK_WEBHOOK_URL": "x"}, lambda run_id: held
    )
    assert notifier is not None
    notifier.send(b.alert(kind="failed"), held.run)

    assert len(slack.channel.top) == 1
    assert slack.mentions == ["<!here>", "<@U0ANN0001>", "<!subteam^S0ONCALL1>"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"PRIME_TRAIN_SLACK_TOKEN": TOKEN}, "PRIME_TRAIN_SLACK_CHANNEL is not set"),
        ({"PRIME_TRAIN_SLACK_CHANNEL": CHANNEL}, "PRIME_TRAIN_SLACK_TOKEN is not set"),
        ({"PRIME_TRAIN_SLACK_TOKEN": TOKEN, "PRIME_TRAIN_SLACK_CHANNEL": "#runs"}, "must be the channel's id"),
        ({"PRIME_TRAIN_SLACK_TOKEN": "xapp-s3cr3t", "PRIME_TRAIN_SLACK_CHANNEL": CHANNEL}, "no bot token"),
        ({"SLACK_WEBHOOK_URL": "https://hooks.slack.com/s3cr3t\nx"}, "no http or https URL"),
        ({"SLACK_WEBHOOK_URL": "hooks.slack.com/services/s3cr3t"}, "no http or https URL"),
        ({"SLACK_WEBHOOK_URL": "https://x", "PRIME_TRAIN_SLACK_MENTION": "ann"}, "'ann' is none of here"),
    ],
)
def test_a_setting_that_can_not_be_meant_is_told(settings: dict[str, str], text: str) -> None:
    with pytest.raises(PermanentError, match=text) as caught:
        slack_from(settings, _nothing)
    assert "s3cr3t" not in str(caught.value)


def test_a_missing_sdk_is_told_with_its_remedy() -> None:
    program = """
import sys
sys.modules["slack_sdk"] = None
from prime_train.adapters.notify_slack import slack_from
slack_from({"SLACK_WEBHOOK_URL": "https://hooks.slack.com/services/s3cr3t"}, print)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert "as prime-train[slack]" in ended.stderr.splitlines()[-1]
    assert "s3cr3t" not in ended.stderr.splitlines()[-1]
