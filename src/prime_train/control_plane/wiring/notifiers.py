"""The notifiers of a control plane, as its environment configures them: its log, webhooks, Slack and GitHub."""

import logging
from collections.abc import Callable, Iterator, Mapping

from prime_train.adapters.notify_log import LogNotifier
from prime_train.adapters.notify_slack import slack_from
from prime_train.control_plane.results import pull_results
from prime_train.control_plane.wiring.github_auth import client, speaks, speaks_only_of
from prime_train.core.errors import UsageError
from prime_train.core.results.comparison import PullResults
from prime_train.core.run import Run
from prime_train.ports import Bucket, Notifier, PermanentError, RunRecord, Store

ALERT_URL = "PRIME_TRAIN_ALERT_URL"
SLACK = "PRIME_TRAIN_SLACK_"


def notifiers_of(
    environment: Mapping[str, str], open_store: Callable[[], Store], open_bucket: Callable[[], Bucket]
) -> tuple[Notifier, ...]:
    """Return the notifiers. `open_store` opens the store from which they read the runs that alerts are about, and `open_bucket` the bucket
    with the results of runs. Raises PermanentError if a setting is invalid."""
    from prime_train.adapters.notify_webhook import webhooks_from

    webhooks = webhooks_from(environment, environment.get(ALERT_URL) or None)
    return LogNotifier(), *webhooks, *_on_slack(environment, open_store), *_on_github(environment, open_store, open_bucket)


def _on_slack(environment: Mapping[str, str], open_store: Callable[[], Store]) -> Iterator[Notifier]:
    if not any(name.startswith(SLACK) for name in environment) and not environment.get("SLACK_WEBHOOK_URL"):
        return

    slack = slack_from(environment, loader_of(open_store()))
    if slack is not None:
        yield slack


def _on_github(environment: Mapping[str, str], open_store: Callable[[], Store], open_bucket: Callable[[], Bucket]) -> Iterator[Notifier]:
    if speaks(environment):
        from prime_train.adapters.github import GitHubNotifier

        web_url = environment.get("GITHUB_SERVER_URL") or "https://github.com"
        store = open_store()
        yield GitHubNotifier(
            client(environment),
            loader_of(store),
            web_url=web_url,
            only=speaks_only_of(environment),
            results=results_reader(store, open_bucket),
        )


def results_reader(store: Store, open_bucket: Callable[[], Bucket]) -> Callable[[Run], PullResults]:
    """Return a function that reads the results of a run and compares them with those of the base branch. It raises ExternalError."""

    def results(run: Run) -> PullResults:
        try:
            return pull_results(store, open_bucket, run)
        except UsageError as error:
            # The bucket is not set up here as it is where the run was made.
            raise PermanentError(str(error)) from error

    return results


def loader_of(store: Store) -> Callable[[str], RunRecord | None]:
    """Return a function that loads the current run for notifiers. It returns None also for an unreadable record, and for an alert of no
    run; the alert is then sent without it."""

    def record(run_id: str) -> RunRecord | None:
        try:
            return store.load(run_id) if run_id else None
        except PermanentError as error:
            logging.getLogger("prime_train.alerts").warning("run %s is reported without its record: %s", run_id, error)
            return None

    return record
