"""Whom a role of AWS lets in that jobs of GitHub assume, by its trust policy.

GitHub signs a token for any job of any repository. So the policy has to compare the token's audience, and its
subject (`sub`), which names the repository and the environment or the ref, in full: a wildcard in the subject
lets in other repositories, pull requests or branches.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

ISSUER = "token.actions.githubusercontent.com"
AUDIENCE = "sts.amazonaws.com"
ACTION = "sts:AssumeRoleWithWebIdentity"
OPERATORS = ("StringEquals", "StringLike")
"""Operators that compare a value that has to be there, the stricter first: if both are used, both have to
hold.
"""

_SUBJECT = re.compile(
    r"repo:(?P<owner>[^/:@]+)(?:@\d+)?/(?P<name>[^/:@]+)(?:@\d+)?:(?:environment:[^:]+|ref:refs/(?:heads|"
    r"tags)/.+)"
)
_WILD = re.compile(r"[*?]")
SHOWN_CHARS_MAX = 120


def wrong_trust(policy: object, repository: str = "") -> tuple[str, ...]:
    """Return what is wrong with the trust policy of a role for a job of this repository (`owner/name`; empty:
    any one), each in words; empty if nothing is. `policy`: as parsed from JSON.
    """
    statements = _listed(policy.get("Statement")) if isinstance(policy, Mapping) else []
    allowing = [one for one in statements if isinstance(one, Mapping) and one.get("Effect") == "Allow"]
    if not allowing:
        return ("it lets nobody in",)
    return tuple(dict.fromkeys(why for one in allowing for why in _wrong(one, repository)))


def _wrong(statement: Mapping[str, object], repository: str) -> Iterator[str]:
    if not {"Principal", "Action"} <= statement.keys():
        yield "a statement does not name whom it lets in, or to do what"
        return
    principal = statement["Principal"]
    values = [
        one
        for part in (principal.values() if isinstance(principal, Mapping) else [principal])
        for one in _listed(part)
    ]
    if "*" in values:
        yield "it lets in everybody (Principal: *)"
    federated = _listed(principal.get("Federated")) if isinstance(principal, Mapping) else []
    if any(str(one).endswith(f":oidc-provider/{ISSUER}") for one in federated):
        yield from _wrong_conditions(statement.get("Condition"), repository)


def _wrong_conditions(conditions: object, repository: str) -> Iterator[str]:
    audiences, subjects = _compared(conditions, "aud"), _compared(conditions, "sub")
    if audiences != {AUDIENCE}:
        yield f"it does not require the audience {AUDIENCE} ({ISSUER}:aud, by StringEquals)"
    if not subjects:
        yield (
            f"it does not require a subject ({ISSUER}:sub, by StringEquals), so that a job of "
            "any repository on GitHub is let in"
        )
    for subject in sorted(subjects):
        found = _SUBJECT.fullmatch(subject)
        if _WILD.search(subject):
            yield (
                f"the subject {_shown(subject)} has a wildcard: name the repository, and the "
                "environment or the ref, in full"
            )
        elif found is None:
            yield f"the subject {_shown(subject)} is not that of an environment or a ref of one repository"
        elif repository and f"{found['owner']}/{found['name']}".lower() != repository.lower():
            yield f"the subject {_shown(subject)} is that of another repository than {repository}"


def _compared(conditions: object, claim: str) -> set[str]:
    """Return the values of which a claim must have one. Operators that a missing claim satisfies, or that
    compare otherwise, require nothing.
    """
    for operator in OPERATORS:
        pairs = conditions.get(operator) if isinstance(conditions, Mapping) else None
        # Keys of conditions are compared without regard to case.
        keys = (
            [key for key in pairs if str(key).lower() == f"{ISSUER}:{claim}"]
            if isinstance(pairs, Mapping)
            else []
        )
        if isinstance(pairs, Mapping) and keys:
            return {str(value) for key in keys for value in _listed(pairs[key])}
    return set()


def _listed(value: object) -> list[object]:
    return (
        list(value)
        if isinstance(value, Sequence) and not isinstance(value, str)
        else []
        if value is None
        else [value]
    )


def _shown(text: str) -> str:
    return ascii(text[:SHOWN_CHARS_MAX])
