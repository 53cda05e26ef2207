"""Selects and configures Slack from the environment."""

import re
from collections.abc import Callable, Mapping

from prime_train.alerts.port import Notifier
from prime_train.errors import PermanentError
from prime_train.runs.store import RunRecord

WEBHOOK, WEBHOOK_TOO = "PRIME_TRAIN_SLACK_WEBHOOK", "SLACK_WEBHOOK_URL"
TOKEN, CHANNEL = "PRIME_TRAIN_SLACK_TOKEN", "PRIME_TRAIN_SLACK_CHANNEL"
MENTION = "PRIME_TRAIN_SLACK_MENTION"
API_URL = "PRIME_TRAIN_SLACK_API"
"""Variable with the API address of another Slack than slack.com, such as https://slack-gov.com/api/."""

_EVERYBODY = frozenset({"here", "channel", "everyone"})
_TOKEN = re.compile(r"xox[a-z.]+-[!-~]+")
_CHANNEL = re.compile(r"[CGD][A-Z0-9]{7,}")
_PERSON, _GROUP = re.compile(r"[UW][A-Z0-9]{7,}"), re.compile(r"S[A-Z0-9]{7,}")


def slack_from(environment: Mapping[str, str], record: Callable[[str], RunRecord | None]) -> Notifier | None:
    """Return a bot if a token is set, else an incoming webhook; None if neither is set. `record` returns a
    run as it is now.

    Raises PermanentError if a setting is invalid.
    """
    token, channel, named, named_too = (
        environment.get(name, "").strip() for name in (TOKEN, CHANNEL, WEBHOOK, WEBHOOK_TOO)
    )
    url = named or named_too
    if not (token or channel or url):
        return None
    mention = mention_of(environment.get(MENTION, ""))
    _need_sdk()
    if token or channel:
        return _bot(token, channel, record, mention, environment.get(API_URL, ""))
    from prime_train.alerts.slack.api import Hook
    from prime_train.alerts.slack.hook import SlackHook

    return SlackHook(Hook(url), record, mention=mention)


def _bot(
    token: str, channel: str, record: Callable[[str], RunRecord | None], mention: str, url: str
) -> Notifier:
    if not (token and channel):
        raise PermanentError(
            f"{TOKEN} and {CHANNEL} must both be set: {TOKEN if channel else CHANNEL} is not set"
        )
    if not _TOKEN.fullmatch(token):
        raise PermanentError(
            f"{TOKEN} is not a bot token, which begins with xoxb- and is listed under OAuth & Permissions of "
            "the app"
        )
    if not _CHANNEL.fullmatch(channel):
        raise PermanentError(
            f"{CHANNEL} is {channel!r}: it must be the channel's id, such as C0123ABCD; Slack shows it at "
            "the bottom of the channel's "
            f"details"
        )
    from prime_train.alerts.slack.api import URL, Api
    from prime_train.alerts.slack.bot import SlackBot

    return SlackBot(Api(token, channel, url=url or URL), record, mention=mention)


def _need_sdk() -> None:
    try:
        import slack_sdk  # noqa: F401 - only to check that it is installed
    except ModuleNotFoundError as error:
        raise PermanentError(
            "Slack is set up, but its SDK is not installed: install it as prime-train[slack]"
        ) from error


def mention_of(text: str) -> str:
    """Return comma-separated names as mentions in Slack's syntax."""
    return " ".join(_mention(name.strip().removeprefix("@")) for name in text.split(",") if name.strip())


def _mention(name: str) -> str:
    if name in _EVERYBODY:
        return f"<!{name}>"
    if _PERSON.fullmatch(name):
        return f"<@{name}>"
    if _GROUP.fullmatch(name):
        return f"<!subteam^{name}>"
    raise PermanentError(
        f"{MENTION} must name here, channel, everyone, a member's id (U0123ABCD) or a group's id "
        f"(S0123ABCD), not {name!r}"
    )
