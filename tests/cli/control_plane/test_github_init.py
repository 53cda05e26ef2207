"""`prime-train github init`: a repository is set up by one command, and a second one finds nothing to do."""

import base64
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from prime_train.app.home import Home
from prime_train.app.launch_keys import launch_keys
from tests.cli.shell import Shell
from tests.cli.terminal import terminal
from tests.fakes.github import FakeGitHub
from tests.fakes.github.client import call
from tests.fakes.http import ALWAYS
from tests.github.files import MAJOR, ROOT, consumer_workflows

REPO, ACTIONS = "acme/models", "acme/prime-train"
BRANCH = "prime-train-setup"
URL = "https://plane.example.org"
SCOPES = ["repo", "read:org", "workflow"]
WORKFLOWS = {f".github/workflows/{path.name}" for path in consumer_workflows()}
VALIDATE = ".github/workflows/validate.yml"
KEY = "pit_0123456789abcdef"


@dataclass
class Place:
    """A person with gh, a clone's folder, and a GitHub. `pin`: the commit of prime-train's workflows."""

    fake: FakeGitHub
    shell: Shell
    pin: str
    env: dict[str, str] = field(default_factory=dict)

    def init(self, *words: str, **env: str) -> "CompletedProcess[str]":
        return self.unconfirmed("--yes", *words, **env)

    def unconfirmed(self, *words: str, **env: str) -> "CompletedProcess[str]":
        given = ("--repository", REPO, "--actions", f"{ACTIONS}@v1")
        return self.shell.run("github", "init", *given, *words, **{**self.env, **env})

    def done(self, *words: str, **env: str) -> str:
        done = self.init(*words, **env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @property
    def changes(self) -> list[str]:
        """Return the requests that change something, other than logs in."""
        return [f"{one.method} {one.path}" for one in self.fake.requests if one.method != "GET"]

    def proposed(self, branch: str = BRANCH) -> dict[str, str]:
        before, after = self.fake.files(REPO), self.fake.files(REPO, branch)
        return {path: text for path, text in after.items() if before.get(path) != text}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    (tmp_path / "bin").mkdir()
    gh = tmp_path / "bin" / "gh"
    # It needs nothing that is installed, and starts sooner without.
    gh.write_text(f"#!{sys.executable} -IS\n{(ROOT / 'tests/fakes/github/gh.py').read_text()}")
    gh.chmod(0o755)
    (tmp_path / "here").mkdir()
    with FakeGitHub() as fake:
        fake.add_repo(REPO, files={"train.py": "print(1)\n"})
        fake.add_user("ann", repo=REPO, role="admin")
        fake.add_repo(ACTIONS, is_private=False, files={"README.md": "prime-train\n"})
        with fake.lock:
            git = fake.world.repos[ACTIONS].git
            pin = git.refs["refs/tags/v1"] = git.refs["refs/heads/main"]
        path = os.pathsep.join((str(tmp_path / "bin"), os.environ.get("PATH", os.defpath)))
        env = {"PATH": path, "GH_FAKE_URL": fake.url, "GH_TOKEN": fake.login_token("ann", SCOPES)}
        yield Place(fake, Shell(tmp_path / "here"), pin, env)
        assert fake.violations == []


def test_one_command_sets_a_repository_up_and_opens_its_first_pull_request(place: Place) -> None:
    told = place.done("--url", URL)
    environments = place.fake.environments(REPO)
    (reviewers,) = [
        rule for rule in environments["gpu"]["protection_rules"] if rule["type"] == "required_reviewers"
    ]
    assert [one["reviewer"]["login"] for one in reviewers["reviewers"]] == ["ann"]
    assert environments["gpu-watch"]["branches"] == ["main"]
    assert place.fake.settings(REPO) == {"variables": {"PRIME_TRAIN_URL": URL}, "secrets": {}}
    assert set(place.proposed()) == {*WORKFLOWS, "configs/hf-sft.yaml"}
    pull = place.fake.pull(REPO, 1)
    assert (pull["head"]["ref"], pull["base"]["ref"], pull["user"]["login"]) == (BRANCH, "main", "ann")
    assert pull["html_url"] in told
    # The control plane is elsewhere: what is to be run there is printed, with both environments.
    for environment in ("gpu", "gpu-watch"):
        assert (
            f"prime-train key create --launch --github-oidc --repository {REPO} --environment {environment}"
            in told
        )


def test_the_files_are_those_of_the_example_at_one_commit_of_prime_train(place: Place) -> None:
    place.done()
    proposed = place.proposed()
    for path in consumer_workflows():
        lines = [
            line
            for line in path.read_text().splitlines()
            if "uses: owner/" not in line and f"{MAJOR} follows" not in line
        ]
        text = proposed[f".github/workflows/{path.name}"]
        ours = [
            line
            for line in text.splitlines()
            if "    uses: " not in line and "The commit of a release" not in line
        ]
        assert ours == lines
        assert f"    uses: {ACTIONS}/.github/workflows/{path.name}@{place.pin} # v1\n" in text


def test_a_second_run_changes_nothing_and_says_so(place: Place) -> None:
    place.done("--url", URL)
    before = list(place.changes)
    told = place.done("--url", URL)
    assert place.changes == before
    assert "nothing to do" in told
    place.fake.merge(REPO, 1, by="ann")
    assert "nothing to do" in place.done()
    assert place.changes == before


def test_a_dry_run_shows_everything_and_changes_nothing(place: Place) -> None:
    told = place.done("--dry-run", "--url", URL)
    assert place.changes == []
    for words in (
        "environment gpu: you approve its jobs",
        f"PRIME_TRAIN_URL = {URL}",
        f"@{place.pin}",
        "name: hf-sft",
    ):
        assert words in told


def test_without_a_terminal_nothing_is_changed_unless_it_was_agreed_to(place: Place) -> None:
    done = place.unconfirmed()
    assert (done.returncode, place.changes) == (2, [])
    assert "--yes" in done.stderr


def test_a_file_that_somebody_changed_stays_and_is_shown_until_force_replaces_it(place: Place) -> None:
    place.done()
    place.fake.merge(REPO, 1, by="ann")
    own = place.fake.files(REPO)[VALIDATE].replace("name: validate\n\non:", "name: check\n\non:")
    place.fake.push(REPO, "main", {VALIDATE: own}, by="ann")
    told = place.done()
    assert f"{VALIDATE}: somebody changed it, so it stays" in told
    assert "\n-name: check\n+name: validate\n" in told
    assert place.fake.files(REPO)[VALIDATE] == own
    place.done("--force")
    (change,) = [path for path in place.proposed(f"{BRANCH}-2") if path in WORKFLOWS]
    assert change == VALIDATE


def test_a_newer_version_proposes_its_own_commit_and_leaves_who_follows_a_tag_alone(place: Place) -> None:
    place.done()
    place.fake.merge(REPO, 1, by="ann")
    followed = place.fake.files(REPO)[VALIDATE].replace(f"@{place.pin} # v1", "@v1")
    place.fake.push(REPO, "main", {VALIDATE: followed}, by="ann")
    newer = place.fake.push(ACTIONS, "main", {"README.md": "newer\n"}, by="ann")
    told = place.done("--actions", f"{ACTIONS}@main")
    assert f"{VALIDATE}: somebody changed it" in told
    proposed = place.proposed(f"{BRANCH}-2")
    assert set(proposed) == WORKFLOWS - {VALIDATE}
    assert all(f"@{newer} # main\n" in text for text in proposed.values())


def test_what_was_written_in_the_open_pull_request_stays(place: Place) -> None:
    place.done()
    place.fake.push(REPO, BRANCH, {"configs/hf-sft.yaml": None, "configs/own.yaml": "name: own\n"}, by="ann")
    assert "nothing to do" in place.done()
    place.fake.push(REPO, BRANCH, {VALIDATE: None}, by="ann")
    assert "pull request #1: " in place.done()
    assert {*WORKFLOWS, "configs/own.yaml"} == set(place.proposed())
    assert len(place.fake.events()) == len(
        [one for one in place.fake.events() if one["name"] in ("push", "pull_request")]
    )


def test_a_setup_that_ended_before_its_pull_request_is_finished_by_the_next(place: Place) -> None:
    place.fake.fail("502", method="POST", path=f"/repos/{REPO}/pulls", times=ALWAYS)
    done = place.init()
    assert done.returncode == 3, done.stdout + done.stderr
    place.fake.heal()
    assert "done   pull request from prime-train-setup: https://" in place.done()
    assert set(place.proposed()) == {*WORKFLOWS, "configs/hf-sft.yaml"}


def test_a_branch_that_was_left_behind_is_not_touched(place: Place) -> None:
    place.fake.push(REPO, BRANCH, {"notes.txt": "mine\n"}, by="ann")
    place.done()
    assert place.fake.pull(REPO, 1)["head"]["ref"] == f"{BRANCH}-2"
    assert place.fake.files(REPO, BRANCH)["notes.txt"] == "mine\n"


def test_a_repository_with_configs_gets_none(place: Place) -> None:
    place.fake.push(REPO, "main", {"configs/own.yaml": "name: own\n"}, by="ann")
    place.done()
    assert set(place.proposed()) == WORKFLOWS


def test_where_the_plan_has_no_rules_no_key_is_stored_and_the_rest_is_done(place: Place) -> None:
    place.fake.without_rules(REPO)
    done = place.init(
        "--url",
        URL,
        "--secret",
        "PRIME_TRAIN_LAUNCH_KEY",
        "--secret",
        "PRIME_TRAIN_MARKET_KEY",
        **dict.fromkeys(SECRETS, KEY),
    )
    assert done.returncode == 4, done.stdout + done.stderr
    assert "failed environment gpu: you approve its jobs" in done.stdout
    assert "billing plan" in done.stdout
    assert "has no rule about who may use it" in done.stdout
    assert place.fake.environments(REPO) == {}
    assert set(place.fake.settings(REPO)["secrets"]) == {"PRIME_TRAIN_MARKET_KEY"}
    assert place.fake.pull(REPO, 1)["state"] == "open"


SECRETS = ("PRIME_TRAIN_LAUNCH_KEY", "PRIME_TRAIN_MARKET_KEY")


def test_an_existing_environment_keeps_the_rules_that_it_has(place: Place) -> None:
    place.fake.add_user("bea", repo=REPO, role="write")
    with place.fake.lock:
        bea = place.fake.world.users["bea"].user_id
    made = GitHubAs(place, "ann")
    made.put("gpu-watch", {"wait_timer": 5, "reviewers": [{"type": "User", "id": bea}]})
    made.put("gpu", {"reviewers": [{"type": "User", "id": bea}]})
    told = place.done()
    environments = place.fake.environments(REPO)
    kinds = {rule["type"]: rule for rule in environments["gpu-watch"]["protection_rules"]}
    assert (kinds["wait_timer"]["wait_timer"], environments["gpu-watch"]["branches"]) == (5, ["main"])
    assert [one["reviewer"]["login"] for one in kinds["required_reviewers"]["reviewers"]] == ["bea"]
    (gpu,) = environments["gpu"]["protection_rules"]
    assert [one["reviewer"]["login"] for one in gpu["reviewers"]] == ["bea"]
    assert "there  environment gpu" in told


def test_an_environment_that_every_branch_may_use_gets_no_key(place: Place) -> None:
    GitHubAs(place, "ann").put(
        "gpu-watch",
        {"deployment_branch_policy": {"protected_branches": False, "custom_branch_policies": True}},
    )
    with place.fake.lock:
        place.fake.world.repos[REPO].environments["gpu-watch"].branches[1] = "*"
    done = place.init("--secret", "PRIME_TRAIN_LAUNCH_KEY", PRIME_TRAIN_LAUNCH_KEY=KEY)
    assert "its pattern for all branches lets every branch use its keys" in done.stdout
    environments = place.fake.environments(REPO)
    assert (done.returncode, environments["gpu-watch"]["secrets"], len(environments["gpu"]["secrets"])) == (
        4,
        {},
        1,
    ), done.stdout


@dataclass
class GitHubAs:
    place: Place
    login: str

    def put(self, name: str, rules: object) -> None:
        path = f"/repos/{REPO}/environments/{name}"
        call(self.place.fake, "PUT", path, token=self.place.fake.person_token(self.login), body=rules)


@pytest.mark.parametrize(
    ("prepare", "words", "code"),
    [
        ("scopes", "gh auth refresh --scopes workflow", 4),
        ("logged out", "gh auth login", 4),
        ("no gh", "GitHub's tool gh is not installed", 2),
        ("writer", "you are no administrator of acme/models", 4),
        ("empty", "push a first commit", 2),
        ("stranger", "there is no repository acme/models that eve may see", 4),
        ("expired", "GitHub does not accept gh's log-in any more", 4),
        ("no ref", "acme/prime-train has no v9", 4),
        ("unreachable", "no answer", 3),
    ],
)
def test_what_is_missing_is_told_before_anything_changes(
    place: Place, prepare: str, words: str, code: int, tmp_path: Path
) -> None:
    more: tuple[str, ...] = ()
    match prepare:
        case "scopes":
            place.env["GH_TOKEN"] = place.fake.login_token("ann", ["repo"])
        case "logged out":
            place.env["GH_TOKEN"] = ""
        case "no gh":
            (tmp_path / "bin" / "gh").unlink()
        case "writer":
            place.fake.add_user("wim", repo=REPO, role="write")
            place.env["GH_TOKEN"] = place.fake.login_token("wim", SCOPES)
        case "empty":
            place.fake.add_repo("acme/empty")
            place.fake.add_user("ann", repo="acme/empty", role="admin")
            more = ("--repository", "acme/empty")
        case "stranger":
            place.env["GH_TOKEN"] = place.fake.login_token("eve", SCOPES)
        case "expired":
            place.fake.revoke(place.env["GH_TOKEN"])
        case "no ref":
            more = ("--actions", f"{ACTIONS}@v9")
        case "unreachable":
            place.env["GH_FAKE_URL"] = "http://127.0.0.1:1"
    done = place.init(*more)
    assert (done.returncode, place.changes) == (code, []), done.stdout + done.stderr
    assert words in done.stderr


def test_a_fine_grained_token_that_may_not_write_workflows_leaves_the_rest_done(place: Place) -> None:
    rights = {
        "administration": "write",
        "variables": "write",
        "contents": "write",
        "pull_requests": "write",
        "actions": "read",
    }
    place.env["GH_TOKEN"] = place.fake.person_token("ann", rights)
    done = place.init("--url", URL)
    assert done.returncode == 4
    assert "failed pull request from prime-train-setup" in done.stdout
    assert set(place.fake.environments(REPO)) == {"gpu", "gpu-watch"}


def test_secrets_come_from_the_environment_into_the_places_whose_jobs_need_them(place: Place) -> None:
    told = place.init(
        *(word for name in SECRETS for word in ("--secret", name)), **dict.fromkeys(SECRETS, KEY)
    )
    assert told.returncode == 0, told.stderr
    sent = base64.b64encode(KEY.encode()).decode()
    environments = place.fake.environments(REPO)
    assert {name: environments[name]["secrets"] for name in environments} == {
        name: {"PRIME_TRAIN_LAUNCH_KEY": sent} for name in ("gpu", "gpu-watch")
    }
    assert place.fake.settings(REPO)["secrets"] == {"PRIME_TRAIN_MARKET_KEY": sent}
    assert KEY not in told.stdout + told.stderr
    before = list(place.changes)
    assert "there  secret PRIME_TRAIN_MARKET_KEY of the repository" in place.done(
        "--secret", "PRIME_TRAIN_MARKET_KEY", PRIME_TRAIN_MARKET_KEY="pit_other"
    )
    assert place.changes == before


def test_all_providers_that_are_set_up_here_are_one_secret_and_old_ones_are_named(place: Place) -> None:
    place.done()
    with place.fake.lock:
        place.fake.world.repos[REPO].environments["gpu"].secrets |= {"PRIME_API_KEY": "", "WANDB_API_KEY": ""}
        place.fake.world.repos[REPO].secrets["SSH_OFFERS"] = ""
    told = place.done("--dry-run")
    assert (
        "left   PRIME_API_KEY of the environment gpu: no workflow reads it any more; store "
        "PRIME_TRAIN_CREDENTIALS in their place" in told
    )
    assert "left   SSH_OFFERS of the repository: no workflow reads it any more" in told
    assert place.shell.run("provider", "add", "runpod", "--unchecked", RUNPOD_API_KEY=KEY).returncode == 0
    told = place.done("--secret", "PRIME_TRAIN_CREDENTIALS", PRIME_API_KEY="pit_of_the_shell")
    assert "PRIME_TRAIN_CREDENTIALS has PRIME_API_KEY, RUNPOD_API_KEY" in told
    for name in ("gpu", "gpu-watch"):
        sent = place.fake.environments(REPO)[name]["secrets"]["PRIME_TRAIN_CREDENTIALS"]
        assert json.loads(base64.b64decode(sent)) == {
            "PRIME_API_KEY": "pit_of_the_shell",
            "RUNPOD_API_KEY": KEY,
        }
    assert "PRIME_TRAIN_CREDENTIALS is read in their place, and delete it" in place.done("--dry-run")
    assert KEY not in told


@pytest.mark.parametrize("value", ["rpa_of_one_provider", "[1]", '{"RUNPOD_API_KEY": 7}'])
def test_what_is_not_credentials_in_one_value_is_refused_and_not_repeated(place: Place, value: str) -> None:
    done = place.init("--secret", "PRIME_TRAIN_OFFERS_KEYS", PRIME_TRAIN_OFFERS_KEYS=value)
    assert (done.returncode, place.changes, value in done.stdout + done.stderr) == (2, [], False)
    assert "PRIME_TRAIN_OFFERS_KEYS is not a JSON object of names and texts" in done.stderr
    assert 'write it as {"RUNPOD_API_KEY": "..."}' in done.stderr


def test_a_secret_that_no_workflow_knows_or_that_is_nowhere_is_refused(place: Place) -> None:
    done = place.init("--secret", "MY_KEY", MY_KEY=KEY)
    assert (done.returncode, "no workflow knows a secret 'MY_KEY'" in done.stderr) == (2, True)
    done = place.init("--secret", "PRIME_TRAIN_MARKET_KEY")
    assert (
        done.returncode,
        "PRIME_TRAIN_MARKET_KEY is not in the environment" in done.stderr,
        place.changes,
    ) == (2, True, [])


def test_a_secret_is_asked_for_on_a_terminal_and_not_shown(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (
        "github",
        "init",
        "--repository",
        REPO,
        "--actions",
        ACTIONS + "@v1",
        "--secret",
        "PRIME_TRAIN_MARKET_KEY",
    )
    for name, value in place.env.items():
        monkeypatch.setenv(name, value)
    with terminal(place.shell, *words) as seen:
        seen.answer("Address of your control plane (empty: none yet): ", URL)
        seen.answer("PRIME_TRAIN_MARKET_KEY (not shown): ", KEY)
        seen.answer("Set acme/models up like this?", "y")
        assert seen.end() == 0, seen.seen
        assert KEY not in seen.seen
    secrets = {"PRIME_TRAIN_MARKET_KEY": base64.b64encode(KEY.encode()).decode()}
    assert place.fake.settings(REPO) == {"variables": {"PRIME_TRAIN_URL": URL}, "secrets": secrets}


@pytest.mark.parametrize(
    ("allowed", "words"), [("", "GitHub Actions is off"), ("local_only", f"allow {ACTIONS} and the actions")]
)
def test_a_repository_that_would_not_run_the_workflows_is_told_so(
    place: Place, allowed: str, words: str
) -> None:
    assert words not in place.done("--dry-run")
    place.fake.allow_actions(REPO, allowed)
    assert words in place.done("--dry-run")


def test_the_control_plane_on_this_machine_trusts_the_jobs_once(place: Place) -> None:
    with place.shell.started(
        "serve", "--port", "0", "--no-watch", until="serving ", PRIME_TRAIN_PROVIDER="local"
    ):
        address = place.shell.ok("key").splitlines()[0].partition("=")[2]
        assert "done   the control plane trusts jobs in the environment gpu" in place.done("--url", address)
        home = Home.of(place.shell.env)
        rows = [
            (row.repository, row.environment, row.is_github) for row in launch_keys(home.store()).values()
        ]
        assert sorted(rows) == [(REPO, "gpu", True), (REPO, "gpu-watch", True)]
        assert "nothing to do" in place.done("--url", address)
        assert len(launch_keys(home.store())) == 2


def test_the_address_of_the_repository_stays_unless_another_is_named(place: Place) -> None:
    place.done("--url", URL)
    place.done(PRIME_TRAIN_URL="https://other.example.org")
    assert place.fake.settings(REPO)["variables"] == {"PRIME_TRAIN_URL": URL}
    place.done("--url", "https://other.example.org/")
    assert place.fake.settings(REPO)["variables"] == {"PRIME_TRAIN_URL": "https://other.example.org"}


def test_an_address_to_which_no_key_may_be_sent_is_refused(place: Place) -> None:
    for wrong in ("http://plane.example.org", "https://me:pw@plane.example.org", "plane.example.org"):
        done = place.init("--url", wrong)
        assert (done.returncode, place.changes) == (2, []), wrong


def test_a_schedule_that_github_switched_off_is_switched_on(place: Place) -> None:
    place.done()
    place.fake.merge(REPO, 1, by="ann")
    place.fake.switch_off(REPO, "watch.yml")
    assert "done   schedule of watch.yml: on again" in place.done()
    assert "nothing to do" in place.done()


def test_the_repository_of_the_folder_is_meant_if_none_is_named(place: Place) -> None:
    done = place.shell.run("github", "init", "--actions", f"{ACTIONS}@v1", "--yes", **place.env, GH_REPO=REPO)
    assert done.returncode == 0, done.stderr
    assert place.fake.pull(REPO, 1)["state"] == "open"
    done = place.shell.run("github", "init", "--actions", f"{ACTIONS}@v1", "--yes", **place.env)
    assert (done.returncode, "name the repository, as owner/name" in done.stderr) == (2, True)
