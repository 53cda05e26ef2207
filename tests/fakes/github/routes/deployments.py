"""Requests about deployments, commit statuses and check runs."""

from tests.fakes.github import views
from tests.fakes.github.messages import Call, Page, Reply, Result
from tests.fakes.github.refusals import Refused, invalid, not_found
from tests.fakes.github.repos import CheckRun, Deployment, DeploymentStatus, Repo, Status
from tests.fakes.github.routes.git import found_commit
from tests.fakes.github.world import World

DESCRIPTION_CHARS_MAX = 140
STATUSES_MAX = 1000


def list_deployments(world: World, call: Call) -> Result:
    """Return the deployments, newest first."""
    made = [views.deployment(world, call.repo, each) for each in reversed(call.repo.deployments.values())]
    filters = {
        name: call.query[name]
        for name in ("sha", "ref", "task", "environment")
        if call.query.get(name, "none") != "none"
    }
    return Page([each for each in made if all(each[name] == value for name, value in filters.items())])


def create_deployment(world: World, call: Call) -> Result:
    wanted, repo = call.body, call.repo
    sha = repo.git.resolve(wanted["ref"])
    if sha is None:
        raise Refused(422, f"No ref found for: {wanted['ref']}")
    if call.flag("auto_merge", default=True) and _is_behind(repo, wanted["ref"], sha):
        return Reply(
            202, {"message": f"Auto-merged {repo.default_branch} into {wanted['ref']} on deployment."}
        )
    _settled(repo, sha, wanted["ref"], wanted.get("required_contexts"))
    environment = wanted.get("environment", "production")
    made = Deployment(
        world.new_id(),
        wanted["ref"],
        sha,
        wanted.get("task", "deploy"),
        environment,
        wanted.get("description"),
        wanted.get("payload", {}),
        call.by.login,
        call.flag("transient_environment", default=False),
        call.flag("production_environment", default=environment == "production"),
        world.now_s(),
    )
    repo.deployments[made.deployment_id] = made
    return Reply(201, views.deployment(world, repo, made))


def get_deployment(world: World, call: Call) -> Result:
    return views.deployment(world, call.repo, _deployment(call))


def list_deployment_statuses(world: World, call: Call) -> Result:
    """Return the statuses of the deployment, newest first."""
    made = _deployment(call)
    return Page(
        [views.deployment_status(world, call.repo, made, status) for status in reversed(made.statuses)]
    )


def create_deployment_status(world: World, call: Call) -> Result:
    made, wanted = _deployment(call), call.body
    description, environment = wanted.get("description") or "", wanted.get("environment", made.environment)
    _short(description, "DeploymentStatus")
    log_url, link = (
        wanted.get("log_url") or wanted.get("target_url") or "",
        wanted.get("environment_url") or "",
    )
    for name, url in (("log_url", log_url), ("environment_url", link)):
        if url and not url.startswith(("http://", "https://")):
            raise invalid("DeploymentStatus", name, f"{name} must use http(s) scheme")
    status = DeploymentStatus(
        world.new_id(), wanted["state"], call.by.login, description, environment, link, log_url, world.now_s()
    )
    if status.state == "success" and call.flag("auto_inactive", default=True):
        _retire(world, call.repo, made, call.by.login)
    made.statuses.append(status)
    made.environment = environment
    return Reply(201, views.deployment_status(world, call.repo, made, status))


def create_status(world: World, call: Call) -> Result:
    wanted, commit = call.body, found_commit(call.repo.git, call.params["sha"])
    context = wanted.get("context", "default")
    _short(wanted.get("description") or "", "Status")
    if sum((each.sha, each.context) == (commit.sha, context) for each in call.repo.statuses) >= STATUSES_MAX:
        raise invalid("Status", "context", "This SHA and context has reached the maximum number of statuses.")
    message = Status(
        world.new_id(),
        commit.sha,
        wanted["state"],
        context,
        wanted.get("description"),
        wanted.get("target_url"),
        call.by.login,
        world.now_s(),
    )
    call.repo.statuses.append(message)
    return Reply(201, views.status(world, call.repo, message))


def list_statuses(world: World, call: Call) -> Result:
    """Return the commit statuses, newest first."""
    sha = found_commit(call.repo.git, call.params["ref"]).sha
    return Page(
        [views.status(world, call.repo, each) for each in reversed(call.repo.statuses) if each.sha == sha]
    )


def combined_status(world: World, call: Call) -> Result:
    sha = found_commit(call.repo.git, call.params["ref"]).sha
    latest = list(_latest(call.repo, sha).values())
    states = {each.state for each in latest}
    state = "failure" if states & {"failure", "error"} else "success" if states == {"success"} else "pending"
    url = f"{views.repo_url(world, call.repo)}/commits/{sha}"
    known = {
        "state": state,
        "sha": sha,
        "total_count": len(latest),
        "commit_url": url,
        "url": f"{url}/status",
    }
    return known | {
        "repository": views.repo(world, call.repo),
        "statuses": [views.status(world, call.repo, each) for each in latest],
    }


def create_check_run(world: World, call: Call) -> Result:
    sha = found_commit(call.repo.git, call.body["head_sha"]).sha
    run = CheckRun(world.new_id(), sha, call.by.login, world.now_s(), {"status": "queued"})
    _tell(run, call)
    call.repo.check_runs[run.check_run_id] = run
    return Reply(201, views.check_run(world, call.repo, run))


def get_check_run(world: World, call: Call) -> Result:
    return views.check_run(world, call.repo, _check_run(call))


def update_check_run(world: World, call: Call) -> Result:
    run = _check_run(call)
    if run.app != call.by.login:
        raise Refused(
            403,
            f"Invalid app_id `{call.by.login}` - check run can only be modified by the GitHub App that "
            "created it.",
        )
    _tell(run, call)
    return views.check_run(world, call.repo, run)


def _tell(run: CheckRun, call: Call) -> None:
    """Update a check run: annotations are added to the existing ones; everything else is replaced."""
    run.message |= call.body
    run.annotations += call.body.get("output", {}).get("annotations", [])
    if "conclusion" in call.body:
        run.message["status"] = "completed"


def _check_run(call: Call) -> CheckRun:
    if call.number("check_run_id") not in call.repo.check_runs:
        raise not_found()
    return call.repo.check_runs[call.number("check_run_id")]


def _deployment(call: Call) -> Deployment:
    if call.number("deployment_id") not in call.repo.deployments:
        raise not_found()
    return call.repo.deployments[call.number("deployment_id")]


def _is_behind(repo: Repo, ref: str, sha: str) -> bool:
    """Return whether the default branch would first be merged into the branch."""
    tip = repo.git.resolve(repo.default_branch)
    is_branch = f"refs/heads/{ref.removeprefix('refs/heads/')}" in repo.git.refs
    return is_branch and tip is not None and tip not in repo.git.objects.history(sha)


def _settled(repo: Repo, sha: str, ref: str, contexts: list[str] | None) -> None:
    """Return whether the checks have succeeded: the given `contexts`, or all existing ones if None."""
    latest = {context: status.state for context, status in _latest(repo, sha).items()}
    missing = [
        context for context in (latest if contexts is None else contexts) if latest.get(context) != "success"
    ]
    if missing:
        errors = [
            {"resource": "Deployment", "code": "invalid", "field": "required_contexts", "contexts": missing}
        ]
        raise Refused(409, f"Conflict: Commit status checks failed for {ref}.", errors=errors)


def _latest(repo: Repo, sha: str) -> dict[str, Status]:
    return {each.context: each for each in repo.statuses if each.sha == sha}


def _short(description: str, resource: str) -> None:
    if len(description) > DESCRIPTION_CHARS_MAX:
        raise invalid(
            resource,
            "description",
            f"description is too long (maximum is {DESCRIPTION_CHARS_MAX} characters)",
        )


def _retire(world: World, repo: Repo, newest: Deployment, login: str) -> None:
    """Set earlier successful deployments to the same environment to inactive, except transient and production
    ones.
    """
    for each in repo.deployments_to(newest.environment):
        if (
            each.deployment_id < newest.deployment_id
            and each.state == "success"
            and not each.is_transient
            and not each.is_production
        ):
            each.statuses.append(
                DeploymentStatus(
                    world.new_id(), "inactive", login, "", each.environment, "", "", world.now_s()
                )
            )
