"""What W&B knows of a run, and how its parts are told."""

import base64
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

KEY = "f4ce" * 10
ENTITY = "acme"


@dataclass
class FakeRun:
    """`heartbeat_s`: the second of the last word, None: it has never said one."""

    project: str
    name: str
    state: str = "running"
    heartbeat_s: float | None = None
    step: int = -1
    summary: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    display_name: str = ""
    notes: str = ""
    tags: list[str] = field(default_factory=list)
    created_s: float = 1_000_000.0
    history: list[dict[str, Any]] = field(default_factory=list)
    exit_code: int | None = None
    preempting: bool = False
    entity: str = ENTITY

    @property
    def id(self) -> str:
        return base64.b64encode(f"Run:v1:{self.name}:{self.project}:{self.entity}".encode()).decode()

    def told(self) -> dict[str, Any]:
        """All fields anybody asks for; a client leaves those it did not ask for alone."""
        return {
            "id": self.id,
            "projectId": "1",
            "tags": self.tags,
            "name": self.name,
            "displayName": self.display_name or self.name,
            "sweepName": None,
            "state": self.state,
            "config": json.dumps({key: {"value": value, "desc": None} for key, value in self.config.items()}),
            "group": None,
            "jobType": None,
            "commit": None,
            "readOnly": False,
            "createdAt": _time(self.created_s),
            "heartbeatAt": _time(self.heartbeat_s) if self.heartbeat_s is not None else None,
            "description": None,
            "notes": self.notes,
            "systemMetrics": "{}",
            "summaryMetrics": json.dumps(self.summary),
            "historyLineCount": len(self.history),
            "user": {"name": "Ann", "username": "ann"},
            "historyKeys": {"lastStep": self.step, "sets": [], "keys": {}},
        }

    def resumed(self) -> dict[str, Any]:
        """What a process that goes on with it is told."""
        tail = json.dumps([json.dumps(row) for row in self.history[-1:]])
        counts = {"logLineCount": 0, "historyLineCount": len(self.history), "eventsLineCount": 0}
        return self.told() | counts | {"historyTail": tail, "eventsTail": "[]", "wandbConfig": json.dumps({"t": 1})}

    def streamed(self, chunk: dict[str, Any], now_s: float) -> None:
        """A piece of the stream; each one is a sign of life, one with nothing in it too."""
        self.heartbeat_s = now_s
        files = chunk.get("files") or {}
        for line in files.get("wandb-history.jsonl", {}).get("content", []):
            row = json.loads(line)
            self.history.append(row)
            self.step = max(self.step, int(row.get("_step", self.step)))
        for line in files.get("wandb-summary.json", {}).get("content", []):
            self.summary = json.loads(line)
        self.preempting = self.preempting or bool(chunk.get("preempting"))
        if chunk.get("complete"):
            self.exit_code = int(chunk.get("exitcode") or 0)
            self.state = "finished" if self.exit_code == 0 else "failed"


def _time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
