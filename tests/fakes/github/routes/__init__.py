"""The table of requests, with the permission that each needs."""

import re
from dataclasses import dataclass

from tests.fakes.github.routes import actions, apps, deployments, environments, git, issues, pulls, repos
from tests.fakes.github.tokens import Needs
from tests.fakes.http import Route

REPO = "/repos/{owner}/{repo}"


@dataclass(frozen=True)
class GitHubRoute(Route):
    """A route. `needs`: any of these permissions; public data can be read without. `by_app`: an app's JSON
    web token is used. `content`: the request creates something that people are notified of. `role`: the
    required role of a person in the repository, if it is not the usual one. The handler gets the world and a
    `Call`.
    """

    needs: Needs = ()
    by_app: bool = False
    content: bool = False
    role: str = ""

    @property
    def described_path(self) -> str:
        """Return the template as in GitHub's description, without kinds."""
        return re.sub(r":\w+}", "}", self.template)

    @property
    def role_wanted(self) -> str:
        """Return the lowest role in the repository that a person needs."""
        return self.role or ("write" if any(level == "write" for _, level in self.needs) else "read")


def _needs(words: str) -> Needs:
    return tuple((name, level) for name, _, level in (word.partition(":") for word in words.split()))


READ_TALK, WRITE_TALK = _needs("issues:read pull_requests:read"), _needs("issues:write pull_requests:write")
READ_CODE, WRITE_CODE = _needs("contents:read"), _needs("contents:write")
READ_PULLS, METADATA = _needs("pull_requests:read"), _needs("metadata:read")
READ_DEPLOYMENTS, WRITE_DEPLOYMENTS = _needs("deployments:read"), _needs("deployments:write")
READ_CHECKS, WRITE_CHECKS = _needs("checks:read"), _needs("checks:write")
READ_STATUSES, WRITE_STATUSES = _needs("statuses:read"), _needs("statuses:write")
READ_ACTIONS, WRITE_ACTIONS = _needs("actions:read"), _needs("actions:write")
READ_VARIABLES, WRITE_VARIABLES = _needs("variables:read"), _needs("variables:write")
READ_SECRETS, WRITE_SECRETS = (
    _needs("secrets:read environments:read"),
    _needs("secrets:write environments:write"),
)
WRITE_PULLS, ADMINISTRATION = _needs("pull_requests:write"), _needs("administration:write")
WORKFLOW, ENVIRONMENT = (
    f"{REPO}/actions/workflows/{{workflow_id}}",
    f"{REPO}/environments/{{environment_name}}",
)

ROUTES = (
    GitHubRoute("GET", "/user", repos.get_user),
    GitHubRoute("GET", "/rate_limit", repos.rate_limit),
    GitHubRoute("GET", "/app", apps.get_app, by_app=True),
    GitHubRoute("POST", "/app/installations/{installation_id}/access_tokens", apps.create_token, by_app=True),
    GitHubRoute("GET", "/installation/repositories", apps.installation_repositories),
    GitHubRoute("GET", f"{REPO}/installation", apps.get_installation, by_app=True),
    GitHubRoute("GET", REPO, repos.get_repo, METADATA),
    GitHubRoute(
        "GET", f"{REPO}/collaborators/{{username}}/permission", repos.get_permission, METADATA, role="write"
    ),
    GitHubRoute("GET", f"{REPO}/contents/{{path:path}}", repos.get_content, READ_CODE),
    GitHubRoute("PUT", f"{REPO}/contents/{{path:path}}", repos.put_content, WRITE_CODE),
    GitHubRoute("GET", f"{REPO}/issues/comments/{{comment_id}}", issues.get_comment, READ_TALK),
    GitHubRoute(
        "PATCH", f"{REPO}/issues/comments/{{comment_id}}", issues.update_comment, WRITE_TALK, role="read"
    ),
    GitHubRoute(
        "DELETE", f"{REPO}/issues/comments/{{comment_id}}", issues.delete_comment, WRITE_TALK, role="read"
    ),
    GitHubRoute("GET", f"{REPO}/issues/comments/{{comment_id}}/reactions", issues.list_reactions, READ_TALK),
    GitHubRoute(
        "POST",
        f"{REPO}/issues/comments/{{comment_id}}/reactions",
        issues.create_reaction,
        WRITE_TALK,
        role="read",
    ),
    GitHubRoute("GET", f"{REPO}/issues/{{issue_number}}", issues.get_issue, READ_TALK),
    GitHubRoute("GET", f"{REPO}/issues/{{issue_number}}/comments", issues.list_comments, READ_TALK),
    GitHubRoute(
        "POST",
        f"{REPO}/issues/{{issue_number}}/comments",
        issues.create_comment,
        WRITE_TALK,
        role="read",
        content=True,
    ),
    GitHubRoute("GET", f"{REPO}/issues/{{issue_number}}/labels", issues.list_labels, READ_TALK),
    GitHubRoute(
        "POST", f"{REPO}/issues/{{issue_number}}/labels", issues.add_labels, WRITE_TALK, role="triage"
    ),
    GitHubRoute(
        "DELETE",
        f"{REPO}/issues/{{issue_number}}/labels/{{name}}",
        issues.remove_label,
        WRITE_TALK,
        role="triage",
    ),
    GitHubRoute("GET", f"{REPO}/pulls", pulls.list_pulls, READ_PULLS),
    GitHubRoute("POST", f"{REPO}/pulls", pulls.create_pull, WRITE_PULLS, role="read", content=True),
    GitHubRoute("GET", f"{REPO}/pulls/{{pull_number}}", pulls.get_pull, READ_PULLS),
    GitHubRoute("GET", f"{REPO}/pulls/{{pull_number}}/files", pulls.list_files, READ_PULLS),
    GitHubRoute("GET", f"{REPO}/commits/{{commit_sha}}/pulls", pulls.list_pulls_of_commit, READ_PULLS),
    GitHubRoute("GET", f"{REPO}/commits/{{ref}}/status", deployments.combined_status, READ_STATUSES),
    GitHubRoute("GET", f"{REPO}/commits/{{ref}}/statuses", deployments.list_statuses, READ_STATUSES),
    GitHubRoute("POST", f"{REPO}/statuses/{{sha}}", deployments.create_status, WRITE_STATUSES),
    GitHubRoute("GET", f"{REPO}/commits/{{ref:path}}", git.get_commit, READ_CODE),
    GitHubRoute("GET", f"{REPO}/compare/{{basehead:path}}", pulls.compare, READ_CODE),
    GitHubRoute("GET", f"{REPO}/branches/{{branch:path}}", git.get_branch, READ_CODE),
    GitHubRoute("GET", f"{REPO}/git/ref/{{ref:path}}", git.get_ref, READ_CODE),
    GitHubRoute("GET", f"{REPO}/git/matching-refs/{{ref:path}}", git.matching_refs, READ_CODE),
    GitHubRoute("POST", f"{REPO}/git/refs", git.create_ref, WRITE_CODE),
    GitHubRoute("PATCH", f"{REPO}/git/refs/{{ref:path}}", git.update_ref, WRITE_CODE),
    GitHubRoute("DELETE", f"{REPO}/git/refs/{{ref:path}}", git.delete_ref, WRITE_CODE),
    GitHubRoute("POST", f"{REPO}/git/blobs", git.create_blob, WRITE_CODE),
    GitHubRoute("GET", f"{REPO}/git/blobs/{{file_sha}}", git.get_blob, READ_CODE),
    GitHubRoute("POST", f"{REPO}/git/trees", git.create_tree, WRITE_CODE),
    GitHubRoute("GET", f"{REPO}/git/trees/{{tree_sha}}", git.get_tree, READ_CODE),
    GitHubRoute("POST", f"{REPO}/git/commits", git.create_commit, WRITE_CODE),
    GitHubRoute("GET", f"{REPO}/git/commits/{{commit_sha}}", git.get_git_commit, READ_CODE),
    GitHubRoute("GET", f"{REPO}/deployments", deployments.list_deployments, READ_DEPLOYMENTS),
    GitHubRoute("POST", f"{REPO}/deployments", deployments.create_deployment, WRITE_DEPLOYMENTS),
    GitHubRoute("GET", f"{REPO}/deployments/{{deployment_id}}", deployments.get_deployment, READ_DEPLOYMENTS),
    GitHubRoute(
        "GET",
        f"{REPO}/deployments/{{deployment_id}}/statuses",
        deployments.list_deployment_statuses,
        READ_DEPLOYMENTS,
    ),
    GitHubRoute(
        "POST",
        f"{REPO}/deployments/{{deployment_id}}/statuses",
        deployments.create_deployment_status,
        WRITE_DEPLOYMENTS,
    ),
    GitHubRoute("POST", f"{REPO}/check-runs", deployments.create_check_run, WRITE_CHECKS),
    GitHubRoute("GET", f"{REPO}/check-runs/{{check_run_id}}", deployments.get_check_run, READ_CHECKS),
    GitHubRoute("PATCH", f"{REPO}/check-runs/{{check_run_id}}", deployments.update_check_run, WRITE_CHECKS),
    GitHubRoute("POST", f"{REPO}/dispatches", actions.dispatch_repository, WRITE_CODE),
    GitHubRoute(
        "POST",
        f"{REPO}/actions/workflows/{{workflow_id}}/dispatches",
        actions.dispatch_workflow,
        WRITE_ACTIONS,
    ),
    GitHubRoute(
        "GET", f"{REPO}/actions/workflows/{{workflow_id}}/runs", actions.list_runs_of_workflow, READ_ACTIONS
    ),
    GitHubRoute("GET", f"{REPO}/actions/permissions", actions.get_policy, ADMINISTRATION, role="admin"),
    GitHubRoute("GET", WORKFLOW, actions.get_workflow, READ_ACTIONS),
    GitHubRoute("PUT", f"{WORKFLOW}/enable", actions.enable_workflow, WRITE_ACTIONS),
    GitHubRoute(
        "GET", f"{REPO}/actions/variables/{{name}}", environments.get_variable, READ_VARIABLES, role="write"
    ),
    GitHubRoute("PATCH", f"{REPO}/actions/variables/{{name}}", environments.update_variable, WRITE_VARIABLES),
    GitHubRoute("POST", f"{REPO}/actions/variables", environments.create_variable, WRITE_VARIABLES),
    GitHubRoute("GET", f"{REPO}/actions/secrets", environments.list_secrets, READ_SECRETS, role="write"),
    GitHubRoute("PUT", f"{REPO}/actions/secrets/{{secret_name}}", environments.put_secret, WRITE_SECRETS),
    GitHubRoute("GET", f"{REPO}/environments", environments.list_environments, READ_ACTIONS),
    GitHubRoute("GET", ENVIRONMENT, environments.get_environment, READ_ACTIONS),
    GitHubRoute("PUT", ENVIRONMENT, environments.put_environment, ADMINISTRATION, role="admin"),
    GitHubRoute("GET", f"{ENVIRONMENT}/deployment-branch-policies", environments.list_branches, READ_ACTIONS),
    GitHubRoute(
        "POST",
        f"{ENVIRONMENT}/deployment-branch-policies",
        environments.add_branch,
        ADMINISTRATION,
        role="admin",
    ),
    GitHubRoute("GET", f"{ENVIRONMENT}/secrets", environments.list_secrets_of, READ_SECRETS, role="write"),
    GitHubRoute(
        "PUT",
        f"{ENVIRONMENT}/secrets/{{secret_name}}",
        environments.put_secret_of,
        WRITE_SECRETS,
        role="admin",
    ),
    GitHubRoute("GET", f"{REPO}/actions/runs", actions.list_runs, READ_ACTIONS),
    GitHubRoute("GET", f"{REPO}/actions/runs/{{run_id}}", actions.get_run, READ_ACTIONS),
)

OPERATIONS = tuple((route.method, route.described_path) for route in ROUTES)
