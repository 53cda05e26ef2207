"""Which steps set a repository up, decided from what is there: pure."""

from collections.abc import Iterator, Mapping

from prime_train.advice import Call, Operation, Option, SettingAdvice
from prime_train.environment import CREDENTIALS, OFFERS
from prime_train.github.environment_rules import ENVIRONMENTS, is_open_to_all
from prime_train.github.environments import Environment
from prime_train.github.schedule import WATCH
from prime_train.github.setup.files import OLD_OFFERS, FileState, difference, state_of
from prime_train.github.setup.state import ENVIRONMENT_WORKFLOWS, URL, Found, Wishes, places_of
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
from prime_train.providers.in_one_value import EXAMPLE
from prime_train.providers.kinds import credentials
from prime_train.text.invocations import command

CUSTOM = {"protected_branches": False, "custom_branch_policies": True}


def plan(wishes: Wishes, found: Found) -> SetupPlan:
    """Return what is missing. The rule of an environment comes before everything that relies on it."""
    steps: list[Step] = []
    kept: list[str] = []
    left: list[str] = []
    unguarded = frozenset(
        name for name, one in found.environments.items() if _is_open_by_pattern(name, one, found)
    )
    for name in ENVIRONMENT_WORKFLOWS:
        _add(steps, kept, list(_environment_steps(name, found)), f"environment {name}")
        if name in unguarded:
            left.append(
                f"environment {name}: its pattern for all branches lets every branch use its keys; delete it "
                "by hand"
            )
    _add(
        steps,
        kept,
        list(_variable_steps(wishes, found)),
        f"variable {URL} = {found.url}" if found.url else "",
    )
    for name in wishes.secrets:
        for place in places_of(name):
            is_there = name in found.secrets.get(place, frozenset()) and not wishes.force
            step = StoreSecret(name, place)
            _add(steps, kept, [] if is_there else [step], step.text)
    for name in ENVIRONMENT_WORKFLOWS if found.trusted is not None and wishes.url else ():
        _add(steps, kept, [] if name in (found.trusted or ()) else [Trust(name)], Trust(name).text)
    if found.schedule is not None:
        if found.schedule.off.is_by_itself:
            steps.append(SwitchOn(WATCH))
        else:
            left.append(found.schedule.text)
    left += _unread_secrets(found)
    left += _refused_actions(wishes, found)
    proposed, same, changed = _files(wishes, found)
    kept += same
    left += [f"{path}: somebody changed it, so it stays" for path in changed]
    steps += _proposal(proposed, found)
    return SetupPlan(tuple(steps), tuple(kept), tuple(left), tuple(changed.values()), unguarded)


def _add(steps: list[Step], kept: list[str], new: list[Step], text: str) -> None:
    """Add the new steps; without any, `text` is there already."""
    steps += new
    if not new and text:
        kept.append(text)


def _environment_steps(name: str, found: Found) -> Iterator[Step]:
    needs, there = ENVIRONMENTS[name], found.environments.get(name)
    before = there.rules if there is not None else {}
    rules, words = dict(before), []
    if needs.reviewers and not (there is not None and there.has_reviewers):
        rules["reviewers"] = [{"type": "User", "id": found.user_id}]
        words.append("you approve its jobs")
    if needs.branches and (there is None or there.deployment_branch_policy is None):
        rules["deployment_branch_policy"] = CUSTOM
        words.append("only from certain branches")
    if rules != before:
        # What is not sent is deleted, so that only what is empty may be left out.
        yield SetRules(name, {key: value for key, value in rules.items() if value}, " and ".join(words))
    if needs.branches and not _names_branches(there, found.patterns.get(name)):
        yield AllowBranch(name, found.default_branch)


def _names_branches(there: Environment | None, patterns: tuple[str, ...] | None) -> bool:
    """Return whether the environment says which branches may use it."""
    return (
        there is not None
        and there.deployment_branch_policy is not None
        and (not _is_custom(there) or bool(patterns))
    )


def _is_open_by_pattern(name: str, there: Environment, found: Found) -> bool:
    return ENVIRONMENTS[name].branches and _is_custom(there) and is_open_to_all(found.patterns.get(name, ()))


def _is_custom(there: Environment) -> bool:
    policy = there.deployment_branch_policy
    return policy is not None and policy.custom_branch_policies


def _variable_steps(wishes: Wishes, found: Found) -> Iterator[Step]:
    if wishes.url and wishes.url != found.url and (wishes.is_url_given or not found.url):
        yield SetVariable(URL, wishes.url, not found.url)


def _unread_secrets(found: Found) -> Iterator[str]:
    """Yield which secrets only workflows of earlier versions read, which had one for each provider, and what
    is read in their place.
    """
    for place, names in found.secrets.items():
        old, one = (credentials(), CREDENTIALS) if place else (OLD_OFFERS, OFFERS)
        if unread := sorted(names & old):
            where = f"the environment {place}" if place else "the repository"
            instead = (
                f"{one} is read in their place"
                if one in names
                else f"store {one} in their place ({_making(one)})"
            )
            yield f"{', '.join(unread)} of {where}: no workflow reads it any more; {instead}, and delete it"


def _making(secret: str) -> str:
    if secret == OFFERS:
        return f"a JSON object such as {EXAMPLE}, or none: the control plane tells its providers' offers"
    return command(Call(Operation.SET_UP_GITHUB, options=(Option(SettingAdvice.SECRET, secret),)))


def _refused_actions(wishes: Wishes, found: Found) -> Iterator[str]:
    """Yield why GitHub would not run the workflows at all, which nobody is told in a pull request."""
    if found.actions is not None and not found.actions.enabled:
        yield (
            "GitHub Actions is off in this repository, so nothing runs: switch it on under Settings, Actions"
        )
    elif found.actions is not None and found.actions.allowed_actions != "all":
        needs = f"{wishes.pin.repository} and the actions that its workflows use"
        yield f"this repository runs only certain actions: allow {needs} under Settings, Actions"


def _files(wishes: Wishes, found: Found) -> tuple[dict[str, str], list[str], dict[str, str]]:
    """Return the files to propose, those that are there already, and for each that somebody changed what
    would change in it.
    """
    proposed: dict[str, str] = {}
    same: list[str] = []
    changed: dict[str, str] = {}
    wanted = wishes.workflows | ({} if found.has_configs else wishes.config)
    for path, ours in wanted.items():
        there = _there(path, found)
        match state_of(there, ours):
            case FileState.SAME:
                same.append(path)
            case FileState.CHANGED if not wishes.force:
                changed[path] = difference(path, there or "", ours)
            case _:
                proposed[path] = ours
    return proposed, same, changed


def _there(path: str, found: Found) -> str | None:
    """Return the file as it will be: on the branch of the open pull request, or else on the default
    branch.
    """
    proposed: Mapping[str, str | None] = found.branch.files if found.branch.pull is not None else {}
    return proposed.get(path) if proposed.get(path) is not None else found.files.get(path)


def _proposal(files: Mapping[str, str], found: Found) -> Iterator[Step]:
    branch = found.branch
    if not files:
        return
    if branch.pull is not None:
        yield Propose(
            branch.name,
            found.default_branch,
            branch.tip or found.tip,
            files,
            is_new=False,
            pull=branch.pull.number,
        )
    elif branch.tip is not None:
        # An earlier setup ended before its pull request was open.
        yield Propose(branch.name, found.default_branch, branch.tip, {}, is_new=False)
    else:
        yield Propose(branch.name, found.default_branch, found.tip, files)
