"""Findings on what a config asks beyond the operator's policy, as far as the policy can be read from here."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from prime_train.app.home import Home
from prime_train.app.policy import in_force
from prime_train.configs.loader import LoadedConfig
from prime_train.configs.policy_place import has_policy
from prime_train.environment import MASTER
from prime_train.errors import ExternalError
from prime_train.spec.finding import Finding
from prime_train.spec.finding_drafts import FindingDraft, ParseAborted, finding
from prime_train.spec.policy import Caller, Excess, InForce, beyond
from prime_train.spec.spec import RunSpec
from prime_train.spec.tree import SourcePosition, place_of
from prime_train.spec.yaml_tree import read_code


def policy_findings(
    policy: InForce | None, spec: RunSpec, file: str, source: str, *, is_remote: bool
) -> tuple[Finding, ...]:
    """Return a finding for each value of the config that the policy does not allow, at its place. Who
    launches is not judged here, because that is known only at a launch. `policy`: None if it cannot be read
    from here.
    """
    found = [one for one in beyond(policy, spec, Caller(is_remote)) if one.key] if policy is not None else []
    return tuple(_finding(one, file, source) for one in found)


def beyond_policy(read: Sequence[LoadedConfig], environment: Mapping[str, str]) -> list[Finding]:
    """Return a finding for whatever a config asks beyond the policy of the control plane that the environment
    names. Raises UsageError if there is a policy that cannot be used.
    """
    home = Home.of(environment)
    policy = _readable(home, environment)
    is_remote = home.is_remote or bool(environment.get("CI"))
    return [
        found
        for loaded in read
        if loaded.spec is not None
        for found in policy_findings(
            policy, loaded.spec, loaded.file, loaded.sources.get(loaded.file, ""), is_remote=is_remote
        )
    ]


def _readable(home: Home, environment: Mapping[str, str]) -> InForce | None:
    """Return the policy; None if it cannot be read from here, as in a CI job without the variable that holds
    it.
    """
    if has_policy(home.root, environment):
        policy = in_force(home.root, environment)
        # The default providers are those of the control plane, whose keys this environment lacks; the launch
        # judges them.
        return replace(policy, defaults=()) if home.elsewhere or environment.get("CI") else policy
    if environment.get("CI") or (home.elsewhere and not environment.get(MASTER)):
        return None
    try:
        return home.policy()
    except ExternalError:
        return None  # the launch, which needs the control plane, judges it


def _finding(excess: Excess, file: str, source: str) -> Finding:
    try:
        place = place_of(read_code(source)[0], excess.key)
    except ParseAborted:
        place = SourcePosition()
    return finding(file, FindingDraft("PT027", place, excess.message, fix=excess.fix))
