"""What a repository on GitHub has of what training from it needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.github.api import GitHub, parsed
from prime_train.github.environments import Environment, branches, environments, secret_names, variable
from prime_train.github.proposals import (
    About,
    Me,
    OpenPull,
    commit_at,
    files_in,
    hash_of,
    is_merged,
    open_pull_of,
    tip_of,
)
from prime_train.github.repository import content_at
from prime_train.github.schedule import ScheduleOff, schedule_off
from prime_train.github.setup.files import Pin, WorkflowsRef, secrets_of, workflow_files
from prime_train.github.workflows import ActionsPolicy, actions_policy
from prime_train.planning.new_configs.ready_configs import ready_config

URL = "PRIME_TRAIN_URL"
CONFIGS = "configs"
BRANCH = "prime-train-setup"
BRANCHES_MAX = 9
WORKFLOW_SCOPE = "workflow"
ENVIRONMENT_WORKFLOWS: Mapping[str, tuple[str, ...]] = {
    "gpu": ("launch.yml",),
    "gpu-watch": ("stop.yml", "watch.yml"),
}
"""The environments for jobs that have keys, with the workflows whose jobs are in each."""
REPOSITORY = ""
"""The place of a secret that is in no environment."""


@dataclass(frozen=True)
class Wishes:
    """What the user wants. `url`: the control plane's address, empty for none; `is_url_given`: it replaces
    another one; `preset`: the ready config for a repository that has none; `secrets`: the values, by name;
    `force`: replaces files that somebody changed, and secrets.
    """

    pin: Pin
    url: str = ""
    is_url_given: bool = False
    preset: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    force: bool = False

    @property
    def workflows(self) -> dict[str, str]:
        return workflow_files(self.pin)

    @property
    def config(self) -> dict[str, str]:
        """The config for a repository that has none, by its path."""
        if not self.preset:
            return {}
        name, text = ready_config(self.preset)
        return {f"{CONFIGS}/{name}.yaml": text}


@dataclass(frozen=True)
class SetupBranch:
    """The branch for the pull request. `tip`: its newest commit, None if it does not exist; `files`: their
    text on it; `pull`: the open pull request from it.
    """

    name: str
    tip: str | None = None
    files: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    pull: OpenPull | None = None


@dataclass(frozen=True)
class Found:
    """A repository. `files`: the text of each workflow file on the default branch, None if it does not exist;
    `tip`: that branch's newest commit; `environments`, `patterns`: each environment, and the branches that
    may use it, None for all protected ones; `secrets`: the names in each environment, and in the repository;
    `trusted`: the environments whose jobs the control plane trusts, None if it cannot be changed from here.
    """

    repository: str
    default_branch: str
    tip: str
    user_id: int
    files: Mapping[str, str | None] = field(repr=False)
    has_configs: bool
    branch: SetupBranch
    environments: Mapping[str, Environment]
    patterns: Mapping[str, tuple[str, ...] | None]
    url: str
    secrets: Mapping[str, frozenset[str]]
    schedule: ScheduleOff | None
    actions: ActionsPolicy | None
    trusted: frozenset[str] | None


def resolved(github: GitHub, source: WorkflowsRef) -> Pin:
    """Return the commit that the source names. `github`: a client of the repository with prime-train. Raises
    UsageError if there is none.
    """
    commit = commit_at(github, source.ref)
    if commit is None:
        message = f"{source.repository} has no {source.ref} that this log-in may see"
        raise UsageError(
            message,
            fix="name a repository and a ref that exist, as OWNER/NAME@REF",
            code=Exit.EXTERNAL_REFUSED,
        )
    return Pin(source.repository, commit, source.label)


def places_of(secret: str) -> tuple[str, ...]:
    """Return the environments in which jobs need the secret; the repository for one that pull requests need.
    Raises UsageError for a secret that no workflow knows.
    """
    if secret in secrets_of("validate.yml"):
        return (REPOSITORY,)
    places = [
        name
        for name, files in ENVIRONMENT_WORKFLOWS.items()
        if any(secret in secrets_of(file) for file in files)
    ]
    if not places:
        known = sorted(
            secrets_of("validate.yml").union(
                *(secrets_of(file) for files in ENVIRONMENT_WORKFLOWS.values() for file in files)
            )
        )
        raise UsageError(f"no workflow knows a secret {secret[:60]!r}", fix=f"name one of {', '.join(known)}")
    return tuple(places)


def look(github: GitHub, wishes: Wishes, trusted: frozenset[str] | None) -> Found:
    """Read everything that the plan depends on; nothing is changed. Raises UsageError if the user may not set
    the repository up, and ExternalError if GitHub does not answer.
    """
    me, about = _who(github), github.find(About, "")
    if about is None:
        message = f"there is no repository {github.repository} that {me.login} may see"
        raise UsageError(
            message,
            fix="check its name, and whether gh is logged in as the right user",
            code=Exit.EXTERNAL_REFUSED,
        )
    _check_rights(about)
    tip = tip_of(github, about.default_branch)
    if tip is None:
        raise UsageError(
            f"{about.full_name} is empty", fix="push a first commit, to which a pull request can be made"
        )
    files = _texts(github, wishes.workflows, tip)
    has_configs = _has_configs(github, tip)
    branch = _setup_branch(github, wishes, about.default_branch, files, has_configs=has_configs)
    known = {one.name: one for one in environments(github) or () if one.name in ENVIRONMENT_WORKFLOWS}
    places = {place for name in wishes.secrets for place in places_of(name)}
    return Found(
        about.full_name,
        about.default_branch,
        tip,
        me.id,
        files,
        # One that the open pull request proposes counts, too: people edit it there.
        has_configs or (branch.pull is not None and _has_configs(github, branch.tip or tip)),
        branch,
        known,
        {name: branches(github, one) for name, one in known.items()},
        variable(github, URL),
        {place: secret_names(github, place, is_needed=place in places) for place in (REPOSITORY, *known)},
        schedule_off(github, is_live=True),
        actions_policy(github),
        trusted,
    )


def _has_configs(github: GitHub, ref: str) -> bool:
    return any(name.endswith((".yaml", ".yml")) for name in files_in(github, CONFIGS, ref))


def _who(github: GitHub) -> Me:
    """Return the user. Raises UsageError if the log-in may not write workflow files; GitHub would say later
    only that nothing is found.
    """
    answer = github.ask("GET", "/user")
    me = parsed(Me, answer)
    scopes = answer.headers.get("x-oauth-scopes")
    if scopes is not None and WORKFLOW_SCOPE not in {one.strip() for one in scopes.split(",")}:
        fix = f"run gh auth refresh --scopes {WORKFLOW_SCOPE}"
        raise UsageError(
            "gh's log-in may not write workflow files: it lacks the scope workflow",
            fix=fix,
            code=Exit.EXTERNAL_REFUSED,
        )
    return me


def _check_rights(about: About) -> None:
    if about.archived:
        raise UsageError(
            f"{about.full_name} is archived, so nothing in it can change", code=Exit.EXTERNAL_REFUSED
        )
    if not about.permissions.get("admin"):
        message = (
            f"you are no administrator of {about.full_name}, so you cannot make its environments "
            "and variables"
        )
        raise UsageError(message, fix="ask one to run this", code=Exit.EXTERNAL_REFUSED)


def _texts(github: GitHub, ours: Mapping[str, str], ref: str) -> dict[str, str | None]:
    """Return the text of each of these files at the ref, None if it does not exist. Those that differ from
    ours are read.
    """
    listed = {folder: files_in(github, folder, ref) for folder in {path.rpartition("/")[0] for path in ours}}
    found: dict[str, str | None] = {}
    for path, text in ours.items():
        folder, _, name = path.rpartition("/")
        known = listed[folder].get(name)
        # What is no text is not ours either.
        found[path] = (
            None if known is None else text if known == hash_of(text) else content_at(github, path, ref) or ""
        )
    return found


def _setup_branch(
    github: GitHub, wishes: Wishes, base: str, files: Mapping[str, str | None], *, has_configs: bool
) -> SetupBranch:
    """Return the first branch that has an open pull request, does not exist, or has all files already: one
    that was left behind, such as by an earlier setup, may contain what somebody wants to keep.
    """
    wanted = wishes.workflows | ({} if has_configs else wishes.config)
    for number in range(1, BRANCHES_MAX + 1):
        name = BRANCH if number == 1 else f"{BRANCH}-{number}"
        tip = tip_of(github, name)
        if tip is None:
            return SetupBranch(name)
        found = SetupBranch(name, tip, _texts(github, wanted, tip), open_pull_of(github, name))
        if found.pull is not None:
            return found
        if found.files == wanted and files != wishes.workflows and not is_merged(github, name, base):
            return found
    raise UsageError(
        f"{BRANCHES_MAX} branches {BRANCH} exist already", fix="delete those that are no longer needed"
    )
