"""Rules that report the refusals of prime-rl's own validators, if they were run, at the settings they are
about.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prime_train.spec.rule import Rules, Subject, Violation
from prime_train.spec.tree import Listing, Mapping, Node, find
from prime_train.trainers.prime_rl.rules.rule import TOPIC, settings_of
from prime_train.trainers.prime_rl.rules.schema_errors import Where, dotted
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig

if TYPE_CHECKING:
    from prime_train.spec.upstream import ValidatorError

NAMED_MAX = 50
"""Maximum number of words of one message that are looked up."""
_NAME = r"[A-Za-z]\w*(?:[._]\w+)+"
"""Pattern of a word that can only be a setting's name, as it contains a dot or an underscore."""
_PREFIX = r"^(Value error|Assertion failed), "
_EXTRA, _MISSING = "extra_forbidden", "missing"


RULES = Rules(TOPIC, requires="prime_rl")


@RULES.error(
    "PR390",
    "a config that prime-rl's own validators reject",
    why="A deep validation runs the validators of the commit that would run. prime-rl would stop with this "
    "message, on a machine that is already paid for.",
    fix="follow the message",
)
def refused(subject: Subject) -> Iterator[Violation]:
    settings = settings_of(subject)
    if subject.upstream is None or settings is None:
        return
    for refusal in subject.upstream.refusals:
        found, rest = _found(refusal.where, settings.root)
        name = dotted(refusal.where if rest else found) or "the config"
        text = " ".join(re.sub(_PREFIX, "", refusal.text).split()).rstrip(".")
        message = f"prime-rl {subject.upstream.commit[:9]} refuses {name}: {text}"
        yield Violation(
            _path(refusal, found, rest, settings), message, on_key=refusal.kind == _EXTRA, document="trainer"
        )


@RULES.warning(
    "PR391",
    "prime-rl's own validators did not run",
    why="A deep validation fetches and installs prime-rl's config package once per commit. All other checks "
    "ran as they do without it.",
    fix="fix the cause that the message names, or validate without them",
)
def unasked(subject: Subject) -> Iterator[Violation]:
    if subject.upstream is not None and subject.upstream.failure:
        yield _of_version(subject, f"prime-rl's own validators did not run: {subject.upstream.failure}")


@RULES.error(
    "PR392",
    "a commit that prime-rl does not have",
    why="The rented machine could not fetch the code. Only a deep validation checks this against the "
    "repository.",
    fix="write the full hash of a prime-rl commit, all 40 digits",
)
def absent(subject: Subject) -> Iterator[Violation]:
    if subject.upstream is not None and subject.upstream.is_absent:
        yield _of_version(
            subject, f"no branch or tag of prime-rl contains the commit {subject.upstream.commit}"
        )


def _of_version(subject: Subject, message: str) -> Violation:
    if subject.spec is not None:
        return Violation(("trainer", "prime_rl", "ref"), message)
    return Violation((), message, document="trainer")


def _found(where: Where, root: Node) -> tuple[Where, Where]:
    """Return the part of the path that exists in the config, and the rest. The validators' paths also contain
    names of alternatives, which no config has; a part that is missing between two existing keys is such a
    name and is skipped.
    """
    path, node = list[str | int](), root
    for at, step in enumerate(where):
        below = find(node, (step,))
        if below is not None:
            path.append(step)
            node = below
        elif not any(find(node, (later,)) for later in where[at + 1 :]):
            return tuple(path), where[at:]
    return tuple(path), ()


def _path(refusal: "ValidatorError", found: Where, rest: Where, settings: ReceivedConfig) -> Where:
    """Return the path to report: the value itself, the shared setting that fills it, or the first setting
    that the message names.
    """
    shared = settings.given_at(".".join(map(str, refusal.where))) if rest else None
    if shared is not None:
        return shared
    if refusal.kind == _MISSING:
        return (*found, *rest)
    node = settings.at(found)
    return _named(refusal.text, found, node, settings) if isinstance(node, Mapping | Listing) else found


def _named(text: str, path: Where, node: Node, settings: ReceivedConfig) -> Where:
    """Return the path of the first setting named in a message about an entire section, relative to that
    section or to the root; `path` if none is named.
    """
    for word in re.findall(_NAME, text)[:NAMED_MAX]:
        steps = tuple(word.split("."))
        for candidate, base in (((*path, *steps), node), (steps, settings.root)):
            if find(base, steps) is not None:
                return candidate
    return path
