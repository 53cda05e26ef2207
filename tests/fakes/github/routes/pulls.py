"""Requests about pull requests."""

import difflib
from collections.abc import Mapping

from tests.fakes.github import events, views
from tests.fakes.github.git import Files, Objects
from tests.fakes.github.messages import Call, Page, Reply, Result
from tests.fakes.github.refusals import Refused, invalid
from tests.fakes.github.repos import Pull, Repo
from tests.fakes.github.routes.git import found_commit
from tests.fakes.github.world import HTML_URL, World
from tests.fakes.http import Json

FILES_MAX = 3000
COMPARED_MAX = 300
ALIKE = 0.5
"""Share of equal content from which on a file counts as another one under a new name."""


def list_pulls(world: World, call: Call) -> Result:
    """Return the pull requests, newest first."""
    wanted = call.query.get("state", "open")
    pulls = [pull for pull in call.repo.pulls.values() if wanted in ("all", pull.state)]
    for name, of in (
        ("base", lambda pull: pull.base_ref),
        ("head", lambda pull: f"{pull.head_repo.partition('/')[0]}:{pull.head_ref}"),
    ):
        if name in call.query:
            pulls = [pull for pull in pulls if of(pull) == call.query[name]]
    return Page([views.pull(world, call.repo, pull) for pull in reversed(pulls)])


def create_pull(world: World, call: Call) -> Result:
    wanted, repo = call.body, call.repo
    owner, _, branch = wanted["head"].rpartition(":")
    head, base = repo.git.refs.get(f"refs/heads/{branch}"), repo.git.refs.get(f"refs/heads/{wanted['base']}")
    if head is None or owner not in ("", repo.owner):
        raise invalid("PullRequest", "head", "", "invalid")
    if base is None:
        raise invalid("PullRequest", "base", "", "invalid")
    if any(
        (pull.head_ref, pull.base_ref, pull.state) == (branch, wanted["base"], "open")
        for pull in repo.pulls.values()
    ):
        raise _refused(f"A pull request already exists for {repo.owner}:{branch}.")
    if head in repo.git.objects.history(base):
        raise _refused(f"No commits between {wanted['base']} and {branch}")
    pull = world.open_pull(repo, wanted.get("title", ""), call.by.login, wanted["base"], repo, branch)
    pull.body = wanted.get("body") or ""
    world.happen(
        "pull_request", repo, events.pull_request(world, repo, pull, "opened", call.by.login), call.by
    )
    return Reply(201, views.whole_pull(world, repo, pull))


def compare(world: World, call: Call) -> Result:
    """Return what the head changes since it left the base; at most `COMPARED_MAX` files, on the first page
    only.
    """
    base, _, head = call.params["basehead"].partition("...")
    before, after = found_commit(call.repo.git, base), found_commit(call.repo.git, head)
    files = changes(world, call.repo, before.sha, after.sha, call.repo.full_name)[:COMPARED_MAX]
    commits = views.commit(world, call.repo, before)
    objects = call.repo.git.objects
    ahead = len(set(objects.history(after.sha)) - set(objects.history(before.sha)))
    links = dict.fromkeys(
        ("html_url", "permalink_url", "diff_url", "patch_url"),
        f"{HTML_URL}/{call.repo.full_name}/compare/{base}...{head}",
    )
    url = f"{views.repo_url(world, call.repo)}/compare/{base}...{head}"
    known = {
        "status": "ahead",
        "ahead_by": ahead,
        "behind_by": 0,
        "total_commits": 1,
        "commits": [],
        "files": files,
    }
    return known | {"url": url, "base_commit": commits, "merge_base_commit": commits} | links


def get_pull(world: World, call: Call) -> Result:
    return views.whole_pull(world, call.repo, call.pull("pull_number"))


def list_files(world: World, call: Call) -> Result:
    return Page(changed(world, call.repo, call.pull("pull_number"))[:FILES_MAX])


def list_pulls_of_commit(world: World, call: Call) -> Result:
    """Return the pull requests that contain the commit, or have merged it."""
    sha, objects = call.params["commit_sha"], call.repo.git.objects
    bringing = [
        pull
        for pull in call.repo.pulls.values()
        if sha == pull.merged_sha
        or (sha in objects.history(pull.head_sha) and sha not in objects.history(pull.base_sha))
    ]
    return Page([views.pull(world, call.repo, pull) for pull in bringing])


def changed(world: World, repo: Repo, pull: Pull) -> list[Json]:
    """Return the changes since the head left the base."""
    return changes(world, repo, pull.base_sha, pull.head_sha, pull.head_repo)


def changes(world: World, repo: Repo, base_sha: str, head_sha: str, head_repo: str) -> list[Json]:
    objects = repo.git.objects
    known = set(objects.history(base_sha))
    left = next((sha for sha in objects.history(head_sha) if sha in known), base_sha)
    before, after = objects.files(left), objects.files(head_sha)
    moved = _moved(objects, before, after)
    rows = []
    for path in sorted((before.keys() - set(moved.values())) | after.keys()):
        old = before.get(moved.get(path, path))
        if old != after.get(path) or path in moved:
            rows.append(
                _change(world, repo, (head_repo, head_sha), path, old, after.get(path))
                | _renamed(moved, path)
            )
    return rows


def _moved(objects: Objects, before: Files, after: Files) -> dict[str, str]:
    """Return the earlier names of renamed files: a new file that is at least half equal to a removed one."""
    moved: dict[str, str] = {}
    for path in sorted(after.keys() - before.keys()):
        new = _lines(objects, after[path])
        for gone in sorted(before.keys() - after.keys() - set(moved.values())):
            if (
                path not in moved
                and difflib.SequenceMatcher(None, _lines(objects, before[gone]), new).ratio() >= ALIKE
            ):
                moved[path] = gone
    return moved


def _renamed(moved: Mapping[str, str], path: str) -> Json:
    return {"status": "renamed", "previous_filename": moved[path]} if path in moved else {}


def _lines(objects: Objects, entry: tuple[str, str] | None) -> list[str]:
    return objects.blobs[entry[1]].decode(errors="replace").splitlines() if entry else []


def _refused(message: str) -> Refused:
    return Refused(
        422, "Validation Failed", errors=[{"resource": "PullRequest", "code": "custom", "message": message}]
    )


def _change(
    world: World,
    repo: Repo,
    head: tuple[str, str],
    path: str,
    old: tuple[str, str] | None,
    new: tuple[str, str] | None,
) -> Json:
    """Return one change. `head`: the full name of the repository with the changed file, and the commit."""
    lines = list(
        difflib.unified_diff(_lines(repo.git.objects, old), _lines(repo.git.objects, new), lineterm="")
    )[2:]
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    page = f"{HTML_URL}/{head[0]}"
    return {
        "sha": (new or old or ("", ""))[1],
        "filename": path,
        "status": "added" if old is None else "removed" if new is None else "modified",
        "additions": added,
        "deletions": removed,
        "changes": added + removed,
        "patch": "\n".join(lines),
        "blob_url": f"{page}/blob/{head[1]}/{path}",
        "raw_url": f"{page}/raw/{head[1]}/{path}",
        "contents_url": f"{views.repo_url(world, repo)}/contents/{path}?ref={head[1]}",
    }
