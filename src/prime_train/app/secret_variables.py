"""The environment variables whose values are secrets of the control plane or of runs."""

from collections.abc import Mapping

from prime_train.alerts.slack.settings import TOKEN as SLACK_TOKEN
from prime_train.alerts.slack.settings import WEBHOOK, WEBHOOK_TOO
from prime_train.app.notifiers import ALERT_URL
from prime_train.buckets.location import PLACES, POD_PREFIX
from prime_train.environment import CREDENTIALS, MASTER
from prime_train.github.auth import APP_KEY
from prime_train.github.auth import TOKEN as GITHUB_TOKEN
from prime_train.providers.kinds import credentials, notice_variables
from prime_train.spec.access_run_secrets import DEFAULT, for_runs
from prime_train.spec.run_secrets import listed
from prime_train.stores.market_remote import MARKET_KEY
from prime_train.tracker.wandb_client import KEY as WANDB_KEY

_BUCKET = ("AWS_SESSION_TOKEN", *dict.fromkeys(place.keys[1] for place in PLACES.values()))


def secret_variables(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the variables that are secret if they are set, among them those that runs may
    receive. Raises UsageError if the operator's list of these is not valid.
    """
    own = (
        MASTER,
        MARKET_KEY,
        ALERT_URL,
        SLACK_TOKEN,
        WEBHOOK,
        WEBHOOK_TOO,
        GITHUB_TOKEN,
        APP_KEY,
        WANDB_KEY,
        CREDENTIALS,
        *sorted(credentials()),
        *notice_variables(),
    )
    # A glob without a letter allows nearly every variable; most of these, such as CI=true, are no secrets.
    named = [pattern for pattern in listed(environment) if any(char.isalpha() for char in pattern)]
    return tuple(
        dict.fromkeys(
            (
                *own,
                *_BUCKET,
                *(POD_PREFIX + name for name in _BUCKET),
                *DEFAULT,
                *for_runs(environment, named),
            )
        )
    )
