"""The state of the fake GitHub. Not thread-safe: use it while the fake's lock is held."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.fakes.clock import Clock
from tests.fakes.github import jwt
from tests.fakes.github.git import Git, Objects
from tests.fakes.github.limits import Limits
from tests.fakes.github.refusals import Refused, not_found
from tests.fakes.github.repos import Pull, Repo, Run, User
from tests.fakes.github.tokens import ACTIONS_BOT, App, Kind, Token
from tests.fakes.github.workflows import triggers, waits_for

FIRST_ID = 1_000_001
HTML_URL = "https://github.com"
JOB_S = 24 * 3600.0
INSTALLATION_S = 3600.0


@dataclass(frozen=True)
class Event:
    """An event. `payload` as in a webhook. `starts`: whether it starts workflows; of events caused by a job's
    token only dispatches do.
    """

    name: str
    repo: str
    payload: dict[str, Any]
    starts: bool


class World:
    """The state. `url` is that of the API, without a slash at its end."""

    def __init__(self, clock: Clock, url: str) -> None:
        self.clock = clock
        self.url = url
        self.limits = Limits()
        self.users: dict[str, User] = {}
        self.repos: dict[str, Repo] = {}
        self.tokens: dict[str, Token] = {}
        self.apps: dict[str, App] = {}
        self.events: list[Event] = []
        self._ids = FIRST_ID
        self.add_user(ACTIONS_BOT, "Bot")

    def new_id(self) -> int:
        self._ids += 1
        return self._ids

    def now_s(self) -> float:
        return self.clock.now_s()

    # --------------------------------------------------------------------------------------------------------
    # what is made

    def add_user(self, login: str, kind: str = "User") -> User:
        if login not in self.users:
            self.users[login] = User(login, self.new_id(), kind)
        return self.users[login]

    def add_repo(self, full_name: str, *, is_private: bool, of: Repo | None = None) -> Repo:
        owner, _, name = full_name.partition("/")
        self.add_user(owner)
        git = Git(of.git.objects if of else Objects())
        repo = Repo(
            self.new_id(), owner, name, is_private, self.now_s(), git, fork_of=of.full_name if of else None
        )
        if of:
            git.refs, repo.default_branch = dict(of.git.refs), of.default_branch
        self.repos[full_name] = repo
        return repo

    def mint(
        self, kind: Kind, login: str, permissions: Mapping[str, str], repos: frozenset[str] | None
    ) -> Token:
        before = {Kind.JOB: "ghs_", Kind.INSTALLATION: "ghs_", Kind.PERSON: "github_pat_"}[kind]
        lives_s = {Kind.JOB: JOB_S, Kind.INSTALLATION: INSTALLATION_S, Kind.PERSON: float("inf")}[kind]
        token = Token(
            before + secrets.token_hex(18),
            kind,
            login,
            permissions,
            repos,
            self.now_s() + lives_s,
            self.new_id(),
        )
        self.tokens[token.value] = token
        return token

    def add_app(self, slug: str, permissions: Mapping[str, str], repos: frozenset[str]) -> App:
        app = App(slug, self.new_id(), self.new_id(), jwt.new_key(), permissions, repos)
        self.apps[slug] = app
        self.add_user(app.login, "Bot")
        return app

    # --------------------------------------------------------------------------------------------------------
    # what is found

    def repo(self, owner: str, name: str) -> Repo:
        """Return the repository; upper and lower case do not matter."""
        wanted = f"{owner}/{name}".lower()
        found = next((repo for full_name, repo in self.repos.items() if full_name.lower() == wanted), None)
        if found is None:
            raise not_found()
        return found

    def open_pull(self, home: Repo, title: str, author: str, base_ref: str, head: Repo, branch: str) -> Pull:
        base_sha, head_sha = home.git.refs[f"refs/heads/{base_ref}"], head.git.refs[f"refs/heads/{branch}"]
        home.numbers += 1
        pull = Pull(
            self.new_id(),
            home.numbers,
            title,
            author,
            base_ref,
            base_sha,
            head.full_name,
            branch,
            head_sha,
            self.now_s(),
        )
        home.pulls[pull.number] = pull
        home.git.refs[f"refs/pull/{pull.number}/head"] = head_sha
        return pull

    def app_of(self, token: str) -> App:
        """Return the app whose JSON web token this is."""
        issuer = jwt.issuer(token)
        app = next((app for app in self.apps.values() if issuer == str(app.app_id)), None)
        if app is None:
            raise Refused(404, "Integration not found")
        jwt.check(token, app.private_key, self.now_s())
        return app

    # --------------------------------------------------------------------------------------------------------
    # what happens

    def happen(self, name: str, repo: Repo, payload: dict[str, Any], by: Token | None) -> None:
        dispatched = name in ("workflow_dispatch", "repository_dispatch")
        starts = dispatched or by is None or by.kind is not Kind.JOB
        self.events.append(Event(name, repo.full_name, payload, starts))

    def start(
        self, repo: Repo, path: str, event: str, branch: str, sha: str, actor: str, payload: dict[str, Any]
    ) -> Run:
        number = 1 + sum(run.workflow == path for run in repo.runs.values())
        run = Run(self.new_id(), number, path, event, branch, sha, actor, self.now_s(), payload)
        repo.runs[run.run_id] = run
        return run

    def start_waiting(self, repo: Repo, event_type: str, actor: str, payload: dict[str, Any]) -> list[Run]:
        """Start the runs of all workflows of the default branch that are triggered by a repository_dispatch
        of this type.
        """
        sha = repo.git.resolve(repo.default_branch)
        if sha is None:
            return []
        waiting = [
            path
            for path, on in triggers(repo, sha).items()
            if waits_for(on, event_type) and path not in repo.disabled
        ]
        return [
            self.start(repo, path, "repository_dispatch", repo.default_branch, sha, actor, payload)
            for path in waiting
        ]
