"""Answers to what is asked about deployments, commit statuses and check runs."""

from tests.fakes.github import shown
from tests.fakes.github.about_git import found_commit
from tests.fakes.github.asked import Answered, Asked, Page, Told
from tests.fakes.github.refusals import Refused, invalid, not_found
from tests.fakes.github.repos import CheckRun, Deployment, DeploymentStatus, Repo, Status
from tests.fakes.github.world import World

DESCRIPTION_CHARS_MAX = 140
STATUSES_MAX = 1000


def list_deployments(world: World, asked: Asked) -> Answered:
    """Newest first."""
    made = [shown.deployment(world, asked.repo, each) for each in reversed(asked.repo.deployments.values())]
    filters = {name: asked.query[name] for name in ("sha", "ref", "task", "environment") if asked.query.get(name, "none") != "none"}
    return Page([each for each in made if all(each[name] == value for name, value in filters.items())])


def create_deployment(world: World, asked: Asked) -> Answered:
    wanted, repo = asked.json, asked.repo
    sha = repo.git.resolve(wanted["ref"])
    if sha is None:
        raise Refused(422, f"No ref found for: {wanted['ref']}")
    if asked.flag("auto_merge", default=True) and _is_behind(repo, wanted["ref"], sha):
        return Told(202, {"message": f"Auto-merged {repo.default_branch} into {wanted['ref']} on deployment."})
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
        asked.by.login,
        asked.flag("transient_environment", default=False),
        asked.flag("production_environment", default=environment == "production"),
        world.now_s(),
    )
    repo.deployments[made.deployment_id] = made
    return Told(201, shown.deployment(world, repo, made))


def get_deployment(world: World, asked: Asked) -> Answered:
    return shown.deployment(world, asked.repo, _deployment(asked))


def list_deployment_statuses(world: World, asked: Asked) -> Answered:
    """Newest first."""
    made = _deployment(asked)
    return Page([shown.deployment_status(world, asked.repo, made, status) for status in reversed(made.statuses)])


def create_deployment_status(world: World, asked: Asked) -> Answered:
    made, wanted = _deployment(asked), asked.json
    description, environment = wanted.get("description") or "", wanted.get("environment", made.environment)
    _short(description, "DeploymentStatus")
    log_url, link = wanted.get("log_url") or wanted.get("target_url") or "", wanted.get("environment_url") or ""
    for name, url in (("log_url", log_url), ("environment_url", link)):
        if url and not url.startswith(("http://", "https://")):
            raise invalid("DeploymentStatus", name, f"{name} must use http(s) scheme")
    status = DeploymentStatus(world.new_id(), wanted["state"], asked.by.login, description, environment, link, log_url, world.now_s())
    if status.state == "success" and asked.flag("auto_inactive", default=True):
        _retire(world, asked.repo, made, asked.by.login)
    made.statuses.append(status)
    made.environment = environment
    return Told(201, shown.deployment_status(world, asked.repo, made, status))


def create_status(world: World, asked: Asked) -> Answered:
    wanted, commit = asked.json, found_commit(asked.repo.git, asked.found["sha"])
    context = wanted.get("context", "default")
    _short(wanted.get("description") or "", "Status")
    if sum((each.sha, each.context) == (commit.sha, context) for each in asked.repo.statuses) >= STATUSES_MAX:
        raise invalid("Status", "context", "This SHA and context has reached the maximum number of statuses.")
    said = Status(
        world.new_id(),
        commit.sha,
        wanted["state"],
        context,
        wanted.get("description"),
        wanted.get("target_url"),
        asked.by.login,
        world.now_s(),
    )
    asked.repo.statuses.append(said)
    return Told(201, shown.status(world, asked.repo, said))


def list_statuses(world: World, asked: Asked) -> Answered:
    """Newest first."""
    sha = found_commit(asked.repo.git, asked.found["ref"]).sha
    return Page([shown.status(world, asked.repo, each) for each in reversed(asked.repo.statuses) if each.sha == sha])


def combined_status(world: World, asked: Asked) -> Answered:
    sha = found_commit(asked.repo.git, asked.found["ref"]).sha
    latest = list(_latest(asked.repo, sha).values())
    states = {each.state for each in latest}
    state = "failure" if states & {"failure", "error"} else "success" if states == {"success"} else "pending"
    url = f"{shown.repo_url(world, asked.repo)}/commits/{sha}"
    known = {"state": state, "sha": sha, "total_count": len(latest), "commit_url": url, "url": f"{url}/status"}
    return known | {"repository": shown.repo(world, asked.repo), "statuses": [shown.status(world, asked.repo, each) for each in latest]}


def create_check_run(world: World, asked: Asked) -> Answered:
    sha = found_commit(asked.repo.git, asked.json["head_sha"]).sha
    run = CheckRun(world.new_id(), sha, asked.by.login, world.now_s(), {"status": "queued"})
    _tell(run, asked)
    asked.repo.check_runs[run.check_run_id] = run
    return Told(201, shown.check_run(world, asked.repo, run))


def get_check_run(world: World, asked: Asked) -> Answered:
    return shown.check_run(world, asked.repo, _check_run(asked))


def update_check_run(world: World, asked: Asked) -> Answered:
    run = _check_run(asked)
    if run.app != asked.by.login:
        raise Refused(403, f"Invalid app_id `{asked.by.login}` - check run can only be modified by the GitHub App that created it.")
    _tell(run, asked)
    return shown.check_run(world, asked.repo, run)


def _tell(run: CheckRun, asked: Asked) -> None:
    """Annotations are added to those there are; all else takes the place of what was."""
    run.said |= asked.json
    run.annotations += asked.json.get("output", {}).get("annotations", [])
    if "conclusion" in asked.json:
        run.said["status"] = "completed"


def _check_run(asked: Asked) -> CheckRun:
    if asked.number("check_run_id") not in asked.repo.check_runs:
        raise not_found()
    return asked.repo.check_runs[asked.number("check_run_id")]


def _deployment(asked: Asked) -> Deployment:
    if asked.number("deployment_id") not in asked.repo.deployments:
        raise not_found()
    return asked.repo.deployments[asked.number("deployment_id")]


def _is_behind(repo: Repo, ref: str, sha: str) -> bool:
    """Whether the default branch would first be merged into the branch."""
    tip = repo.git.resolve(repo.default_branch)
    is_branch = f"refs/heads/{ref.removeprefix('refs/heads/')}" in repo.git.refs
    return is_branch and tip is not None and tip not in repo.git.objects.history(sha)


def _settled(repo: Repo, sha: str, ref: str, contexts: list[str] | None) -> None:
    """`contexts` that must be a success; None is all there are."""
    latest = {context: status.state for context, status in _latest(repo, sha).items()}
    missing = [context for context in (latest if contexts is None else contexts) if latest.get(context) != "success"]
    if missing:
        errors = [{"resource": "Deployment", "code": "invalid", "field": "required_contexts", "contexts": missing}]
        raise Refused(409, f"Conflict: Commit status checks failed for {ref}.", errors=errors)


def _latest(repo: Repo, sha: str) -> dict[str, Status]:
    return {each.context: each for each in repo.statuses if each.sha == sha}


def _short(description: str, resource: str) -> None:
    if len(description) > DESCRIPTION_CHARS_MAX:
        raise invalid(resource, "description", f"description is too long (maximum is {DESCRIPTION_CHARS_MAX} characters)")


def _retire(world: World, repo: Repo, newest: Deployment, login: str) -> None:
    """Deployments before to the same environment that were a success become inactive; transient and production ones do not."""
    for each in repo.deployments_to(newest.environment):
        if each.deployment_id < newest.deployment_id and each.state == "success" and not each.is_transient and not each.is_production:
            each.statuses.append(DeploymentStatus(world.new_id(), "inactive", login, "", each.environment, "", "", world.now_s()))
