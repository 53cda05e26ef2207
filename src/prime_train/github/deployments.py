"""Runs as deployments: GitHub shows them beside the commit they were launched from, with a state and a
link.
"""

from prime_train.github.api import GitHub, GitHubModel
from prime_train.runs.run import RunState

DESCRIPTION_CHARS_MAX = 140
PREFIX = "prime-train/"

STATES: dict[RunState, str] = {
    RunState.QUEUED: "queued",
    RunState.LAUNCHING: "pending",
    RunState.BOOTING: "pending",
    RunState.STARTING: "in_progress",
    RunState.TRAINING: "in_progress",
    RunState.DRAINING: "in_progress",
    RunState.UPLOADING: "in_progress",
    RunState.FINISHING: "in_progress",
    RunState.SUCCEEDED: "success",
    RunState.FAILED: "failure",
    RunState.CANCELLED: "inactive",
    RunState.STOPPED: "error",
}


class Deployment(GitHubModel):
    id: int
    environment: str


class Status(GitHubModel):
    id: int
    state: str
    description: str | None = None


def environment_of(run_id: str) -> str:
    """Return the environment's name under which GitHub lists the run's deployments."""
    return PREFIX + run_id


def deployment_of(github: GitHub, run_id: str) -> int | None:
    """Return the id of the run's deployment, or None if it has none."""
    found = github.newest(Deployment, "deployments", {"environment": environment_of(run_id)})
    return found.id if found is not None else None


def new_deployment(github: GitHub, run_id: str, commit: str, description: str) -> int:
    """Create a deployment of that commit, whatever its checks report, because a run is not a release. Return
    its id.
    """
    body = {
        "ref": commit,
        "environment": environment_of(run_id),
        "description": description[:DESCRIPTION_CHARS_MAX],
        "auto_merge": False,
        "required_contexts": [],
        "transient_environment": True,
        "production_environment": False,
        "payload": {"run": run_id},
    }
    return github.send(Deployment, "POST", "deployments", body).id


def set_status(
    github: GitHub,
    deployment: int,
    state: RunState,
    description: str,
    *,
    log_url: str = "",
    page_url: str = "",
) -> bool:
    """Set the deployment's state. Return False, without sending anything, if it already has this state and
    description.
    """
    text = (
        description
        if len(description) <= DESCRIPTION_CHARS_MAX
        else description[: DESCRIPTION_CHARS_MAX - 1] + "…"
    )
    path = f"deployments/{deployment}/statuses"
    newest = github.newest(Status, path)
    if newest is not None and (newest.state, newest.description) == (STATES[state], text):
        return False
    body: dict[str, object] = {"state": STATES[state], "description": text, "auto_inactive": False}
    links = {name: url for name, url in (("log_url", log_url), ("environment_url", page_url)) if url}
    github.send(Status, "POST", path, body | links)
    return True
