"""The fake GitHub refuses what GitHub refuses, and stores what GitHub stores."""

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.fakes.github import BAD_GATEWAY, FakeGitHub
from tests.fakes.github.client import REPO, WRITER, ask, call, git, refusal
from tests.fakes.github.routes import OPERATIONS
from tests.fakes.github.schemas import DATA, DESCRIPTION, webhooks
from tests.fakes.http import CutRequest, Hang, LoseResponse

ROOT = Path(__file__).resolve().parents[2]
PULL = f"/repos/{REPO}/pulls/1"
COMMENTS = f"/repos/{REPO}/issues/1/comments"
DEPLOYMENTS = f"/repos/{REPO}/deployments"
LAUNCH = """
on:
  workflow_dispatch:
    inputs:
      config: {type: string, required: true}
      where: {type: choice, options: [prime, local], default: prime}
  repository_dispatch:
    types: [launch]
jobs: {}
"""
FILES = {
    "configs/a.yaml": "steps: 1\n",
    ".github/workflows/launch.yml": LAUNCH,
    ".github/workflows/ci.yml": "on: push\njobs: {}\n",
}


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with FakeGitHub() as fake:
        fake.add_repo(REPO, files=FILES)
        fake.add_user("ada", repo=REPO, role="write")
        fake.add_pull(REPO, "topic", author="ada", files={"configs/b.yaml": "steps: 2\nlr: 1\n"})
        yield fake
        assert fake.violations == []


@pytest.fixture
def token(fake: FakeGitHub) -> str:
    return fake.job_token(REPO, WRITER)


# ------------------------------------------------------------------------------------------------------------
# who asks


def test_a_job_does_what_its_permissions_say_and_no_more(fake: FakeGitHub) -> None:
    reader = fake.job_token(REPO, {"contents": "read", "pull-requests": "read"})
    assert call(fake, "GET", COMMENTS, token=reader) == []
    refused = ask(fake, "POST", COMMENTS, token=reader, body={"body": "hello"})
    assert (refused.status_code, refused.json()["message"]) == (403, "Resource not accessible by integration")
    assert refused.headers["x-accepted-github-permissions"] == "issues=write; pull_requests=write"
    assert fake.comments(REPO, 1) == []


@pytest.mark.parametrize(
    ("permission", "method", "path", "body"),
    [
        ("issues", "POST", COMMENTS, {"body": "x"}),
        ("pull-requests", "POST", COMMENTS, {"body": "x"}),
        ("deployments", "POST", DEPLOYMENTS, {"ref": "main"}),
        ("statuses", "POST", f"/repos/{REPO}/statuses/main", {"state": "success"}),
        ("contents", "POST", f"/repos/{REPO}/dispatches", {"event_type": "launch"}),
        ("contents", "POST", f"/repos/{REPO}/git/blobs", {"content": "x"}),
        (
            "actions",
            "POST",
            f"/repos/{REPO}/actions/workflows/launch.yml/dispatches",
            {"ref": "main", "inputs": {"config": "a"}},
        ),
        ("checks", "POST", f"/repos/{REPO}/check-runs", {"name": "validate", "head_sha": "main"}),
    ],
)
def test_each_deed_takes_a_permission_of_its_own(
    fake: FakeGitHub, permission: str, method: str, path: str, body: object
) -> None:
    for level, statuses in (("read", {403}), ("write", {200, 201, 204})):
        assert (
            ask(fake, method, path, token=fake.job_token(REPO, {permission: level}), body=body).status_code
            in statuses
        )
    others = dict.fromkeys(
        ("contents", "issues", "pull-requests", "deployments", "statuses", "actions", "checks"), "write"
    )
    del others[permission]
    if path != COMMENTS:
        assert ask(fake, method, path, token=fake.job_token(REPO, others), body=body).status_code == 403


def test_a_fork_s_job_only_reads(fake: FakeGitHub) -> None:
    token = fake.job_token(REPO, WRITER, from_fork=True)
    assert call(fake, "GET", PULL, token=token)["number"] == 1
    assert ask(fake, "POST", COMMENTS, token=token, body={"body": "x"}).status_code == 403
    assert ask(fake, "POST", DEPLOYMENTS, token=token, body={"ref": "main"}).status_code == 403


def test_an_unknown_or_spent_token_is_no_token(fake: FakeGitHub, token: str) -> None:
    assert refusal(fake, "GET", PULL, token="ghs_unknown") == (401, "Bad credentials")
    assert ask(fake, "GET", PULL, token=token).status_code == 200
    fake.revoke(token)
    assert refusal(fake, "GET", PULL, token=token) == (401, "Bad credentials")


def test_of_a_private_repository_strangers_are_not_reported(fake: FakeGitHub) -> None:
    fake.add_repo("else/where", files={"a": ""})
    for stranger in ("", fake.person_token("eve"), fake.job_token("else/where", WRITER)):
        assert refusal(fake, "GET", PULL, token=stranger) == (404, "Not Found")
        assert refusal(fake, "POST", COMMENTS, token=stranger, body={"body": "x"}) == (404, "Not Found")


def test_what_is_public_is_read_by_anybody_and_written_by_few(fake: FakeGitHub) -> None:
    fake.add_repo("acme/open", is_private=False, files={"a": "1"})
    fake.add_pull("acme/open", "topic", author="ada", files={"a": "2"})
    comments, eve = "/repos/acme/open/issues/1/comments", fake.person_token("eve")
    assert ask(fake, "GET", "/repos/acme/open/pulls/1/files").status_code == 200
    assert refusal(fake, "POST", comments, body={"body": "x"}) == (401, "Requires authentication")
    assert call(fake, "POST", comments, token=eve, body={"body": "x"})["author_association"] == "NONE"
    assert refusal(fake, "POST", "/repos/acme/open/dispatches", token=eve, body={"event_type": "x"})[0] == 403
    assert (
        ask(
            fake, "POST", "/repos/acme/open/issues/1/labels", token=eve, body={"labels": ["train"]}
        ).status_code
        == 403
    )


def test_a_comment_has_the_author_whose_token_it_was(fake: FakeGitHub, token: str) -> None:
    fake.add_app("prime-train", {"pull_requests": "write"}, [REPO])
    wording = [
        call(fake, "POST", COMMENTS, token=each, body={"body": "x"})
        for each in (token, fake.person_token("ada"))
    ]
    assert [each["user"]["login"] for each in wording] == ["github-actions[bot]", "ada"]
    assert [each["user"]["type"] for each in wording] == ["Bot", "User"]
    assert call(fake, "GET", "/user", token=fake.person_token("ada"))["login"] == "ada"
    assert refusal(fake, "GET", "/user", token=token) == (403, "Resource not accessible by integration")


def test_what_a_person_is_in_a_repository_can_be_queried(fake: FakeGitHub, token: str) -> None:
    fake.add_user("eve")
    fake.add_user("max", repo=REPO, role="maintain")
    where = f"/repos/{REPO}/collaborators"
    for login, permission, role in (
        ("acme", "admin", "admin"),
        ("ada", "write", "write"),
        ("max", "write", "maintain"),
        ("eve", "none", "none"),
    ):
        got = call(fake, "GET", f"{where}/{login}/permission", token=token)
        assert (got["permission"], got["role_name"]) == (permission, role)
    assert refusal(fake, "GET", f"{where}/nobody/permission", token=token) == (404, "nobody is not a user")


# ------------------------------------------------------------------------------------------------------------
# apps


def signed(app: dict[str, Any], now_s: float, **claims: object) -> str:
    def part(content: bytes) -> str:
        return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

    wording = {"iss": str(app["app_id"]), "iat": int(now_s), "exp": int(now_s) + 540, **claims}
    text = ".".join(part(json.dumps(each).encode()) for each in ({"alg": "RS256", "typ": "JWT"}, wording))
    key = serialization.load_pem_private_key(app["private_key"].encode(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return f"{text}.{part(key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def test_an_app_gets_a_token_for_an_hour(fake: FakeGitHub) -> None:
    app, now_s = (
        fake.add_app("prime-train", {"pull_requests": "write", "deployments": "write"}, [REPO]),
        fake.world.now_s(),
    )
    key = signed(app, now_s)
    found = call(fake, "GET", f"/repos/{REPO}/installation", token=key)
    where = f"/app/installations/{found['id']}/access_tokens"
    got = call(
        fake,
        "POST",
        where,
        token=key,
        body={"repositories": ["train"], "permissions": {"pull_requests": "write"}},
    )
    assert (
        call(fake, "POST", COMMENTS, token=got["token"], body={"body": "x"})["user"]["login"]
        == "prime-train[bot]"
    )
    assert ask(fake, "POST", DEPLOYMENTS, token=got["token"], body={"ref": "main"}).status_code == 403
    assert [
        each["full_name"]
        for each in call(fake, "GET", "/installation/repositories", token=got["token"])["repositories"]
    ] == [REPO]
    fake.advance(3600)
    assert refusal(fake, "GET", PULL, token=got["token"]) == (401, "Bad credentials")


def test_a_key_of_an_app_is_signed_and_short_lived(fake: FakeGitHub) -> None:
    app, other = (fake.add_app(slug, {"issues": "write"}, [REPO]) for slug in ("one", "two"))
    now_s = fake.world.now_s()
    stolen = signed({**other, "app_id": app["app_id"]}, now_s)
    for wrong in (
        "not.a.token",
        "ghs_token",
        stolen,
        signed(app, now_s, exp=int(now_s) - 1),
        signed(app, now_s, exp=int(now_s) + 3600),
    ):
        assert ask(fake, "GET", "/app", token=wrong).status_code == 401
    assert call(fake, "GET", "/app", token=signed(app, now_s))["slug"] == "one"
    where, key = f"/app/installations/{app['installation_id']}/access_tokens", signed(app, now_s)
    assert refusal(fake, "POST", where, token=key, body={"permissions": {"contents": "write"}})[0] == 422
    assert refusal(fake, "POST", where, token=key, body={"repositories": ["elsewhere"]})[0] == 422


# ------------------------------------------------------------------------------------------------------------
# comments


def test_a_comment_is_made_changed_and_removed(fake: FakeGitHub, token: str) -> None:
    made = call(fake, "POST", COMMENTS, token=token, body={"body": "first"})
    path = made["url"].removeprefix(fake.url)
    fake.advance(60)
    changed = call(fake, "PATCH", path, token=token, body={"body": "second"})
    assert changed["body"] == call(fake, "GET", path, token=token)["body"] == "second"
    assert changed["updated_at"] > changed["created_at"] == made["created_at"]
    assert call(fake, "DELETE", path, token=token) is None
    assert refusal(fake, "GET", path, token=token) == (404, "Not Found")


def test_a_comment_has_at_most_65536_characters(fake: FakeGitHub, token: str) -> None:
    made = call(fake, "POST", COMMENTS, token=token, body={"body": "ä" * 65_536})
    for method, path in (("POST", COMMENTS), ("PATCH", made["url"].removeprefix(fake.url))):
        refused = ask(fake, method, path, token=token, body={"body": "x" * 65_537})
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["message"] == "Body is too long (maximum is 65536 characters)"
        assert ask(fake, method, path, token=token, body={"body": " "}).status_code == 422
    assert len(fake.comments(REPO, 1)) == 1


def test_a_reader_changes_no_one_else_s_comment(fake: FakeGitHub) -> None:
    fake.add_user("rob", repo=REPO, role="read")
    comment_id = fake.comment(REPO, 1, author="ada", body="mine")
    path = f"/repos/{REPO}/issues/comments/{comment_id}"
    assert ask(fake, "PATCH", path, token=fake.person_token("rob"), body={"body": "yours"}).status_code == 403
    assert (
        ask(fake, "PATCH", path, token=fake.person_token("ada"), body={"body": "still mine"}).status_code
        == 200
    )
    own = call(fake, "POST", COMMENTS, token=fake.person_token("rob"), body={"body": "mine"})[
        "url"
    ].removeprefix(fake.url)
    assert ask(fake, "PATCH", own, token=fake.person_token("rob"), body={"body": "better"}).status_code == 200


def test_what_is_locked_takes_no_more_comments(fake: FakeGitHub, token: str) -> None:
    fake.add_user("rob", repo=REPO, role="read")
    fake.lock_pull(REPO, 1)
    assert ask(fake, "POST", COMMENTS, token=fake.person_token("rob"), body={"body": "x"}).status_code == 403
    assert ask(fake, "POST", COMMENTS, token=fake.person_token("ada"), body={"body": "x"}).status_code == 201


def test_lists_come_in_pages(fake: FakeGitHub, token: str) -> None:
    for number in range(105):
        fake.comment(REPO, 1, author="ada", body=str(number))
    first = ask(fake, "GET", COMMENTS, token=token)
    assert len(first.json()) == 30
    assert set(first.links) == {"next", "last"}
    bodies, link = [], f"{fake.url}{COMMENTS}?per_page=1000"
    while link:
        part = ask(fake, "GET", link.removeprefix(fake.url), token=token)
        bodies += [each["body"] for each in part.json()]
        link = part.links.get("next", {}).get("url", "")
    assert bodies == [str(number) for number in range(105)]
    assert set(part.links) == {"prev", "first"}
    assert call(fake, "GET", f"{COMMENTS}?page=9", token=token) == []


def test_a_reaction_is_there_once(fake: FakeGitHub, token: str) -> None:
    path = f"/repos/{REPO}/issues/comments/{fake.comment(REPO, 1, author='ada', body='/prime-train stop')}/reactions"
    assert [ask(fake, "POST", path, token=token, body={"content": "eyes"}).status_code for _ in range(2)] == [
        201,
        200,
    ]
    assert [each["content"] for each in call(fake, "GET", path, token=token)] == ["eyes"]


def test_labels_are_set_and_taken_off(fake: FakeGitHub, token: str) -> None:
    path = f"/repos/{REPO}/issues/1/labels"
    assert [
        each["name"] for each in call(fake, "POST", path, token=token, body={"labels": ["train", "gpu"]})
    ] == ["train", "gpu"]
    call(fake, "DELETE", f"{path}/train", token=token)
    assert [each["name"] for each in call(fake, "GET", PULL, token=token)["labels"]] == ["gpu"]
    assert refusal(fake, "DELETE", f"{path}/train", token=token) == (404, "Label does not exist")


# ---------------------------------------------------------------------------------------------- pull requests
# and their files


def test_a_pull_request_tells_what_it_changes(fake: FakeGitHub, token: str) -> None:
    files = {"configs/a.yaml": "steps: 9\n", "configs/c.yaml": "x\n", ".github/workflows/ci.yml": None}
    number = fake.add_pull(REPO, "other", author="ada", files=files)
    changes = {
        each["filename"]: each
        for each in call(fake, "GET", f"/repos/{REPO}/pulls/{number}/files", token=token)
    }
    assert {path: each["status"] for path, each in changes.items()} == {
        "configs/a.yaml": "modified",
        "configs/c.yaml": "added",
        ".github/workflows/ci.yml": "removed",
    }
    assert changes["configs/a.yaml"]["patch"] == "@@ -1 +1 @@\n-steps: 1\n+steps: 9"
    pull = call(fake, "GET", f"/repos/{REPO}/pulls/{number}", token=token)
    for ref, text in ((pull["head"]["sha"], b"steps: 9\n"), (pull["base"]["sha"], b"steps: 1\n")):
        got = call(fake, "GET", f"/repos/{REPO}/contents/configs/a.yaml?ref={ref}", token=token)
        assert base64.b64decode(got["content"]) == text


def test_a_file_with_a_new_name_says_what_it_was(fake: FakeGitHub, token: str) -> None:
    text = "".join(f"line: {number}\n" for number in range(9))
    fake.push(REPO, "main", {"configs/old.yaml": text}, by="ada")
    number = fake.add_pull(
        REPO, "moved", author="ada", files={"configs/old.yaml": None, "configs/new.yaml": f"{text}more: 1\n"}
    )
    (change,) = call(fake, "GET", f"/repos/{REPO}/pulls/{number}/files", token=token)
    assert (change["status"], change["filename"], change["previous_filename"]) == (
        "renamed",
        "configs/new.yaml",
        "configs/old.yaml",
    )
    assert (change["additions"], change["deletions"]) == (1, 0)


def test_a_fork_s_head_is_in_the_fork_and_read_from_either(fake: FakeGitHub, token: str) -> None:
    number = fake.add_pull(
        REPO, "patch-1", author="eve", fork="eve/train", files={"configs/evil.yaml": "$(id)\n"}
    )
    pull = call(fake, "GET", f"/repos/{REPO}/pulls/{number}", token=token)
    assert (pull["head"]["repo"]["full_name"], pull["head"]["repo"]["fork"], pull["author_association"]) == (
        "eve/train",
        True,
        "NONE",
    )
    assert [
        each["filename"] for each in call(fake, "GET", f"/repos/{REPO}/pulls/{number}/files", token=token)
    ] == ["configs/evil.yaml"]
    sha = pull["head"]["sha"]
    raw = ask(
        fake,
        "GET",
        f"/repos/{REPO}/contents/configs/evil.yaml?ref={sha}",
        token=token,
        Accept="application/vnd.github.raw+json",
    )
    assert raw.text == "$(id)\n"
    assert refusal(fake, "GET", f"/repos/{REPO}/branches/patch-1", token=token) == (404, "Branch not found")


def test_pull_requests_are_found_by_branch_and_by_commit(fake: FakeGitHub, token: str) -> None:
    sha = fake.push(REPO, "topic", {"configs/b.yaml": "steps: 3\n"}, by="ada")
    assert call(fake, "GET", PULL, token=token)["head"]["sha"] == sha
    assert call(fake, "GET", f"/repos/{REPO}/git/ref/pull/1/head", token=token)["object"]["sha"] == sha
    for path in (
        f"/repos/{REPO}/commits/{sha}/pulls",
        f"/repos/{REPO}/pulls?head=acme:topic",
        f"/repos/{REPO}/pulls?state=all&base=main",
    ):
        assert [each["number"] for each in call(fake, "GET", path, token=token)] == [1]
    first = fake.world.repos[REPO].git.objects.commits[sha].parents[0]
    assert [
        each["number"] for each in call(fake, "GET", f"/repos/{REPO}/commits/{first}/pulls", token=token)
    ] == [1]
    base = call(fake, "GET", PULL, token=token)["base"]["sha"]
    assert call(fake, "GET", f"/repos/{REPO}/commits/{base}/pulls", token=token) == []
    merged = fake.merge(REPO, 1, by="ada")
    assert call(fake, "GET", f"/repos/{REPO}/pulls", token=token) == []
    assert [
        each["merge_commit_sha"]
        for each in call(fake, "GET", f"/repos/{REPO}/commits/{merged}/pulls", token=token)
    ] == [merged]
    assert fake.files(REPO)["configs/b.yaml"] == "steps: 3\n"


def test_a_file_is_written_only_over_the_one_that_was_read(fake: FakeGitHub, token: str) -> None:
    path = f"/repos/{REPO}/contents/notes/a.txt"
    body = {"message": "note", "content": base64.b64encode(b"one").decode()}
    assert ask(fake, "PUT", path, token=token, body=body).status_code == 201
    assert ask(fake, "PUT", path, token=token, body=body).status_code == 422
    assert ask(fake, "PUT", path, token=token, body={**body, "sha": "0" * 40}).status_code == 409
    sha = call(fake, "GET", path, token=token)["sha"]
    assert ask(fake, "PUT", path, token=token, body={**body, "sha": sha}).status_code == 200
    assert [each["name"] for each in call(fake, "GET", f"/repos/{REPO}/contents/notes", token=token)] == [
        "a.txt"
    ]
    assert refusal(fake, "GET", f"/repos/{REPO}/contents/none", token=token) == (404, "Not Found")


def test_a_branch_is_made_and_moved_by_its_objects(fake: FakeGitHub, token: str) -> None:
    git = f"/repos/{REPO}/git"
    blob = call(fake, "POST", f"{git}/blobs", token=token, body={"content": "<svg/>", "encoding": "utf-8"})[
        "sha"
    ]
    heads: list[str] = []
    for name in ("one.svg", "two.svg"):
        entry = {"path": f"runs/{name}", "mode": "100644", "type": "blob", "sha": blob}
        tree = call(fake, "POST", f"{git}/trees", token=token, body={"tree": [entry]})["sha"]
        heads.append(
            call(
                fake,
                "POST",
                f"{git}/commits",
                token=token,
                body={"message": name, "tree": tree, "parents": heads[:1]},
            )["sha"]
        )
    ref = {"ref": "refs/heads/prime-train/artifacts", "sha": heads[0]}
    assert ask(fake, "POST", f"{git}/refs", token=token, body=ref).status_code == 201
    assert refusal(fake, "POST", f"{git}/refs", token=token, body=ref) == (422, "Reference already exists")
    moved = f"{git}/refs/heads/prime-train/artifacts"
    assert call(fake, "PATCH", moved, token=token, body={"sha": heads[1]})["object"]["sha"] == heads[1]
    assert refusal(fake, "PATCH", moved, token=token, body={"sha": heads[0]}) == (
        422,
        "Update is not a fast forward",
    )
    assert ask(fake, "PATCH", moved, token=token, body={"sha": heads[0], "force": True}).status_code == 200
    assert fake.files(REPO, "prime-train/artifacts") == {"runs/one.svg": "<svg/>"}
    assert refusal(fake, "GET", f"{git}/ref/heads/none", token=token) == (404, "Not Found")


def test_commits_have_the_names_that_git_gives_them(fake: FakeGitHub, token: str, tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "a.yaml").write_text("steps: 1\n", encoding="utf-8")
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    fake.add_repo("acme/real", folder=str(tmp_path))
    token = fake.job_token("acme/real", {"contents": "read"})
    head = call(fake, "GET", "/repos/acme/real/commits/main", token=token)
    assert (head["sha"], head["commit"]["message"]) == (git(tmp_path, "rev-parse", "HEAD"), "first")
    tree = call(fake, "GET", "/repos/acme/real/git/trees/main?recursive=1", token=token)
    assert (tree["sha"], [each["path"] for each in tree["tree"]]) == (
        git(tmp_path, "rev-parse", "HEAD^{tree}"),
        ["configs/a.yaml"],
    )
    assert refusal(fake, "GET", "/repos/acme/real/commits/nowhere", token=token)[0] == 422


# ------------------------------------------------------------------------------------------------------------
# deployments


def test_a_deployment_tells_where_the_run_is(fake: FakeGitHub, token: str) -> None:
    body = {
        "ref": "topic",
        "environment": "run-1",
        "payload": {"run": "run-1"},
        "auto_merge": False,
        "required_contexts": [],
    }
    made = call(fake, "POST", DEPLOYMENTS, token=token, body=body)
    where = f"{DEPLOYMENTS}/{made['id']}/statuses"
    for state in ("queued", "in_progress", "success"):
        links = {"environment_url": "https://wandb.ai/x", "log_url": "https://example.com/log"}
        status = call(
            fake, "POST", where, token=token, body={"state": state, "description": "step 3", **links}
        )
        assert (status["state"], status["environment_url"], status["log_url"]) == (state, *links.values())
    assert [each["state"] for each in call(fake, "GET", where, token=token)] == [
        "success",
        "in_progress",
        "queued",
    ]
    assert call(fake, "GET", f"{DEPLOYMENTS}?environment=run-1", token=token)[0]["payload"] == {
        "run": "run-1"
    }
    assert call(fake, "GET", f"{DEPLOYMENTS}?environment=other", token=token) == []


def test_a_deployment_status_has_bounds(fake: FakeGitHub, token: str) -> None:
    where = (
        f"{DEPLOYMENTS}/{call(fake, 'POST', DEPLOYMENTS, token=token, body={'ref': 'main'})['id']}/statuses"
    )
    assert (
        ask(fake, "POST", where, token=token, body={"state": "success", "description": "x" * 141}).status_code
        == 422
    )
    assert (
        ask(
            fake, "POST", where, token=token, body={"state": "success", "log_url": "ftp://example.com"}
        ).status_code
        == 422
    )
    assert refusal(fake, "POST", f"{DEPLOYMENTS}/5/statuses", token=token, body={"state": "success"}) == (
        404,
        "Not Found",
    )


@pytest.mark.parametrize(
    ("first", "kept", "then", "seen"),
    [
        ("success", {}, {"state": "success"}, "inactive"),
        ("success", {}, {"state": "success", "auto_inactive": False}, "success"),
        ("success", {}, {"state": "in_progress"}, "success"),
        ("failure", {}, {"state": "success"}, "failure"),
        ("success", {"transient_environment": True}, {"state": "success"}, "success"),
        ("success", {"production_environment": True}, {"state": "success"}, "success"),
        ("success", {"environment": "other"}, {"state": "success"}, "success"),
    ],
)
def test_a_success_retires_the_one_before(
    fake: FakeGitHub, token: str, first: str, kept: Any, then: Any, seen: str
) -> None:
    for about, status in ((kept, {"state": first}), ({}, then)):
        made = call(
            fake, "POST", DEPLOYMENTS, token=token, body={"ref": "main", "environment": "gpu", **about}
        )
        call(fake, "POST", f"{DEPLOYMENTS}/{made['id']}/statuses", token=token, body=status)
    assert fake.deployments(REPO)[0]["statuses"][-1]["state"] == seen


def test_a_deployment_waits_for_checks_and_is_merged_first(fake: FakeGitHub, token: str) -> None:
    sha = fake.push(REPO, "main", {"more": "1"}, by="ada")
    assert ask(fake, "POST", DEPLOYMENTS, token=token, body={"ref": "topic"}).status_code == 202
    call(
        fake,
        "POST",
        f"/repos/{REPO}/statuses/{sha}",
        token=token,
        body={"state": "failure", "context": "validate"},
    )
    assert ask(fake, "POST", DEPLOYMENTS, token=token, body={"ref": sha}).status_code == 409
    assert refusal(fake, "POST", DEPLOYMENTS, token=token, body={"ref": "none"}) == (
        422,
        "No ref found for: none",
    )
    call(
        fake,
        "POST",
        f"/repos/{REPO}/statuses/{sha}",
        token=token,
        body={"state": "success", "context": "validate"},
    )
    assert call(fake, "GET", f"/repos/{REPO}/commits/{sha}/status", token=token)["state"] == "success"
    assert ask(fake, "POST", DEPLOYMENTS, token=token, body={"ref": sha}).status_code == 201


def test_a_check_run_gathers_annotations(fake: FakeGitHub) -> None:
    token, head = fake.job_token(REPO, {"checks": "write"}), fake.pull(REPO, 1)["head"]["sha"]
    run = call(
        fake, "POST", f"/repos/{REPO}/check-runs", token=token, body={"name": "validate", "head_sha": head}
    )
    note = {
        "path": "configs/b.yaml",
        "start_line": 1,
        "end_line": 1,
        "annotation_level": "failure",
        "message": "wrong",
    }
    path = f"/repos/{REPO}/check-runs/{run['id']}"
    output = {"title": "1 error", "summary": "see", "annotations": [note]}
    assert (
        call(fake, "PATCH", path, token=token, body={"conclusion": "failure", "output": output})["status"]
        == "completed"
    )
    call(fake, "PATCH", path, token=token, body={"output": output})
    assert call(fake, "GET", path, token=token)["output"]["annotations_count"] == 2


# ------------------------------------------------------------------------------------------------------------
# workflow runs


def test_a_workflow_is_dispatched_with_what_it_declares(fake: FakeGitHub, token: str) -> None:
    path = f"/repos/{REPO}/actions/workflows/launch.yml"
    body = {"ref": "main", "inputs": {"config": "configs/a.yaml"}, "return_run_details": True}
    details = call(fake, "POST", f"{path}/dispatches", token=token, body=body)
    (run,) = fake.runs(REPO)
    assert (run["id"], run["status"], run["event"]) == (
        details["workflow_run_id"],
        "queued",
        "workflow_dispatch",
    )
    assert run["payload"]["inputs"] == {"config": "configs/a.yaml", "where": "prime"}
    fake.set_run(REPO, run["id"], "completed", "success")
    assert (
        call(fake, "GET", f"{path}/runs?status=success", token=token)["workflow_runs"][0]["conclusion"]
        == "success"
    )
    assert call(fake, "GET", f"/repos/{REPO}/actions/runs?event=push", token=token)["total_count"] == 0
    assert (
        call(fake, "POST", f"{path}/dispatches", token=token, body={**body, "return_run_details": False})
        is None
    )


@pytest.mark.parametrize(
    ("workflow", "body", "status", "message"),
    [
        ("launch.yml", {"ref": "main"}, 422, "Required input 'config' not provided"),
        (
            "launch.yml",
            {"ref": "main", "inputs": {"config": "a", "more": "b"}},
            422,
            'Unexpected inputs provided: ["more"]',
        ),
        (
            "launch.yml",
            {"ref": "main", "inputs": {"config": "a", "where": "moon"}},
            422,
            "Provided value 'moon' for input 'where' not in the list of allowed values",
        ),
        ("launch.yml", {"ref": "none", "inputs": {"config": "a"}}, 422, "No ref found for: none"),
        ("ci.yml", {"ref": "main"}, 422, "Workflow does not have 'workflow_dispatch' trigger"),
        ("none.yml", {"ref": "main"}, 404, "Not Found"),
    ],
)
def test_a_dispatch_that_the_workflow_does_not_know(
    fake: FakeGitHub, token: str, workflow: str, body: object, status: int, message: str
) -> None:
    path = f"/repos/{REPO}/actions/workflows/{workflow}/dispatches"
    assert refusal(fake, "POST", path, token=token, body=body) == (status, message)
    assert fake.runs(REPO) == []


def test_a_repository_dispatch_starts_what_waits_for_its_type(fake: FakeGitHub, token: str) -> None:
    for event_type in ("launch", "other"):
        call(
            fake,
            "POST",
            f"/repos/{REPO}/dispatches",
            token=token,
            body={"event_type": event_type, "client_payload": {"run": "r1"}},
        )
    (run,) = fake.runs(REPO)
    assert (run["path"], run["payload"]["client_payload"]) == (".github/workflows/launch.yml", {"run": "r1"})
    large = {"event_type": "launch", "client_payload": {"x": "y" * 70_000}}
    assert ask(fake, "POST", f"/repos/{REPO}/dispatches", token=token, body=large).status_code == 422


def test_what_a_job_does_starts_nothing_but_dispatches(fake: FakeGitHub, token: str) -> None:
    call(fake, "POST", f"/repos/{REPO}/issues/1/labels", token=token, body={"labels": ["train"]})
    call(fake, "POST", f"/repos/{REPO}/dispatches", token=token, body={"event_type": "launch"})
    call(
        fake,
        "POST",
        f"/repos/{REPO}/issues/1/labels",
        token=fake.person_token("ada"),
        body={"labels": ["gpu"]},
    )
    seen = [
        (event["name"], event["payload"].get("label", {}).get("name"), event["starts"])
        for event in fake.events()[1:]
    ]
    assert seen == [
        ("pull_request", "train", False),
        ("repository_dispatch", None, True),
        ("pull_request", "gpu", True),
    ]


# ----------------------------------------------------------------------------------------------------------
# limits and faults


@pytest.mark.parametrize("status", [403, 429])
def test_an_hour_s_requests_are_used_up(fake: FakeGitHub, token: str, status: int) -> None:
    fake.limit(token=token, remaining=2, status=status)
    left = [ask(fake, "GET", PULL, token=token).headers["x-ratelimit-remaining"] for _ in range(2)]
    refused = ask(fake, "GET", PULL, token=token)
    assert left == ["1", "0"]
    assert (refused.status_code, refused.headers["x-ratelimit-remaining"]) == (status, "0")
    reset_s = int(refused.headers["x-ratelimit-reset"])
    assert call(fake, "GET", "/rate_limit", token=token)["rate"]["remaining"] == 0
    fake.set_time(reset_s)
    assert ask(fake, "GET", PULL, token=token).headers["x-ratelimit-remaining"] == "999"


def test_too_much_in_a_minute_is_too_much(fake: FakeGitHub, token: str) -> None:
    fake.limit(content_per_minute=2)
    answers = [ask(fake, "POST", COMMENTS, token=token, body={"body": "x"}) for _ in range(3)]
    assert [each.status_code for each in answers] == [201, 201, 403]
    assert (answers[2].headers["retry-after"], len(fake.comments(REPO, 1))) == ("60", 2)
    assert "secondary rate limit" in answers[2].json()["message"]
    fake.advance(60)
    assert ask(fake, "POST", COMMENTS, token=token, body={"body": "x"}).status_code == 201
    fake.limit(points_per_minute=3, status=429)
    assert [ask(fake, "GET", PULL, token=fake.job_token(REPO, WRITER)).status_code for _ in range(4)] == [
        200
    ] * 4
    assert [ask(fake, "GET", PULL, token=token).status_code for _ in range(2)] == [429] * 2


def test_what_has_not_changed_is_not_sent_again_and_costs_nothing(fake: FakeGitHub, token: str) -> None:
    first = ask(fake, "GET", PULL, token=token)
    again = ask(fake, "GET", PULL, token=token, If_None_Match=first.headers["etag"])
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["x-ratelimit-used"] == first.headers["x-ratelimit-used"]
    fake.push(REPO, "topic", {"more": "1"}, by="ada")
    assert ask(fake, "GET", PULL, token=token, If_None_Match=first.headers["etag"]).status_code == 200


@pytest.mark.parametrize("status", ["403", "429", "500", "502", "503"])
def test_a_fault_is_for_as_many_requests_as_were_ordered(fake: FakeGitHub, token: str, status: str) -> None:
    fake.fail(status, method="POST", path="comments$", times=2)
    answers = [ask(fake, "POST", COMMENTS, token=token, body={"body": "x"}) for _ in range(3)]
    assert [each.status_code for each in answers] == [int(status), int(status), 201]
    assert ("retry-after" in answers[0].headers) is (status in ("403", "429"))
    assert len(fake.comments(REPO, 1)) == 1


@pytest.mark.parametrize(("fault", "made"), [(CutRequest(), 0), (LoseResponse(), 1)])
def test_of_a_lost_answer_the_deed_stays(
    fake: FakeGitHub, token: str, fault: CutRequest | LoseResponse, made: int
) -> None:
    fake.fail(fault, method="POST")
    with pytest.raises(requests.ConnectionError):
        ask(fake, "POST", COMMENTS, token=token, body={"body": "x"})
    assert len(fake.comments(REPO, 1)) == made
    assert [request.status for request in fake.requests] == [0]


def test_what_hangs_is_let_go(fake: FakeGitHub, token: str) -> None:
    fake.fail(Hang(done=True), method="POST")
    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(ask, fake, "POST", COMMENTS, token=token, body={"body": "x"})
        fake.await_requests("POST", COMMENTS)
        fake.heal()
        assert isinstance(hanging.exception(), requests.ConnectionError)
    assert len(fake.comments(REPO, 1)) == 1
    fake.fail(BAD_GATEWAY)
    assert ask(fake, "GET", PULL, token=token).headers["content-type"] == "text/html"


# ------------------------------------------------------------------------------------------------------------
# the contract


def test_the_cut_describes_what_the_fake_answers_and_nothing_else() -> None:
    assert DESCRIPTION.operations == set(OPERATIONS)
    reported = (DATA / "README.md").read_text(encoding="utf-8")
    assert f"`@octokit/openapi` {DESCRIPTION.complete['info']['version']}," in reported
    source, version, *_ = webhooks()["$comment"].removeprefix("of ").replace(",", "").split()
    assert f"`{source}` {version} " in reported


@pytest.mark.parametrize(
    ("method", "path", "body", "why"),
    [
        ("GET", "/repos/acme/train/nonsense", None, "no such path"),
        ("GET", "/repos/acme/train/issues/one/comments", None, "integer"),
        ("GET", f"{COMMENTS}?per_page=abc", None, "integer"),
        ("GET", f"{COMMENTS}?perpage=10", None, "'perpage'"),
        ("POST", COMMENTS, {}, "'body' is a required property"),
        ("POST", COMMENTS, {"body": 5}, "not of type 'string'"),
        ("POST", COMMENTS, {"body": "x", "author": "me"}, "'author'"),
        ("POST", f"{DEPLOYMENTS}/1/statuses", {"state": "trained"}, "'trained' is not one of"),
        (
            "POST",
            f"/repos/{REPO}/dispatches",
            {"event_type": "x", "client_payload": {str(n): n for n in range(11)}},
            "too many properties",
        ),
        ("POST", f"/repos/{REPO}/dispatches", {"event_type": "x" * 101}, "too long"),
    ],
)
def test_what_lies_outside_the_description_is_a_violation(
    method: str, path: str, body: object, why: str
) -> None:
    with FakeGitHub() as fake:
        fake.add_repo(REPO, files=FILES)
        answer = ask(fake, method, path, token=fake.job_token(REPO, WRITER), body=body)
        assert answer.status_code == 599
        assert why in answer.text
        assert len(fake.violations) == 1


def test_an_answer_outside_the_description_is_one_too() -> None:
    with FakeGitHub() as fake:
        fake.add_repo(REPO, files=FILES)
        fake.world.repos[REPO].default_branch = 5  # type: ignore[assignment]  # to see that the fake does not get away with it
        assert ask(fake, "GET", f"/repos/{REPO}", token=fake.job_token(REPO, {})).status_code == 599
        assert "default_branch" in fake.violations[0]


def test_a_client_says_which_it_is_and_which_version_it_wants(fake: FakeGitHub, token: str) -> None:
    assert ask(fake, "GET", PULL, token=token, User_Agent="").status_code == 403
    assert ask(fake, "GET", PULL, token=token, X_GitHub_Api_Version="1999-01-01").status_code == 400


# -------------------------------------------------------------------------------------------------------- in
# another process


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """End the process at the end of the block, whatever the test's result."""
    with process:
        try:
            yield process
        finally:
            process.terminate()


def test_it_runs_alone_and_is_reported_over_http_what_there_is(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tests.fakes.github", "--port", "0", "--ready", str(tmp_path / "ready")]
    with ended(subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert (tmp_path / "ready").read_text(encoding="utf-8") == url

        def control(deed: str, **arguments: object) -> Any:
            answer = requests.post(f"{url}/_control/{deed}", json=arguments, timeout=60)
            assert answer.status_code == 200, answer.text
            return answer.json()

        control("add_repo", name=REPO, files=FILES)
        assert control("add_pull", repo=REPO, branch="topic", author="ada", files={"a": "1"}) == 1
        token = control("job_token", repo=REPO, permissions={"issues": "write"})
        control("fail", fault="502", method="POST")
        headers = {"Authorization": f"Bearer {token}"}
        answers = [
            requests.post(url + COMMENTS, json={"body": "x"}, headers=headers, timeout=60) for _ in range(2)
        ]
        assert [each.status_code for each in answers] == [502, 201]
        assert [each["body"] for each in control("comments", repo=REPO, number=1)] == ["x"]
        assert [call["status"] for call in control("called")] == [502, 201]
        assert control("violated") == []
        refused = requests.post(f"{url}/_control/add_repo", json={"nam": "x"}, timeout=60)
        assert (refused.status_code, "unexpected keyword" in refused.text) == (400, True)
        assert requests.post(f"{url}/_control/world", timeout=60).status_code == 404
    assert process.returncode == 0


# -------------------------------------------------------------------------------------------------------
# settings, and what is off

ENVIRONMENT = f"/repos/{REPO}/environments/gpu"


def test_rules_of_an_environment_are_replaced_as_a_whole_and_by_administrators_only(fake: FakeGitHub) -> None:
    owner, writer = fake.person_token("acme"), fake.person_token("ada")
    ada = call(fake, "GET", "/user", token=writer)["id"]
    assert ask(fake, "PUT", ENVIRONMENT, token=writer, body={}).status_code == 403
    call(
        fake,
        "PUT",
        ENVIRONMENT,
        token=owner,
        body={"reviewers": [{"type": "User", "id": ada}], "wait_timer": 3},
    )
    made = call(fake, "PUT", ENVIRONMENT, token=owner, body={"wait_timer": 3})
    assert [rule["type"] for rule in made["protection_rules"]] == ["wait_timer"]
    assert (
        refusal(fake, "PUT", ENVIRONMENT, token=owner, body={"reviewers": [{"type": "User", "id": 1}]})[0]
        == 422
    )


def test_a_plan_without_rules_refuses_them_and_keeps_no_environment(fake: FakeGitHub) -> None:
    owner, writer = fake.person_token("acme"), fake.person_token("ada")
    fake.without_rules(REPO)
    body = {"reviewers": [{"type": "User", "id": call(fake, "GET", "/user", token=writer)["id"]}]}
    status, message = refusal(fake, "PUT", ENVIRONMENT, token=owner, body=body)
    assert (status, "billing plan" in message) == (422, True)
    assert call(fake, "GET", f"/repos/{REPO}/environments", token=owner)["environments"] == []


def test_branches_are_allowed_only_where_the_environment_asks_for_them(fake: FakeGitHub) -> None:
    owner, patterns = fake.person_token("acme"), f"{ENVIRONMENT}/deployment-branch-policies"
    call(fake, "PUT", ENVIRONMENT, token=owner, body={})
    assert refusal(fake, "POST", patterns, token=owner, body={"name": "main"})[0] == 404
    policy = {"protected_branches": False, "custom_branch_policies": True}
    call(fake, "PUT", ENVIRONMENT, token=owner, body={"deployment_branch_policy": policy})
    call(fake, "POST", patterns, token=owner, body={"name": "main"})
    assert [one["name"] for one in call(fake, "GET", patterns, token=owner)["branch_policies"]] == ["main"]


def test_workflow_files_take_a_right_of_their_own(fake: FakeGitHub) -> None:
    def tried(token: str) -> int:
        entry = {
            "path": ".github/workflows/new.yml",
            "mode": "100644",
            "type": "blob",
            "content": "on: push\n",
        }
        return ask(fake, "POST", f"/repos/{REPO}/git/trees", token=token, body={"tree": [entry]}).status_code

    assert tried(fake.login_token("ada", ["repo", "workflow"])) == 201
    assert tried(fake.login_token("ada", ["repo"])) == 404
    assert tried(fake.person_token("ada", {"contents": "write"})) == 403


def test_a_workflow_that_is_off_is_started_by_nothing_until_it_is_on(fake: FakeGitHub, token: str) -> None:
    path = f"/repos/{REPO}/actions/workflows/launch.yml"
    fake.switch_off(REPO, "launch.yml")
    assert call(fake, "GET", path, token=token)["state"] == "disabled_inactivity"
    dispatch = {"ref": "main", "inputs": {"config": "a"}}
    assert refusal(fake, "POST", f"{path}/dispatches", token=token, body=dispatch)[0] == 422
    call(fake, "POST", f"/repos/{REPO}/dispatches", token=token, body={"event_type": "launch"})
    assert fake.runs(REPO) == []
    call(fake, "PUT", f"{path}/enable", token=token)
    call(fake, "POST", f"{path}/dispatches", token=token, body=dispatch)
    assert len(fake.runs(REPO)) == 1


def test_a_pull_request_is_opened_once_and_only_with_commits(fake: FakeGitHub) -> None:
    path, writer = f"/repos/{REPO}/pulls", fake.person_token("ada")
    fake.push(REPO, "more", {"a.txt": "1"}, by="ada")
    body = {"title": "More", "head": "more", "base": "main", "body": "words"}
    assert call(fake, "POST", path, token=writer, body=body)["user"]["login"] == "ada"
    again = ask(fake, "POST", path, token=writer, body=body).json()["errors"][0]["message"]
    assert again == "A pull request already exists for acme:more."
    assert refusal(fake, "POST", path, token=writer, body={**body, "head": "gone"})[0] == 422
    fake.merge(REPO, 2, by="ada")
    nothing = ask(fake, "POST", path, token=writer, body=body).json()["errors"][0]["message"]
    assert nothing == "No commits between main and more"
