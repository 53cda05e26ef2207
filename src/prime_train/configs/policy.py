"""Reads the operator's policy, a small YAML file or its text, and reports every mistake at once with its line
and column.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from prime_train.configs.policy_place import VARIABLE, is_there, policy_file
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.spec import error_messages
from prime_train.spec.finding import Finding
from prime_train.spec.finding_drafts import DRAFTS_MAX, FindingDraft, ParseAborted, finding, plain
from prime_train.spec.finding_drafts import Mapping as Tree
from prime_train.spec.policy import InForce, Policy
from prime_train.spec.source_file import read_source
from prime_train.spec.tree import place_of
from prime_train.spec.yaml_tree import read_code
from prime_train.text.nearest import nearest

NOT_A_MAPPING = (
    "write lines such as providers: [prime]; where there is no policy, delete the file, or unset the variable"
)


def read_policy(root: Path, environment: Mapping[str, str]) -> InForce:
    """Return the policy that is written in the home, its file or the variable; the default one if none is.
    Raises UsageError with all mistakes in it: what cannot be read must not count as no policy.
    """
    file = policy_file(root, environment)
    if file is not None and not environment.get(VARIABLE) and not is_there(file):
        return InForce(where=str(file))
    where = str(file) if file is not None else VARIABLE
    try:
        policy, found = parsed(read_source(file) if file is not None else environment[VARIABLE], where)
    except ParseAborted as halt:
        policy, found = None, [finding(where, halt.draft)]
    if policy is None:
        shown = "\n".join(
            f"{one.file}:{one.line}:{one.column}: {one.message}{f'; {one.fix}' if one.fix else ''}"
            for one in found
        )
        raise UsageError(
            f"the policy of this control plane cannot be used, so nothing is launched:\n{shown}",
            code=Exit.FINDINGS,
        )
    return InForce(policy, where)


def parsed(source: str, where: str) -> tuple[Policy | None, list[Finding]]:
    """Return the policy in this text, or None and its mistakes."""
    try:
        root, drafts = read_code(source)
    except ParseAborted as halt:
        draft = halt.draft
        return None, [finding(where, replace(draft, fix=NOT_A_MAPPING) if draft.code == "PT005" else draft)]
    policy: Policy | None = None
    try:
        # Strict JSON mode, as for configs: a list counts as a tuple, but text is not a number.
        policy = Policy.model_validate_json(json.dumps(plain(root)), strict=True)
    except ValidationError as error:
        errors = [
            error_messages.SpecError.of(row) for row in error.errors(include_url=False, include_input=False)
        ]
        unknown = [one for one in errors if one.kind == "extra_forbidden"]
        drafts = [
            *drafts,
            *(_unknown(one, root) for one in unknown),
            *error_messages.drafts([one for one in errors if one.kind != "extra_forbidden"], root),
        ]
    found = [finding(where, draft) for draft in drafts[:DRAFTS_MAX]]
    return (None if found else policy), found


def _unknown(error: error_messages.SpecError, root: Tree) -> FindingDraft:
    known, key = list(Policy.model_fields), str(error.path[-1])
    guess = [*nearest(key, known)]
    fix = f"did you mean {guess[0]}?" if guess else f"known: {', '.join(known)}"
    return FindingDraft(
        "PT010", place_of(root, error.path, on_key=True), f"unknown key {key[:60]!r}", fix=fix, value=key
    )
