"""A pull request with a config gets a comment with the config's mistakes, needs and costs."""

import json

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
    assert ("error", True) in [(level, f"file=configs/bad.yaml,line={line}," in rest) for level, rest in did.annotations]
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
    assert "$2.00" in comment["body"]
    assert json.loads(did.outputs["configs"]) == ["configs/bad.yaml"]


def test_only_what_would_launch_too_many_runs_is_refused(job: Job) -> None:
    opened(job, {f"configs/run-{letter}.yaml": GOOD.replace("name: small", f"name: run-{letter}") for letter in "abcde"})
    event = job.event("pull_request")
    for more in ({"action": "labeled", "label": {"name": "documentation"}}, {"action": "closed"}):
        did = job.run("validate", "pull_request", event | more)
        assert (did.code, len(json.loads(did.outputs["configs"]))) == (0, 5), did.log
    did = job.run("validate", "pull_request", event | {"action": "labeled", "label": {"name": "train"}})
    assert did.code == 2
    assert "this pull request affects 5 configs, but at most 4 can be launched at once" in did.log


def test_what_changes_against_the_base_branch_is_reported_with_its_meaning(job: Job) -> None:
    number = opened(job, {"configs/small.yaml": GOOD.replace("usd: 5", "usd: 50")})
    job.run("validate", "pull_request", job.event("pull_request"))
    (comment,) = job.fake.comments(job.repo, number)
    assert "| `budget.usd` | 5 to 50 |" in comment["body"].replace(".0", "")
