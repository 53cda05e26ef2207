"""The format of objects in GitHub's responses: the fake's own data; other fields are filled in."""

import base64
from urllib.parse import quote

from tests.fakes.clock import iso
from tests.fakes.github.git import Commit
from tests.fakes.github.repos import (
    CheckRun,
    Comment,
    Deployment,
    DeploymentStatus,
    Environment,
    Pull,
    Repo,
    Run,
    Status,
)
from tests.fakes.github.workflows import workflow_id
from tests.fakes.github.world import HTML_URL, World
from tests.fakes.http import Json

FILE_BYTES_MAX = 1024 * 1024
"""Size above which a file's content is left out."""


def user(world: World, login: str) -> Json:
    known = world.add_user(login)
    return {
        "login": login,
        "id": known.user_id,
        "node_id": f"U_{known.user_id}",
        "type": known.kind,
        "url": f"{world.url}/users/{quote(login)}",
        "html_url": f"{HTML_URL}/{login.removesuffix('[bot]')}",
        "site_admin": False,
    }


def repo(world: World, of: Repo) -> Json:
    url, page, made = repo_url(world, of), f"{HTML_URL}/{of.full_name}", iso(of.made_s)
    return {
        "id": of.repo_id,
        "node_id": f"R_{of.repo_id}",
        "name": of.name,
        "full_name": of.full_name,
        "owner": user(world, of.owner),
        "private": of.is_private,
        "visibility": "private" if of.is_private else "public",
        "fork": of.fork_of is not None,
        "default_branch": of.default_branch,
        "url": url,
        "html_url": page,
        "clone_url": f"{page}.git",
        "created_at": made,
        "updated_at": made,
        "pushed_at": made,
    }


def repo_url(world: World, of: Repo) -> str:
    return f"{world.url}/repos/{of.full_name}"


def comment(world: World, of: Repo, message: Comment) -> Json:
    return {
        "id": message.comment_id,
        "node_id": f"IC_{message.comment_id}",
        "url": f"{repo_url(world, of)}/issues/comments/{message.comment_id}",
        "html_url": f"{HTML_URL}/{of.full_name}/pull/{message.number}#issuecomment-{message.comment_id}",
        "issue_url": f"{repo_url(world, of)}/issues/{message.number}",
        "body": message.body,
        "user": user(world, message.author),
        "author_association": of.association(message.author),
        "created_at": iso(message.made_s),
        "updated_at": iso(message.changed_s),
    }


def label(world: World, of: Repo, name: str) -> Json:
    known = of.labels.setdefault(name, world.new_id())
    return {
        "id": known,
        "name": name,
        "color": "ededed",
        "default": False,
        "url": f"{repo_url(world, of)}/labels/{name}",
    }


def side(world: World, full_name: str, ref: str, sha: str) -> Json:
    of = world.repos[full_name]
    return {
        "label": f"{of.owner}:{ref}",
        "ref": ref,
        "sha": sha,
        "user": user(world, of.owner),
        "repo": repo(world, of),
    }


def pull(world: World, of: Repo, pr: Pull) -> Json:
    url, made = f"{repo_url(world, of)}/pulls/{pr.number}", iso(pr.made_s)
    issue_url = f"{repo_url(world, of)}/issues/{pr.number}"
    return {
        "id": pr.pull_id,
        "node_id": f"PR_{pr.pull_id}",
        "number": pr.number,
        "state": pr.state,
        "locked": pr.is_locked,
        "title": pr.title,
        "body": pr.body,
        "user": user(world, pr.author),
        "author_association": of.association(pr.author),
        "labels": [label(world, of, name) for name in pr.labels],
        "draft": False,
        "base": side(world, of.full_name, pr.base_ref, pr.base_sha),
        "head": side(world, pr.head_repo, pr.head_ref, pr.head_sha),
        "url": url,
        "html_url": f"{HTML_URL}/{of.full_name}/pull/{pr.number}",
        "issue_url": issue_url,
        "comments_url": f"{issue_url}/comments",
        "statuses_url": f"{repo_url(world, of)}/statuses/{pr.head_sha}",
        "created_at": made,
        "updated_at": made,
        "merge_commit_sha": pr.merged_sha,
        "_links": {
            name: {"href": link}
            for name, link in {"self": url, "issue": issue_url, "comments": f"{issue_url}/comments"}.items()
        },
    }


def whole_pull(world: World, of: Repo, pr: Pull) -> Json:
    merged = pr.merged_sha is not None
    message = sum(comment.number == pr.number for comment in of.comments.values())
    return pull(world, of, pr) | {
        "merged": merged,
        "mergeable": not merged,
        "mergeable_state": "clean",
        "comments": message,
    }


def issue(world: World, of: Repo, pr: Pull) -> Json:
    """Return a pull request in the form of the issue that it also is."""
    alike = (
        "number",
        "state",
        "locked",
        "title",
        "body",
        "user",
        "author_association",
        "labels",
        "created_at",
        "updated_at",
        "html_url",
    )
    view = whole_pull(world, of, pr)
    page = view["html_url"]
    links = {"url": view["url"], "html_url": page, "diff_url": f"{page}.diff", "patch_url": f"{page}.patch"}
    known = {name: view[name] for name in (*alike, "comments", "comments_url")}
    return known | {
        "id": pr.pull_id,
        "url": view["issue_url"],
        "pull_request": links,
        "repository_url": repo_url(world, of),
    }


def deployment(world: World, of: Repo, made: Deployment) -> Json:
    url = f"{repo_url(world, of)}/deployments/{made.deployment_id}"
    last_s = made.statuses[-1].made_s if made.statuses else made.made_s
    return {
        "id": made.deployment_id,
        "url": url,
        "statuses_url": f"{url}/statuses",
        "repository_url": repo_url(world, of),
        "sha": made.sha,
        "ref": made.ref,
        "task": made.task,
        "payload": made.payload,
        "environment": made.environment,
        "original_environment": made.environment,
        "description": made.description,
        "creator": user(world, made.creator),
        "created_at": iso(made.made_s),
        "updated_at": iso(last_s),
        "transient_environment": made.is_transient,
        "production_environment": made.is_production,
    }


def deployment_status(world: World, of: Repo, made: Deployment, status: DeploymentStatus) -> Json:
    url = f"{repo_url(world, of)}/deployments/{made.deployment_id}"
    return {
        "id": status.status_id,
        "url": f"{url}/statuses/{status.status_id}",
        "state": status.state,
        "description": status.description,
        "environment": status.environment,
        "environment_url": status.environment_url,
        "target_url": status.log_url,
        "log_url": status.log_url,
        "deployment_url": url,
        "repository_url": repo_url(world, of),
        "creator": user(world, status.creator),
        "created_at": iso(status.made_s),
        "updated_at": iso(status.made_s),
    }


def status(world: World, of: Repo, message: Status) -> Json:
    return {
        "id": message.status_id,
        "url": f"{repo_url(world, of)}/statuses/{message.sha}",
        "state": message.state,
        "context": message.context,
        "description": message.description,
        "target_url": message.target_url,
        "avatar_url": None,
        "creator": user(world, message.creator),
        "created_at": iso(message.made_s),
        "updated_at": iso(message.made_s),
    }


def check_run(world: World, of: Repo, run: CheckRun) -> Json:
    url = f"{repo_url(world, of)}/check-runs/{run.check_run_id}"
    output = {name: run.message.get("output", {}).get(name) for name in ("title", "summary", "text")}
    return {
        "id": run.check_run_id,
        "name": run.message["name"],
        "head_sha": run.sha,
        "url": url,
        "html_url": f"{HTML_URL}/{of.full_name}/runs/{run.check_run_id}",
        "details_url": run.message.get("details_url"),
        "external_id": run.message.get("external_id", ""),
        "status": run.message["status"],
        "conclusion": run.message.get("conclusion"),
        "started_at": run.message.get("started_at", iso(run.made_s)),
        "completed_at": run.message.get("completed_at"),
        "output": output
        | {"annotations_count": len(run.annotations), "annotations_url": f"{url}/annotations"},
    }


def workflow_run(world: World, of: Repo, run: Run) -> Json:
    url, made = f"{repo_url(world, of)}/actions/runs/{run.run_id}", iso(run.made_s)
    return {
        "id": run.run_id,
        "name": run.workflow,
        "display_title": run.workflow,
        "path": run.workflow,
        "workflow_id": workflow_id(run.workflow),
        "run_number": run.run_number,
        "run_attempt": 1,
        "event": run.event,
        "status": run.status,
        "conclusion": run.conclusion,
        "head_branch": run.branch,
        "head_sha": run.sha,
        "actor": user(world, run.actor),
        "repository": repo(world, of),
        "head_repository": repo(world, of),
        "head_commit": None,
        "url": url,
        "html_url": f"{HTML_URL}/{of.full_name}/actions/runs/{run.run_id}",
        "jobs_url": f"{url}/jobs",
        "created_at": made,
        "updated_at": made,
    }


def workflow(world: World, of: Repo, path: str) -> Json:
    number, made = workflow_id(path), iso(of.made_s)
    return {
        "id": number,
        "node_id": f"W_{number}",
        "name": path,
        "path": path,
        "state": of.disabled.get(path, "active"),
        "created_at": made,
        "updated_at": made,
        "url": f"{repo_url(world, of)}/actions/workflows/{number}",
        "html_url": f"{HTML_URL}/{of.full_name}/blob/{of.default_branch}/{path}",
        "badge_url": f"{HTML_URL}/{of.full_name}/workflows/{quote(path, safe='')}/badge.svg",
    }


def environment(world: World, of: Repo, made: Environment) -> Json:
    """Return an environment; each rule that it has is an entry."""
    url, at = f"{repo_url(world, of)}/environments/{made.name}", iso(made.made_s)
    rules: list[Json] = []
    if made.wait_minutes:
        rules.append(
            {
                "id": made.environment_id + 1,
                "node_id": "GA_1",
                "type": "wait_timer",
                "wait_timer": made.wait_minutes,
            }
        )
    if made.reviewers:
        logins = {user.user_id: user.login for user in world.users.values()}
        reviewers = [
            {"type": kind, "reviewer": user(world, logins[number])} for kind, number in made.reviewers
        ]
        rule = {
            "type": "required_reviewers",
            "prevent_self_review": made.prevent_self_review,
            "reviewers": reviewers,
        }
        rules.append({"id": made.environment_id + 2, "node_id": "GA_2", **rule})
    if made.branch_policy is not None:
        rules.append({"id": made.environment_id + 3, "node_id": "GA_3", "type": "branch_policy"})
    return {
        "id": made.environment_id,
        "node_id": f"EN_{made.environment_id}",
        "name": made.name,
        "url": url,
        "html_url": f"{HTML_URL}/{of.full_name}/deployments/activity_log?environments_filter={made.name}",
        "created_at": at,
        "updated_at": at,
        "protection_rules": rules,
        "deployment_branch_policy": made.branch_policy,
    }


def git_commit(world: World, of: Repo, made: Commit) -> Json:
    who = {"name": made.name, "email": f"{made.name}@users.noreply.github.com", "date": iso(made.at_s)}
    return {
        "sha": made.sha,
        "url": f"{repo_url(world, of)}/git/commits/{made.sha}",
        "html_url": f"{HTML_URL}/{of.full_name}/commit/{made.sha}",
        "author": who,
        "committer": who,
        "message": made.message,
        "tree": {"sha": made.tree, "url": f"{repo_url(world, of)}/git/trees/{made.tree}"},
        "parents": [{"sha": sha, "url": f"{repo_url(world, of)}/git/commits/{sha}"} for sha in made.parents],
    }


def commit(world: World, of: Repo, made: Commit) -> Json:
    inner = git_commit(world, of, made)
    inner_view = {name: inner[name] for name in ("author", "committer", "message", "tree", "url")} | {
        "comment_count": 0
    }
    page = {
        "sha": made.sha,
        "url": f"{repo_url(world, of)}/commits/{made.sha}",
        "html_url": inner["html_url"],
    }
    return page | {"commit": inner_view, "parents": inner["parents"], "author": None, "committer": None}


def ref(world: World, of: Repo, name: str) -> Json:
    sha = of.git.refs[name]
    target = {"type": "commit", "sha": sha, "url": f"{repo_url(world, of)}/git/commits/{sha}"}
    return {
        "ref": name,
        "node_id": f"REF_{name}",
        "url": f"{repo_url(world, of)}/git/{name}",
        "object": target,
    }


def content(world: World, of: Repo, path: str, sha: str, at: str) -> Json:
    """Return a file with its content."""
    raw = of.git.objects.blobs[sha]
    inner_view = base64.encodebytes(raw).decode() if len(raw) <= FILE_BYTES_MAX else ""
    return entry(world, of, path, "file", sha, at, len(raw)) | {
        "encoding": "base64" if inner_view or not raw else "none",
        "content": inner_view,
    }


def entry(world: World, of: Repo, path: str, kind: str, sha: str, at: str, size: int) -> Json:
    """Return one entry of a folder."""
    url, page = (
        f"{repo_url(world, of)}/contents/{path}?ref={at}",
        f"{HTML_URL}/{of.full_name}/blob/{at}/{path}",
    )
    git_url = f"{repo_url(world, of)}/git/{'blobs' if kind == 'file' else 'trees'}/{sha}"
    links = {"self": url, "git": git_url, "html": page}
    known = {
        "type": kind,
        "size": size,
        "name": path.rpartition("/")[2],
        "path": path,
        "sha": sha,
        "url": url,
        "git_url": git_url,
    }
    raw = f"{HTML_URL}/{of.full_name}/raw/{at}/{path}" if kind == "file" else None
    return known | {"html_url": page, "download_url": raw, "_links": links}
