"""Alerts in Slack, through a bot with one thread per run, or through an incoming webhook."""

from prime_train.adapters.notify_slack.settings import slack_from

__all__ = ["slack_from"]
