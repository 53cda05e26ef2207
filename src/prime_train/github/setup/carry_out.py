"""Carry out the steps that set a repository up, one by one: what fails is told, and the others go on."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from prime_train.errors import PermanentError, UsageError
from prime_train.github.api import GitHub
from prime_train.github.environments import Environment, allow_branch, put_environment, set_variable
from prime_train.github.gh import store_secret
from prime_train.github.proposals import commit_files, open_pull, set_branch
from prime_train.github.setup.state import Found, Wishes
from prime_train.github.setup.steps import (
    AllowBranch,
    Propose,
    SetRules,
    SetupPlan,
    SetVariable,
    Step,
    StoreSecret,
    SwitchOn,
    Trust,
)
from prime_train.github.workflows import enable_workflow

MESSAGE = "Set up prime-train"
BODY = """\
Adds the workflows with which prime-train checks, launches, watches and stops training runs of this repository.

- `validate` checks each pull request, this one too, and comments what a changed config needs and costs. It answers on every pull request
  and in merge queues, so it can be a required check.
- `launch` waits for a reviewer of the environment `gpu`, and then starts a run.
- `watch` replaces lost machines within the budget; `stop` takes commands from comments.
"""
NO_RULES = "GitHub keeps no such rule here: for private repositories, its free plans have none. Without it, "


@dataclass(frozen=True)
class Done:
    """A step and its result. `wrong`: why it is not done; `url`: a page that shows it."""

    step: Step
    wrong: str = ""
    url: str = ""


def carry_out(
    github: GitHub, planned: SetupPlan, wishes: Wishes, found: Found, trust: Callable[[str], None]
) -> Iterator[Done]:
    """Carry out each step, and yield its result. A key is stored, or trust given, only in an environment that
    has its rule. `trust` has the control plane trust jobs in an environment. Raises TemporaryError if GitHub
    does not answer; then the rest can be done by another call.
    """
    open_ones = set(planned.unguarded)
    for step in planned.steps:
        done = _done(github, step, wishes, found, trust, open_ones)
        if done.wrong and isinstance(step, SetRules | AllowBranch):
            open_ones.add(step.environment)
        yield done


def _done(
    github: GitHub,
    step: Step,
    wishes: Wishes,
    found: Found,
    trust: Callable[[str], None],
    open_ones: set[str],
) -> Done:
    environment = step.environment if isinstance(step, AllowBranch | StoreSecret | Trust) else ""
    if environment in open_ones:
        return Done(step, f"the environment {environment} has no rule about who may use it")
    try:
        return _carried_out(github, step, wishes, found, trust)
    except (PermanentError, UsageError) as error:
        return Done(step, f"{error}{f'; {error.fix}' if isinstance(error.fix, str) and error.fix else ''}")


def _carried_out(
    github: GitHub, step: Step, wishes: Wishes, found: Found, trust: Callable[[str], None]
) -> Done:
    match step:
        case SetRules():
            return Done(
                step, _missing_rule(put_environment(github, step.environment, step.rules), step.rules)
            )
        case AllowBranch():
            allow_branch(github, step.environment, step.branch)
        case SetVariable():
            set_variable(github, step.name, step.value, is_new=step.is_new)
        case StoreSecret():
            store_secret(
                step.name,
                wishes.secrets[step.name],
                environment=step.environment,
                repository=found.repository,
            )
        case Trust():
            trust(step.environment)
        case SwitchOn():
            enable_workflow(github, step.workflow)
        case Propose():
            # Commit the files, and return the pull request's page.
            if step.files:
                commit = commit_files(github, step.parent, step.files, MESSAGE)
                set_branch(github, step.branch, commit, is_new=step.is_new)
            return Done(step, url=open_pull(github, step.branch, step.base, MESSAGE, BODY).html_url)
    return Done(step)


def _missing_rule(made: Environment, rules: Mapping[str, object]) -> str:
    """Return what is missing of the rules that were sent: some plans accept them and keep none."""
    if "reviewers" in rules and not made.has_reviewers:
        return f"{NO_RULES}whoever may push a branch could launch"
    if "deployment_branch_policy" in rules and made.deployment_branch_policy is None:
        return f"{NO_RULES}whoever may push a branch could use its keys"
    return ""
