"""Commit statuses: checks of a commit that are not jobs, each with a name of its own. A pull request shows
those of its newest commit.
"""

from prime_train.github.api import GitHub, GitHubModel, piece

DESCRIPTION_CHARS_MAX = 140
CONTEXT = "prime-train/"
"""Start of the names of prime-train's statuses; the config's path follows."""


class CommitStatus(GitHubModel):
    """A status. `state`: success, failure, error or pending; `context`: its name."""

    id: int
    state: str
    context: str
    description: str | None = None


def requirements_context(config: str) -> str:
    """Return the name of the status that tells whether the requirements of this config are met."""
    return f"{CONTEXT}{config}"


def commit_status(github: GitHub, commit: str, context: str) -> CommitStatus | None:
    """Return the newest status of that name, or None."""
    return next(
        (
            one
            for one in github.listed(CommitStatus, f"commits/{piece(commit)}/statuses")
            if one.context == context
        ),
        None,
    )


def commit_statuses(github: GitHub, commit: str) -> dict[str, CommitStatus]:
    """Return the newest status of each name."""
    newest: dict[str, CommitStatus] = {}
    for one in github.listed(CommitStatus, f"commits/{piece(commit)}/statuses"):
        newest.setdefault(one.context, one)
    return newest


def set_commit_status(
    github: GitHub, commit: str, context: str, state: str, description: str, *, url: str = ""
) -> bool:
    """Set the status of that name. Return False, without sending anything, if it already has this state and
    description.
    """
    text = (
        description
        if len(description) <= DESCRIPTION_CHARS_MAX
        else description[: DESCRIPTION_CHARS_MAX - 1] + "…"
    )
    found = commit_status(github, commit, context)
    if found is not None and (found.state, found.description) == (state, text):
        return False
    send_commit_status(github, commit, context, state, text, url=url)
    return True


def send_commit_status(
    github: GitHub, commit: str, context: str, state: str, description: str, *, url: str = ""
) -> None:
    """Set the status of that name, whether or not it has this state and description. `description`: at most
    `DESCRIPTION_CHARS_MAX` characters.
    """
    body = {"state": state, "context": context, "description": description} | (
        {"target_url": url} if url else {}
    )
    github.send(CommitStatus, "POST", f"statuses/{piece(commit)}", body)
