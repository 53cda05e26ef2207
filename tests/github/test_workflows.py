"""The rules of the workflows that no other tool checks."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prime_train.providers.in_one_value import EXAMPLE
from prime_train.providers.kinds import PROVIDERS, credentials
from tests.github.files import (
    CONSUMER,
    ROOT,
    USES,
    action,
    consumer_workflows,
    everything,
    named,
    parsed,
    steps,
    workflows,
)

PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
VERSION = re.compile(r" # v\d+\.\d+\.\d+")
GRANT = re.compile(r"^      [a-z-]+: (read|write) # \w.*")
OUTPUT = re.compile(r"\$\{\{ (steps|jobs)\.([a-z-]+)\.outputs\.([a-z-]+) \}\}")
MAY_RENT = {"$/actions/launch", "$/actions/watch", "$/actions/stop"}
PULL_REQUEST_CONFIGS = {"PRIME_TRAIN_MARKET_KEY", "PRIME_TRAIN_OFFERS_KEYS"}
"""The only secrets outside of an environment: they can only list offers, and read what runs show of
machines.
"""

Job = dict[str, Any]


def jobs(paths: list[Path]) -> Iterator[tuple[str, Job]]:
    for path in paths:
        for name, job in parsed(path)["jobs"].items():
            yield f"{named(path)}: {name}", job


def renting() -> list[tuple[str, Job]]:
    return [
        (place, job)
        for place, job in jobs(workflows())
        if MAY_RENT & {step.get("uses") for step in job.get("steps", [])}
    ]


def reusable() -> dict[str, dict[str, Any]]:
    return {
        path.name: on["workflow_call"]
        for path in workflows()
        if "workflow_call" in (on := parsed(path)["on"])
    }


def test_what_others_wrote_is_pinned_and_says_its_version() -> None:
    for path in everything():
        for match in USES.finditer(path.read_text()):
            if not match[1].startswith(("$/", "owner/prime-train/")):
                assert PINNED.fullmatch(match[1]), f"{named(path)}: {match[0]}"
                assert VERSION.fullmatch(match[2]), f"{named(path)}: {match[0]}"


def test_one_version_of_each_is_used_everywhere() -> None:
    found: dict[str, set[str]] = {}
    for path in everything():
        for match in USES.finditer(path.read_text()):
            if not match[1].startswith(("$/", "owner/prime-train/")):
                found.setdefault(match[1].partition("@")[0], set()).add(match[1] + match[2])
    assert not {name: uses for name, uses in found.items() if len(uses) > 1}


def test_rights_are_given_job_by_job_each_with_its_reason() -> None:
    for path in [*workflows(), *consumer_workflows()]:
        text = path.read_text()
        assert parsed(path)["permissions"] == {}, named(path)
        for block in re.findall(r"^    permissions:\n((?:      .*\n)+)", text, re.MULTILINE):
            for line in block.splitlines():
                assert GRANT.fullmatch(line), f"{named(path)}: {line}"
    for place, job in jobs([*workflows(), *consumer_workflows()]):
        assert job["permissions"], place


def test_every_job_ends() -> None:
    for place, job in jobs(workflows()):
        assert 0 < job["timeout-minutes"] <= 45, place


def test_a_checkout_leaves_no_token_behind() -> None:
    for place, job in jobs(workflows()):
        for step in job.get("steps", []):
            if str(step.get("uses")).startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False, place


def test_no_workflow_runs_a_forks_code_with_rights() -> None:
    for path in [*workflows(), *consumer_workflows()]:
        assert not {"pull_request_target", "workflow_run"} & set(parsed(path)["on"]), named(path)


def test_what_may_rent_waits_its_turn_and_is_never_cut_short() -> None:
    assert len(renting()) == len(MAY_RENT)
    for place, job in renting():
        assert job["concurrency"]["queue"] == "max", place
        assert job["concurrency"]["cancel-in-progress"] is False, place


def test_what_may_rent_takes_its_keys_from_an_environment() -> None:
    environments = {place.partition(": ")[2]: job["environment"] for place, job in renting()}
    assert {name: environment["name"] for name, environment in environments.items()} == {
        "launch": "gpu",
        "watch": "gpu-watch",
        "stop": "gpu-watch",
    }
    assert not any(environment["deployment"] for environment in environments.values())


def test_no_job_that_a_comment_starts_starts_for_an_outsiders() -> None:
    """This includes the caller's own file, because its jobs pass the keys on."""
    commented = [
        path for path in [*workflows(), *consumer_workflows()] if "issue_comment" in parsed(path)["on"]
    ]
    assert len(commented) == 2
    for place, job in jobs(commented):
        assert "github.event.comment.author_association" in job["if"], place
        assert set(re.findall(r'"([A-Z_]+)"', job["if"])) == {"OWNER", "MEMBER", "COLLABORATOR"}, place


def test_a_job_without_an_environment_sees_no_secret_that_rents() -> None:
    for place, job in jobs(workflows()):
        seen = set(re.findall(r"secrets\.(\w+)", str(job)))
        assert "environment" in job or seen <= PULL_REQUEST_CONFIGS, place


def test_scheduled_runs_keep_off_the_round_minutes() -> None:
    for path in [*workflows(), *consumer_workflows()]:
        for entry in parsed(path)["on"].get("schedule", []):
            first, _, step = entry["cron"].split()[0].partition("/")
            minutes = range(int(first.split("-")[0]), 60, int(step or 60))
            assert not {0, 15, 30, 45} & set(minutes), f"{named(path)}: {entry['cron']}"


def test_every_output_comes_from_where_it_says() -> None:
    for path in workflows():
        document = parsed(path)
        for name, about in document["on"].get("workflow_call", {}).get("outputs", {}).items():
            match = OUTPUT.fullmatch(about["value"])
            assert match, about
            assert match.group(1, 3) == ("jobs", name)
            assert name in document["jobs"][match[2]]["outputs"], f"{named(path)}: {name}"
        for job in document["jobs"].values():
            _assert_outputs_of_steps(named(path), job)


def _assert_outputs_of_steps(place: str, job: Job) -> None:
    ids = {step["id"]: step for step in job.get("steps", []) if "id" in step}
    for name, value in job.get("outputs", {}).items():
        match = OUTPUT.fullmatch(value)
        assert match, f"{place}: {value}"
        produces = action(ids[match[2]]["uses"].removeprefix("$/actions/"))["outputs"]
        assert match[3] in produces, f"{place}: {name}"


def test_by_hand_and_from_another_workflow_the_same_can_be_queried() -> None:
    for path in workflows():
        on = parsed(path)["on"]
        if {"workflow_call", "workflow_dispatch"} <= set(on):
            assert set(on["workflow_dispatch"]["inputs"]) == set(on["workflow_call"]["inputs"]), named(path)


@pytest.mark.parametrize("path", consumer_workflows(), ids=lambda path: path.name)
def test_the_example_gives_a_reusable_workflow_its_rights_and_secrets(path: Path) -> None:
    (job,) = parsed(path)["jobs"].values()
    callee = ROOT / ".github" / "workflows" / Path(job["uses"].partition("@")[0]).name
    call = reusable()[callee.name]
    assert set(job.get("with", {})) <= set(call["inputs"])
    assert set(job["secrets"]) == set(call["secrets"])
    wanted: dict[str, str] = {}
    for called in parsed(callee)["jobs"].values():
        for right, level in called["permissions"].items():
            wanted[right] = max(level, wanted.get(right, ""))
    assert job["permissions"] == wanted


def test_the_example_has_every_reusable_workflow() -> None:
    assert {path.name for path in consumer_workflows()} == set(reusable())


def test_every_step_that_uses_this_repository_does_so_without_a_checkout() -> None:
    for path in workflows():
        for step in steps(parsed(path)):
            assert not str(step.get("uses", "")).startswith("./"), (
                f"{named(path)}: in another repository's workflow, ./ is that repository"
            )


@pytest.mark.parametrize(
    "path",
    [ROOT / ".github" / "workflows" / "validate.yml", CONSUMER / ".github" / "workflows" / "validate.yml"],
)
def test_the_check_of_configs_answers_on_every_pull_request_and_in_a_merge_queue(path: Path) -> None:
    on = parsed(path)["on"]
    # No filter: a required check that does not start keeps its pull request waiting for ever.
    assert (on["pull_request"], "merge_group" in on) == (None, True), named(path)


def test_no_action_workflow_or_template_names_a_provider_so_that_a_new_one_touches_none() -> None:
    named_there = {*credentials(), *(row.title for row in PROVIDERS.values())}
    for path in (*everything(), ROOT / "lambdas" / "prime_lambdas" / "template.yaml"):
        lines = [line for line in path.read_text().splitlines() if EXAMPLE not in line.replace("\\", "")]
        assert not [
            name for name in named_there if any(re.search(rf"\b{re.escape(name)}\b", line) for line in lines)
        ], named(path)
