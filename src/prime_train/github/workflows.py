"""The workflows of a repository: whether GitHub starts them."""

from prime_train.github.api import GitHub, GitHubModel, piece

UNSEEN = frozenset({403, 404})


class Workflow(GitHubModel):
    """A workflow of the default branch. `state`: active, deleted, disabled_fork, disabled_inactivity or
    disabled_manually.
    """

    path: str
    state: str


class ActionsPolicy(GitHubModel):
    """Which actions a repository runs. `allowed_actions`: all, local_only (those of its owner), or
    selected.
    """

    enabled: bool
    allowed_actions: str = "all"


def actions_policy(github: GitHub) -> ActionsPolicy | None:
    """Return the repository's policy; None if the user may not see it."""
    return github.find(ActionsPolicy, "actions/permissions", none=UNSEEN)


def workflow(github: GitHub, file: str) -> Workflow | None:
    """Return the workflow of that file's name; None if there is none, or the token may not see it."""
    return github.find(Workflow, f"actions/workflows/{piece(file)}", none=UNSEEN)


def enable_workflow(github: GitHub, file: str) -> None:
    """Have GitHub start the workflow again. Raises PermanentError if the token may not; it needs the
    permission Actions: write.
    """
    github.ask("PUT", f"actions/workflows/{piece(file)}/enable")
