"""A schedule that GitHub has switched off is told by whatever job comes next, because nobody else notices
that runs are not watched.
"""

import pytest

from tests.cli.gha.job import GOOD, Did, Job

WATCH = ".github/workflows/watch.yml"
SCHEDULED = "on: {schedule: [{cron: '7-59/10 * * * *'}]}\njobs: {}\n"
SWITCH_ON = "gh workflow enable watch.yml"


@pytest.fixture
def public(job: Job) -> Job:
    """Return a job of a public repository with a scheduled watcher: GitHub switches schedules off in public
    repositories.
    """
    job.commit({WATCH: SCHEDULED})
    job.fake.publish(job.repo)
    return job


def validated(job: Job, **env: str) -> Did:
    job.commit({"configs/small.yaml": GOOD.replace("usd: 5", "usd: 6")}, "change")
    job.fake.add_pull(job.repo, "change", author="ann")
    return job.run("validate", "pull_request", job.event("pull_request"), **env)


def launched(job: Job, plane: dict[str, str]) -> Did:
    payload = {"inputs": {}, "ref": "refs/heads/main"}
    return job.run(
        "launch", "workflow_dispatch", payload, **plane, PRIME_TRAIN_INPUT_CONFIG="configs/small.yaml"
    )


def told(did: Did) -> list[tuple[str, str]]:
    return [(level, rest) for level, rest in did.annotations if "schedule of watch.yml" in rest]


def state(job: Job) -> str:
    return job.fake.world.repos[job.repo].disabled.get(WATCH, "active")


@pytest.mark.parametrize(
    ("off", "why"),
    [
        ("disabled_inactivity", "60 days without activity"),
        ("disabled_fork", "leaves the schedules of a fork off"),
    ],
)
def test_a_pull_request_tells_that_github_switched_the_schedule_off(public: Job, off: str, why: str) -> None:
    public.fake.switch_off(public.repo, "watch.yml", off)
    did = validated(
        public, PRIME_TRAIN_URL="https://plane.example", PRIME_TRAIN_STORE="https://plane.example"
    )
    ((level, text),) = told(did)
    assert (did.code, level) == (0, "warning"), did.log
    assert why in text
    assert SWITCH_ON in text
    assert SWITCH_ON in did.summary
    # The job runs the pull request's own code, so it switches nothing on.
    assert state(public) == off


def test_a_schedule_that_is_on_or_expected_by_nobody_is_no_news(public: Job) -> None:
    assert told(validated(public, PRIME_TRAIN_STORE="https://plane.example")) == []
    public.fake.switch_off(public.repo, "watch.yml")
    assert told(public.run("validate", "pull_request", public.event("pull_request"))) == []


def test_a_launch_tells_that_nobody_will_look_after_its_run(public: Job, plane: dict[str, str]) -> None:
    public.fake.switch_off(public.repo, "watch.yml")
    did = launched(public, plane)
    ((level, text),) = told(did)
    assert (did.code, level, did.outputs["created"]) == (0, "warning", "true"), did.log
    assert "is off" in text
    assert SWITCH_ON in did.summary
    assert state(public) == "disabled_inactivity"


def test_a_job_that_may_switch_the_schedule_on_does_so(public: Job, plane: dict[str, str]) -> None:
    public.permissions["actions"] = "write"
    public.fake.switch_off(public.repo, "watch.yml")
    ((_, text),) = told(launched(public, plane))
    assert "is on again" in text
    assert state(public) == "active"


def test_what_a_person_switched_off_is_told_and_stays_off(public: Job, plane: dict[str, str]) -> None:
    public.permissions["actions"] = "write"
    public.fake.switch_off(public.repo, "watch.yml", "disabled_manually")
    ((level, text),) = told(launched(public, plane))
    assert (level, "somebody switched it off" in text) == ("notice", True)
    assert state(public) == "disabled_manually"


def test_stop_and_status_tell_it_while_a_run_is_active(public: Job, plane: dict[str, str]) -> None:
    run_id = launched(public, plane).outputs["run"]
    public.fake.switch_off(public.repo, "watch.yml")
    assert told(public.run("status", "workflow_dispatch", {"inputs": {}}, **plane))
    stop = {"inputs": {"run": run_id, "now": "true"}}
    did = public.run(
        "stop", "workflow_dispatch", stop, **plane, PRIME_TRAIN_INPUT_RUN=run_id, PRIME_TRAIN_INPUT_NOW="true"
    )
    assert told(did), did.log


def test_a_token_that_may_not_see_workflows_and_a_github_that_fails_are_no_reason_to_fail(
    job: Job, plane: dict[str, str]
) -> None:
    job.commit({WATCH: SCHEDULED})
    job.fake.switch_off(job.repo, "watch.yml")
    did = launched(job, plane)
    assert (did.code, told(did)) == (0, []), did.log
    job.fake.fail("503", path=".*/actions/workflows/watch.yml", times=9)
    did = job.run("status", "workflow_dispatch", {"inputs": {}}, **plane)
    assert did.code == 0, did.log
    assert [
        rest for level, rest in did.annotations if level == "notice" and "whether the schedule is on" in rest
    ]
