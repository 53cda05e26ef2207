"""Jobs of GitHub that hold a launch key, or none at all because GitHub vouches for them: what they can do,
until the key is revoked.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from prime_train.runs.run import DesiredState, Run
from prime_train.stores.remote import RemoteStore
from tests.cli.gha.job import Did, Job
from tests.cli.shell import Shell
from tests.fakes.github_oidc import FakeGithubOidc

CONFIG = {"PRIME_TRAIN_INPUT_CONFIG": "configs/small.yaml"}


class Plane:
    """A control plane of its own, and its operator."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        lines = dict(line.split("=", 1) for line in shell.ok("key", "--show").splitlines())
        self.url, self._master = lines["PRIME_TRAIN_STORE"], lines["PRIME_TRAIN_MASTER_KEY"]

    def key(self, *options: str) -> dict[str, str]:
        """Make a launch key, and return the variables of a job that has it."""
        made = dict(
            line.split("=", 1) for line in self.shell.ok("key", "create", "--launch", *options).splitlines()
        )
        assert made.pop("PRIME_TRAIN_URL") == self.url
        return {"PRIME_TRAIN_STORE": self.url, "PRIME_TRAIN_URL": self.url} | made

    def names(self) -> list[str]:
        return re.findall(r"^([0-9a-f]{8})  ", self.shell.ok("key", "list"), re.MULTILINE)

    def runs(self) -> list[Run]:
        return RemoteStore(self.url, bytes.fromhex(self._master)).list_runs()


@pytest.fixture
def github() -> Iterator[FakeGithubOidc]:
    with FakeGithubOidc() as fake:
        yield fake


@pytest.fixture
def plane(tmp_path: Path, github: FakeGithubOidc) -> Iterator[Plane]:
    home = tmp_path / "plane"
    home.mkdir()
    shell = Shell(home)
    shell.home.mkdir(exist_ok=True)
    (shell.home / "policy.yaml").write_text("providers: [local]\n")
    with shell.started(
        "serve", "--port", "0", "--no-watch", until="serving ", PRIME_TRAIN_GITHUB_OIDC_ISSUER=github.url
    ):
        yield Plane(shell)


def launched(job: Job, env: dict[str, str]) -> Did:
    return job.run("launch", "workflow_dispatch", {"inputs": {}}, **(env | CONFIG))


def test_a_job_with_a_launch_key_launches_reads_and_stops_until_the_key_is_revoked(
    job: Job, plane: Plane
) -> None:
    env = plane.key("--repository", job.repo, "--actor", "ann", "--usd-max", "5")
    did = launched(job, env)
    assert did.code == 0, did.log
    (run,) = plane.runs()
    assert run.origin is not None
    assert (run.run_id, run.origin.repository, run.origin.actor) == (did.outputs["run"], job.repo, "ann")
    assert job.run("status", "workflow_dispatch", {}, **env).code == 0
    stopped = job.run("stop", "workflow_dispatch", {}, **env, PRIME_TRAIN_INPUT_RUN=run.run_id)
    assert stopped.code == 0, stopped.log
    assert plane.runs()[0].desired is DesiredState.STOP

    (name,) = plane.names()
    plane.shell.ok("key", "revoke", name)

    refused = launched(job, env | {"PRIME_TRAIN_INPUT_AGAIN": "true", "GITHUB_RUN_ID": "7"})
    assert (refused.code, "this launch key was revoked" in refused.log) == (4, True), refused.log
    assert plane.names() == []
    assert len(plane.runs()) == 1


def test_a_launch_key_of_another_repository_or_with_too_few_dollars_launches_nothing_here(
    job: Job, plane: Plane
) -> None:
    too_few = launched(job, plane.key("--repository", job.repo, "--usd-max", "4"))
    assert (too_few.code, "this launch key permits 4 at most" in too_few.log) == (4, True), too_few.log
    assert plane.runs() == []
    another = launched(job, plane.key("--repository", "acme/other"))
    assert (another.code, "is not an id of a run of acme/other" in another.log) == (4, True), another.log
    assert plane.runs() == [], "so that neither repository gets a run in the other's name"


def test_a_job_that_github_vouches_for_launches_without_any_key(
    job: Job, plane: Plane, github: FakeGithubOidc
) -> None:
    env = plane.key("--repository", job.repo, "--github-oidc", "--environment", "gpu") | github.of_job()
    assert "PRIME_TRAIN_LAUNCH_KEY" not in env
    github.job = {"repository": job.repo}
    did = launched(job, env)
    assert did.code == 0, did.log
    (run,) = plane.runs()
    assert run.origin is not None
    assert (run.origin.repository, run.origin.actor) == (job.repo, "ann")


@pytest.mark.parametrize(
    "claims", [{"repository": "acme/fork"}, {"environment": "other"}, {"environment": None}]
)
def test_a_job_that_no_row_trusts_launches_nothing(
    job: Job, plane: Plane, github: FakeGithubOidc, claims: dict[str, str | None]
) -> None:
    env = plane.key("--repository", job.repo, "--github-oidc", "--environment", "gpu") | github.of_job()
    github.job = {"repository": job.repo} | claims
    did = launched(job, env)
    assert (did.code, "no launch key trusts this job" in did.log) == (4, True), did.log
    assert plane.runs() == []


def test_what_a_launch_key_cannot_say_is_refused(plane: Plane) -> None:
    for options, words in (
        (("--repository", "acme"), "is not a repository"),
        (("--repository", "acme/rl", "--environment", "gpu"), "--github-oidc"),
        (("--repository", "acme/rl", "--expires", "soon"), "is no time"),
        (("--repository", "acme/rl", "--expires", "2020-01-01"), "has passed"),
        (("--repository", "acme/rl", "--actor", "a b"), "is not the name of a person"),
    ):
        done = plane.shell.run("key", "create", "--launch", *options)
        assert (done.returncode, words in done.stderr) == (2, True), done.stderr
    assert plane.names() == []
