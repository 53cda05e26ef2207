"""Answers to what is asked about repositories, their files and people, and about whoever asks."""

from tests.fakes.github import shown
from tests.fakes.github.about_git import decoded
from tests.fakes.github.asked import Answered, Asked, Page, Told
from tests.fakes.github.git import Git
from tests.fakes.github.refusals import Refused, not_found
from tests.fakes.github.repos import WRITERS
from tests.fakes.github.tokens import Kind
from tests.fakes.github.world import World

RAW = ("application/vnd.github.raw+json", "application/vnd.github.raw", "application/vnd.github.v3.raw")


def get_user(world: World, asked: Asked) -> Answered:
    """Only people are users."""
    if asked.by.kind is not Kind.PERSON:
        raise Refused(403, "Resource not accessible by integration")
    return shown.user(world, asked.by.login) | {"name": None, "user_view_type": "private"}


def rate_limit(world: World, asked: Asked) -> Answered:
    now = world.limits.purse(asked.token, world.now_s()).json()
    return {"resources": {"core": now, "search": now}, "rate": now}


def get_repo(world: World, asked: Asked) -> Answered:
    return shown.repo(world, asked.repo)


def get_permission(world: World, asked: Asked) -> Answered:
    """`permission` knows four levels only, `role_name` all."""
    login, repo = asked.found["username"], asked.repo
    if login not in world.users:
        raise Refused(404, f"{login} is not a user")
    role = repo.role(login)
    permission = {"maintain": "write", "triage": "read"}.get(role, role)
    grants = {"pull": role != "none", "triage": role in ("triage", *WRITERS), "push": role in WRITERS}
    grants |= {"maintain": role in ("maintain", "admin"), "admin": role == "admin"}
    return {"permission": permission, "role_name": role, "user": shown.user(world, login) | {"permissions": grants, "role_name": role}}


def get_content(world: World, asked: Asked) -> Answered:
    git, path = asked.repo.git, asked.found["path"].strip("/")
    at = asked.query.get("ref", asked.repo.default_branch)
    sha = git.resolve(at)
    if sha is None:
        raise Refused(404, f"No commit found for the ref {at}")
    files = git.objects.files(sha)
    if path in files:
        blob = files[path][1]
        if asked.headers.get("accept", "") in RAW:
            return Told(200, git.objects.blobs[blob])
        return shown.content(world, asked.repo, path, blob, at)
    return Page(_folder(world, asked, git, path, sha, at))


def put_content(world: World, asked: Asked) -> Answered:
    wanted, git, path = asked.json, asked.repo.git, asked.found["path"].strip("/")
    branch = wanted.get("branch", asked.repo.default_branch)
    tip = git.refs.get(f"refs/heads/{branch}")
    if tip is None:
        raise Refused(404, f"Branch {branch} not found")
    before = git.objects.files(tip).get(path)
    if before and "sha" not in wanted:
        raise Refused(422, 'Invalid request.\n\n"sha" wasn\'t supplied.')
    if before and wanted["sha"] != before[1]:
        raise Refused(409, f"{path} does not match {wanted['sha']}")
    raw = decoded(wanted["content"], "base64")
    made = git.commit(branch, {path: raw}, message=wanted["message"], name=asked.by.login, at_s=world.now_s())
    told = shown.content(world, asked.repo, path, git.objects.files(made)[path][1], branch)
    commit = shown.git_commit(world, asked.repo, git.objects.commits[made])
    return Told(200 if before else 201, {"content": told, "commit": commit})


def _folder(world: World, asked: Asked, git: Git, path: str, sha: str, at: str) -> list[shown.Json]:
    before = f"{path}/" if path else ""
    inside = {name.removeprefix(before): of for name, of in git.objects.files(sha).items() if name.startswith(before)}
    if not inside:
        raise not_found()
    entries = {}
    for name, (_, blob) in inside.items():
        first, _, rest = name.partition("/")
        kind, size = ("dir", 0) if rest else ("file", len(git.objects.blobs[blob]))
        entries[first] = shown.entry(world, asked.repo, before + first, kind, blob, at, size)
    return list(entries.values())
