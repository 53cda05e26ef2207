"""The payloads that GitHub puts into the event file of a workflow and sends to webhooks, by its schemas.

They are made from the content of the fake, and checked against the published schemas.
"""

from typing import Any

from jsonschema import Draft7Validator

from tests.fakes.clock import iso
from tests.fakes.github import views
from tests.fakes.github.repos import Comment, Pull, Repo
from tests.fakes.github.schemas import webhooks
from tests.fakes.github.world import HTML_URL, World
from tests.fakes.openapi import Filler

Json = dict[str, Any]
NO_SHA = "0" * 40


def pull_request(
    world: World, repo: Repo, pull: Pull, action: str, sender: str, *, label: str = "", before: str = NO_SHA
) -> Json:
    """Return the payload. `label`: the added label for `labeled`. `before`: the previous head for
    `synchronize`.
    """
    known: Json = {
        "action": action,
        "number": pull.number,
        "pull_request": views.whole_pull(world, repo, pull),
    }
    if action == "labeled":
        known["label"] = views.label(world, repo, label)
    if action == "synchronize":
        known |= {"before": before, "after": pull.head_sha}
    return _checked(f"pull_request${action}", world, repo, sender, known)


def issue_comment(world: World, repo: Repo, message: Comment) -> Json:
    """Return the payload of a comment's creation by its author."""
    issue, comment = views.issue(world, repo, repo.pulls[message.number]), views.comment(world, repo, message)
    return _checked(
        "issue_comment$created",
        world,
        repo,
        message.author,
        {"action": "created", "issue": issue, "comment": comment},
    )


def workflow_dispatch(world: World, repo: Repo, workflow: str, ref: str, inputs: Json, sender: str) -> Json:
    """Return the payload. `workflow` is the path of its file. A branch may be given without refs/heads/."""
    complete = ref if ref.startswith("refs/") else f"refs/heads/{ref}"
    return _checked(
        "workflow_dispatch$event",
        world,
        repo,
        sender,
        {"inputs": inputs, "ref": complete, "workflow": workflow},
    )


def repository_dispatch(
    world: World, repo: Repo, event_type: str, client_payload: Json | None, sender: str
) -> Json:
    known = {"action": event_type, "branch": repo.default_branch, "client_payload": client_payload or {}}
    return _checked("repository_dispatch$event", world, repo, sender, known)


def push(world: World, repo: Repo, branch: str, sender: str, *, before: str = NO_SHA) -> Json:
    """Return the payload of a push after which the branch is at its current commit; before it was at
    `before`.
    """
    objects, ref = repo.git.objects, f"refs/heads/{branch}"
    after = repo.git.refs[ref]
    new = [sha for sha in objects.history(after) if before == NO_SHA or sha not in objects.history(before)]
    commits = [_pushed(world, repo, sha) for sha in reversed(new)]
    known = {
        "ref": ref,
        "before": before,
        "after": after,
        "created": before == NO_SHA,
        "deleted": False,
        "forced": False,
    }
    compare = f"{HTML_URL}/{repo.full_name}/compare/{before[:12]}...{after[:12]}"
    details = {
        "commits": commits,
        "head_commit": commits[-1] if commits else None,
        "compare": compare,
        "pusher": {"name": sender},
    }
    return _checked("push$event", world, repo, sender, known | details)


def merge_group(world: World, repo: Repo, ref: str, base: str, base_sha: str) -> Json:
    """Return the payload of a merge queue that asks for checks of the commit at `ref`, which merges into the
    branch `base`.
    """
    made = repo.git.objects.commits[repo.git.refs[ref]]
    who = {"name": made.name, "email": f"{made.name}@users.noreply.github.com"}
    head = {
        "id": made.sha,
        "tree_id": made.tree,
        "message": made.message,
        "timestamp": iso(made.at_s),
        "author": who,
        "committer": who,
    }
    group = {
        "head_sha": made.sha,
        "head_ref": ref,
        "base_sha": base_sha,
        "base_ref": f"refs/heads/{base}",
        "head_commit": head,
    }
    known = {"action": "checks_requested", "merge_group": group}
    return _checked("merge_group$checks_requested", world, repo, "github-merge-queue[bot]", known)


def schedule(world: World, repo: Repo, cron: str) -> Json:
    """Return the payload. GitHub publishes no schema for it, because it is never sent to webhooks."""
    return {
        "schedule": cron,
        "repository": _repository(world, repo),
        "workflow": "",
        "sender": views.user(world, "github"),
    }


def faults(schema: str, payload: Json) -> list[str]:
    """Return what is wrong with a payload by GitHub's schema of the event."""
    validator = Draft7Validator({"$ref": f"#/definitions/{schema}", "definitions": webhooks()["definitions"]})
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(payload)]


def _checked(schema: str, world: World, repo: Repo, sender: str, known: Json) -> Json:
    complete = webhooks()
    known = {"repository": views.repo(world, repo), "sender": views.user(world, sender), **known}
    payload: Json = Filler(complete).filled(complete["definitions"][schema], known)
    wrong = faults(schema, payload)
    assert not wrong, f"{schema} is not as GitHub's schema wants it:\n" + "\n".join(wrong)
    return payload


def _repository(world: World, repo: Repo) -> Json:
    complete = webhooks()
    return dict(Filler(complete).filled(complete["definitions"]["repository"], views.repo(world, repo)))


def _pushed(world: World, repo: Repo, sha: str) -> Json:
    objects = repo.git.objects
    made = objects.commits[sha]
    before = objects.files(made.parents[0]) if made.parents else {}
    after = objects.files(sha)
    who = {"name": made.name, "email": f"{made.name}@users.noreply.github.com", "username": made.name}
    return {
        "id": sha,
        "tree_id": made.tree,
        "distinct": True,
        "message": made.message,
        "timestamp": iso(made.at_s),
        "url": f"{HTML_URL}/{repo.full_name}/commit/{sha}",
        "author": who,
        "committer": who,
        "added": sorted(after.keys() - before.keys()),
        "removed": sorted(before.keys() - after.keys()),
        "modified": sorted(path for path in after.keys() & before.keys() if after[path] != before[path]),
    }
