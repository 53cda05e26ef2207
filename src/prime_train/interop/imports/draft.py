"""The config that is being made, and what could not be carried over to it."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from prime_train.spec.image import is_reference
from prime_train.spec.tree import Mapping as Tree
from prime_train.spec.tree import Node, Plain, Scalar, TreeEntry
from prime_train.text.redaction import LOOKS

NAME_CHARS_MAX = 32
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SECRET_NAME = re.compile(
    r"(^|_)(TOKEN|SECRETS?|PASSWORD|PASSWD|CREDENTIALS?|API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|KEY|"
    r"PAT)(_?(ID|\d+))?$",
    re.IGNORECASE,
)
"""Names of variables whose values are secrets, or may be: one too many costs a line of the operator's list,
one too few a leaked key.
"""
WHY_NOT = "prime-train has no such setting, and it may change what runs: delete it if it does not"
ONE_MACHINE = (
    "a run has one machine, and this command expects several; choose one with more GPUs, and a command for "
    "one machine"
)
ITSELF = "127.0.0.1"
ADDRESSES = frozenset(
    (
        *(
            "MASTER_ADDR",
            "COORDINATOR_ADDRESS",
            "JAX_COORDINATOR_ADDRESS",
            "RDZV_ENDPOINT",
            "PET_RDZV_ENDPOINT",
        ),
        *("PET_MASTER_ADDR", "PET_RDZV_HOST", "MAIN_PROCESS_IP", "HEAD_NODE_IP", "NODE_IPS"),
    )
)
"""Variables with the address of the first machine of several, which is the only one here."""
_HOST = re.compile(r"([\w.-]{1,253})((?::\d{1,5})?)")
_OF_ITSELF = re.compile(r"localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0")
REMOVED = "$REMOVED_SECRET"
"""What stands in a command where a secret was written out."""
BASH = re.compile(
    r"\[\[|<\(|>\(|\|&|&>|=~|\(\(|\bpipefail\b|<<<|=\(|\$'|\bconda activate\b|\w\+=|\[ [^]\n]{0,200}==|"
    r"(^|[;&|({]|\b(then|do|else))[ \t]*(source|declare|local|function|shopt|mapfile|readarray|pushd|popd|let|"
    r"select|typeset|export -f)\b|\becho -e\b|\bread -[a-zA-Z]{0,9}[adnpt]\b|\bprintf -v\b|\btrap\b.{0,200}\bERR\b|"
    r"\$\{!|\$\{\w+(//?|\^|,|\[|:\d|@)|\$(RANDOM|SECONDS|PIPESTATUS|BASH\w*|HOSTNAME|EUID|UID)\b|"
    r"\{(\d+\.\.\d+|[\w./-]*,[\w.,/-]*)\}",
    re.MULTILINE,
)
"""What bash understands and /bin/sh may not."""
INSTALLS = re.compile(
    r"\s*(sudo )?(pip3? install|python3? -m pip install|uv (pip|sync)|apt(-get)? |conda install|git clone|"
    r"git lfs)[^&|;<>\n]*"
)
"""A command that only installs something, so that it can be a command of `setup`."""


@dataclass(frozen=True)
class LeftOut:
    """Something in the file that the config does not have. `line`: where it is; `what`: its keys."""

    line: int
    what: str
    why: str


@dataclass
class Draft:
    """The parts of the config. `count` is the number of GPUs; None: the file names none. `gpu_gb_min`: the
    least memory of one.
    """

    name: str = ""
    command: str = ""
    setup: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list)
    gpus: list[str] = field(default_factory=list)
    count: int | None = None
    gpu_gb_min: int = 0
    spot: str = "never"
    usd_per_hour_max: float | None = None
    disk_gib: int | None = None
    image: str = ""
    code: dict[str, Plain] = field(default_factory=dict)
    has_code: bool = False
    """Whether the file says where the code is."""
    hours: float | None = None
    trainer: dict[str, Plain] = field(default_factory=dict)
    """The section of a trainer that has no command; `files` holds the texts of what it names, by their names."""
    sections: dict[str, Plain] = field(default_factory=dict)
    """Further sections of the config."""
    files: dict[str, str] = field(default_factory=dict)
    chosen: list[str] = field(default_factory=list)
    """What the file does not say, and what was written for it."""
    left: list[LeftOut] = field(default_factory=list)
    impossible: list[LeftOut] = field(default_factory=list)
    """What of `left` changes what runs, so that the config alone does not do what the file did."""
    names_image: bool = False
    """Whether the file names an image, which may have files and programs of its own."""
    lines: list[tuple[str, dict[int, str]]] = field(default_factory=list)
    """The lines of the commands by their numbers in the file, in the order in which they run, with their keys."""
    folders: list[str] = field(default_factory=list)
    """Folders that the command expects, empty at first."""
    copied: list[tuple[Node, str, str]] = field(default_factory=list)
    """Files that the other tool copies to the same path below the folder of the commands: where the file says
    so, its keys, and the path.
    """
    mounted: list[str] = field(default_factory=list)
    """Folders in which the other tool shows a bucket: what the command writes there outlives its machine."""

    def leave(self, node: TreeEntry | Node, what: str, why: str) -> None:
        """List what the config does not have, and what runs is the same without."""
        self.left.append(LeftOut(node.place.line, what, why))

    def refuse(self, node: TreeEntry | Node, what: str, why: str) -> None:
        """List what the config does not have, though it changes what runs. `why` says what to do."""
        self.refuse_line(node.place.line, what, why)

    def refuse_line(self, line: int, what: str, why: str) -> None:
        """List such a thing by the line of the file in which it is."""
        self.left.append(LeftOut(line, what, why))
        self.impossible.append(self.left[-1])

    def variable(self, name: str, value: Node, what: str) -> None:
        """Take over a variable: as a secret by its name if it looks like one, and otherwise with its
        value.
        """
        if not VARIABLE.fullmatch(name):
            self.refuse(value, what, "this is not the name of a variable: rename it")
        elif not isinstance(value, Scalar):
            self.refuse(value, what, "its value is not a text: write it as one")
        elif SECRET_NAME.search(name) or LOOKS.search(value.text):
            self.secret(name, value, what)
            if value.text and value.value is not None:
                self.leave(
                    value,
                    what,
                    f"its value may be a secret, which no config contains: set {name} where the control "
                    "plane runs",
                )
        elif value.value is None:
            self.refuse(value, what, f"it has no value here: add {name} under environment, or under secrets")
        elif (
            name in ADDRESSES
            and (found := _HOST.fullmatch(value.text))
            and not _OF_ITSELF.fullmatch(found[1])
        ):
            self.leave(
                value, what, f"a run has one machine, so it is {ITSELF} now, instead of {found[1][:60]}"
            )
            self.environment[name] = f"{ITSELF}{found[2]}"
        else:
            self.environment[name] = value.text

    def secret(self, name: str, place: TreeEntry | Node, what: str) -> None:
        """Take over a secret by its name."""
        if not VARIABLE.fullmatch(name):
            self.refuse(place, what, "this is not the name of a variable: rename it")
        elif name not in self.secrets:
            self.secrets.append(name)

    def set_image(self, image: str, place: TreeEntry | Node, what: str) -> None:
        """Take over the image of a machine, which must be named by its digest."""
        self.names_image = True
        plain = image.removeprefix("docker:")
        if is_reference(plain):
            self.image = plain
        else:
            self.refuse(
                place,
                what,
                f"{image[:100]} has no digest, so it may be another image tomorrow, and the commands need what "
                f"is in it: write hardware.image: {_digest(plain)}",
            )

    def without_secrets(self, node: Node, text: str, what: str) -> str:
        """Return the command without secrets that are written out in it."""
        found = LOOKS.search(text)
        if found is None:
            return text
        line = node.place.line + text.count("\n", 0, found.start()) + (1 if "\n" in text else 0)
        why = f"it contains what looks like a secret, now {REMOVED}: put its variable under secrets"
        self.refuse_line(line, what, why)
        return LOOKS.sub(REMOVED, text)


def tree_of(draft: Draft, usd: float | None) -> dict[str, Plain]:
    """Return the config's keys and values, in the order in which people read them."""
    trainer: dict[str, Plain] = dict(draft.trainer)
    if draft.command:
        # Braces are placeholders in a command, and what the other tool started does not know how prime-train
        # resumes.
        trainer = {"command": draft.command.replace("{", "{{").replace("}", "}}"), "resume": ""}
    if draft.code:
        trainer["code"] = draft.code
    budget: dict[str, Plain] = {
        **({"usd": usd} if usd is not None else {}),
        **({"hours": draft.hours} if draft.hours is not None else {}),
    }
    parts: dict[str, Plain] = {
        "name": draft.name,
        "trainer": trainer,
        "setup": list(draft.setup),
        "environment": dict(draft.environment),
        "secrets": list(draft.secrets),
        "hardware": _hardware(draft),
        **draft.sections,
        "budget": budget,
    }
    return {key: value for key, value in parts.items() if value}


def _hardware(draft: Draft) -> dict[str, Plain]:
    found: dict[str, Plain] = {}
    if draft.image:
        found["image"] = draft.image
    if draft.gpus:
        found["gpus"] = list(draft.gpus)
    if draft.count is not None and (draft.gpu_gb_min or not draft.gpus):
        found["variants"] = [
            {"count": draft.count, **({"gpu_gb_min": draft.gpu_gb_min} if draft.gpu_gb_min else {})}
        ]
    elif draft.count is not None:
        found["count"] = draft.count
    found["spot"] = draft.spot
    if draft.usd_per_hour_max is not None:
        found["usd_per_hour_max"] = draft.usd_per_hour_max
    if draft.disk_gib is not None:
        found["disk_gib"] = draft.disk_gib
    return found


class Section:
    """The keys of a mapping of the file. What is not taken is left out with a reason by `close`. `path`: the
    keys above it.
    """

    def __init__(self, draft: Draft, tree: Node | None, path: str = "") -> None:
        self._draft, self._path = draft, path
        self._entries = {entry.key: entry for entry in tree.entries} if isinstance(tree, Tree) else {}
        if (
            tree is not None
            and not isinstance(tree, Tree)
            and not (isinstance(tree, Scalar) and tree.value is None)
        ):
            draft.refuse(tree, path, "keys with values are expected here")

    def take(self, key: str) -> TreeEntry | None:
        """Return the entry with this key, which then counts as carried over; None: there is none, or it has
        no value.
        """
        found = self._entries.pop(key, None)
        return (
            found
            if found is not None and not (isinstance(found.value, Scalar) and found.value.value is None)
            else None
        )

    def peek(self, key: str) -> TreeEntry | None:
        """Return the entry with this key, which does not count as carried over."""
        return self._entries.get(key)

    def text(self, key: str) -> str:
        """Return the value with this key as a text; empty: there is none, or it is none, which is then left
        out.
        """
        found = self.take(key)
        if found is None:
            return ""
        if isinstance(found.value, Scalar):
            return found.value.text
        self._draft.refuse(found, self.name(key), "a text is expected here")
        return ""

    def section(self, key: str) -> "Section":
        found = self.take(key)
        return Section(self._draft, found.value if found is not None else None, self.name(key))

    def take_starting(self, starts: tuple[str, ...]) -> list[TreeEntry]:
        """Return the entries whose keys start so, which then count as carried over."""
        return [
            entry
            for key in [key for key in self._entries if key.startswith(starts)]
            if (entry := self.take(key)) is not None
        ]

    def rest(self) -> list[TreeEntry]:
        """Return all entries that are left, which then count as carried over."""
        left, self._entries = list(self._entries.values()), {}
        return left

    def name(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key

    def close(self, left: Mapping[str, str], refused: Mapping[str, str] | None = None) -> None:
        """Leave out every key that was not taken, with the reasons by key. `left`: what runs is the same
        without them. All others change it, or may: `refused` says what to do about those that are known.
        """
        for entry in self.rest():
            if entry.key in left:
                self._draft.leave(entry, self.name(entry.key), left[entry.key])
            else:
                why = (refused or {}).get(entry.key, WHY_NOT)
                self._draft.refuse(entry, self.name(entry.key), why)


def name_of(text: str) -> str:
    """Return the text as the name of a run; empty if nothing of it can be in one."""
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return words[:NAME_CHARS_MAX].strip("-")


def in_bash(script: str) -> str:
    """Return the script as a command for /bin/sh; as it is, unless it needs bash."""
    return f"exec bash -c {shlex.quote(script)}" if BASH.search(script) else script


def _digest(image: str) -> str:
    return f"{image.partition('@')[0].rpartition('/')[0] or 'registry'}/...@sha256:DIGEST"
