"""Requests about environments for jobs, variables and secrets."""

from typing import Any

from tests.fakes.clock import iso
from tests.fakes.github import views
from tests.fakes.github.messages import Call, Page, Reply, Result
from tests.fakes.github.refusals import Refused, invalid, not_found
from tests.fakes.github.repos import Environment
from tests.fakes.github.world import World

NO_RULES = (
    "Failed to create the environment protection rule. Please ensure the billing plan supports the required "
    "reviewers protection rule."
)
REVIEWERS_MAX = 6


def list_environments(world: World, call: Call) -> Result:
    return Page(
        [views.environment(world, call.repo, made) for made in call.repo.environments.values()],
        under="environments",
    )


def get_environment(world: World, call: Call) -> Result:
    return views.environment(world, call.repo, _found(call))


def put_environment(world: World, call: Call) -> Result:
    """Create or replace an environment. A rule that is not sent again is gone, as at GitHub."""
    repo, name, wanted = call.repo, call.params["environment_name"], call.body
    reviewers = [(one["type"], one["id"]) for one in wanted.get("reviewers") or ()]
    policy = wanted.get("deployment_branch_policy")
    if not repo.keeps_rules and (reviewers or policy or wanted.get("wait_timer")):
        raise Refused(422, NO_RULES)
    if policy is not None and policy["protected_branches"] == policy["custom_branch_policies"]:
        raise invalid(
            "Environment",
            "deployment_branch_policy",
            "protected_branches and custom_branch_policies cannot have the same value",
        )
    _check_reviewers(world, call, reviewers)
    made = repo.environments.get(name) or Environment(world.new_id(), name, world.now_s())
    made.reviewers, made.branch_policy = reviewers, policy
    made.wait_minutes, made.prevent_self_review = (
        wanted.get("wait_timer") or 0,
        bool(wanted.get("prevent_self_review")),
    )
    if policy is None or not policy["custom_branch_policies"]:
        made.branches.clear()
    repo.environments[name] = made
    return views.environment(world, repo, made)


def list_branches(world: World, call: Call) -> Result:
    rows = [_branch(number, name) for number, name in _found(call).branches.items()]
    return Page(rows, under="branch_policies")


def add_branch(world: World, call: Call) -> Result:
    made = _found(call)
    if made.branch_policy is None or not made.branch_policy["custom_branch_policies"]:
        raise not_found()
    name = call.body["name"]
    if name in made.branches.values():
        return Reply(303)
    made.branches[world.new_id()] = name
    return _branch(list(made.branches)[-1], name)


def get_variable(world: World, call: Call) -> Result:
    name = call.params["name"].upper()
    if name not in call.repo.variables:
        raise not_found()
    at = iso(world.now_s())
    return {"name": name, "value": call.repo.variables[name], "created_at": at, "updated_at": at}


def create_variable(world: World, call: Call) -> Result:
    name = call.body["name"].upper()
    if name in call.repo.variables:
        raise Refused(409, "Already exists - Variable already exists")
    call.repo.variables[name] = call.body["value"]
    return Reply(201, {})


def update_variable(world: World, call: Call) -> Result:
    name = call.params["name"].upper()
    if name not in call.repo.variables:
        raise not_found()
    call.repo.variables[name] = call.body.get("value", call.repo.variables[name])
    return Reply(204)


def list_secrets(world: World, call: Call) -> Result:
    return _names(world, call.repo.secrets)


def list_secrets_of(world: World, call: Call) -> Result:
    return _names(world, _found(call).secrets)


def put_secret(world: World, call: Call) -> Result:
    return _put(call, call.repo.secrets)


def put_secret_of(world: World, call: Call) -> Result:
    return _put(call, _found(call).secrets)


def _put(call: Call, secrets: dict[str, str]) -> Reply:
    """Store a secret. What encrypts it is left out here: the value is stored as it is sent."""
    name = call.params["secret_name"].upper()
    is_new = name not in secrets
    secrets[name] = call.body["encrypted_value"]
    return Reply(201, {}) if is_new else Reply(204)


def _names(world: World, secrets: dict[str, str]) -> Page:
    at = iso(world.now_s())
    return Page(
        [{"name": name, "created_at": at, "updated_at": at} for name in sorted(secrets)], under="secrets"
    )


def _found(call: Call) -> Environment:
    found = call.repo.environments.get(call.params["environment_name"])
    if found is None:
        raise not_found()
    return found


def _branch(number: int, name: str) -> dict[str, Any]:
    return {"id": number, "node_id": f"BP_{number}", "name": name, "type": "branch"}


def _check_reviewers(world: World, call: Call, reviewers: list[tuple[str, int]]) -> None:
    logins = {user.user_id: user.login for user in world.users.values()}
    unknown = [
        number
        for kind, number in reviewers
        if kind == "User" and call.repo.role(logins.get(number, "")) == "none"
    ]
    if unknown or len(reviewers) > REVIEWERS_MAX:
        raise invalid(
            "Environment",
            "reviewers",
            f"reviewers {unknown} are not valid" if unknown else "there are too many reviewers",
        )
