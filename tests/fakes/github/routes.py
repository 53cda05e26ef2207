"""What can be asked, and which permission it takes."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

from tests.fakes.github import about_actions as actions
from tests.fakes.github import about_apps as apps
from tests.fakes.github import about_deployments as deployments
from tests.fakes.github import about_git as git
from tests.fakes.github import about_issues as issues
from tests.fakes.github import about_pulls as pulls
from tests.fakes.github import about_repos as repos
from tests.fakes.github.asked import Answered, Asked
from tests.fakes.github.tokens import Needs
from tests.fakes.github.world import World

REPO = "/repos/{owner}/{repo}"
WITH_SLASHES = ("ref", "path", "branch")
"""What may hold slashes in a path."""


@dataclass(frozen=True)
class Route:
    """`path` as in the description. `needs`: any of these; what is public is read without. `by_app`: its JSON web token is the key.
    `content`: it makes something that people are told of. `role`: what a person has to be in the repository, where it is not the usual."""

    method: str
    path: str
    answer: Callable[[World, Asked], Answered]
    needs: Needs = ()
    by_app: bool = False
    content: bool = False
    role: str = ""

    @property
    def role_wanted(self) -> str:
        """What a person has to be in the repository at least."""
        return self.role or ("write" if any(level == "write" for _, level in self.needs) else "read")

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        pieces = re.split(r"\{(\w+)\}", self.path)
        kinds = [re.escape(piece) if place % 2 == 0 else f"(?P<{piece}>{self._kind(piece)})" for place, piece in enumerate(pieces)]
        return re.compile("".join(kinds))

    def _kind(self, name: str) -> str:
        return ".+" if name in WITH_SLASHES and self.path.endswith(f"{{{name}}}") else "[^/]+"

    def match(self, method: str, path: str) -> dict[str, str] | None:
        """What stands in the path, by name."""
        found = self._pattern.fullmatch(path) if method == self.method else None
        return {name: unquote(value) for name, value in found.groupdict().items()} if found else None


def _needs(words: str) -> Needs:
    return tuple((name, level) for name, _, level in (word.partition(":") for word in words.split()))


READ_TALK, WRITE_TALK = _needs("issues:read pull_requests:read"), _needs("issues:write pull_requests:write")
READ_CODE, WRITE_CODE = _needs("contents:read"), _needs("contents:write")
READ_PULLS, METADATA = _needs("pull_requests:read"), _needs("metadata:read")
READ_DEPLOYMENTS, WRITE_DEPLOYMENTS = _needs("deployments:read"), _needs("deployments:write")
READ_CHECKS, WRITE_CHECKS = _needs("checks:read"), _needs("checks:write")
READ_STATUSES, WRITE_STATUSES = _needs("statuses:read"), _needs("statuses:write")
READ_ACTIONS, WRITE_ACTIONS = _needs("actions:read"), _needs("actions:write")

# In order: of two that match, the first is meant.
ROUTES = (
    Route("GET", "/user", repos.get_user),
    Route("GET", "/rate_limit", repos.rate_limit),
    Route("GET", "/app", apps.get_app, by_app=True),
    Route("POST", "/app/installations/{installation_id}/access_tokens", apps.create_token, by_app=True),
    Route("GET", "/installation/repositories", apps.installation_repositories),
    Route("GET", f"{REPO}/installation", apps.get_installation, by_app=True),
    Route("GET", REPO, repos.get_repo, METADATA),
    Route("GET", f"{REPO}/collaborators/{{username}}/permission", repos.get_permission, METADATA, role="write"),
    Route("GET", f"{REPO}/contents/{{path}}", repos.get_content, READ_CODE),
    Route("PUT", f"{REPO}/contents/{{path}}", repos.put_content, WRITE_CODE),
    Route("GET", f"{REPO}/issues/comments/{{comment_id}}", issues.get_comment, READ_TALK),
    Route("PATCH", f"{REPO}/issues/comments/{{comment_id}}", issues.update_comment, WRITE_TALK, role="read"),
    Route("DELETE", f"{REPO}/issues/comments/{{comment_id}}", issues.delete_comment, WRITE_TALK, role="read"),
    Route("GET", f"{REPO}/issues/comments/{{comment_id}}/reactions", issues.list_reactions, READ_TALK),
    Route("POST", f"{REPO}/issues/comments/{{comment_id}}/reactions", issues.create_reaction, WRITE_TALK, role="read"),
    Route("GET", f"{REPO}/issues/{{issue_number}}", issues.get_issue, READ_TALK),
    Route("GET", f"{REPO}/issues/{{issue_number}}/comments", issues.list_comments, READ_TALK),
    Route("POST", f"{REPO}/issues/{{issue_number}}/comments", issues.create_comment, WRITE_TALK, role="read", content=True),
    Route("GET", f"{REPO}/issues/{{issue_number}}/labels", issues.list_labels, READ_TALK),
    Route("POST", f"{REPO}/issues/{{issue_number}}/labels", issues.add_labels, WRITE_TALK, role="triage"),
    Route("DELETE", f"{REPO}/issues/{{issue_number}}/labels/{{name}}", issues.remove_label, WRITE_TALK, role="triage"),
    Route("GET", f"{REPO}/pulls", pulls.list_pulls, READ_PULLS),
    Route("GET", f"{REPO}/pulls/{{pull_number}}", pulls.get_pull, READ_PULLS),
    Route("GET", f"{REPO}/pulls/{{pull_number}}/files", pulls.list_files, READ_PULLS),
    Route("GET", f"{REPO}/commits/{{commit_sha}}/pulls", pulls.list_pulls_of_commit, READ_PULLS),
    Route("GET", f"{REPO}/commits/{{ref}}/status", deployments.combined_status, READ_STATUSES),
    Route("GET", f"{REPO}/commits/{{ref}}/statuses", deployments.list_statuses, READ_STATUSES),
    Route("POST", f"{REPO}/statuses/{{sha}}", deployments.create_status, WRITE_STATUSES),
    Route("GET", f"{REPO}/commits/{{ref}}", git.get_commit, READ_CODE),
    Route("GET", f"{REPO}/branches/{{branch}}", git.get_branch, READ_CODE),
    Route("GET", f"{REPO}/git/ref/{{ref}}", git.get_ref, READ_CODE),
    Route("GET", f"{REPO}/git/matching-refs/{{ref}}", git.matching_refs, READ_CODE),
    Route("POST", f"{REPO}/git/refs", git.create_ref, WRITE_CODE),
    Route("PATCH", f"{REPO}/git/refs/{{ref}}", git.update_ref, WRITE_CODE),
    Route("DELETE", f"{REPO}/git/refs/{{ref}}", git.delete_ref, WRITE_CODE),
    Route("POST", f"{REPO}/git/blobs", git.create_blob, WRITE_CODE),
    Route("GET", f"{REPO}/git/blobs/{{file_sha}}", git.get_blob, READ_CODE),
    Route("POST", f"{REPO}/git/trees", git.create_tree, WRITE_CODE),
    Route("GET", f"{REPO}/git/trees/{{tree_sha}}", git.get_tree, READ_CODE),
    Route("POST", f"{REPO}/git/commits", git.create_commit, WRITE_CODE),
    Route("GET", f"{REPO}/git/commits/{{commit_sha}}", git.get_git_commit, READ_CODE),
    Route("GET", f"{REPO}/deployments", deployments.list_deployments, READ_DEPLOYMENTS),
    Route("POST", f"{REPO}/deployments", deployments.create_deployment, WRITE_DEPLOYMENTS),
    Route("GET", f"{REPO}/deployments/{{deployment_id}}", deployments.get_deployment, READ_DEPLOYMENTS),
    Route("GET", f"{REPO}/deployments/{{deployment_id}}/statuses", deployments.list_deployment_statuses, READ_DEPLOYMENTS),
    Route("POST", f"{REPO}/deployments/{{deployment_id}}/statuses", deployments.create_deployment_status, WRITE_DEPLOYMENTS),
    Route("POST", f"{REPO}/check-runs", deployments.create_check_run, WRITE_CHECKS),
    Route("GET", f"{REPO}/check-runs/{{check_run_id}}", deployments.get_check_run, READ_CHECKS),
    Route("PATCH", f"{REPO}/check-runs/{{check_run_id}}", deployments.update_check_run, WRITE_CHECKS),
    Route("POST", f"{REPO}/dispatches", actions.dispatch_repository, WRITE_CODE),
    Route("POST", f"{REPO}/actions/workflows/{{workflow_id}}/dispatches", actions.dispatch_workflow, WRITE_ACTIONS),
    Route("GET", f"{REPO}/actions/workflows/{{workflow_id}}/runs", actions.list_runs_of_workflow, READ_ACTIONS),
    Route("GET", f"{REPO}/actions/runs", actions.list_runs, READ_ACTIONS),
    Route("GET", f"{REPO}/actions/runs/{{run_id}}", actions.get_run, READ_ACTIONS),
)

OPERATIONS = tuple((route.method, route.path) for route in ROUTES)
