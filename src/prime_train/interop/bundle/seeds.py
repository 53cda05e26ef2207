"""The seeds that a run names: in its config, its command, and the files of the trainer that the command
names.
"""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from prime_train.checkpoints.archive import BROKEN, uncompressed
from prime_train.checkpoints.tar_reader import TarReader, Unsafe
from prime_train.checkpoints.unpacking import MEMBERS_MAX
from prime_train.interop.bundle.readme import Seed
from prime_train.spec.spec import RunSpec
from prime_train.text.redaction import redacted
from prime_train.trainers.of_spec import trainer_for

FILE_BYTES_MAX = 2**20
SEEDS_MAX = 200
SUFFIXES = (".toml", ".yaml", ".yml", ".json", ".py")
_IN_FILES = re.compile(
    r"""\b((?:[A-Za-z_][\w.\-]*)?seed[\w\-]*)["']?\s*[:=(]\s*["']?(-?\d{1,20})\b""", re.IGNORECASE
)
_IN_COMMANDS = re.compile(
    r"(?:^|[\s+])(?:--)?((?:[A-Za-z_][\w.\-]*)?seed[\w\-]*)(?:\s+|=)(-?\d{1,20})\b", re.IGNORECASE
)


def seeds_of(spec: RunSpec, code: Path) -> tuple[Seed, ...]:
    """Return the seeds, each once. `code`: the archive of the code; if it does not exist, because the code is
    from a repository, or cannot be read, only the config is searched.
    """
    found = [*_in_config(spec), *(_in_code(spec, code) if code.is_file() else ())]
    return tuple(dict.fromkeys(found))[:SEEDS_MAX]


def _in_config(spec: RunSpec) -> Iterator[Seed]:
    for name, value in spec.environment.items():
        if "seed" in name.lower() and re.fullmatch(r"-?\d{1,20}", value):
            yield Seed(name, int(value), "environment")
    overrides = " ".join(spec.trainer.prime_rl.overrides) if spec.trainer.prime_rl is not None else ""
    for where, text in (("trainer.command", spec.trainer.command), ("trainer.prime_rl.overrides", overrides)):
        yield from (Seed(redacted(name), int(value), where) for name, value in _IN_COMMANDS.findall(text))


def _in_code(spec: RunSpec, code: Path) -> Iterator[Seed]:
    own = trainer_for(spec).config_file(spec)
    named = {word for word in re.split(r"[\s='\"@]+", spec.trainer.command) if word.endswith(SUFFIXES)} | (
        {own} if own else set()
    )
    wanted = {PurePosixPath(path).as_posix() for path in named}
    try:
        with code.open("rb") as raw, uncompressed(raw) as stream:
            reader = TarReader(stream, headers_max=MEMBERS_MAX)
            for member in reader.members():
                path = PurePosixPath(member.name).as_posix()
                if member.is_file and path in wanted and member.size <= FILE_BYTES_MAX:
                    yield from _in_text(path, b"".join(reader.content()).decode(errors="replace"))
    except (*BROKEN, Unsafe):
        return


def _in_text(path: str, text: str) -> Iterator[Seed]:
    for number, line in enumerate(text.splitlines(), start=1):
        code = line.split("#", 1)[0]
        yield from (
            Seed(redacted(name), int(value), f"{path}:{number}") for name, value in _IN_FILES.findall(code)
        )
