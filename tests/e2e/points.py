"""The kill matrix: where something is killed, and what.

A row is a point in the work of one process (an audit event of its interpreter) and the victims that are tried
there.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

ROLES = {
    "agent": r"prime_agent[./]main|prime-agent",
    "trainer": r"prime_train[./]demo[./]train.*--save-every",
    "plane": r"prime-train serve",
    "watcher": r"prime-train watch",
    "example": r"\btrain\.py",
}


@dataclass(frozen=True)
class Point:
    """A point. `needs` names a point that must have struck before: `lose-first` takes the first machine at a
    step, so that the second restores.
    """

    name: str
    role: str
    event: str
    pattern: str
    victim: str
    nth: int = 1
    needs: str = ""
    step_s: float = 0.04
    """Seconds per step of the trainer: long enough for several commits if the point comes only after them."""

    def row(self, fired: Path, port: int) -> dict[str, object]:
        """Return the point as an entry of PT_CRASH, see crash/sitecustomize.py."""
        return {**asdict(self), "self": self.role, "role": ROLES[self.role], "dir": str(fired), "port": port}


SAVED_STEP = 25
"""Step of the checkpoint that must be durable when the first machine is taken; without one the second would
have nothing to restore.
"""
LOSE_FIRST = Point("lose-first", "trainer", "open", r"step_50/COMPLETE", "machine")


def _both(
    name: str,
    role: str,
    event: str,
    pattern: str,
    *,
    nth: int = 1,
    needs: str = "",
    step_s: float = 0.04,
    alone: str,
) -> list[Point]:
    """Return the same point with the process alone as victim, and with the entire machine."""
    return [
        Point(f"{name}-{victim}", role, event, pattern, victim, nth, needs, step_s)
        for victim in (alone, "machine")
    ]


AGENT_POINTS = [
    *_both("boot-reads-ticket", "agent", "open", r"ticket", alone="agent"),
    *_both("bootstrap-request", "agent", "socket.connect", r"127\.0\.0\.1", alone="agent"),
    *_both("unpack-tree", "agent", "open", r"'data\.json'", alone="agent"),
    *_both("setup-command", "agent", "subprocess.Popen", r"setup-was-here", alone="agent"),
    *_both("verification", "agent", "pathlib.Path.glob", r"data\.json", alone="agent"),
    *_both("smoke-test", "agent", "subprocess.Popen", r"smoke", alone="agent"),
    *_both("trainer-start", "agent", "subprocess.Popen", r"--save-every", alone="agent"),
    *_both("set-aside", "agent", "os.link", r"step_\d+", alone="agent"),
    *_both("mid-upload-first-blob", "agent", "os.rename", r"/blobs/", alone="agent"),
    *_both("mid-upload-last-blob", "agent", "os.rename", r"/blobs/", nth=5, alone="agent"),
    *_both("before-manifest", "agent", "os.rename", r"/manifests/", alone="agent"),
    *_both("between-manifest-and-latest", "agent", "os.rename", r"latest\.json", alone="agent"),
    *_both("second-manifest", "agent", "os.rename", r"/manifests/", nth=2, step_s=0.1, alone="agent"),
    *_both("prune-manifest", "agent", "os.remove", r"/manifests/", step_s=0.1, alone="agent"),
    *_both("restore-download", "agent", "open", r"restore-\d+", needs="lose-first", alone="agent"),
    *_both("restore-rename", "agent", "os.rename", r"restore-\d+.*step_", needs="lose-first", alone="agent"),
]
TRAINER_POINTS = [
    *_both("mid-checkpoint-weights", "trainer", "open", r"step_25/weights", alone="trainer"),
    *_both("mid-checkpoint-optimizer", "trainer", "open", r"step_50/optimizer", alone="trainer"),
    *_both("mid-checkpoint-sentinel", "trainer", "open", r"step_50/COMPLETE", alone="trainer"),
    *_both(
        "trainer-loads-checkpoint",
        "trainer",
        "open",
        r"step_\d+/(weights|optimizer)",
        needs="lose-first",
        alone="trainer",
    ),
]
PLANE_POINTS = [
    Point("before-launch-intent", "plane", "os.rename", r"spec\.json", "plane"),
    Point("create-writes-registry", "plane", "open", r"pod\.json", "plane"),
    Point("create-starts-machine", "plane", "subprocess.Popen", r"pod_process", "plane"),
    Point("put-agent", "plane", "open", r"ticket", "plane"),
    Point("takeover-lists-manifests", "plane", "open", r"/manifests/", "plane", needs="lose-first"),
    Point("before-takeover-intent", "plane", "os.rename", r"spec\.json", "plane", needs="lose-first"),
    Point("takeover-create", "plane", "subprocess.Popen", r"pod_process", "plane", needs="lose-first"),
    Point("takeover-put-agent", "plane", "open", r"ticket", "plane", needs="lose-first"),
    Point("teardown", "plane", "shutil.rmtree", r"local-", "plane"),
]
WATCHER_POINTS = [
    Point("watcher-before-launch-intent", "watcher", "os.rename", r"spec\.json", "watcher"),
    Point("watcher-create", "watcher", "subprocess.Popen", r"pod_process", "watcher"),
    Point("watcher-put-agent", "watcher", "open", r"ticket", "watcher"),
    Point("watcher-takeover-lists", "watcher", "open", r"/manifests/", "watcher", needs="lose-first"),
    Point(
        "watcher-takeover-create",
        "watcher",
        "subprocess.Popen",
        r"pod_process",
        "watcher",
        needs="lose-first",
    ),
    Point("watcher-teardown", "watcher", "shutil.rmtree", r"local-", "watcher"),
]
WEBHOOK_POINTS = [
    Point("webhook-gone-at-bootstrap", "agent", "socket.connect", r"127\.0\.0\.1", "plane"),
    Point("webhook-gone-in-setup", "agent", "subprocess.Popen", r"setup-was-here", "plane"),
    Point("webhook-gone-mid-step", "trainer", "open", r"step_25/weights", "plane"),
    Point("webhook-gone-mid-upload", "agent", "os.rename", r"/blobs/", "plane"),
    Point("webhook-gone-before-commit", "agent", "os.rename", r"/manifests/", "plane"),
    Point("webhook-gone-after-commit", "agent", "os.rename", r"latest\.json", "plane"),
    Point("webhook-gone-at-the-end", "trainer", "open", r"final\.json", "plane"),
    Point(
        "webhook-gone-in-restore", "agent", "os.rename", r"restore-\d+.*step_", "plane", needs="lose-first"
    ),
]
POINTS = [*AGENT_POINTS, *TRAINER_POINTS, *PLANE_POINTS, *WATCHER_POINTS, *WEBHOOK_POINTS]
LAMBDA_POINTS = [
    Point("webhook-commit-unsaid", "webhook", "answer", r"/commit", "plane"),
    Point("webhook-commit-unsaved", "webhook", "request", r"/commit", "plane"),
]
"""Points between the webhook and its table, which do not exist if both are in one process."""
