"""A job that rents machines itself has all providers' credentials in one value, whose parts are hidden like
any other secret.
"""

import json

from prime_train.environment import CREDENTIALS
from tests.cli.gha.job import GOOD, Job
from tests.cli.gha.test_gha_earlier_runs import commented

H100 = {"configs/small.yaml": GOOD.replace("usd_per_hour_max: 2", "gpus: [H100_80GB]")}
SWEEP = ("watch", "schedule", {"schedule": "7-59/10 * * * *"})
UNWATCHED = "no watcher runs beside the control plane, and this job has no provider's credentials"


def test_without_credentials_a_watching_job_says_which_one_secret_to_set(
    job: Job, plane: dict[str, str]
) -> None:
    did = job.run(*SWEEP, **plane)
    (warning,) = [rest for level, rest in did.annotations if level == "warning"]
    assert (did.code, UNWATCHED in warning) == (0, True), did.log
    assert "prime-train github init --secret PRIME_TRAIN_CREDENTIALS" in warning


def test_a_watching_job_asks_the_providers_whose_credentials_it_has_and_hides_each(
    job: Job, plane: dict[str, str]
) -> None:
    value = json.dumps(
        {"PRIME_API_KEY": "pit_in_one_value", "RUNPOD_API_KEY": "", "MEADOW_KEY": "of_tomorrow"}
    )
    did = job.run(*SWEEP, **plane, PRIME_API_BASE_URL="http://127.0.0.1:9", PRIME_TRAIN_CREDENTIALS=value)
    warnings = "".join(rest for level, rest in did.annotations if level == "warning")
    assert "the provider cannot be queried: " in warnings
    assert "127.0.0.1:9" in warnings
    assert (
        UNWATCHED in warnings,
        f"{CREDENTIALS} has 1 values that are no credentials of a provider" in warnings,
    ) == (False, True)
    assert "::add-mask::pit_in_one_value" in did.log.splitlines()
    shown = [line for line in did.log.splitlines() if not line.startswith("::add-mask::")]
    assert not [line for line in (*shown, did.summary) if "pit_in_one_value" in line or "of_tomorrow" in line]


def test_a_value_that_is_none_ends_the_job_and_is_not_repeated(job: Job, plane: dict[str, str]) -> None:
    did = job.run(*SWEEP, **plane, PRIME_TRAIN_CREDENTIALS="rpa_a_key_of_one_provider")
    ((level, output),) = did.annotations
    assert (did.code, level, "rpa_a_key" in did.log) == (2, "error", False)
    assert (
        "PRIME_TRAIN_CREDENTIALS is not a JSON object of names and texts%0A  fix: write it as "
        '{"RUNPOD_API_KEY": "..."}' in output
    )


def test_keys_that_may_only_list_offers_price_a_pull_request_without_a_control_plane(
    job: Job, prices: dict[str, str]
) -> None:
    value = json.dumps({"PRIME_API_KEY": prices["PRIME_API_KEY"]})
    found = commented(
        job, {"PRIME_API_BASE_URL": prices["PRIME_API_BASE_URL"]}, H100, PRIME_TRAIN_CREDENTIALS=value
    )
    assert ("| $2.90 |" in found.text, found.warnings) == (True, "")
