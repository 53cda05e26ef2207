"""What a test can change and read in the fake's world. All arguments and results can be JSON, so that it can
be called over HTTP too.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tests.fakes.clock import Clock
from tests.fakes.github import events, views
from tests.fakes.github.git import Git
from tests.fakes.github.repos import ROLES, Comment, Pull, Repo
from tests.fakes.github.routes.issues import BODY_CHARS_MAX
from tests.fakes.github.tokens import ACTIONS_BOT, Kind, normal
from tests.fakes.github.workflows import FOLDER
from tests.fakes.github.world import World
from tests.fakes.http import HttpFake, Json

PERMISSIONS = (
    "actions",
    "administration",
    "checks",
    "contents",
    "deployments",
    "environments",
    "issues",
    "pull_requests",
    "secrets",
)
ALL_WRITE = dict.fromkeys((*PERMISSIONS, "statuses", "variables", "workflows"), "write")


class Control(HttpFake):
    """The controls. `world` may be used while the `lock` is held. Repositories are named by their full
    names.
    """

    def __init__(self, clock: Clock, *, port: int = 0) -> None:
        super().__init__(port=port)
        self.world = World(clock, self.url)

    # --------------------------------------------------------------------------------------------------------
    # what there is

    def add_repo(
        self,
        name: str,
        *,
        is_private: bool = True,
        files: Mapping[str, str] | None = None,
        folder: str | None = None,
    ) -> None:
        """Add a repository with the `files` on main, or with the content of the real git repository in the
        `folder`.
        """
        with self.lock:
            repo = self.world.add_repo(name, is_private=is_private)
            if folder is not None:
                repo.git.load(Path(folder))
            elif files is not None:
                repo.git.commit("main", files, message="first", name=repo.owner, at_s=self.world.now_s())

    def load(self, repo: str, folder: str) -> None:
        """Load the content of the real git repository again, after it has changed. Heads of open pull
        requests follow.
        """
        with self.lock:
            found = self.world.repos[repo]
            found.git.load(Path(folder))
            for pull in found.pulls.values():
                self._follow(found, pull, pull.author)

    def add_user(
        self, login: str, *, repo: str | None = None, role: str = "read", kind: str = "User"
    ) -> None:
        """Add a user. `role`: the person's role in the `repo`; `kind`: User or Bot."""
        assert role in ROLES, f"there is no role {role!r}; there are {', '.join(ROLES)}"
        with self.lock:
            self.world.add_user(login, kind)
            if repo is not None:
                self.world.repos[repo].roles[login] = role

    def add_app(self, slug: str, permissions: Mapping[str, str], repos: list[str]) -> Json:
        """Add an app with an installation; return its numbers and its private key."""
        with self.lock:
            app = self.world.add_app(slug, normal(permissions), frozenset(repos))
            return {
                "app_id": app.app_id,
                "installation_id": app.installation_id,
                "private_key": app.private_key,
                "login": app.login,
            }

    def job_token(self, repo: str, permissions: Mapping[str, str], *, from_fork: bool = False) -> str:
        """Return the GITHUB_TOKEN of a job with these `permissions:`; for a pull request of a fork it can
        only read.
        """
        with self.lock:
            return self.world.mint(
                Kind.JOB, ACTIONS_BOT, normal(permissions, read_only=from_fork), frozenset({repo})
            ).value

    def person_token(
        self, login: str, permissions: Mapping[str, str] | None = None, *, repos: list[str] | None = None
    ) -> str:
        """Return a personal access token; by default with all rights of the person."""
        with self.lock:
            self.world.add_user(login)
            within = None if repos is None else frozenset(repos)
            return self.world.mint(
                Kind.PERSON, login, normal(ALL_WRITE if permissions is None else permissions), within
            ).value

    def login_token(self, login: str, scopes: list[str]) -> str:
        """Return the token of a person who has logged in with GitHub's own tool, which asked for these
        scopes.
        """
        with self.lock:
            self.world.add_user(login)
            made = replace(
                self.world.mint(Kind.PERSON, login, normal(ALL_WRITE), None), scopes=frozenset(scopes)
            )
            self.world.tokens[made.value] = made
            return made.value

    def revoke(self, token: str) -> None:
        """Revoke the token, as at the end of its job."""
        with self.lock:
            self.world.tokens[token] = replace(self.world.tokens[token], expires_s=self.world.now_s())

    # --------------------------------------------------------------------------------------------------------
    # what happens

    def push(
        self, repo: str, branch: str, files: Mapping[str, str | None], *, by: str, message: str = "change"
    ) -> str:
        """Push a commit to the branch, which starts at main's tip if it is new; None removes a file. Return
        its SHA.
        """
        with self.lock:
            found = self.world.repos[repo]
            self.world.add_user(by)
            before = found.git.refs.get(f"refs/heads/{branch}")
            sha = self._commit(found.git, found.default_branch, branch, files, by, message)
            payload = events.push(self.world, found, branch, by, **({"before": before} if before else {}))
            self.world.happen("push", found, payload, None)
            for home in self.world.repos.values():
                for pull in home.pulls.values():
                    self._follow(home, pull, by)
            return sha

    def add_pull(
        self,
        repo: str,
        branch: str,
        *,
        author: str,
        files: Mapping[str, str | None] | None = None,
        fork: str | None = None,
        title: str = "A change",
    ) -> int:
        """Open a pull request from the branch, here or in the fork, with these changes of files; both are
        created if missing. Return its number.
        """
        with self.lock:
            world, home = self.world, self.world.repos[repo]
            world.add_user(author)
            head = (
                home
                if fork is None
                else world.repos.get(fork) or world.add_repo(fork, is_private=home.is_private, of=home)
            )
            if files is not None:
                self._commit(head.git, home.default_branch, branch, files, author, title)
            pull = world.open_pull(home, title, author, home.default_branch, head, branch)
            self._tell(home, pull, "opened", author)
            return pull.number

    def label(self, repo: str, number: int, name: str, *, by: str) -> None:
        with self.lock:
            found = self.world.repos[repo]
            found.pulls[number].labels.append(name)
            self._tell(found, found.pulls[number], "labeled", by, label=name)

    def merge(self, repo: str, number: int, *, by: str) -> str:
        """Merge as one commit on the base branch. Return its SHA."""
        with self.lock:
            found = self.world.repos[repo]
            pull, git, ref = found.pulls[number], found.git, f"refs/heads/{found.pulls[number].base_ref}"
            before = git.refs[ref]
            tree = git.objects.add_tree(git.objects.files(pull.head_sha))
            made = git.objects.add_commit(
                tree, (before, pull.head_sha), f"Merge #{number}", by, self.world.now_s()
            )
            git.refs[ref], pull.merged_sha, pull.state = made, made, "closed"
            self._tell(found, pull, "closed", by)
            self.world.happen(
                "push", found, events.push(self.world, found, pull.base_ref, by, before=before), None
            )
            return made

    def close(self, repo: str, number: int, *, by: str) -> None:
        with self.lock:
            found = self.world.repos[repo]
            found.pulls[number].state = "closed"
            self._tell(found, found.pulls[number], "closed", by)

    def lock_pull(self, repo: str, number: int) -> None:
        """Lock the conversation: only users who may write can comment."""
        with self.lock:
            self.world.repos[repo].pulls[number].is_locked = True

    def comment(self, repo: str, number: int, *, author: str, body: str) -> int:
        """Add a comment and return its id."""
        assert len(body) <= BODY_CHARS_MAX
        with self.lock:
            found, now_s = self.world.repos[repo], self.world.now_s()
            self.world.add_user(author)
            text = Comment(self.world.new_id(), number, author, body, now_s, now_s)
            found.comments[text.comment_id] = text
            self.world.happen("issue_comment", found, events.issue_comment(self.world, found, text), None)
            return text.comment_id

    def switch_off(self, repo: str, workflow: str, state: str = "disabled_inactivity") -> None:
        """Switch a workflow off, by default as GitHub does with schedules after 60 days without activity."""
        with self.lock:
            self.world.repos[repo].disabled[f"{FOLDER}{workflow}"] = state

    def publish(self, repo: str) -> None:
        """Make the repository public."""
        with self.lock:
            self.world.repos[repo].is_private = False

    def allow_actions(self, repo: str, which: str) -> None:
        """Set which actions the repository runs: all, local_only or selected; empty: none."""
        with self.lock:
            self.world.repos[repo].allowed_actions = which

    def without_rules(self, repo: str) -> None:
        """Have the owner's plan keep no rules for environments of this private repository."""
        with self.lock:
            self.world.repos[repo].keeps_rules = False

    def add_merge_group(self, repo: str, number: int) -> Json:
        """Put a pull request into the merge queue of its base branch, and return the event that starts the
        queue's checks.
        """
        with self.lock:
            found = self.world.repos[repo]
            pull, git = found.pulls[number], found.git
            base = git.refs[f"refs/heads/{pull.base_ref}"]
            tree = git.objects.add_tree({**git.objects.files(base), **self._proposed(found, pull)})
            made = git.objects.add_commit(
                tree, (base, pull.head_sha), f"Merge #{number}", "github-merge-queue[bot]", self.world.now_s()
            )
            ref = f"refs/heads/gh-readonly-queue/{pull.base_ref}/pr-{number}-{base}"
            git.refs[ref] = made
            payload = events.merge_group(self.world, found, ref, pull.base_ref, base)
            self.world.happen("merge_group", found, payload, None)
            return payload

    def set_run(self, repo: str, run_id: int, status: str, conclusion: str | None = None) -> None:
        with self.lock:
            run = self.world.repos[repo].runs[run_id]
            run.status, run.conclusion = status, conclusion

    def schedule(self, repo: str, cron: str) -> Json:
        """Return the event file of a scheduled run."""
        with self.lock:
            return events.schedule(self.world, self.world.repos[repo], cron)

    def advance(self, seconds: float) -> None:
        self.world.clock.advance(seconds)

    def set_time(self, at_s: float) -> None:
        """Set the clock to a POSIX time."""
        self.world.clock.set(at_s)

    def limit(
        self,
        *,
        token: str | None = None,
        remaining: int | None = None,
        points_per_minute: int | None = None,
        content_per_minute: int | None = None,
        status: int | None = None,
    ) -> None:
        """Set rate limits. `remaining`: requests of the token's hour; the other limits hold for all tokens.
        `status`: 403 or 429.
        """
        with self.lock:
            limits, of = self.world.limits, self.world.tokens[token] if token else None
            if remaining is not None:
                purse = limits.purse(of, self.world.now_s())
                purse.used = purse.limit - remaining
            limits.points_per_minute = points_per_minute or limits.points_per_minute
            limits.content_per_minute = content_per_minute or limits.content_per_minute
            limits.status = status or limits.status

    # --------------------------------------------------------------------------------------------------------
    # what is seen

    def comments(self, repo: str, number: int) -> list[Json]:
        with self.lock:
            found = self.world.repos[repo]
            return [
                views.comment(self.world, found, text)
                for text in found.comments.values()
                if text.number == number
            ]

    def deployments(self, repo: str) -> list[Json]:
        """Return the deployments, oldest first, each with its `statuses`, oldest first too."""
        with self.lock:
            found, world = self.world.repos[repo], self.world
            rows = []
            for made in found.deployments.values():
                statuses = [views.deployment_status(world, found, made, each) for each in made.statuses]
                rows.append(views.deployment(world, found, made) | {"statuses": statuses})
            return rows

    def statuses(self, repo: str) -> list[Json]:
        with self.lock:
            found = self.world.repos[repo]
            return [views.status(self.world, found, text) for text in found.statuses]

    def check_runs(self, repo: str) -> list[Json]:
        """Return the check runs, each with its `annotations`."""
        with self.lock:
            found = self.world.repos[repo]
            return [
                views.check_run(self.world, found, run) | {"annotations": run.annotations}
                for run in found.check_runs.values()
            ]

    def runs(self, repo: str) -> list[Json]:
        """Return the runs of workflows; `payload` is the event that started each."""
        with self.lock:
            found = self.world.repos[repo]
            return [
                views.workflow_run(self.world, found, run) | {"payload": run.payload}
                for run in found.runs.values()
            ]

    def pull(self, repo: str, number: int) -> Json:
        with self.lock:
            found = self.world.repos[repo]
            return views.whole_pull(self.world, found, found.pulls[number])

    def events(self) -> list[Json]:
        """Return all events, oldest first: `name`, `repo`, `payload`, and whether the event `starts`
        workflows.
        """
        with self.lock:
            return [
                {"name": each.name, "repo": each.repo, "payload": each.payload, "starts": each.starts}
                for each in self.world.events
            ]

    def environments(self, repo: str) -> dict[str, Json]:
        """Return each environment: its rules as GitHub shows them, the `branches` that may use it, and its
        `secrets`.
        """
        with self.lock:
            found, world = self.world.repos[repo], self.world
            return {
                name: views.environment(world, found, made)
                | {"branches": list(made.branches.values()), "secrets": dict(made.secrets)}
                for name, made in found.environments.items()
            }

    def settings(self, repo: str) -> Json:
        """Return the repository's `variables` and `secrets`."""
        with self.lock:
            found = self.world.repos[repo]
            return {"variables": dict(found.variables), "secrets": dict(found.secrets)}

    def files(self, repo: str, ref: str = "main") -> dict[str, str]:
        """Return the content of each file at the ref; bytes that are not text become U+FFFD."""
        with self.lock:
            git = self.world.repos[repo].git
            sha = git.resolve(ref)
            assert sha is not None, f"{repo} has no {ref}"
            return {
                path: git.objects.blobs[blob].decode(errors="replace")
                for path, (_, blob) in git.objects.files(sha).items()
            }

    # --------------------------------------------------------------------------------------------------------
    # what it takes

    def _commit(
        self, git: Git, base: str, branch: str, files: Mapping[str, str | None], by: str, message: str
    ) -> str:
        tip = git.refs.get(f"refs/heads/{base}")
        if tip is not None:
            git.refs.setdefault(f"refs/heads/{branch}", tip)
        return git.commit(branch, files, message=message, name=by, at_s=self.world.now_s())

    def _proposed(self, home: Repo, pull: Pull) -> dict[str, tuple[str, str]]:
        objects = self.world.repos[pull.head_repo].git.objects
        return dict(objects.files(pull.head_sha))

    def _follow(self, home: Repo, pull: Pull, by: str) -> None:
        """Set the head of an open pull request to that of its branch."""
        now = self.world.repos[pull.head_repo].git.refs.get(f"refs/heads/{pull.head_ref}", pull.head_sha)
        if pull.state == "open" and now != pull.head_sha:
            before, pull.head_sha = pull.head_sha, now
            home.git.refs[f"refs/pull/{pull.number}/head"] = now
            self._tell(home, pull, "synchronize", by, before=before)

    def _tell(self, home: Repo, pull: Pull, action: str, by: str, **more: str) -> None:
        self.world.add_user(by)
        self.world.happen(
            "pull_request", home, events.pull_request(self.world, home, pull, action, by, **more), None
        )
