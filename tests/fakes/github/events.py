"""What GitHub puts into the event file of a workflow, and sends to webhooks: payloads as its schemas want them.

They are made of what there is at the fake, and held against the published schemas.
"""

from typing import Any

from jsonschema import Draft7Validator

from tests.fakes.github import shown
from tests.fakes.github.clock import iso
from tests.fakes.github.described import webhooks
from tests.fakes.github.filling import Filler
from tests.fakes.github.repos import Comment, Pull, Repo
from tests.fakes.github.world import HTML_URL, World

Json = dict[str, Any]
NO_SHA = "0" * 40


def pull_request(world: World, repo: Repo, pull: Pull, action: str, sender: str, *, label: str = "", before: str = NO_SHA) -> Json:
    """`label`: for labeled, the one. `before`: for synchronize, the head that was."""
    known: Json = {"action": action, "number": pull.number, "pull_request": shown.whole_pull(world, repo, pull)}
    if action == "labeled":
        known["label"] = shown.label(world, repo, label)
    if action == "synchronize":
        known |= {"before": before, "after": pull.head_sha}
    return _checked(f"pull_request${action}", world, repo, sender, known)


def issue_comment(world: World, repo: Repo, said: Comment) -> Json:
    """That it was made, by its author."""
    issue, comment = shown.issue(world, repo, repo.pulls[said.number]), shown.comment(world, repo, said)
    return _checked("issue_comment$created", world, repo, said.author, {"action": "created", "issue": issue, "comment": comment})


def workflow_dispatch(world: World, repo: Repo, workflow: str, ref: str, inputs: Json, sender: str) -> Json:
    """`workflow` is the path of its file. A branch may be told without refs/heads/."""
    whole = ref if ref.startswith("refs/") else f"refs/heads/{ref}"
    return _checked("workflow_dispatch$event", world, repo, sender, {"inputs": inputs, "ref": whole, "workflow": workflow})


def repository_dispatch(world: World, repo: Repo, event_type: str, client_payload: Json | None, sender: str) -> Json:
    known = {"action": event_type, "branch": repo.default_branch, "client_payload": client_payload or {}}
    return _checked("repository_dispatch$event", world, repo, sender, known)


def push(world: World, repo: Repo, branch: str, sender: str, *, before: str = NO_SHA) -> Json:
    """That the branch is now where it is; it was at `before`."""
    objects, ref = repo.git.objects, f"refs/heads/{branch}"
    after = repo.git.refs[ref]
    new = [sha for sha in objects.history(after) if before == NO_SHA or sha not in objects.history(before)]
    commits = [_pushed(world, repo, sha) for sha in reversed(new)]
    known = {"ref": ref, "before": before, "after": after, "created": before == NO_SHA, "deleted": False, "forced": False}
    compare = f"{HTML_URL}/{repo.full_name}/compare/{before[:12]}...{after[:12]}"
    told = {"commits": commits, "head_commit": commits[-1] if commits else None, "compare": compare, "pusher": {"name": sender}}
    return _checked("push$event", world, repo, sender, known | told)


def schedule(world: World, repo: Repo, cron: str) -> Json:
    """GitHub publishes no schema of it: it never is a webhook."""
    return {"schedule": cron, "repository": _repository(world, repo), "workflow": "", "sender": shown.user(world, "github")}


def faults(schema: str, payload: Json) -> list[str]:
    """What is wrong with a payload by GitHub's schema of the event."""
    validator = Draft7Validator({"$ref": f"#/definitions/{schema}", "definitions": webhooks()["definitions"]})
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(payload)]


def _checked(schema: str, world: World, repo: Repo, sender: str, known: Json) -> Json:
    whole = webhooks()
    known = {"repository": shown.repo(world, repo), "sender": shown.user(world, sender), **known}
    payload: Json = Filler(whole).filled(whole["definitions"][schema], known)
    wrong = faults(schema, payload)
    assert not wrong, f"{schema} is not as GitHub's schema wants it:\n" + "\n".join(wrong)
    return payload


def _repository(world: World, repo: Repo) -> Json:
    whole = webhooks()
    return dict(Filler(whole).filled(whole["definitions"]["repository"], shown.repo(world, repo)))


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
