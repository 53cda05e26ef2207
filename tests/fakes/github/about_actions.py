"""Answers to what is asked about workflows and their runs."""

from tests.fakes.github import events, shown
from tests.fakes.github.asked import Answered, Asked, Page, Told
from tests.fakes.github.refusals import Refused, not_found
from tests.fakes.github.repos import Run
from tests.fakes.github.workflows import find, inputs, triggers
from tests.fakes.github.world import World

PAYLOAD_BYTES_MAX = 64 * 1024


def dispatch_repository(world: World, asked: Asked) -> Answered:
    wanted, repo = asked.json, asked.repo
    if len(asked.body) > PAYLOAD_BYTES_MAX:
        raise Refused(422, "client_payload is too large.")
    payload = events.repository_dispatch(world, repo, wanted["event_type"], wanted.get("client_payload"), asked.by.login)
    world.happen("repository_dispatch", repo, payload, asked.by)
    world.start_waiting(repo, wanted["event_type"], asked.by.login, payload)
    return Told(204)


def dispatch_workflow(world: World, asked: Asked) -> Answered:
    wanted, repo = asked.json, asked.repo
    tip = repo.git.resolve(repo.default_branch)
    path = find(repo, tip, asked.found["workflow_id"]) if tip else ""
    sha = repo.git.resolve(wanted["ref"])
    if sha is None:
        raise Refused(422, f"No ref found for: {wanted['ref']}")
    on = triggers(repo, sha).get(path, {})
    if "workflow_dispatch" not in on:
        raise Refused(422, "Workflow does not have 'workflow_dispatch' trigger")
    given = inputs(on["workflow_dispatch"].get("inputs") or {}, wanted.get("inputs") or {})
    payload = events.workflow_dispatch(world, repo, path, wanted["ref"], given, asked.by.login)
    world.happen("workflow_dispatch", repo, payload, asked.by)
    run = world.start(repo, path, "workflow_dispatch", wanted["ref"].removeprefix("refs/heads/"), sha, asked.by.login, payload)
    if not asked.flag("return_run_details", default=False):
        return Told(204)
    told = shown.workflow_run(world, repo, run)
    return {"workflow_run_id": run.run_id, "run_url": told["url"], "html_url": told["html_url"]}


def list_runs(world: World, asked: Asked) -> Answered:
    return _runs(world, asked, list(asked.repo.runs.values()))


def list_runs_of_workflow(world: World, asked: Asked) -> Answered:
    tip = asked.repo.git.resolve(asked.repo.default_branch)
    path = find(asked.repo, tip, asked.found["workflow_id"]) if tip else ""
    return _runs(world, asked, [run for run in asked.repo.runs.values() if run.workflow == path])


def get_run(world: World, asked: Asked) -> Answered:
    if asked.number("run_id") not in asked.repo.runs:
        raise not_found()
    return shown.workflow_run(world, asked.repo, asked.repo.runs[asked.number("run_id")])


def _runs(world: World, asked: Asked, runs: list[Run]) -> Page:
    """Newest first. `status` may name a conclusion as well."""
    query = asked.query
    told = [shown.workflow_run(world, asked.repo, run) for run in reversed(runs)]
    told = [run for run in told if query.get("status") in (None, run["status"], run["conclusion"])]
    told = [run for run in told if query.get("actor") in (None, run["actor"]["login"])]
    for name, of in (("event", "event"), ("branch", "head_branch"), ("head_sha", "head_sha")):
        told = [run for run in told if query.get(name) in (None, run[of])]
    return Page(told, under="workflow_runs")
