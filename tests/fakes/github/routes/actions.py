"""Requests about workflows and their runs."""

from tests.fakes.github import events, views
from tests.fakes.github.messages import Call, Page, Reply, Result
from tests.fakes.github.refusals import Refused, not_found
from tests.fakes.github.repos import Run
from tests.fakes.github.workflows import find, inputs, triggers
from tests.fakes.github.world import World

PAYLOAD_BYTES_MAX = 64 * 1024


def dispatch_repository(world: World, call: Call) -> Result:
    wanted, repo = call.body, call.repo
    if len(call.request.body) > PAYLOAD_BYTES_MAX:
        raise Refused(422, "client_payload is too large.")
    payload = events.repository_dispatch(
        world, repo, wanted["event_type"], wanted.get("client_payload"), call.by.login
    )
    world.happen("repository_dispatch", repo, payload, call.by)
    world.start_waiting(repo, wanted["event_type"], call.by.login, payload)
    return Reply(204)


def dispatch_workflow(world: World, call: Call) -> Result:
    wanted, repo = call.body, call.repo
    tip = repo.git.resolve(repo.default_branch)
    path = find(repo, tip, call.params["workflow_id"]) if tip else ""
    if path in repo.disabled:
        raise Refused(422, "Cannot trigger a 'workflow_dispatch' on a disabled workflow")
    sha = repo.git.resolve(wanted["ref"])
    if sha is None:
        raise Refused(422, f"No ref found for: {wanted['ref']}")
    on = triggers(repo, sha).get(path, {})
    if "workflow_dispatch" not in on:
        raise Refused(422, "Workflow does not have 'workflow_dispatch' trigger")
    given = inputs(on["workflow_dispatch"].get("inputs") or {}, wanted.get("inputs") or {})
    payload = events.workflow_dispatch(world, repo, path, wanted["ref"], given, call.by.login)
    world.happen("workflow_dispatch", repo, payload, call.by)
    run = world.start(
        repo,
        path,
        "workflow_dispatch",
        wanted["ref"].removeprefix("refs/heads/"),
        sha,
        call.by.login,
        payload,
    )
    if not call.flag("return_run_details", default=False):
        return Reply(204)
    view = views.workflow_run(world, repo, run)
    return {"workflow_run_id": run.run_id, "run_url": view["url"], "html_url": view["html_url"]}


def get_policy(world: World, call: Call) -> Result:
    allowed = call.repo.allowed_actions
    return {"enabled": bool(allowed)} | ({"allowed_actions": allowed} if allowed else {})


def get_workflow(world: World, call: Call) -> Result:
    return views.workflow(world, call.repo, _path(call))


def enable_workflow(world: World, call: Call) -> Result:
    """Switch the workflow on; one that is on already stays on."""
    call.repo.disabled.pop(_path(call), None)
    return Reply(204)


def list_runs(world: World, call: Call) -> Result:
    return _runs(world, call, list(call.repo.runs.values()))


def list_runs_of_workflow(world: World, call: Call) -> Result:
    tip = call.repo.git.resolve(call.repo.default_branch)
    path = find(call.repo, tip, call.params["workflow_id"]) if tip else ""
    return _runs(world, call, [run for run in call.repo.runs.values() if run.workflow == path])


def get_run(world: World, call: Call) -> Result:
    if call.number("run_id") not in call.repo.runs:
        raise not_found()
    return views.workflow_run(world, call.repo, call.repo.runs[call.number("run_id")])


def _path(call: Call) -> str:
    """Return the path of the workflow's file on the default branch, which is what a workflow is."""
    tip = call.repo.git.resolve(call.repo.default_branch)
    if tip is None:
        raise not_found()
    return find(call.repo, tip, call.params["workflow_id"])


def _runs(world: World, call: Call, runs: list[Run]) -> Page:
    """Return the runs, newest first. `status` may also be a conclusion."""
    query = call.query
    rows = [views.workflow_run(world, call.repo, run) for run in reversed(runs)]
    rows = [run for run in rows if query.get("status") in (None, run["status"], run["conclusion"])]
    rows = [run for run in rows if query.get("actor") in (None, run["actor"]["login"])]
    for name, of in (("event", "event"), ("branch", "head_branch"), ("head_sha", "head_sha")):
        rows = [run for run in rows if query.get(name) in (None, run[of])]
    return Page(rows, under="workflow_runs")
