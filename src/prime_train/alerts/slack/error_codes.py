"""Slack's error codes, with advice for the user."""

from prime_train.errors import ExternalError, PermanentError, TemporaryError

LIMITED = frozenset({"ratelimited", "rate_limited"})
LATER = frozenset(
    {"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"}
)
GONE = frozenset({"message_not_found", "thread_not_found", "cant_update_message", "cannot_reply_to_message"})
"""Error codes for a message that was to be edited or replied to, but no longer exists or was not written by
the bot.
"""

_NEW_TOKEN = "install the app again, and put its bot token (xoxb-...) into PRIME_TRAIN_SLACK_TOKEN"
_NEW_URL = "add an incoming webhook to the app again, and put its URL into PRIME_TRAIN_SLACK_WEBHOOK"
_BUG = "this is a bug in prime-train; the alert is in the log"
REMEDIES = {
    "not_authed": _NEW_TOKEN,
    "invalid_auth": _NEW_TOKEN,
    "token_revoked": _NEW_TOKEN,
    "token_expired": _NEW_TOKEN,
    "account_inactive": _NEW_TOKEN,
    "not_allowed_token_type": _NEW_TOKEN,
    "missing_scope": "give the app the scopes chat:write and channels:history (for a private channel, "
    "groups:history); install it again",
    "channel_not_found": "PRIME_TRAIN_SLACK_CHANNEL must be the id of a channel that the bot has joined; a "
    "private channel must invite it",
    "not_in_channel": "invite the bot by writing /invite @its-name in the channel",
    "is_archived": "unarchive the channel, or set PRIME_TRAIN_SLACK_CHANNEL to another",
    "channel_is_archived": "unarchive the channel, or choose another for the incoming webhook",
    "restricted_action": "a rule of the workspace does not allow apps to post there; ask its administrator",
    "edit_window_closed": "the workspace does not allow editing old messages; ask its administrator",
    "msg_too_long": _BUG,
    "msg_blocks_too_long": _BUG,
    "invalid_blocks": _BUG,
    "metadata_too_large": _BUG,
    "no_service": _NEW_URL,
    "no_team": _NEW_URL,
    "invalid_token": _NEW_URL,
    "team_disabled": _NEW_URL,
    "action_prohibited": "a rule of the workspace forbids it; ask its administrator",
    "posting_to_general_channel_denied": "choose another channel for the incoming webhook",
}


class Limited(TemporaryError):
    """The rate limit was reached, and nothing was done."""


class Unanswered(TemporaryError):
    """The request was sent completely and no response arrived; its outcome is unknown."""


class Gone(PermanentError):
    """The message no longer exists."""


def refusal(method: str, status: int, code: str, *, delay_s: float = 0.0) -> ExternalError:
    """Return the error to raise for Slack's response. `code` is Slack's error code; empty if the response has
    none, for example because another server answered.
    """
    message = f"Slack answered {method} with {f'{status} {code}'.strip().removeprefix('200 ')}"
    if status == 429 or code in LIMITED:
        return Limited(message, delay_s=delay_s)
    if status >= 500 or code in LATER or (status == 200 and not code):
        return TemporaryError(message, delay_s=delay_s)
    if code in GONE:
        return Gone(message)
    remedy = REMEDIES.get(code)
    return PermanentError(f"{message}: {remedy}" if remedy else message)
