"""Defines a rule: a check that returns the offending values of a subject, independent of how findings are
printed.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from prime_train.spec.access_run_secrets import DEFAULT
from prime_train.spec.config_format import ConfigFormat
from prime_train.spec.finding import Severity
from prime_train.spec.shell_scripts import ScriptCommand
from prime_train.spec.tree import Mapping, Node, Path, Scalar, Value, find

if TYPE_CHECKING:
    from prime_train.spec.spec import RunSpec
    from prime_train.spec.upstream import Upstream


@dataclass(frozen=True)
class Document:
    """A file of settings, merged with the files that it includes. `source` is the text of the file itself; it
    may contain secrets.
    """

    file: str
    root: Mapping
    source: str = field(default="", repr=False)

    def at(self, *path: str | int) -> Node | None:
        """Return the node at a path, or None."""
        return find(self.root, path)

    def value(self, *path: str | int) -> Value:
        """Return the scalar value at a path; None if there is none or it is null."""
        node = find(self.root, path)
        return node.value if isinstance(node, Scalar) else None

    def number(self, *path: str | int) -> int | float | None:
        """Return the number at a path; None if there is none. True and false are not numbers."""
        value = self.value(*path)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def text(self, *path: str | int) -> str | None:
        value = self.value(*path)
        return value if isinstance(value, str) else None

    def file_of(self, node: Node) -> str:
        """Return the file in which a node is written: an included one or the document's own."""
        return node.place.file or self.file


@dataclass(frozen=True)
class Subject:
    """The input of a rule. It may have a trainer's config without a spec, or a spec without a trainer's
    config.
    """

    spec: "RunSpec | None" = None
    config: Document | None = None
    """The document with the run's spec; None without one."""
    trainer: Document | None = None
    """The trainer's own config, with its includes and the spec's overrides merged into it."""
    format: ConfigFormat = ""
    """The format of `trainer`."""
    files: frozenset[str] | None = None
    """The files named by the spec (`named_files`) that exist in the working tree. None means that the tree is
    not on this machine.
    """
    files_nearby: frozenset[str] = frozenset()
    """Other files in the folders where files named by the spec are missing."""
    has_code: bool = True
    """False if the working tree is a folder that does not exist, or a repository other than the current
    one.
    """
    sources: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Pairs of file and text for every file that `trainer` includes."""
    scripts: tuple[str, ...] = field(default=(), repr=False)
    """The texts of the scripts that the command starts, as far as they are in the working tree on this
    machine.
    """
    named: tuple[tuple[str, Document], ...] = field(default=(), repr=False)
    """The files of settings beside the trainer's own that the command, or the trainer's own file, names and
    that are in the working tree, by the names used for them: those of accelerate and DeepSpeed.
    """
    started: ScriptCommand | None = None
    """The command with which the shell script of `spec.trainer.command` starts the training; None if the command
    is no script, or the script is not here.
    """
    run_secrets: tuple[str, ...] = DEFAULT
    """Names and globs of the environment variables that the control plane passes to runs."""
    now_s: int | None = None
    """The time of the check in seconds, for rules that depend on it; None if not given."""
    upstream: "Upstream | None" = None
    """The refusals of prime-rl's own validators for `trainer`, if they were run."""

    @property
    def command(self) -> str:
        """The command that starts the training, with the launcher and its flags; empty without a spec."""
        if self.started is not None:
            return self.started.text
        return self.spec.trainer.command if self.spec is not None else ""

    @property
    def is_by_flags(self) -> bool:
        """Whether `trainer` consists of the settings in the command alone, without a file."""
        return self.trainer is not None and self.config is not None and self.trainer.file == self.config.file


@dataclass(frozen=True)
class Violation:
    """A value that breaks a rule. If `path` does not exist in the document, the violation is reported at its
    nearest existing parent.
    """

    path: Path
    message: str
    fix: str = ""
    on_key: bool = False
    """The key is wrong (unknown or moved), not its value."""
    document: Literal["config", "trainer"] = "config"
    is_secret: bool = False
    """The value and its line must not be shown anywhere."""
    word: str = ""
    """The relevant word of a text with several lines; the violation is reported on the line that contains
    it.
    """


@dataclass(frozen=True)
class Rule:
    """A rule. `check` is a pure function. `fix` is used for violations without a fix of their own."""

    code: str
    severity: Severity
    title: str
    why: str
    """The effect on a run, for docs/rules.md: a sentence or two."""
    fix: str
    topic: str
    check: Callable[[Subject], Iterable[Violation]] = field(repr=False)
    requires: str = ""
    """What the subject must have for the rule to apply: "spec" (with its file), "trainer", or the format of a
    trainer's config; empty for nothing.
    """

    def applies(self, subject: Subject) -> bool:
        """Return whether the subject has what the rule requires."""
        match self.requires:
            case "":
                return True
            case "spec":
                return subject.spec is not None and subject.config is not None
            case "trainer":
                return subject.trainer is not None
            case config_format:
                return subject.trainer is not None and subject.format == config_format


T = TypeVar("T")
Check = Callable[[T], Iterable[Violation]]


class RulesOf(Generic[T]):
    """The rules of a module about values that are `given` by a subject.

    A check becomes a rule where it is defined::

        RULES = Rules("hardware", requires="spec")

        @RULES.error("HW101", "a GPU that does not exist", why="No machine has it.", fix="correct the name")
        def unknown_gpu(subject: Subject) -> Iterator[Violation]: ...
    """

    def __init__(self, topic: str, given: Callable[[Subject], T | None], *, requires: str = "") -> None:
        self._topic, self._given, self._requires = topic, given, requires
        self._rules: list[Rule] = []

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def error(
        self, code: str, title: str, *, why: str, fix: str, topic: str = "", requires: str = ""
    ) -> Callable[[Check[T]], Check[T]]:
        """Make the decorated check an error. `topic` and `requires` take the place of the module's."""
        return self._rule(code, Severity.ERROR, title, why, fix, topic, requires)

    def warning(
        self, code: str, title: str, *, why: str, fix: str, topic: str = "", requires: str = ""
    ) -> Callable[[Check[T]], Check[T]]:
        return self._rule(code, Severity.WARNING, title, why, fix, topic, requires)

    def note(
        self, code: str, title: str, *, why: str, fix: str, topic: str = "", requires: str = ""
    ) -> Callable[[Check[T]], Check[T]]:
        return self._rule(code, Severity.NOTE, title, why, fix, topic, requires)

    def _rule(
        self, code: str, severity: Severity, title: str, why: str, fix: str, topic: str, requires: str
    ) -> Callable[[Check[T]], Check[T]]:
        def define(check: Check[T]) -> Check[T]:
            def of_subject(subject: Subject) -> Iterable[Violation]:
                given = self._given(subject)
                return check(given) if given is not None else ()

            rule = Rule(
                code, severity, title, why, fix, topic or self._topic, of_subject, requires or self._requires
            )
            self._rules.append(rule)
            return check

        return define


class Rules(RulesOf[Subject]):
    """The rules of a module about whole subjects."""

    def __init__(self, topic: str, *, requires: str = "") -> None:
        super().__init__(topic, lambda subject: subject, requires=requires)
