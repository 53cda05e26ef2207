"""Rules about volumes that a run mounts: they are for data sets, and not for what the run writes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from prime_train.spec.config_format import flags, settings, words
from prime_train.spec.rule import Rules, Subject, Violation
from prime_train.spec.tree import Listing, Mapping, Node, Path, Scalar
from prime_train.spec.volumes import mount_of

TOPIC = "the spec"
"""The family under which these rules are listed."""

_SAVES = re.compile(
    r"out(put)?(s|_?(dir|path|folder))?$|sav(e|ing)|check_?points?|ckpts?|(work|run|log|result|"
    r"export)s?_?(dir|path|folder)",
    re.I,
)
"""The part of a setting's name that says that the trainer writes there."""
_READS = re.compile(r"resum|load|init|from|pretrain|base|input|data", re.I)
"""The part that says that it reads there: --resume_from_checkpoint, --load_checkpoint_path."""
_DEPTH_MAX = 20


@dataclass(frozen=True)
class _Written:
    """A path on a volume to which the run writes. `mount`: where the volume is; `said`: what says so."""

    at: Path
    path: str
    mount: str
    said: str


RULES = Rules(TOPIC, requires="spec")


@RULES.error(
    "PT049",
    "a trainer that saves on a read-only volume",
    why="The first save fails, on a machine that is already paid for.",
    fix="let it save below the working tree, in checkpoints.folder, from where checkpoints are uploaded",
)
def to_read_only(subject: Subject) -> Iterator[Violation]:
    for one in _written(subject):
        assert subject.spec is not None
        if subject.spec.hardware.volumes[one.mount].read_only:
            message = (
                f"{one.said} is {one.path[:200]}, but hardware.volumes mounts {one.mount} "
                "read-only: the trainer fails when it saves"
            )
            yield Violation(one.at, message)


@RULES.warning(
    "PT050",
    "a trainer that saves on a volume",
    why="Checkpoints are uploaded from the working tree, and an attempt resumes from what is in the bucket. "
    "A volume is shared with other runs, and with a lost machine that still writes.",
    fix="let it save below the working tree, in checkpoints.folder",
)
def to_shared(subject: Subject) -> Iterator[Violation]:
    for one in _written(subject):
        assert subject.spec is not None
        if not subject.spec.hardware.volumes[one.mount].read_only:
            lost = "what is saved there is not uploaded, and no attempt resumes from it"
            message = (
                f"{one.said} is {one.path[:200]}, on the volume at {one.mount}, which others may "
                "use "
                f"at the same time: {lost}"
            )
            yield Violation(one.at, message)


def _written(subject: Subject) -> Iterator[_Written]:
    """Yield each path on a volume to which a command, the environment or the trainer's own config says that
    the run writes.
    """
    spec = subject.spec
    if spec is None or not spec.hardware.volumes:
        return
    for at, said, name, value in _settings(subject):
        mount = mount_of(value, spec.hardware.volumes)
        if mount is not None and _SAVES.search(name.rpartition(".")[2]) and not _READS.search(name):
            yield _Written(at, value, mount, said)
    for number, command in enumerate(spec.setup):
        split = words(command)
        target = next((word for word in split[1:] if mount_of(word, spec.hardware.volumes)), None)
        if split[:1] == ("ln",) and target is not None and split[-1].rstrip("/") == spec.checkpoints.folder:
            mount = mount_of(target, spec.hardware.volumes)
            assert mount is not None
            yield _Written(
                ("setup", number), target, mount, f"the folder of checkpoints, {spec.checkpoints.folder},"
            )


def _settings(subject: Subject) -> Iterator[tuple[Path, str, str, str]]:
    """Yield the place, the words, the name and the value of each setting that is a text."""
    spec = subject.spec
    assert spec is not None
    commands: list[tuple[Path, str]] = [
        (("trainer", "command"), spec.trainer.command),
        (("trainer", "resume"), spec.trainer.resume),
    ]
    if spec.smoke is not None:
        commands.append((("smoke", "command"), spec.smoke.command))
    if spec.trainer.prime_rl is not None:
        commands.append((("trainer", "prime_rl", "overrides"), " ".join(spec.trainer.prime_rl.overrides)))
    for at, command in commands:
        yield from ((at, f"--{name}", name, value) for name, value in flags(command))
        yield from ((at, name, name, value) for name, value in settings(command))
    yield from ((("environment", name), name, name, value) for name, value in spec.environment.items())
    if subject.trainer is not None and not subject.is_by_flags:
        yield from (
            ((), f"{name} in the trainer's config", name, value)
            for name, value in _texts(subject.trainer.root, "", 0)
        )


def _texts(node: Node, name: str, depth: int) -> Iterator[tuple[str, str]]:
    match node:
        case Scalar(value=str(text)):
            yield name, text
        case Mapping() if depth < _DEPTH_MAX:
            for entry in node.entries:
                yield from _texts(entry.value, f"{name}.{entry.key}" if name else str(entry.key), depth + 1)
        case Listing() if depth < _DEPTH_MAX:
            for item in node.items:
                yield from _texts(item, name, depth + 1)
        case _:
            return
