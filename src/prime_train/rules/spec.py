"""The spec by itself (PT03x to PT08x): files it names, what it installs, what it leaves to others."""

import re
from collections.abc import Iterator

from prime_train.core.finding import Severity
from prime_train.core.prime_rl_arguments import arguments
from prime_train.core.tree import Listing, Mapping, Scalar
from prime_train.rules.rule import Flaw, Rule, Subject
from prime_train.rules.words import config_named, words

FAMILY = "the spec"

_COMMIT = re.compile(r"[0-9a-f]{40}")
_REFERENCE = re.compile(r"\$\{[A-Za-z_]\w*\}|\$[A-Z][A-Z0-9_]+")
_FROM_GIT = re.compile(r"git\+(?:https?|ssh|git)://[^\s'\"]+")
_GATED = re.compile(r"(meta-llama/|google/gemma-)", re.IGNORECASE)
_OFFLINE = frozenset(("offline", "disabled", "dryrun"))


def _no_trainer_config(subject: Subject) -> Iterator[Flaw]:
    spec = subject.spec
    if spec is None or spec.trainer.prime_rl is None or subject.files is None:
        return
    name = spec.trainer.prime_rl.config
    if name not in subject.files and not _is_made(subject, name):
        message = f"there is no file {name} in {_tree(subject)}"
        yield Flaw(("trainer", "prime_rl", "config"), message)


def _no_overlay(subject: Subject) -> Iterator[Flaw]:
    if subject.spec is None or subject.config is None or subject.files is None:
        return
    node = subject.config.at("trainer", "prime_rl", "overrides")
    words = [item for item in node.items if isinstance(item, Scalar)] if isinstance(node, Listing) else []
    for include in arguments(words).includes:
        if include.file not in subject.files and not _is_made(subject, include.file):
            at = next((n for n, word in enumerate(words) if word.place == include.place), 0)
            message = f"there is no file {include.file} in {_tree(subject)}"
            yield Flaw(("trainer", "prime_rl", "overrides", at), message)


def _moving_ref(subject: Subject) -> Iterator[Flaw]:
    tree = subject.spec.trainer.tree if subject.spec is not None else None
    if tree is not None and tree.ref is not None and not _COMMIT.fullmatch(tree.ref):
        yield Flaw(("trainer", "tree", "ref"), f"{tree.ref} is whatever it points to on the day of the launch")


def _unpinned(subject: Subject) -> Iterator[Flaw]:
    for at, command in enumerate(subject.spec.setup if subject.spec is not None else ()):
        for url in _FROM_GIT.findall(command):
            if "@" not in url.partition("://")[2].partition("/")[2]:
                yield Flaw(("setup", at), f"{url[:80]} is installed as it is at that minute")


def _not_expanded(subject: Subject) -> Iterator[Flaw]:
    for name, value in (subject.spec.environment if subject.spec is not None else {}).items():
        if _REFERENCE.fullmatch(value):
            other = value.strip("${}")
            fix = f"write secrets: [{name}]" if other == name else f"write the value, or secrets: [{other}]"
            yield Flaw(("environment", name), f"{name} is set to the text {value}: nothing expands it", fix)


def _no_tracker_key(subject: Subject) -> Iterator[Flaw]:
    spec = subject.spec
    if spec is None or spec.wandb is None or spec.hardware.provider != "prime" or spec.trainer.prime_rl is None:
        return
    mode = spec.environment.get("WANDB_MODE", "")
    if any("wandb login" in command for command in spec.setup):
        return
    if "WANDB_API_KEY" not in (*spec.secrets, *spec.environment) and mode not in _OFFLINE:
        yield Flaw(("wandb",), "a rented machine has no login to W&B of its own", on_key=True)


def _no_hub_token(subject: Subject) -> Iterator[Flaw]:
    spec, trainer = subject.spec, subject.trainer
    if spec is None or trainer is None or spec.hardware.provider != "prime":
        return
    path = next((path for path in (("model", "name"), ("actor", "path"), ("model_name_or_path",)) if trainer.text(*path)), None)
    if path is None or not _GATED.match(str(trainer.text(*path))):
        return
    if any("login" in command for command in spec.setup):
        return
    if not {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} & {*spec.secrets, *spec.environment}:
        yield Flaw(path, f"{trainer.text(*path)} is only given to those who have accepted its licence", document="trainer")


def _twice_in_environment(subject: Subject) -> Iterator[Flaw]:
    """Variables of the same part that differ in nothing but capitals."""
    node = subject.config.at("environment") if subject.config is not None else None
    seen: dict[str, str] = {}
    for entry in node.entries if isinstance(node, Mapping) else ():
        first = seen.setdefault(entry.key.upper(), entry.key)
        if first != entry.key:
            yield Flaw(("environment", entry.key), f"{entry.key} and {first} are two variables: capitals count", on_key=True)


def _no_such_file(subject: Subject) -> Iterator[Flaw]:
    spec = subject.spec
    if spec is None or subject.files is None or spec.setup or spec.trainer.kind == "prime_rl":
        return
    for name in named_files(spec.trainer.command):
        if name not in subject.files:
            yield Flaw(("trainer", "command"), f"there is no file {name} in {_tree(subject)}")


def named_files(command: str) -> tuple[str, ...]:
    """Files that a plain command needs to find in the working tree; none of a command that goes elsewhere first."""
    split = words(command)
    if set(split) & {"cd", "&&", ";", "||", "|", "if", "for"} or any(word.endswith(";") for word in split):
        return ()
    script = next((word for word in split if word.endswith(".py")), None)
    named = [name for name in (script, config_named(command)) if name is not None and "$" not in name and "{" not in name]
    return tuple(name for name in named if not name.startswith(("/", "~")) and ".." not in name.split("/"))


def _is_made(subject: Subject, name: str) -> bool:
    """Whether the set-up speaks of it, or fetches whatever."""
    spec = subject.spec
    assert spec is not None
    return any(name.rpartition("/")[2] in command or "git clone" in command for command in spec.setup)


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
        Severity.NOTE,
        "a ref that moves",
        "A branch or tag is resolved once, at the launch, and all attempts of the run use that commit. The next launch may run other code.",
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
        Severity.NOTE,
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
        "prime-rl logs in when it starts and fails where it can not.",
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
        "Both are set; which one is meant can not be told.",
        "keep one of them",
        FAMILY,
        _twice_in_environment,
        "spec",
    ),
)
