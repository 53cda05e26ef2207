"""GitHub's REST API for one repository: comments, deployments, changed files, write access, and a notifier that reports the progress of
runs."""

from prime_train.adapters.github.api import API_URL, ENV_API_URL, LISTED_MAX, GitHub
from prime_train.adapters.github.app import AppKey, AppToken
from prime_train.adapters.github.comments import BODY_CHARS_MAX, Comment, delete_sticky, react, upsert_sticky
from prime_train.adapters.github.commit_statuses import (
    CommitStatus,
    commit_status,
    commit_statuses,
    requirements_context,
    send_commit_status,
    set_commit_status,
)
from prime_train.adapters.github.deployments import deployment_of, new_deployment, set_status
from prime_train.adapters.github.notifier import GitHubNotifier
from prime_train.adapters.github.repository import (
    COMPARED_MAX,
    ChangedFile,
    changed_files,
    compared_files,
    content_at,
    has_commit,
    may_write,
    pull_of,
    pulls_with,
)

__all__ = [
    "API_URL",
    "BODY_CHARS_MAX",
    "COMPARED_MAX",
    "ENV_API_URL",
    "LISTED_MAX",
    "AppKey",
    "AppToken",
    "ChangedFile",
    "Comment",
    "CommitStatus",
    "GitHub",
    "GitHubNotifier",
    "changed_files",
    "commit_status",
    "commit_statuses",
    "compared_files",
    "content_at",
    "delete_sticky",
    "deployment_of",
    "has_commit",
    "may_write",
    "new_deployment",
    "pull_of",
    "pulls_with",
    "react",
    "requirements_context",
    "send_commit_status",
    "set_commit_status",
    "set_status",
    "upsert_sticky",
]
