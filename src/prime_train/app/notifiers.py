"""The notifiers of a control plane, as its environment configures them: its log, webhooks, Slack and
GitHub.
"""

import logging
from collections.abc import Callable, Iterator, Mapping

from prime_train.alerts.log import LogNotifier
from prime_train.alerts.port import Notifier
from prime_train.alerts.slack.settings import slack_from
from prime_train.buckets.port import Bucket
from prime_train.errors import PermanentError
from prime_train.github.auth import client, speaks, speaks_only_of
from prime_train.outputs.results.write import results_reader
from prime_train.runs.store import RunRecord, Store

ALERT_URL = "PRIME_TRAIN_ALERT_URL"
SLACK = "PRIME_TRAIN_SLACK_"


def notifiers_of(
    environment: Mapping[str, str], open_store: Callable[[], Store], open_bucket: Callable[[], Bucket]
) -> tuple[Notifier, ...]:
    """Return the notifiers. `open_store` opens the store from which they read the runs that alerts are about,
    and `open_bucket` the bucket with the results of runs. Raises PermanentError if a setting is invalid.
    """
    from prime_train.alerts.url import webhooks_from

    webhooks = webhooks_from(environment, environment.get(ALERT_URL) or None)
    return (
        LogNotifier(),
        *webhooks,
        *_on_slack(environment, open_store),
        *_on_github(environment, open_store, open_bucket),
    )


def _on_slack(environment: Mapping[str, str], open_store: Callable[[], Store]) -> Iterator[Notifier]:
    if not any(name.startswith(SLACK) for name in environment) and not environment.get("SLACK_WEBHOOK_URL"):
        return

    slack = slack_from(environment, loader_of(open_store()))
    if slack is not None:
        yield slack


def _on_github(
    environment: Mapping[str, str], open_store: Callable[[], Store], open_bucket: Callable[[], Bucket]
) -> Iterator[Notifier]:
    if speaks(environment):
        from prime_train.github.notifier import GitHubNotifier

        web_url = environment.get("GITHUB_SERVER_URL") or "https://github.com"
        store = open_store()
        yield GitHubNotifier(
            client(environment),
            loader_of(store),
            web_url=web_url,
            only=speaks_only_of(environment),
            results=results_reader(store, open_bucket),
        )


def loader_of(store: Store) -> Callable[[str], RunRecord | None]:
    """Return a function that loads the current run for notifiers. It returns None also for an unreadable
    record, and for an alert of no run; the alert is then sent without it.
    """

    def record(run_id: str) -> RunRecord | None:
        try:
            return store.load(run_id) if run_id else None
        except PermanentError as error:
            logging.getLogger("prime_train.alerts").warning(
                "run %s is reported without its record: %s", run_id, error
            )
            return None

    return record
