"""What a rule is: a row of a table. It looks at a subject and says which of its values are flawed; it never knows how that is printed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from prime_train.core.config_tree import Mapping, Node, Path, Scalar, Value, find
from prime_train.core.finding import Severity
from prime_train.core.run_secrets import DEFAULT

if TYPE_CHECKING:
    from prime_train.core.prime_rl.upstream import Upstream
    from prime_train.core.spec import RunSpec

Kind = Literal["", "prime_rl", "areal", "hf_trainer", "trm"]
"""Whose settings a trainer's config holds; empty: nobody's we know."""


@dataclass(frozen=True)
class Document:
    """One file with the files it includes. `source` is the text of the file itself, with secrets in it, if it has any."""

    file: str
    root: Mapping
    source: str = field(default="", repr=False)

    def at(self, *path: str | int) -> Node | None:
        """What stands there; None where nothing does."""
        return find(self.root, path)

    def value(self, *path: str | int) -> Value:
        """The single value that stands there; None where none does, or where it is null."""
        node = find(self.root, path)
        return node.value if isinstance(node, Scalar) else None

    def number(self, *path: str | int) -> int | float | None:
        """The number that stands there; true and false are none."""
        value = self.value(*path)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def text(self, *path: str | int) -> str | None:
        value = self.value(*path)
        return value if isinstance(value, str) else None

    def file_of(self, node: Node) -> str:
        return node.place.file or self.file


@dataclass(frozen=True)
class Subject:
    """What a rule may look at. A trainer's config can stand alone (no spec), and a spec alone (no trainer's config)."""

    spec: "RunSpec | None" = None
    config: Document | None = None
    """The file of the spec."""
    trainer: Document | None = None
    """The trainer's own config, includes and the spec's overrides merged into it."""
    kind: Kind = ""
    """Whose config `trainer` is."""
    files: frozenset[str] | None = None
    """Of the files in the working tree that the spec names (`named_files`), those that are there. None: the tree is not on this machine."""
    beside: frozenset[str] = frozenset()
    """What lies in the folders where files that the spec names are missing."""
    has_code: bool = True
    """False: the working tree is to be a folder, and there is none; or a repository that is not the one we stand in."""
    sources: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """File and text of whatever `trainer` includes."""
    run_secrets: tuple[str, ...] = DEFAULT
    """Names and globs of the variables that the control plane hands to runs."""
    now_s: int | None = None
    """The second at which it is looked at, for what depends on it."""
    upstream: "Upstream | None" = None
    """What prime-rl's own validators say of `trainer`, where they were asked."""


@dataclass(frozen=True)
class Violation:
    """One value that is wrong. Where `path` is missing in the document, the violation stands at the nearest part above it."""

    path: Path
    message: str
    fix: str = ""
    on_key: bool = False
    """The key is wrong (unknown, moved), not its value."""
    document: Literal["config", "trainer"] = "config"
    is_secret: bool = False
    """The value must be shown nowhere, and neither must its line."""
    word: str = ""
    """Of a text of several lines, what is meant: the violation stands in the line that holds it."""


@dataclass(frozen=True)
class Rule:
    """`check` is pure. A fix a violation does not give itself is the rule's."""

    code: str
    severity: Severity
    title: str
    why: str
    """What happens to a run with it, for docs/rules.md: a sentence or two."""
    fix: str
    family: str
    check: Callable[[Subject], Iterable[Violation]] = field(repr=False)
    requires: str = ""
    """What the subject must have for the rule to be asked: "spec" (with its file), "trainer", or a kind of trainer's config."""

    def applies(self, subject: Subject) -> bool:
        match self.requires:
            case "":
                return True
            case "spec":
                return subject.spec is not None and subject.config is not None
            case "trainer":
                return subject.trainer is not None
            case kind:
                return subject.trainer is not None and subject.kind == kind
