"""Alerts in Slack: through a bot, in one thread for each run, or through an incoming webhook."""

from prime_train.adapters.notify_slack.settings import slack_from

__all__ = ["slack_from"]
