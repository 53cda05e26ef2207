"""A pull request with a config gets a comment with the config's mistakes, needs and costs."""

import json

from prime_train.github.api import GitHub
from prime_train.github.commit_statuses import set_commit_status
from tests.cli.gha.job import GOOD, Job

BAD = GOOD.replace("budget: {usd: 5, hours: 2}", "budget:\n  usd: 5\n  dollars: 7")


def opened(job: Job, files: dict[str, str]) -> int:
    job.commit(files, "change")
    return job.fake.add_pull(job.repo, "change", author="ann")


def test_findings_are_at_their_lines_in_summary_and_comment(job: Job) -> None:
    number = opened(job, {"configs/bad.yaml": BAD})
    did = job.run("validate", "pull_request", job.event("pull_request"))
    assert did.code == 1, did.log
    line = 1 + BAD.splitlines().index("  dollars: 7")
    assert ("error", True) in [
        (level, f"file=configs/bad.yaml,line={line}," in rest) for level, rest in did.annotations
    ]
    assert (did.outputs["valid"], did.outputs["errors"]) == ("false", "1")
    (comment,) = job.fake.comments(job.repo, number)
    assert comment["user"]["login"] == "github-actions[bot]"
    assert f"configs/bad.yaml:{line}" in comment["body"]
    assert f"configs/bad.yaml:{line}" in did.summary
    assert did.outputs["comment-url"] == comment["html_url"]


def test_a_good_config_is_priced_and_the_comment_is_kept_not_repeated(job: Job) -> None:
    number = opened(job, {"configs/bad.yaml": BAD})
    job.run("validate", "pull_request", job.event("pull_request"))
    job.commit({"configs/bad.yaml": GOOD}, "change")
    did = job.run("validate", "pull_request", job.event("pull_request"))
    assert did.code == 0, did.log
    (comment,) = job.fake.comments(job.repo, number)
    assert "nothing found" in comment["body"]
    assert "without an account" in comment["body"]
    assert "| $" in comment["body"]
    assert json.loads(did.outputs["configs"]) == ["configs/bad.yaml"]


def test_only_what_would_launch_too_many_runs_is_refused(job: Job) -> None:
    opened(
        job,
        {
            f"configs/run-{letter}.yaml": GOOD.replace("name: small", f"name: run-{letter}")
            for letter in "abcde"
        },
    )
    event = job.event("pull_request")
    for more in ({"action": "labeled", "label": {"name": "documentation"}}, {"action": "closed"}):
        did = job.run("validate", "pull_request", event | more)
        assert (did.code, len(json.loads(did.outputs["configs"]))) == (0, 5), did.log
    # New commits launch probes, but only where the workflow says that it launches what it validates.
    probes = {"PRIME_TRAIN_INPUT_LAUNCHES": "true"}
    for action, env in (
        ({"action": "labeled", "label": {"name": "train"}}, {}),
        ({"action": "synchronize"}, probes),
    ):
        did = job.run("validate", "pull_request", event | action, **env)
        assert did.code == 2
        assert "this pull request affects 5 configs, but at most 4 can be launched at once" in did.log


def test_what_changes_against_the_base_branch_is_reported_with_its_meaning(job: Job) -> None:
    number = opened(job, {"configs/small.yaml": GOOD.replace("usd: 5", "usd: 50")})
    job.run("validate", "pull_request", job.event("pull_request"))
    (comment,) = job.fake.comments(job.repo, number)
    assert "| `budget.usd` | 5 to 50 |" in comment["body"].replace(".0", "")


REQUIRING = GOOD + "require:\n  - lr > 0\n  - loss <= base * 1.02\n"
CONTEXT = "prime-train/configs/small.yaml"


def test_a_config_that_requires_something_is_pending_until_its_run_has_ended_and_fails_if_that_is_not_met(
    job: Job,
) -> None:
    number = opened(job, {"configs/small.yaml": REQUIRING})
    event = job.event("pull_request")
    did = job.run("validate", "pull_request", event)
    assert did.code == 0, did.log
    (check,) = job.fake.statuses(job.repo)
    assert (check["state"], check["context"]) == ("pending", CONTEXT)
    (comment,) = job.fake.comments(job.repo, number)
    assert "Requirements: pending: no run of this commit has ended" in comment["body"]

    writer = GitHub(job.repo, job.fake.job_token(job.repo, {"statuses": "write"}), url=job.fake.url)
    set_commit_status(
        writer,
        event["pull_request"]["head"]["sha"],
        CONTEXT,
        "failure",
        "not met: loss <= base * 1.02 (it is 9)",
    )
    did = job.run("validate", "pull_request", event)
    assert (did.code, did.outputs["valid"], did.outputs["errors"]) == (1, "false", "1")
    line = 1 + REQUIRING.splitlines().index("  - loss <= base * 1.02")
    assert [
        rest
        for level, rest in did.annotations
        if level == "error" and f"file=configs/small.yaml,line={line}," in rest
    ]
    assert "PT024" in job.fake.comments(job.repo, number)[0]["body"]

    # The label launches another run, which may be better.
    labelled = event | {"action": "labeled", "label": {"name": "train"}}
    assert job.run("validate", "pull_request", labelled).code == 0
    # What a run of another commit resulted in says nothing about this one.
    job.commit({"configs/small.yaml": REQUIRING.replace("1.02", "1.03")}, "change")
    assert job.run("validate", "pull_request", job.event("pull_request")).code == 0
    assert job.fake.statuses(job.repo)[-1]["state"] == "pending"


def test_a_token_that_may_not_set_checks_is_no_reason_to_fail(job: Job) -> None:
    opened(job, {"configs/small.yaml": REQUIRING})
    del job.permissions["statuses"]
    did = job.run("validate", "pull_request", job.event("pull_request"))
    assert did.code == 0, did.log
    assert [rest for level, rest in did.annotations if level == "notice" and "requirements" in rest]
    assert job.fake.statuses(job.repo) == []


def test_a_pull_request_that_changes_no_config_is_answered_with_success_and_without_a_comment(
    job: Job,
) -> None:
    number = opened(job, {"README.md": "words\n"})
    did = job.run("validate", "pull_request", job.event("pull_request"))
    assert (did.code, did.outputs["valid"], did.outputs["configs"]) == (0, "true", "[]"), did.log
    assert "Nothing to check" in did.summary
    assert (did.annotations, job.fake.comments(job.repo, number)) == ([], [])


def test_a_required_check_of_a_config_that_the_pull_request_does_not_change_is_met(job: Job) -> None:
    job.commit({"configs/small.yaml": REQUIRING})
    opened(job, {"README.md": "words\n"})
    for _ in range(2):
        did = job.run("validate", "pull_request", job.event("pull_request"))
        assert did.code == 0, did.log
        (check,) = job.fake.statuses(job.repo)
        assert (check["state"], check["context"]) == ("success", CONTEXT)
        assert "not changed" in check["description"]


def test_a_merge_queue_checks_what_its_commit_changes_and_comments_nowhere(job: Job) -> None:
    number = opened(job, {"configs/bad.yaml": BAD})
    did = job.run("validate", "merge_group", job.fake.add_merge_group(job.repo, number))
    assert (did.code, did.outputs["valid"], did.outputs["errors"]) == (1, "false", "1"), did.log
    assert job.fake.comments(job.repo, number) == []
    job.commit({"configs/bad.yaml": GOOD}, "change")
    did = job.run("validate", "merge_group", job.fake.add_merge_group(job.repo, number))
    assert (did.code, did.outputs["valid"]) == (0, "true"), did.log
    assert "New: the base branch does not have this config." in did.summary
    assert [rest for level, rest in did.annotations if level == "warning"] == []


def test_a_merge_queue_of_other_files_passes_at_once(job: Job) -> None:
    number = opened(job, {"README.md": "words\n"})
    did = job.run("validate", "merge_group", job.fake.add_merge_group(job.repo, number))
    assert (did.code, did.outputs["valid"], did.outputs["configs"]) == (0, "true", "[]"), did.log


def test_a_merge_queue_takes_the_result_of_the_pull_request_that_it_merges(job: Job) -> None:
    number = opened(job, {"configs/small.yaml": REQUIRING})
    writer = GitHub(job.repo, job.fake.job_token(job.repo, {"statuses": "write"}), url=job.fake.url)
    head = job.event("pull_request")["pull_request"]["head"]["sha"]
    set_commit_status(writer, head, CONTEXT, "success", "met: loss is 1")
    event = job.fake.add_merge_group(job.repo, number)
    did = job.run("validate", "merge_group", event)
    assert did.code == 0, did.log
    check = job.fake.statuses(job.repo)[-1]
    assert (check["state"], check["description"]) == ("success", "met: loss is 1")
    assert f"/{event['merge_group']['head_sha']}" in check["url"]


def test_a_commit_of_a_merge_queue_with_very_many_files_has_all_configs_checked(job: Job) -> None:
    number = opened(job, {f"data/{name}.txt": "x\n" for name in range(300)})
    did = job.run("validate", "merge_group", job.fake.add_merge_group(job.repo, number))
    assert json.loads(did.outputs["configs"]) == ["configs/small.yaml"], did.log
