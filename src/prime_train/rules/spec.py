"""Rules about the spec itself (PT03x to PT08x): the files it names, what it installs, and what it leaves to others."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from prime_train.core.access.run_secrets import NEVER, VARIABLE, is_allowed
from prime_train.core.config_tree import Listing, Mapping, Path, Scalar
from prime_train.core.finding import Severity
from prime_train.core.prime_rl.arguments import arguments
from prime_train.core.registry.providers import is_rented
from prime_train.core.text.deadline import parse_deadline
from prime_train.rules.rule import Rule, Subject, Violation
from prime_train.rules.words import config_named, words

if TYPE_CHECKING:
    from prime_train.core.spec import RunSpec

FAMILY = "the spec"
NEAR_MIN = 0.75
"""The similarity from which one name counts as a misspelling of another."""

_PINNED = re.compile(r"[0-9a-f]{7,40}|(?:.*[^0-9])?[0-9]+\.[0-9]+.*|v[0-9]+|refs/tags/.+")
"""A commit, or a tag that names a version."""
_BRANCHES = frozenset(("main", "master", "dev", "develop", "devel", "nightly", "trunk", "HEAD"))
_REFERENCE = re.compile(r"\$\{[A-Za-z_]\w*\}|\$[A-Z][A-Z0-9_]+")
_FROM_GIT = re.compile(r"git\+(?:https?|ssh|git)://[^\s'\"]+")
_GATED = re.compile(r"(meta-llama/|google/gemma-)", re.IGNORECASE)
_INSTALLERS = frozenset(("pip", "pip3", "uv", "apt", "apt-get", "conda", "mamba", "micromamba"))
_OFFLINE = frozenset(("offline", "disabled", "dryrun"))


def _no_code(subject: Subject) -> Iterator[Violation]:
    if subject.spec is not None and not subject.has_code and subject.spec.trainer.tree.repo is None:
        yield Violation(("trainer", "tree", "folder"), f"there is no folder {subject.spec.trainer.tree.folder[:200]}")


def _no_trainer_config(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or spec.trainer.prime_rl is None or subject.files is None or not subject.has_code:
        return
    name = spec.trainer.prime_rl.config
    if name not in subject.files and not _is_made(subject, name):
        message = f"there is no file {name} in {_tree(subject)}"
        yield Violation(("trainer", "prime_rl", "config"), message)


def _no_overlay(subject: Subject) -> Iterator[Violation]:
    if subject.spec is None or subject.config is None or subject.files is None or not subject.has_code:
        return
    node = subject.config.at("trainer", "prime_rl", "overrides")
    words = [item for item in node.items if isinstance(item, Scalar)] if isinstance(node, Listing) else []
    for include in arguments(words).includes:
        if include.file not in subject.files and not _is_made(subject, include.file):
            at = next((n for n, word in enumerate(words) if word.place == include.place), 0)
            message = f"there is no file {include.file} in {_tree(subject)}"
            yield Violation(("trainer", "prime_rl", "overrides", at), message)


def _moving_ref(subject: Subject) -> Iterator[Violation]:
    tree = subject.spec.trainer.tree if subject.spec is not None else None
    if tree is not None and tree.ref is not None and not _PINNED.fullmatch(tree.ref[:200]):
        yield Violation(("trainer", "tree", "ref"), f"{tree.ref[:200]} is whatever it points to on the day of the launch")
    # The current repository is used at the commit that is checked out.
    if tree is not None and tree.repo is not None and tree.ref is None and not subject.has_code:
        yield Violation(("trainer", "tree", "repo"), "no ref: the newest commit on the day of the launch", "add ref: with the full commit")


def _unpinned(subject: Subject) -> Iterator[Violation]:
    for at, command in enumerate(subject.spec.setup if subject.spec is not None else ()):
        for url in _FROM_GIT.findall(command):
            _, sign, ref = url.partition("#")[0].partition("://")[2].partition("/")[2].rpartition("@")
            if not sign or ref in _BRANCHES:
                yield Violation(("setup", at), f"{url[:80]} is installed as it is at that minute", word=url)


def _not_expanded(subject: Subject) -> Iterator[Violation]:
    for name, value in (subject.spec.environment if subject.spec is not None else {}).items():
        if _REFERENCE.fullmatch(value):
            other = value.strip("${}")
            fix = f"write secrets: [{name}]" if other == name else f"write the value, or secrets: [{other}]"
            yield Violation(("environment", name), f"{name} is set to the text {value}: nothing expands it", fix)


def _not_linear(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or not (spec.health.log_rules or spec.trainer.progress.pattern):
        return
    from prime_train.trainers.patterns import refusals

    places: list[tuple[tuple[str | int, ...], str]] = [
        (("health", "log_rules", at, "pattern"), rule.pattern) for at, rule in enumerate(spec.health.log_rules)
    ]
    if spec.trainer.progress.pattern is not None:
        places.append((("trainer", "progress", "pattern"), spec.trainer.progress.pattern))
    for place, pattern in places:
        for _, why in refusals([pattern]):
            yield Violation(place, f"{pattern[:100]!r} cannot be matched in linear time: {why[:200]}")


def _no_tracker_key(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or spec.wandb is None or not is_rented(spec.hardware.provider):
        return
    mode = spec.environment.get("WANDB_MODE", "")
    if any("wandb login" in command for command in spec.setup):
        return
    if "WANDB_API_KEY" not in (*spec.secrets, *spec.environment) and mode not in _OFFLINE:
        yield Violation(("wandb",), "a rented machine has no login to W&B of its own", on_key=True)


def _no_hub_token(subject: Subject) -> Iterator[Violation]:
    spec, trainer = subject.spec, subject.trainer
    if spec is None or trainer is None or not is_rented(spec.hardware.provider):
        return
    path = next((path for path in (("model", "name"), ("actor", "path"), ("model_name_or_path",)) if trainer.text(*path)), None)
    if path is None or not _GATED.match(str(trainer.text(*path))):
        return
    if any("login" in command for command in spec.setup):
        return
    if not {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} & {*spec.secrets, *spec.environment}:
        yield Violation(path, f"{trainer.text(*path)} is only given to those who have accepted its licence", document="trainer")


def _secrets_not_for_runs(subject: Subject) -> Iterator[Violation]:
    for at, name in enumerate(subject.spec.secrets if subject.spec is not None else ()):
        if name.upper().startswith(NEVER):
            yield Violation(("secrets", at), f"{name} is the control plane's own: no run gets it", "delete it")
        elif not is_allowed(name, subject.run_secrets):
            yield Violation(("secrets", at), f"{name} is not among what runs may have: {VARIABLE} does not name it")


def _twice_in_environment(subject: Subject) -> Iterator[Violation]:
    """Yield a violation for environment variables that differ only in capitalisation."""
    node = subject.config.at("environment") if subject.config is not None else None
    seen: dict[str, str] = {}
    for entry in node.entries if isinstance(node, Mapping) else ():
        first = seen.setdefault(entry.key.upper(), entry.key)
        if first != entry.key:
            yield Violation(("environment", entry.key), f"{entry.key} and {first} are two variables: capitals count", on_key=True)


def _past_deadline(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or spec.budget.deadline is None or subject.now_s is None:
        return
    left_s, flush_s = parse_deadline(spec.budget.deadline) - subject.now_s, spec.health.drain_s + spec.health.heartbeat_s
    if left_s <= flush_s:
        said = "has passed" if left_s <= 0 else f"leaves no time: {flush_s} s before it the run is saved and stopped"
        yield Violation(("budget", "deadline"), f"the deadline {spec.budget.deadline} {said}")


def _misspelt_file(subject: Subject) -> Iterator[Violation]:
    for path, name in _absent(subject):
        near = _near(subject, name)
        if near or _is_of_code(subject, name):
            fix = f"did you mean {near}?" if near else ""
            yield Violation(path, f"there is no file {name} in {_tree(subject)}", fix, word=name)


def _no_such_file(subject: Subject) -> Iterator[Violation]:
    for path, name in _absent(subject):
        if subject.spec is not None and only_installs(subject.spec.setup) and not _near(subject, name) and not _is_of_code(subject, name):
            yield Violation(path, f"there is no file {name} in {_tree(subject)}", word=name)


def _absent(subject: Subject) -> Iterator[tuple[Path, str]]:
    spec = subject.spec
    if spec is None or subject.files is None or not subject.has_code or spec.trainer.kind == "prime_rl":
        return
    for path, name in named_files(spec):
        others = [command for at, command in enumerate(spec.setup) if path != ("setup", at)]
        if name not in subject.files and not _makes(others, name):
            yield path, name


def _near(subject: Subject, name: str) -> str:
    """Return a file with nearly the same name in the same folder, or an empty string."""
    # Imported only when needed: difflib is used for missing files alone.
    import difflib

    folder, _, last = name.rpartition("/")
    alike = [other for other in subject.beside if other.rpartition("/")[0] == folder and _suffix(other) == _suffix(name)]
    found = difflib.get_close_matches(last, [other.rpartition("/")[2] for other in alike], 1, NEAR_MIN)
    return f"{folder}/{found[0]}".lstrip("/") if found else ""


def _is_of_code(subject: Subject, name: str) -> bool:
    """Return whether a missing file belongs to the code: the working tree is a named folder, the set-up only installs packages, and the
    file's folder has other files of the same type."""
    spec = subject.spec
    if spec is None or spec.trainer.tree.folder == "." or not only_installs(spec.setup):
        return False
    return any(_suffix(other) == _suffix(name) for other in subject.beside if other.rpartition("/")[0] == name.rpartition("/")[0])


def _suffix(name: str) -> str:
    return name.rpartition(".")[2]


def named_files(spec: "RunSpec") -> Iterator[tuple[Path, str]]:
    """Yield the files of the working tree that the command and the set-up need, with the path of the setting that names them."""
    yield from ((("trainer", "command"), name) for name in _of_command(spec.trainer.command))
    for at, command in enumerate(spec.setup):
        yield from ((("setup", at), name) for name in _requirements(command) if _is_within(name))


def _requirements(command: str) -> tuple[str, ...]:
    split = words(command)
    if "install" not in split or not _is_plain(command):
        return ()
    return tuple(name for option, name in pairwise(split) if option in ("-r", "--requirement"))


def _of_command(command: str) -> tuple[str, ...]:
    """Return the script and the config of a command; empty if the command is more than one plain command, such as one that changes the
    folder."""
    split = words(command)
    if not _is_plain(command):
        return ()
    script = next((word for word in split if word.endswith(".py")), None)
    return tuple(name for name in (script, config_named(command)) if name is not None and _is_within(name))


def _is_plain(command: str) -> bool:
    split = words(command)
    return not set(split) & {"cd", "&&", ";", "||", "|", "if", "for"} and not any(word.endswith(";") for word in split)


def only_installs(commands: Sequence[str]) -> bool:
    """Return whether all commands only install packages, which creates no file in the working tree."""
    return all(_is_plain(command) and _is_install(words(command)) for command in commands)


def _is_install(split: Sequence[str]) -> bool:
    named = [word.rpartition("/")[2] for word in split if "=" not in word and word not in ("sudo", "-m")]
    return "install" in named[1:4] and (named[0] in _INSTALLERS or (named[0].startswith("python") and named[1] in _INSTALLERS))


def _is_within(name: str) -> bool:
    return not name.startswith(("/", "~")) and ".." not in name.split("/") and "$" not in name and "{" not in name


def _is_made(subject: Subject, name: str) -> bool:
    assert subject.spec is not None
    return _makes(subject.spec.setup, name)


def _makes(commands: Sequence[str], name: str) -> bool:
    """Return whether a command mentions the file's name or clones a repository, and so may create the file."""
    return any(name.rpartition("/")[2] in command or "git clone" in command for command in commands)


def _tree(subject: Subject) -> str:
    assert subject.spec is not None
    folder = subject.spec.trainer.tree.folder
    return "the working tree, which is the folder this is called in" if folder == "." else f"the working tree {folder}"


RULES = (
    Rule(
        "PT031",
        Severity.ERROR,
        "prime-rl's config is not there",
        "The machine is rented and set up, and prime-rl then finds no file to read.",
        "check trainer.prime_rl.config: it is a path inside the working tree",
        FAMILY,
        _no_trainer_config,
        "spec",
    ),
    Rule(
        "PT032",
        Severity.ERROR,
        "a config laid over prime-rl's is not there",
        "prime-rl reads every file that follows an @ and fails on the first that is missing.",
        "check the path: it is one inside the working tree",
        FAMILY,
        _no_overlay,
        "spec",
    ),
    Rule(
        "PT033",
        Severity.WARNING,
        "a ref that moves",
        "A branch is resolved once, at the launch, and all attempts of the run use that commit. The next launch may run other code.",
        "write the full commit, all 40 digits",
        FAMILY,
        _moving_ref,
        "spec",
    ),
    Rule(
        "PT034",
        Severity.NOTE,
        "a file of the command is not there",
        "The command names a script or a config that is not in the working tree, and no set-up makes it.",
        "check the path: the command runs in the working tree",
        FAMILY,
        _no_such_file,
        "spec",
    ),
    Rule(
        "PT035",
        Severity.WARNING,
        "an installation that is not pinned",
        "Every attempt sets up its machine anew: one after a preemption may train with other code than the one before it.",
        "add @ and a commit to the address",
        FAMILY,
        _unpinned,
        "spec",
    ),
    Rule(
        "PT036",
        Severity.WARNING,
        "a variable that is not expanded",
        "The environment is given to the trainer as it is written; no shell reads it.",
        "write the value itself",
        FAMILY,
        _not_expanded,
        "spec",
    ),
    Rule(
        "PT037",
        Severity.WARNING,
        "W&B without a key",
        "A trainer that logs in when it starts fails where it cannot.",
        "write secrets: [WANDB_API_KEY]",
        FAMILY,
        _no_tracker_key,
        "spec",
    ),
    Rule(
        "PT038",
        Severity.WARNING,
        "a gated model without a token",
        "The download is refused, on a machine that was rented for it.",
        "accept the licence, and write secrets: [HF_TOKEN]",
        FAMILY,
        _no_hub_token,
        "spec",
    ),
    Rule(
        "PT039",
        Severity.WARNING,
        "two variables that differ in capitals only",
        "Both are set; which one is meant cannot be told.",
        "keep one of them",
        FAMILY,
        _twice_in_environment,
        "spec",
    ),
    Rule(
        "PT040",
        Severity.ERROR,
        "the working tree is not there",
        "It is packed and sent to the machine when the run is launched; there would be nothing to pack.",
        "check trainer.tree.folder: it is seen from where the run is launched",
        FAMILY,
        _no_code,
        "spec",
    ),
    Rule(
        "PT041",
        Severity.WARNING,
        "a file that is not among its neighbours",
        "The command names a file that is not in the working tree, where others like it are: the machine is rented, and it is not found.",
        "check the path: it is seen from the working tree",
        FAMILY,
        _misspelt_file,
        "spec",
    ),
    Rule(
        "PT042",
        Severity.ERROR,
        "a pattern that is not matched in linear time",
        "It is searched in every line that the trainer writes, by RE2: any other engine can be kept for hours by one line.",
        "write it without lookaround and back-references",
        FAMILY,
        _not_linear,
        "spec",
    ),
    Rule(
        "PT045",
        Severity.ERROR,
        "a secret that runs may not have",
        "Whoever may write a config would otherwise get what the control plane is trusted with, such as the keys to its cloud.",
        "delete it, or have the operator add it to PRIME_TRAIN_RUN_SECRETS of the control plane (and of wherever configs are checked)",
        FAMILY,
        _secrets_not_for_runs,
        "spec",
    ),
    Rule(
        "PT046",
        Severity.ERROR,
        "a deadline that has passed",
        "No machine is rented for a run whose deadline is nearer than the time that its last save may take.",
        "write a later date, or a date-time with its offset",
        FAMILY,
        _past_deadline,
        "spec",
    ),
)
