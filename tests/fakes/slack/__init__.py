"""A fake of Slack: one channel of a workspace, spoken to through the Web API with a bot's token or through an incoming webhook.

What is posted is held against the SDK's own models of Block Kit, tokens against their scopes, and a channel takes a message a second.
"""

from tests.fakes.slack.server import BOT, CHANNEL, HOOK, TOKEN, FakeSlack

__all__ = ["BOT", "CHANNEL", "HOOK", "TOKEN", "FakeSlack"]
