"""Git objects with the names that git gives them, and refs; a fork and its origin share their objects, as at
GitHub.
"""

import hashlib
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

FILE_MODE = "100644"
TREE_MODE = "040000"
COMMITS_MAX = 10_000
GIT_S_MAX = 60.0

Files = Mapping[str, tuple[str, str]]
"""Mode and SHA of the blob, by path."""


@dataclass(frozen=True)
class Commit:
    sha: str
    tree: str
    parents: tuple[str, ...]
    message: str
    name: str
    at_s: float


@dataclass
class Objects:
    blobs: dict[str, bytes] = field(default_factory=dict)
    trees: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    commits: dict[str, Commit] = field(default_factory=dict)

    def add_blob(self, content: bytes) -> str:
        sha = _sha("blob", content)
        self.blobs[sha] = content
        return sha

    def add_tree(self, files: Files) -> str:
        """Add a tree given by complete paths; folders become trees of their own."""
        entries: dict[str, tuple[str, str]] = {}
        folders: dict[str, dict[str, tuple[str, str]]] = {}
        for path, entry in files.items():
            folder, _, rest = path.partition("/")
            if rest:
                folders.setdefault(folder, {})[rest] = entry
            else:
                entries[path] = entry
        entries |= {name: (TREE_MODE, self.add_tree(inside)) for name, inside in folders.items()}
        ordered = sorted(entries.items(), key=lambda item: item[0] + ("/" if item[1][0] == TREE_MODE else ""))
        sha = _sha(
            "tree",
            b"".join(
                f"{mode.lstrip('0')} {name}\0".encode() + bytes.fromhex(of) for name, (mode, of) in ordered
            ),
        )
        self.trees[sha] = dict(ordered)
        return sha

    def add_commit(self, tree: str, parents: tuple[str, ...], message: str, name: str, at_s: float) -> str:
        who = f"{name} <{name}@users.noreply.github.com> {int(at_s)} +0000"
        lines = [
            f"tree {tree}",
            *(f"parent {parent}" for parent in parents),
            f"author {who}",
            f"committer {who}",
            "",
            message,
        ]
        sha = _sha("commit", "\n".join(lines).encode())
        self.commits[sha] = Commit(sha, tree, parents, message, name, at_s)
        return sha

    def files(self, sha: str) -> dict[str, tuple[str, str]]:
        """Return all files of a commit or a tree, by complete path."""
        return dict(self._walk(self.commits[sha].tree if sha in self.commits else sha, ""))

    def _walk(self, tree: str, before: str) -> Iterator[tuple[str, tuple[str, str]]]:
        for name, (mode, sha) in self.trees[tree].items():
            if mode == TREE_MODE:
                yield from self._walk(sha, f"{before}{name}/")
            else:
                yield before + name, (mode, sha)

    def history(self, sha: str) -> list[str]:
        """Yield the commit and all of its ancestors, near ones first."""
        seen, waiting = {sha: None}, [sha]
        while waiting and len(seen) < COMMITS_MAX:
            for parent in self.commits[waiting.pop(0)].parents:
                if parent not in seen and parent in self.commits:
                    seen[parent] = None
                    waiting.append(parent)
        return list(seen)

    def load(self, folder: Path) -> None:
        """Load all commits of a real repository, with their own names."""
        for sha in _git(folder, "rev-list", "--all").decode().split():
            if sha not in self.commits:
                self._load_commit(folder, sha)

    def _load_commit(self, folder: Path, sha: str) -> None:
        output = _git(folder, "show", "--no-patch", "--format=%P%n%an%n%ct%n%B", sha).decode()
        parents, name, at_s, message = output.split("\n", 3)
        files = {}
        for entry in _git(folder, "ls-tree", "-r", "-z", sha).decode().split("\0")[:-1]:
            about, path = entry.split("\t", 1)
            mode, _, blob = about.split()
            files[path] = (mode, blob)
        self._load_blobs(folder, {blob for _, blob in files.values()} - self.blobs.keys())
        self.commits[sha] = Commit(
            sha, self.add_tree(files), tuple(parents.split()), message.strip("\n"), name, float(at_s)
        )

    def _load_blobs(self, folder: Path, shas: set[str]) -> None:
        """Load all blobs by one process, which writes for each a line with its size, its content, and a line
        break.
        """
        output = _git(folder, "cat-file", "--batch", text="\n".join(shas).encode()) if shas else b""
        while output:
            head, _, output = output.partition(b"\n")
            sha, _, size = head.decode().split()
            self.blobs[sha], output = output[: int(size)], output[int(size) + 1 :]


class Git:
    """One repository: its refs, by full name, and the objects."""

    def __init__(self, objects: Objects | None = None) -> None:
        self.objects = objects or Objects()
        self.refs: dict[str, str] = {}

    def resolve(self, ref: str) -> str | None:
        """Return the commit of a branch, a tag, a complete ref or a SHA, abbreviated or not."""
        for name in (ref, f"refs/{ref}", f"refs/heads/{ref}", f"refs/tags/{ref}"):
            if name in self.refs:
                return self.refs[name]
        if not re.fullmatch(r"[0-9a-f]{7,40}", ref):
            return None
        found = [sha for sha in self.objects.commits if sha.startswith(ref)]
        return found[0] if len(found) == 1 else None

    def commit(
        self, branch: str, changes: Mapping[str, str | bytes | None], *, message: str, name: str, at_s: float
    ) -> str:
        """Commit to the branch's tip, or as a first commit; None removes a file."""
        before = self.refs.get(f"refs/heads/{branch}")
        files = self.objects.files(before) if before else {}
        for path, content in changes.items():
            if content is None:
                files.pop(path, None)
            else:
                files[path] = (
                    FILE_MODE,
                    self.objects.add_blob(content.encode() if isinstance(content, str) else content),
                )
        sha = self.objects.add_commit(
            self.objects.add_tree(files), (before,) if before else (), message, name, at_s
        )
        self.refs[f"refs/heads/{branch}"] = sha
        return sha

    def load(self, folder: Path) -> None:
        """Take over the commits, branches and tags of a real repository."""
        self.objects.load(folder)
        output = _git(
            folder,
            "for-each-ref",
            "--format=%(objectname) %(*objectname) %(refname)",
            "refs/heads",
            "refs/tags",
        ).decode()
        for line in output.splitlines():
            sha, *peeled, ref = line.split()
            self.refs[ref] = peeled[0] if peeled else sha


def _sha(kind: str, content: bytes) -> str:
    return hashlib.sha1(f"{kind} {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()


def _git(folder: Path, *words: str, text: bytes = b"") -> bytes:
    # The folder may belong to another user, as in a container.
    command = ["git", "-c", "safe.directory=*", "-C", str(folder), *words]
    return subprocess.run(command, check=True, input=text, capture_output=True, timeout=GIT_S_MAX).stdout
