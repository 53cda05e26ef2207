"""The folders of a rehearsal, with copies of the working tree, and the processes in them."""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.launch.code.archive import survey
from prime_train.rehearsal.process import Place, Rehearsed, environment_of, why_not_walled
from prime_train.rehearsal.rehearsal import Request
from prime_train.rehearsal.trial import (
    line_of,
)
from prime_train.spec.finding import Severity
from prime_train.spec.spec import RunSpec
from prime_train.text.safe import neutralized
from prime_train.trainers.conventions.own_scripts import SCRIPT_BYTES_MAX, scripts_of

SCRIPTS_MAX = 50
_IMPORTED = re.compile(r"^\s*(?:from|import)\s+([A-Za-z_][\w.]*)", re.MULTILINE)


Say = Callable[[str], None]


@dataclass
class Stage:
    """The folders of a rehearsal, and the processes in them."""

    request: Request
    folder: Path
    say: Say
    own: Mapping[str, str] = field(default_factory=dict)
    started: list[Rehearsed] = field(default_factory=list)
    labelled: list[tuple[Rehearsed, str]] = field(default_factory=list)
    count: int = 0

    @property
    def base(self) -> Path:
        return self.folder / "base"

    def fresh(self) -> Place:
        """Return a new place with the code, and what the set-up has made, in its tree."""
        self.count += 1
        root = self.folder / f"start-{self.count}"
        place = Place(root / "tree", root / "home", self.folder / "private", self.request.folder.absolute())
        place.home.mkdir(parents=True)
        shutil.copytree(self.base, place.tree, symlinks=True)
        return place

    def start(self, spec: RunSpec) -> Rehearsed:
        """Start the run's command as on its first machine."""
        place = self.fresh()
        return self.running(line_of(spec, place.tree), place, "first run")

    def running(self, line: str, place: Place, label: str) -> Rehearsed:
        """Start a command line in this place. Raises OSError."""
        process = Rehearsed(line, place, environment_of(self.own, place, self.request.spec))
        self.started.append(process)
        self.labelled.append((process, label))
        process.start()
        return process

    def set_up(self) -> None:
        """Run the commands of the set-up in the tree of which all others are copies."""
        for command in self.request.spec.setup:
            self.say(f"set-up: {command}")
            home = self.folder / "setup-home"
            home.mkdir(exist_ok=True)
            process = self.running(command, Place(self.base, home, self.folder / "private"), "set-up")
            ended = process.wait(SETUP_S_MAX)
            process.close()
            if not ended or process.recording.code != 0:
                last = process.recording.lines[-1].text if process.recording.lines else "it printed nothing"
                raise UsageError(
                    f"setup: {command!r} ended with code {process.recording.code}: {last}"
                    if ended
                    else f"setup: {command!r} took more than {SETUP_S_MAX:.0f} s",
                    fix="run it by hand in a clean copy of the repository",
                    code=Exit.FINDINGS,
                )

    def scripts(self) -> list[tuple[str, str]]:
        """Return path and text of the scripts that the command starts, and of the modules of the working tree
        that these import.
        """
        left = [self.base / path for path in scripts_of(self.request.command)]
        found: dict[Path, str] = {}
        while left and len(found) < SCRIPTS_MAX:
            path = left.pop(0).resolve()
            if path in found or not path.is_relative_to(self.base.resolve()):
                continue
            text = found[path] = _text(path)
            for module in _IMPORTED.findall(text):
                parts = module.replace(".", "/")
                for root in (path.parent, self.base):
                    left += [
                        one for one in (root / f"{parts}.py", root / parts / "__init__.py") if one.is_file()
                    ]
        return [
            (path.relative_to(self.base.resolve()).as_posix(), text) for path, text in found.items() if text
        ]

    def close(self) -> None:
        for process in self.started:
            process.close()


SETUP_S_MAX = 900.0


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(SCRIPT_BYTES_MAX).decode(errors="replace")
    except OSError:
        return ""


@contextmanager
def staged(request: Request, say: Say) -> Iterator[Stage]:
    snapshot = survey(request.folder.absolute())
    wrong = [one for one in snapshot.findings if one.severity is Severity.ERROR]
    if wrong:
        raise UsageError(wrong[0].message, fix=wrong[0].fix, code=Exit.FINDINGS)
    folder = Path(tempfile.mkdtemp(prefix="prime-train-try-"))
    stage = Stage(request, folder, lambda text: say(neutralized(text)))
    try:
        (folder / "private").mkdir()
        for name, _ in snapshot.files:
            target = stage.base / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(snapshot.folder / name, target, follow_symlinks=False)
        stage.base.mkdir(exist_ok=True)
        reason = why_not_walled(folder / "private")
        if reason:
            say(
                f"not walled off from this machine's other files ({reason}): paths outside its copy are written to"
            )
        yield stage
    finally:
        stage.close()
        _remove(folder)


def _remove(folder: Path) -> None:
    """Delete a folder with all that is in it, also folders that nobody may write to."""
    for path, folders, _ in os.walk(folder):
        for name in folders:
            if not (Path(path) / name).is_symlink():
                with suppress(OSError):
                    (Path(path) / name).chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
