"""Requests about repositories, their files and people, and about the sender."""

from tests.fakes.github import views
from tests.fakes.github.git import Git
from tests.fakes.github.messages import Call, Page, Reply, Result
from tests.fakes.github.refusals import Refused, not_found
from tests.fakes.github.repos import WRITERS
from tests.fakes.github.routes.git import decoded
from tests.fakes.github.tokens import Kind
from tests.fakes.github.world import World
from tests.fakes.http import Json

RAW = ("application/vnd.github.raw+json", "application/vnd.github.raw", "application/vnd.github.v3.raw")


def get_user(world: World, call: Call) -> Result:
    """Return the sender of the request, who must be a person."""
    if call.by.kind is not Kind.PERSON:
        raise Refused(403, "Resource not accessible by integration")
    return views.user(world, call.by.login) | {"name": None, "user_view_type": "private"}


def rate_limit(world: World, call: Call) -> Result:
    now = world.limits.purse(call.token, world.now_s()).json()
    return {"resources": {"core": now, "search": now}, "rate": now}


def get_repo(world: World, call: Call) -> Result:
    """Return the repository; a person is told what they may do in it."""
    view = views.repo(world, call.repo)
    if call.token is not None and call.token.kind is Kind.PERSON:
        view["permissions"] = grants(call.repo.role(call.token.login))
    return view


def get_permission(world: World, call: Call) -> Result:
    """Return the permission: `permission` has four levels only, `role_name` all."""
    login, repo = call.params["username"], call.repo
    if login not in world.users:
        raise Refused(404, f"{login} is not a user")
    role = repo.role(login)
    permission = {"maintain": "write", "triage": "read"}.get(role, role)
    user = views.user(world, login) | {"permissions": grants(role), "role_name": role}
    return {"permission": permission, "role_name": role, "user": user}


def grants(role: str) -> Json:
    """Return what a role permits."""
    given = {"pull": role != "none", "triage": role in ("triage", *WRITERS), "push": role in WRITERS}
    return given | {"maintain": role in ("maintain", "admin"), "admin": role == "admin"}


def get_content(world: World, call: Call) -> Result:
    git, path = call.repo.git, call.params["path"].strip("/")
    at = call.query.get("ref", call.repo.default_branch)
    sha = git.resolve(at)
    if sha is None:
        raise Refused(404, f"No commit found for the ref {at}")
    files = git.objects.files(sha)
    if path in files:
        blob = files[path][1]
        if call.request.headers.get("accept", "") in RAW:
            return Reply(200, git.objects.blobs[blob])
        return views.content(world, call.repo, path, blob, at)
    return Page(_folder(world, call, git, path, sha, at))


def put_content(world: World, call: Call) -> Result:
    wanted, git, path = call.body, call.repo.git, call.params["path"].strip("/")
    branch = wanted.get("branch", call.repo.default_branch)
    tip = git.refs.get(f"refs/heads/{branch}")
    if tip is None:
        raise Refused(404, f"Branch {branch} not found")
    before = git.objects.files(tip).get(path)
    if before and "sha" not in wanted:
        raise Refused(422, 'Invalid request.\n\n"sha" wasn\'t supplied.')
    if before and wanted["sha"] != before[1]:
        raise Refused(409, f"{path} does not match {wanted['sha']}")
    raw = decoded(wanted["content"], "base64")
    made = git.commit(branch, {path: raw}, message=wanted["message"], name=call.by.login, at_s=world.now_s())
    view = views.content(world, call.repo, path, git.objects.files(made)[path][1], branch)
    commit = views.git_commit(world, call.repo, git.objects.commits[made])
    return Reply(200 if before else 201, {"content": view, "commit": commit})


def _folder(world: World, call: Call, git: Git, path: str, sha: str, at: str) -> list[Json]:
    before = f"{path}/" if path else ""
    inside = {
        name.removeprefix(before): of
        for name, of in git.objects.files(sha).items()
        if name.startswith(before)
    }
    if not inside:
        raise not_found()
    entries = {}
    for name, (_, blob) in inside.items():
        first, _, rest = name.partition("/")
        kind, size = ("dir", 0) if rest else ("file", len(git.objects.blobs[blob]))
        entries[first] = views.entry(world, call.repo, before + first, kind, blob, at, size)
    return list(entries.values())
