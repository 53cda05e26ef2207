"""What a job reports on the page of the workflow's run if it cannot reach its control plane."""

import pytest

from tests.cli.gha.job import Job

OTHER_KEY = "ab" * 32


@pytest.mark.parametrize(
    ("changed", "code", "words"),
    [
        (
            {"PRIME_TRAIN_MASTER_KEY": OTHER_KEY},
            4,
            "answered with 401: the signature is not valid for this path; check that PRIME_TRAIN_MASTER_KEY "
            "is",
        ),
        (
            {"PRIME_TRAIN_MASTER_KEY": "abc"},
            2,
            "PRIME_TRAIN_MASTER_KEY is not 64 hex digits%0A  fix: prime-train key --show prints it",
        ),
        (
            {"PRIME_TRAIN_MASTER_KEY": ""},
            2,
            "PRIME_TRAIN_STORE is set, PRIME_TRAIN_MASTER_KEY is not%0A  fix: prime-train key --show prints "
            "it",
        ),
        ({"PRIME_TRAIN_STORE": "http://127.0.0.1:9"}, 3, "127.0.0.1:9/v1/store/list_runs got no answer"),
        (
            {"PRIME_TRAIN_STORE": ""},
            2,
            "neither PRIME_TRAIN_STORE nor PRIME_TRAIN_HOME is set%0A  fix: set url and master-key",
        ),
    ],
    ids=["another key", "half a key", "no key", "nobody there", "no control plane"],
)
def test_one_annotation_says_what_to_mend(
    job: Job, plane: dict[str, str], changed: dict[str, str], code: int, words: str
) -> None:
    env = {**plane, **changed} | ({"PRIME_TRAIN_HOME": ""} if changed == {"PRIME_TRAIN_STORE": ""} else {})
    did = job.run("watch", "schedule", {"schedule": "7-59/10 * * * *"}, **env)
    assert did.code == code, did.log
    ((level, output),) = did.annotations
    assert level == "error"
    assert output.startswith(" title=prime-train::")
    assert words in output


def test_a_path_after_the_address_is_named(job: Job, plane: dict[str, str]) -> None:
    env = {**plane, "PRIME_TRAIN_STORE": plane["PRIME_TRAIN_STORE"] + "/docs"}
    ((_, output),) = job.run("watch", "schedule", {"schedule": "7-59/10 * * * *"}, **env).annotations
    assert (
        "answered with 404: there is nothing at this path; check that this is the address of a control "
        "plane, without a path" in output
    )
