"""The steps that set a repository up, each of which does nothing if it is done again."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SetRules:
    """Create an environment, or change its rules. `rules`: all that it has afterwards, in the form in which
    they are sent.
    """

    environment: str
    rules: Mapping[str, object]
    words: str

    @property
    def text(self) -> str:
        return f"environment {self.environment}: {self.words}"


@dataclass(frozen=True)
class AllowBranch:
    """Let an environment be used from the branch."""

    environment: str
    branch: str

    @property
    def text(self) -> str:
        return f"environment {self.environment}: usable from the branch {self.branch} only"


@dataclass(frozen=True)
class SetVariable:
    """Create or change a variable of the repository."""

    name: str
    value: str
    is_new: bool

    @property
    def text(self) -> str:
        return f"variable {self.name} = {self.value}"


@dataclass(frozen=True)
class StoreSecret:
    """Store a secret. `environment`: empty for the repository."""

    name: str
    environment: str

    @property
    def text(self) -> str:
        return (
            f"secret {self.name} "
            "of "
            f"{f'the environment {self.environment}' if self.environment else 'the repository'}"
        )


@dataclass(frozen=True)
class Trust:
    """Have the control plane trust the repository's jobs in an environment, so that no key is stored at
    GitHub.
    """

    environment: str

    @property
    def text(self) -> str:
        return f"the control plane trusts jobs in the environment {self.environment}"


@dataclass(frozen=True)
class SwitchOn:
    """Switch on the schedule that GitHub has switched off."""

    workflow: str

    @property
    def text(self) -> str:
        return f"schedule of {self.workflow}: on again"


@dataclass(frozen=True)
class Propose:
    """Commit files to a branch, and open a pull request unless there is one. `parent`: the commit that they
    come after; `is_new`: the branch does not exist; `files`: none if the branch has them already; `pull`: the
    number of the open pull request.
    """

    branch: str
    base: str
    parent: str
    files: Mapping[str, str] = field(repr=False)
    is_new: bool = True
    pull: int | None = None

    @property
    def text(self) -> str:
        files = ", ".join(self.files)
        if self.pull is not None:
            return f"pull request #{self.pull}: {files}"
        return f"pull request from {self.branch}{f': {files}' if files else ''}"


Step = SetRules | AllowBranch | SetVariable | StoreSecret | Trust | SwitchOn | Propose


@dataclass(frozen=True)
class SetupPlan:
    """What is missing, what is there already, and what cannot be done, each in words. `differences`: for
    files that are left as they are, what would change in each; `unguarded`: environments that any branch may
    use although they have a rule, so that they get no key.
    """

    steps: tuple[Step, ...]
    kept: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    unguarded: frozenset[str] = frozenset()
