"""Answers to what an app asks: who it is, where it is installed, and tokens for that."""

from tests.fakes.github import shown
from tests.fakes.github.asked import Answered, Asked, Page, Told
from tests.fakes.github.clock import iso
from tests.fakes.github.refusals import Refused, not_found
from tests.fakes.github.tokens import LEVELS, App, Kind
from tests.fakes.github.world import World


def get_app(world: World, asked: Asked) -> Answered:
    app = _app(world, asked)
    return {"id": app.app_id, "slug": app.slug, "name": app.slug, "permissions": dict(app.permissions), "events": []}


def get_installation(world: World, asked: Asked) -> Answered:
    """Of a repository that the app does not have, it is not told that there is one."""
    app = _app(world, asked)
    full_name = f"{asked.found['owner']}/{asked.found['repo']}"
    if full_name not in app.repos:
        raise not_found()
    known = {"id": app.installation_id, "app_id": app.app_id, "app_slug": app.slug, "repository_selection": "selected"}
    url = f"{world.url}/app/installations/{app.installation_id}/access_tokens"
    account = shown.user(world, asked.found["owner"])
    return known | {"account": account, "permissions": dict(app.permissions), "access_tokens_url": url, "target_type": "User"}


def create_token(world: World, asked: Asked) -> Answered:
    """For an hour. Of the app's permissions and repositories all, or what of them is asked for."""
    app, wanted = _app(world, asked), asked.json
    if asked.number("installation_id") != app.installation_id:
        raise not_found()
    permissions = wanted.get("permissions", dict(app.permissions))
    if any(LEVELS.index(level) > LEVELS.index(app.permissions.get(name, "none")) for name, level in permissions.items()):
        raise Refused(422, "The permissions requested are not granted to this installation.")
    by_name = {full_name.partition("/")[2]: full_name for full_name in app.repos}
    names = wanted.get("repositories", list(by_name))
    if any(name not in by_name for name in names):
        raise Refused(422, "There is at least one repository that does not exist or is not accessible to the parent installation.")
    repos = frozenset(by_name[name] for name in names)
    token = world.mint(Kind.INSTALLATION, app.login, permissions, repos)
    known = {"token": token.value, "expires_at": iso(token.expires_s), "permissions": permissions}
    return Told(201, known | {"repository_selection": "selected" if "repositories" in wanted else "all"})


def installation_repositories(world: World, asked: Asked) -> Answered:
    if asked.by.repos is None:
        raise Refused(403, "You must authenticate with an installation access token in order to list repositories for an installation.")
    return Page([shown.repo(world, world.repos[name]) for name in sorted(asked.by.repos)], under="repositories")


def _app(world: World, asked: Asked) -> App:
    token = asked.headers.get("authorization", "").partition(" ")[2]
    if token.count(".") != 2:
        raise Refused(401, "A JSON web token could not be decoded")
    return world.app_of(token)
