"""Answers to what is asked about commits, trees, blobs and refs."""

import base64
import binascii

from tests.fakes.github import shown
from tests.fakes.github.asked import Answered, Asked, Page, Told
from tests.fakes.github.git import TREE_MODE, Commit, Git
from tests.fakes.github.refusals import Refused, invalid, not_found
from tests.fakes.github.world import World


def get_commit(world: World, asked: Asked) -> Answered:
    return shown.commit(world, asked.repo, found_commit(asked.repo.git, asked.found["ref"]))


def get_branch(world: World, asked: Asked) -> Answered:
    name, git = asked.found["branch"], asked.repo.git
    if f"refs/heads/{name}" not in git.refs:
        raise Refused(404, "Branch not found")
    tip = git.objects.commits[git.refs[f"refs/heads/{name}"]]
    return {"name": name, "commit": shown.commit(world, asked.repo, tip), "protected": False}


def get_ref(world: World, asked: Asked) -> Answered:
    return shown.ref(world, asked.repo, _ref(asked, 404, "Not Found"))


def matching_refs(world: World, asked: Asked) -> Answered:
    wanted = f"refs/{asked.found['ref']}"
    return Page([shown.ref(world, asked.repo, name) for name in sorted(asked.repo.git.refs) if name.startswith(wanted)])


def create_ref(world: World, asked: Asked) -> Answered:
    name, git = asked.json["ref"], asked.repo.git
    if not name.startswith("refs/") or name.count("/") < 2:
        raise Refused(422, "Reference name must start with 'refs/' and contain at least two slashes.")
    if name in git.refs:
        raise Refused(422, "Reference already exists")
    git.refs[name] = _object(git, asked.json["sha"]).sha
    return Told(201, shown.ref(world, asked.repo, name))


def update_ref(world: World, asked: Asked) -> Answered:
    name, git = _ref(asked, 422, "Reference does not exist"), asked.repo.git
    sha = _object(git, asked.json["sha"]).sha
    if not asked.flag("force", default=False) and git.refs[name] not in git.objects.history(sha):
        raise Refused(422, "Update is not a fast forward")
    git.refs[name] = sha
    return shown.ref(world, asked.repo, name)


def delete_ref(world: World, asked: Asked) -> Answered:
    del asked.repo.git.refs[_ref(asked, 422, "Reference does not exist")]
    return Told(204)


def create_blob(world: World, asked: Asked) -> Answered:
    sha = asked.repo.git.objects.add_blob(decoded(asked.json["content"], asked.json.get("encoding", "utf-8")))
    return Told(201, {"sha": sha, "url": f"{shown.repo_url(world, asked.repo)}/git/blobs/{sha}"})


def get_blob(world: World, asked: Asked) -> Answered:
    sha = asked.found["file_sha"]
    raw = asked.repo.git.objects.blobs.get(sha)
    if raw is None:
        raise not_found()
    url = f"{shown.repo_url(world, asked.repo)}/git/blobs/{sha}"
    return {"sha": sha, "url": url, "size": len(raw), "encoding": "base64", "content": base64.encodebytes(raw).decode()}


def create_tree(world: World, asked: Asked) -> Answered:
    objects, wanted = asked.repo.git.objects, asked.json
    base = wanted.get("base_tree")
    if base is not None and base not in objects.trees and base not in objects.commits:
        raise not_found()
    files = objects.files(base) if base else {}
    for entry in wanted["tree"]:
        sha = objects.add_blob(entry["content"].encode()) if "content" in entry else entry.get("sha")
        if sha is None:
            files.pop(entry["path"], None)
        elif sha not in objects.blobs:
            raise invalid("Tree", "tree", f"tree.sha {sha} is not a valid blob")
        else:
            files[entry["path"]] = (entry.get("mode", "100644"), sha)
    return Told(201, _tree(world, asked, objects.add_tree(files)))


def get_tree(world: World, asked: Asked) -> Answered:
    git, wanted = asked.repo.git, asked.found["tree_sha"]
    at = git.resolve(wanted)
    sha = git.objects.commits[at].tree if at else wanted
    if sha not in git.objects.trees:
        raise not_found()
    return _tree(world, asked, sha, deep="recursive" in asked.query)


def create_commit(world: World, asked: Asked) -> Answered:
    objects, wanted = asked.repo.git.objects, asked.json
    if wanted["tree"] not in objects.trees:
        raise invalid("Commit", "tree", f"Tree SHA {wanted['tree']} does not exist")
    parents = tuple(_object(asked.repo.git, sha).sha for sha in wanted.get("parents", ()))
    sha = objects.add_commit(wanted["tree"], parents, wanted["message"], asked.by.login, world.now_s())
    return Told(201, shown.git_commit(world, asked.repo, objects.commits[sha]))


def get_git_commit(world: World, asked: Asked) -> Answered:
    found = asked.repo.git.objects.commits.get(asked.found["commit_sha"])
    if found is None:
        raise not_found()
    return shown.git_commit(world, asked.repo, found)


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


def _ref(asked: Asked, status: int, message: str) -> str:
    name = f"refs/{asked.found['ref']}"
    if name not in asked.repo.git.refs:
        raise Refused(status, message)
    return name


def _tree(world: World, asked: Asked, sha: str, *, deep: bool = False) -> shown.Json:
    objects, url = asked.repo.git.objects, shown.repo_url(world, asked.repo)
    entries = objects.files(sha) if deep else objects.trees[sha]
    told: list[shown.Json] = []
    for path, (mode, of) in entries.items():
        kind = "tree" if mode == TREE_MODE else "blob"
        size = {} if kind == "tree" else {"size": len(objects.blobs[of])}
        told.append({"path": path, "mode": mode, "type": kind, "sha": of, "url": f"{url}/git/{kind}s/{of}", **size})
    return {"sha": sha, "url": f"{url}/git/trees/{sha}", "tree": told, "truncated": False}
