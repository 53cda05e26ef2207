"""Requests of an app: its identity, its installations, and tokens for them."""

from tests.fakes.clock import iso
from tests.fakes.github import views
from tests.fakes.github.messages import Call, Page, Reply, Result
from tests.fakes.github.refusals import Refused, not_found
from tests.fakes.github.tokens import LEVELS, App, Kind
from tests.fakes.github.world import World


def get_app(world: World, call: Call) -> Result:
    app = _app(world, call)
    return {
        "id": app.app_id,
        "slug": app.slug,
        "name": app.slug,
        "permissions": dict(app.permissions),
        "events": [],
    }


def get_installation(world: World, call: Call) -> Result:
    """Return the installation. For a repository that the app does not have, the response does not reveal
    whether it exists.
    """
    app = _app(world, call)
    full_name = f"{call.params['owner']}/{call.params['repo']}"
    if full_name not in app.repos:
        raise not_found()
    known = {
        "id": app.installation_id,
        "app_id": app.app_id,
        "app_slug": app.slug,
        "repository_selection": "selected",
    }
    url = f"{world.url}/app/installations/{app.installation_id}/access_tokens"
    account = views.user(world, call.params["owner"])
    return known | {
        "account": account,
        "permissions": dict(app.permissions),
        "access_tokens_url": url,
        "target_type": "User",
    }


def create_token(world: World, call: Call) -> Result:
    """Create a token for an hour, with all of the app's permissions and repositories, or with the requested
    ones.
    """
    app, wanted = _app(world, call), call.body
    if call.number("installation_id") != app.installation_id:
        raise not_found()
    permissions = wanted.get("permissions", dict(app.permissions))
    if any(
        LEVELS.index(level) > LEVELS.index(app.permissions.get(name, "none"))
        for name, level in permissions.items()
    ):
        raise Refused(422, "The permissions requested are not granted to this installation.")
    by_name = {full_name.partition("/")[2]: full_name for full_name in app.repos}
    names = wanted.get("repositories", list(by_name))
    if any(name not in by_name for name in names):
        raise Refused(
            422,
            "There is at least one repository that does not exist or is not accessible to the parent "
            "installation.",
        )
    repos = frozenset(by_name[name] for name in names)
    token = world.mint(Kind.INSTALLATION, app.login, permissions, repos)
    known = {"token": token.value, "expires_at": iso(token.expires_s), "permissions": permissions}
    return Reply(201, known | {"repository_selection": "selected" if "repositories" in wanted else "all"})


def installation_repositories(world: World, call: Call) -> Result:
    if call.by.repos is None:
        raise Refused(
            403,
            "You must authenticate with an installation access token in order to list repositories for an "
            "installation.",
        )
    return Page(
        [views.repo(world, world.repos[name]) for name in sorted(call.by.repos)], under="repositories"
    )


def _app(world: World, call: Call) -> App:
    token = call.request.headers.get("authorization", "").partition(" ")[2]
    if token.count(".") != 2:
        raise Refused(401, "A JSON web token could not be decoded")
    return world.app_of(token)
