"""Rules about the spec itself (PT03x to PT08x): the files it names, what it installs, and what it leaves to
others.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from prime_train.providers.kinds import allowed_providers, is_rented
from prime_train.runs.record_size import SHORTEN, too_large
from prime_train.spec.access_run_secrets import NEVER, VARIABLE, is_allowed
from prime_train.spec.config_format import words
from prime_train.spec.launchers import is_plain, named_files
from prime_train.spec.rehearsed import WAIVED, rehearsal_digest
from prime_train.spec.rule import Rules, Subject, Violation
from prime_train.spec.tree import Listing, Mapping, Path, Scalar
from prime_train.text.deadline import parse_deadline
from prime_train.text.nearest import nearest
from prime_train.trainers.prime_rl.arguments import arguments
from prime_train.trainers.registry import TRAINERS
from prime_train.trainers.settings.of_subject import training_of

if TYPE_CHECKING:
    pass

TOPIC = "the spec"
"""The family under which these rules are listed."""

_PINNED = re.compile(r"[0-9a-f]{7,40}|(?:.*[^0-9])?[0-9]+\.[0-9]+.*|v[0-9]+|refs/tags/.+")
"""Pattern of a commit, or of a tag that names a version."""
_BRANCHES = frozenset(("main", "master", "dev", "develop", "devel", "nightly", "trunk", "HEAD"))
_REFERENCE = re.compile(r"\$\{[A-Za-z_]\w*\}|\$[A-Z][A-Z0-9_]+")
_FROM_GIT = re.compile(r"git\+(?:https?|ssh|git)://[^\s'\"]+")
_GATED = re.compile(r"(meta-llama/|google/gemma-)", re.IGNORECASE)
_INSTALLERS = frozenset(("pip", "pip3", "uv", "apt", "apt-get", "conda", "mamba", "micromamba"))
_OFFLINE = frozenset(("offline", "disabled", "dryrun"))


RULES = Rules(TOPIC, requires="spec")


@RULES.error(
    "PT040",
    "the working tree does not exist",
    why="The working tree is packed and sent to the machine at launch. Without it there is nothing to pack.",
    fix="check trainer.code.folder, which is relative to the folder that the run is launched from",
)
def no_code(subject: Subject) -> Iterator[Violation]:
    if subject.spec is not None and not subject.has_code and subject.spec.trainer.code.repo is None:
        yield Violation(
            ("trainer", "code", "folder"),
            f"the folder does not exist: {subject.spec.trainer.code.folder[:200]}",
        )


@RULES.error(
    "PT031",
    "prime-rl's config does not exist",
    why="prime-rl would fail to find the file only after the machine is rented and set up.",
    fix="check the path in trainer.prime_rl.config, which is relative to the working tree",
)
def no_trainer_config(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or spec.trainer.prime_rl is None or subject.files is None or not subject.has_code:
        return
    name = spec.trainer.prime_rl.config
    if name not in subject.files and not _is_made(subject, name):
        message = f"there is no file {name} in {_code_folder(subject)}"
        yield Violation(("trainer", "prime_rl", "config"), message)


@RULES.error(
    "PT032",
    "an additional prime-rl config does not exist",
    why="prime-rl reads every file that is named after an @ and fails on the first missing one.",
    fix="check the path, which is relative to the working tree",
)
def no_overlay(subject: Subject) -> Iterator[Violation]:
    if subject.spec is None or subject.config is None or subject.files is None or not subject.has_code:
        return
    node = subject.config.at("trainer", "prime_rl", "overrides")
    words = [item for item in node.items if isinstance(item, Scalar)] if isinstance(node, Listing) else []
    for include in arguments(words).includes:
        if include.file not in subject.files and not _is_made(subject, include.file):
            at = next((n for n, word in enumerate(words) if word.place == include.place), 0)
            message = f"there is no file {include.file} in {_code_folder(subject)}"
            yield Violation(("trainer", "prime_rl", "overrides", at), message)


@RULES.warning(
    "PT033",
    "a ref that moves",
    why="A branch is resolved once, at the launch, and all attempts of the run use that commit. The next "
    "launch may run different code.",
    fix="write the full commit hash, all 40 digits",
)
def moving_ref(subject: Subject) -> Iterator[Violation]:
    code = subject.spec.trainer.code if subject.spec is not None else None
    if code is not None and code.ref is not None and not _PINNED.fullmatch(code.ref[:200]):
        yield Violation(
            ("trainer", "code", "ref"),
            f"{code.ref[:200]} is not a commit: it is resolved to whatever it points to at launch",
        )
    # The current repository is used at the commit that is checked out.
    if code is not None and code.repo is not None and code.ref is None and not subject.has_code:
        yield Violation(
            ("trainer", "code", "repo"),
            "no ref is given, so the newest commit at launch is used",
            "add ref: with the full commit hash",
        )


@RULES.warning(
    "PT035",
    "an installation that is not pinned",
    why="Every attempt sets up its machine from scratch, so an attempt after a preemption may train with "
    "different code than the one before it.",
    fix="add @ and a commit hash to the URL",
)
def unpinned(subject: Subject) -> Iterator[Violation]:
    for at, command in enumerate(subject.spec.setup if subject.spec is not None else ()):
        for url in _FROM_GIT.findall(command):
            _, sign, ref = url.partition("#")[0].partition("://")[2].partition("/")[2].rpartition("@")
            if not sign or ref in _BRANCHES:
                yield Violation(
                    ("setup", at),
                    f"{url[:80]} is installed at whatever version it has at that moment",
                    word=url,
                )


@RULES.warning(
    "PT036",
    "a variable that is not expanded",
    why="The trainer receives the environment exactly as written; no shell expands it.",
    fix="write the expanded value",
)
def not_expanded(subject: Subject) -> Iterator[Violation]:
    for name, value in (subject.spec.environment if subject.spec is not None else {}).items():
        if _REFERENCE.fullmatch(value):
            other = value.strip("${}")
            fix = f"write secrets: [{name}]" if other == name else f"write the value, or secrets: [{other}]"
            yield Violation(
                ("environment", name),
                f"{name} is set to the literal text {value}, which nothing expands",
                fix,
            )


@RULES.warning(
    "PT051",
    "a rehearsal of another script",
    why="A rehearsal shows of one command, one way to resume and report, and certain names of checkpoints that "
    "a run survives the loss of its machine. A launch on a rented machine wants one of the config as it is.",
    fix="rehearse the config as it is now",
)
def rehearsed_otherwise(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or spec.rehearsed in (None, WAIVED, rehearsal_digest(spec)):
        return
    if TRAINERS[spec.trainer.kind].layout is None:
        yield Violation(
            ("rehearsed",),
            "command, resume, progress or checkpoints are not those of the rehearsal that is named",
        )


@RULES.error(
    "PT042",
    "a pattern that cannot be matched in linear time",
    why="The pattern is searched in every line that the trainer writes. RE2 does this in linear time; other "
    "engines can take hours for one line.",
    fix="rewrite the pattern without lookaround and back-references",
)
def not_linear(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or not (spec.health.log_rules or spec.trainer.progress.pattern):
        return
    from prime_train.trainers.patterns import refusals

    places: list[tuple[tuple[str | int, ...], str]] = [
        (("health", "log_rules", at, "pattern"), rule.pattern)
        for at, rule in enumerate(spec.health.log_rules)
    ]
    if spec.trainer.progress.pattern is not None:
        places.append((("trainer", "progress", "pattern"), spec.trainer.progress.pattern))
    for place, pattern in places:
        for _, why in refusals([pattern]):
            yield Violation(place, f"{pattern[:100]!r} cannot be matched in linear time: {why[:200]}")


@RULES.warning(
    "PT037",
    "W&B without a key",
    why="A trainer that logs in to W&B at start-up fails without a key.",
    fix="write secrets: [WANDB_API_KEY]",
)
def no_tracker_key(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or spec.wandb is None or not is_rented(allowed_providers(spec.hardware)):
        return
    mode = spec.environment.get("WANDB_MODE", "")
    if any("wandb login" in command for command in spec.setup):
        return
    if "WANDB_API_KEY" not in (*spec.secrets, *spec.environment) and mode not in _OFFLINE:
        yield Violation(("wandb",), "a rented machine is not logged in to W&B", on_key=True)


@RULES.warning(
    "PT038",
    "a gated model without a token",
    why="The download is refused, on a machine that is already paid for.",
    fix="accept the licence, and write secrets: [HF_TOKEN]",
)
def no_hub_token(subject: Subject) -> Iterator[Violation]:
    spec, trainer = subject.spec, subject.trainer
    if spec is None or trainer is None or not is_rented(allowed_providers(spec.hardware)):
        return
    training = training_of(subject)
    if training is None or training.model.is_default or not _GATED.match(training.model.value):
        return
    if any("login" in command for command in spec.setup):
        return
    if not {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} & {*spec.secrets, *spec.environment}:
        message = (
            f"{training.model.value[:200]} can be downloaded only by accounts that have accepted its licence"
        )
        yield Violation(training.model.path, message, document="trainer")


@RULES.error(
    "PT045",
    "a secret that runs may not have",
    why="Otherwise anyone who may write a config could read secrets of the control plane, such as its cloud "
    "credentials.",
    fix="delete it, or ask the operator to add it to PRIME_TRAIN_RUN_SECRETS of the control plane (and "
    "wherever configs are validated)",
)
def secrets_not_for_runs(subject: Subject) -> Iterator[Violation]:
    for at, name in enumerate(subject.spec.secrets if subject.spec is not None else ()):
        if name.upper().startswith(NEVER):
            yield Violation(
                ("secrets", at),
                f"{name} is a secret of the control plane, which no run may have",
                "delete it",
            )
        elif not is_allowed(name, subject.run_secrets):
            yield Violation(
                ("secrets", at), f"runs may not have the secret {name}: {VARIABLE} does not list it"
            )


@RULES.warning(
    "PT039",
    "two variables that differ only in case",
    why="Both variables are set, and the trainer reads only one of them.",
    fix="keep one of them",
)
def twice_in_environment(subject: Subject) -> Iterator[Violation]:
    """Yield a violation for environment variables that differ only in capitalisation."""
    node = subject.config.at("environment") if subject.config is not None else None
    seen: dict[str, str] = {}
    for entry in node.entries if isinstance(node, Mapping) else ():
        first = seen.setdefault(entry.key.upper(), entry.key)
        if first != entry.key:
            yield Violation(
                ("environment", entry.key),
                f"{entry.key} and {first} are two different variables, because names are case-sensitive",
                on_key=True,
            )


@RULES.error(
    "PT046",
    "a deadline that has passed",
    why="No machine is rented for a run whose deadline is closer than the time that its final save may take.",
    fix="write a later date, or a date-time with its UTC offset",
)
def past_deadline(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or spec.budget.deadline is None or subject.now_s is None:
        return
    left_s, flush_s = (
        parse_deadline(spec.budget.deadline) - subject.now_s,
        spec.health.drain_s + spec.health.heartbeat_s,
    )
    if left_s <= flush_s:
        problem = (
            "has passed"
            if left_s <= 0
            else f"leaves no time to train: the run is saved and stopped {flush_s} s before it"
        )
        yield Violation(("budget", "deadline"), f"the deadline {spec.budget.deadline} {problem}")


@RULES.error(
    "PT048",
    "a config that is too large to be stored",
    why="The record of a run, with its config, must fit into one item of a table that holds at most 400 KB, "
    "together with what the run gains while it lives.",
    fix=SHORTEN,
)
def too_large_rule(subject: Subject) -> Iterator[Violation]:
    large = too_large(subject.spec) if subject.spec is not None else None
    if large is not None:
        yield Violation(*large)


@RULES.warning(
    "PT041",
    "a file that is missing although similar files exist",
    why="The command names a file that is not in the working tree, which has similar files. The trainer "
    "would fail on the rented machine.",
    fix="check the path, which is relative to the working tree",
)
def misspelt_file(subject: Subject) -> Iterator[Violation]:
    for path, name in _absent(subject):
        similar = _similar(subject, name)
        if similar or _is_of_code(subject, name):
            fix = f"did you mean {similar}?" if similar else ""
            yield Violation(path, f"there is no file {name} in {_code_folder(subject)}", fix, word=name)


@RULES.note(
    "PT034",
    "a file named in the command does not exist",
    why="The command names a script or a config that is not in the working tree, and no setup command "
    "creates it.",
    fix="check the path, which is relative to the working tree",
)
def no_such_file(subject: Subject) -> Iterator[Violation]:
    for path, name in _absent(subject):
        if (
            subject.spec is not None
            and only_installs(subject.spec.setup)
            and not _similar(subject, name)
            and not _is_of_code(subject, name)
        ):
            yield Violation(path, f"there is no file {name} in {_code_folder(subject)}", word=name)


def _absent(subject: Subject) -> Iterator[tuple[Path, str]]:
    spec = subject.spec
    if (
        spec is None
        or subject.files is None
        or not subject.has_code
        or TRAINERS[spec.trainer.kind].own_config is not None
    ):
        return
    for path, name in named_files(spec.trainer.command, spec.setup):
        others = [command for at, command in enumerate(spec.setup) if path != ("setup", at)]
        if name not in subject.files and not _makes(others, name):
            yield path, name


def _similar(subject: Subject, name: str) -> str:
    """Return a file with nearly the same name in the same folder, or an empty string."""
    folder, _, last = name.rpartition("/")
    alike = [
        other
        for other in subject.files_nearby
        if other.rpartition("/")[0] == folder and _suffix(other) == _suffix(name)
    ]
    found = nearest(last, [other.rpartition("/")[2] for other in alike])
    return f"{folder}/{found[0]}".lstrip("/") if found else ""


def _is_of_code(subject: Subject, name: str) -> bool:
    """Return whether a missing file belongs to the code: the working tree is a named folder, the set-up only
    installs packages, and the file's folder has other files of the same type.
    """
    spec = subject.spec
    if spec is None or spec.trainer.code.folder == "." or not only_installs(spec.setup):
        return False
    return any(
        _suffix(other) == _suffix(name)
        for other in subject.files_nearby
        if other.rpartition("/")[0] == name.rpartition("/")[0]
    )


def _suffix(name: str) -> str:
    return name.rpartition(".")[2]


def only_installs(commands: Sequence[str]) -> bool:
    """Return whether all commands only install packages, which creates no file in the working tree."""
    return all(is_plain(command) and _is_install(words(command)) for command in commands)


def _is_install(split: Sequence[str]) -> bool:
    named = [word.rpartition("/")[2] for word in split if "=" not in word and word not in ("sudo", "-m")]
    return "install" in named[1:4] and (
        named[0] in _INSTALLERS or (named[0].startswith("python") and named[1] in _INSTALLERS)
    )


def _is_made(subject: Subject, name: str) -> bool:
    assert subject.spec is not None
    return _makes(subject.spec.setup, name)


def _makes(commands: Sequence[str], name: str) -> bool:
    """Return whether a command mentions the file's name or clones a repository, and so may create the
    file.
    """
    return any(name.rpartition("/")[2] in command or "git clone" in command for command in commands)


def _code_folder(subject: Subject) -> str:
    assert subject.spec is not None
    folder = subject.spec.trainer.code.folder
    return "the working tree, which is the current folder" if folder == "." else f"the working tree {folder}"
