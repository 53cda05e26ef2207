"""Requests about commits, trees, blobs and refs."""

import base64
import binascii

from tests.fakes.github import views
from tests.fakes.github.git import TREE_MODE, Commit, Git
from tests.fakes.github.messages import Call, Page, Reply, Result
from tests.fakes.github.refusals import Refused, invalid, not_found
from tests.fakes.github.tokens import Kind, Token
from tests.fakes.github.workflows import FOLDER
from tests.fakes.github.world import World
from tests.fakes.http import Json


def get_commit(world: World, call: Call) -> Result:
    return views.commit(world, call.repo, found_commit(call.repo.git, call.params["ref"]))


def get_branch(world: World, call: Call) -> Result:
    name, git = call.params["branch"], call.repo.git
    if f"refs/heads/{name}" not in git.refs:
        raise Refused(404, "Branch not found")
    tip = git.objects.commits[git.refs[f"refs/heads/{name}"]]
    return {"name": name, "commit": views.commit(world, call.repo, tip), "protected": False}


def get_ref(world: World, call: Call) -> Result:
    if not call.repo.git.refs:
        raise Refused(409, "Git Repository is empty.")
    return views.ref(world, call.repo, _ref(call, 404, "Not Found"))


def matching_refs(world: World, call: Call) -> Result:
    wanted = f"refs/{call.params['ref']}"
    return Page(
        [views.ref(world, call.repo, name) for name in sorted(call.repo.git.refs) if name.startswith(wanted)]
    )


def create_ref(world: World, call: Call) -> Result:
    name, git = call.body["ref"], call.repo.git
    if not name.startswith("refs/") or name.count("/") < 2:
        raise Refused(422, "Reference name must start with 'refs/' and contain at least two slashes.")
    if name in git.refs:
        raise Refused(422, "Reference already exists")
    git.refs[name] = _object(git, call.body["sha"]).sha
    return Reply(201, views.ref(world, call.repo, name))


def update_ref(world: World, call: Call) -> Result:
    name, git = _ref(call, 422, "Reference does not exist"), call.repo.git
    sha = _object(git, call.body["sha"]).sha
    if not call.flag("force", default=False) and git.refs[name] not in git.objects.history(sha):
        raise Refused(422, "Update is not a fast forward")
    git.refs[name] = sha
    return views.ref(world, call.repo, name)


def delete_ref(world: World, call: Call) -> Result:
    del call.repo.git.refs[_ref(call, 422, "Reference does not exist")]
    return Reply(204)


def create_blob(world: World, call: Call) -> Result:
    sha = call.repo.git.objects.add_blob(decoded(call.body["content"], call.body.get("encoding", "utf-8")))
    return Reply(201, {"sha": sha, "url": f"{views.repo_url(world, call.repo)}/git/blobs/{sha}"})


def get_blob(world: World, call: Call) -> Result:
    sha = call.params["file_sha"]
    raw = call.repo.git.objects.blobs.get(sha)
    if raw is None:
        raise not_found()
    url = f"{views.repo_url(world, call.repo)}/git/blobs/{sha}"
    return {
        "sha": sha,
        "url": url,
        "size": len(raw),
        "encoding": "base64",
        "content": base64.encodebytes(raw).decode(),
    }


def create_tree(world: World, call: Call) -> Result:
    objects, wanted = call.repo.git.objects, call.body
    base = wanted.get("base_tree")
    if base is not None and base not in objects.trees and base not in objects.commits:
        raise not_found()
    if any(entry["path"].startswith(FOLDER) for entry in wanted["tree"]):
        check_workflows(call.by)
    files = objects.files(base) if base else {}
    for entry in wanted["tree"]:
        sha = objects.add_blob(entry["content"].encode()) if "content" in entry else entry.get("sha")
        if sha is None:
            files.pop(entry["path"], None)
        elif sha not in objects.blobs:
            raise invalid("Tree", "tree", f"tree.sha {sha} is not a valid blob")
        else:
            files[entry["path"]] = (entry.get("mode", "100644"), sha)
    return Reply(201, _tree(world, call, objects.add_tree(files)))


def get_tree(world: World, call: Call) -> Result:
    git, wanted = call.repo.git, call.params["tree_sha"]
    at = git.resolve(wanted)
    sha = git.objects.commits[at].tree if at else wanted
    if sha not in git.objects.trees:
        raise not_found()
    return _tree(world, call, sha, deep="recursive" in call.query)


def create_commit(world: World, call: Call) -> Result:
    objects, wanted = call.repo.git.objects, call.body
    if wanted["tree"] not in objects.trees:
        raise invalid("Commit", "tree", f"Tree SHA {wanted['tree']} does not exist")
    parents = tuple(_object(call.repo.git, sha).sha for sha in wanted.get("parents", ()))
    sha = objects.add_commit(wanted["tree"], parents, wanted["message"], call.by.login, world.now_s())
    return Reply(201, views.git_commit(world, call.repo, objects.commits[sha]))


def get_git_commit(world: World, call: Call) -> Result:
    found = call.repo.git.objects.commits.get(call.params["commit_sha"])
    if found is None:
        raise not_found()
    return views.git_commit(world, call.repo, found)


def check_workflows(token: Token) -> None:
    """Refuse a token that may not change workflows, although it may change all other files."""
    if token.scopes is not None and "workflow" not in token.scopes:
        raise not_found()
    if token.scopes is None and token.kind is not Kind.JOB and not token.may("workflows", "write"):
        raise Refused(403, f"Resource not accessible by {token.whom}")


def found_commit(git: Git, ref: str) -> Commit:
    sha = git.resolve(ref)
    if sha is None or sha not in git.objects.commits:
        raise Refused(422, f"No commit found for SHA: {ref}")
    return git.objects.commits[sha]


def decoded(content: str, encoding: str) -> bytes:
    if encoding != "base64":
        return content.encode()
    try:
        return base64.b64decode("".join(content.split()), validate=True)
    except (binascii.Error, ValueError):
        raise Refused(422, "content is not valid Base64") from None


def _object(git: Git, sha: str) -> Commit:
    if sha not in git.objects.commits:
        raise Refused(422, "Object does not exist")
    return git.objects.commits[sha]


def _ref(call: Call, status: int, message: str) -> str:
    name = f"refs/{call.params['ref']}"
    if name not in call.repo.git.refs:
        raise Refused(status, message)
    return name


def _tree(world: World, call: Call, sha: str, *, deep: bool = False) -> Json:
    objects, url = call.repo.git.objects, views.repo_url(world, call.repo)
    entries = objects.files(sha) if deep else objects.trees[sha]
    rows: list[Json] = []
    for path, (mode, of) in entries.items():
        kind = "tree" if mode == TREE_MODE else "blob"
        size = {} if kind == "tree" else {"size": len(objects.blobs[of])}
        rows.append(
            {"path": path, "mode": mode, "type": kind, "sha": of, "url": f"{url}/git/{kind}s/{of}", **size}
        )
    return {"sha": sha, "url": f"{url}/git/trees/{sha}", "tree": rows, "truncated": False}
