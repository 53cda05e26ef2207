"""Homes of control planes that older commits have left, each with a run that was training: `COMMIT.json`,
made by `make.py`.
"""

import json
import re
import sqlite3
from base64 import b64decode
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
COMMITS = tuple(sorted(path.stem for path in FOLDER.glob("*.json")))
_BOOT = re.compile(r"(INSERT INTO \"clock\" VALUES\(1,')[^']*")
_SECOND = re.compile(r"\b1[78][0-9]{8}\b")


@dataclass(frozen=True)
class OldHome:
    """The home that one commit left at the second `at_s`. `sql`: its store as statements; `files`: all other
    files, by path.
    """

    commit: str
    at_s: int
    sql: str
    files: Mapping[str, bytes]

    @classmethod
    def of(cls, commit: str) -> "OldHome":
        content: dict[str, Any] = json.loads((FOLDER / f"{commit}.json").read_text())
        files = {name: b64decode(data) for name, data in content["files"].items()}
        return cls(commit, content["at_s"], "\n".join(content["sql"]), files)

    def put(self, root: Path, now_s: int | None = None) -> None:
        """Write the home to the folder `root`. With `now_s`, the store is as if it had been left at that
        second; otherwise its machine was paid for ever since. Its clock is of another boot of the machine,
        wherever the homes were made.
        """
        moved_s = now_s - self.at_s if now_s is not None else 0
        root.mkdir(mode=0o700)
        for name, data in self.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        (root / "master.key").chmod(0o600)
        with closing(sqlite3.connect(root / "control.sqlite")) as sql:
            moved = _SECOND.sub(lambda found: str(int(found[0]) + moved_s), self.sql)
            sql.executescript(_BOOT.sub(r"\1an earlier boot", moved))
