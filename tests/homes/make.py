"""Makes the home that an older commit leaves: its own code serves a home, launches a run on a local machine
and lets it train until a checkpoint is committed; then its `serve` is stopped, and the machine is lost.

    python -m tests.homes.make 7cf6cf55 ...

needs a clone with history, and the packages of this environment. Make one for each commit that changed the
form of what is stored.
"""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import sysconfig
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil

FOLDER = Path(__file__).parent
STEP = 60
WAIT_S = 120.0
SKIPPED = ("control.sqlite", "pods/", "serve.lock", "serve.json", "versions/", "bucket/.tmp/")
CONFIG = """\
name: old
trainer:
  command: python train.py
  steps: 300
  resume: --resume-step {step}
  progress: {kind: jsonl, file: progress.jsonl}
  stop_s: 5
checkpoints: {folder: out, pattern: "step_{step}", SENTINEL: COMPLETE, every_steps: 20, keep: 2}
hardware: {spot: prefer, disk_gib: 1, open_files_min: 1024}
health: {heartbeat_s: 1, overdue_s: 3, silence_s: 6, first_heartbeat_s: 60, first_step_s: 60, stall_s: 30, settle_s: 5, drain_s: 20}
budget: {usd: 5, hours: 2}
"""


def make(commit: str, scratch: Path) -> None:
    """Write `COMMIT.json`. `scratch`: an empty folder."""
    program = _installed(commit, scratch)
    project, home = scratch / "project", scratch / "home"
    project.mkdir()
    shutil.copy(FOLDER / "train.py", project)
    spec = scratch / f"old-{commit}" / "src/prime_train/spec/spec.py"
    config = CONFIG.replace("SENTINEL", "sentinel" if "sentinel:" in spec.read_text() else "marker")
    (project / "old.yaml").write_text(config)
    own = {name: value for name, value in os.environ.items() if not name.startswith("PRIME_")}
    path = f"{program.parent}:{own['PATH']}"
    environment = own | {"PRIME_TRAIN_HOME": str(home), "PATH": path}
    with subprocess.Popen([program, "serve", "--port", "0"], cwd=project, env=environment) as serve:
        try:
            _await((home / "serve.json").exists)
            subprocess.run([program, "run", "old.yaml"], cwd=project, env=environment, check=True)
            _await(lambda: _committed(home) >= STEP)
        finally:
            serve.send_signal(signal.SIGTERM)
            serve.wait(WAIT_S)
            _lose(home)
    (FOLDER / f"{commit}.json").write_text(json.dumps(_content(home), indent=1) + "\n")


def _installed(commit: str, scratch: Path) -> Path:
    """Return the program of that commit, with the packages of this environment."""
    code, environment = scratch / f"old-{commit}", scratch / "environment"
    code.mkdir()
    archive = subprocess.run(["git", "archive", commit], capture_output=True, check=True).stdout
    subprocess.run(["tar", "x", "-C", code], input=archive, check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (site,) = environment.glob("lib/python3*/site-packages")
    folders = [code / "src", code / "agent", code / "lambdas", sysconfig.get_path("purelib")]
    (site / "old.pth").write_text("".join(f"{folder}\n" for folder in folders))
    program = environment / "bin/prime-train"
    program.write_text(
        f"#!{environment}/bin/python\nimport sys\nfrom prime_train.cli.main import main\nsys.exit(main())\n"
    )
    program.chmod(0o755)
    return program


def _committed(home: Path) -> int:
    with closing(sqlite3.connect(home / "control.sqlite")) as sql:
        return max(
            (step for (step,) in sql.execute("SELECT committed_step FROM leases").fetchall()), default=0
        )


def _lose(home: Path) -> None:
    """End every process of the home's machines."""
    for process in psutil.process_iter():
        try:
            if any(str(home / "pods") in word for word in process.cmdline()):
                process.kill()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue


def _content(home: Path) -> dict[str, object]:
    with closing(sqlite3.connect(home / "control.sqlite")) as sql:
        statements = list(sql.iterdump())
        ((at_s,),) = sql.execute("SELECT max(heartbeat_s) FROM leases").fetchall()
        ((application_id,),) = sql.execute("PRAGMA application_id").fetchall()
    names = {str(path.relative_to(home)): path for path in sorted(home.rglob("*")) if path.is_file()}
    files = {
        name: b64encode(path.read_bytes()).decode()
        for name, path in names.items()
        if not name.startswith(SKIPPED)
    }
    # The address of the bucket is that of a folder that is gone.
    text = "\n".join(statements).replace(str(home), "/HOME")
    return {
        "at_s": at_s,
        "sql": [f"PRAGMA application_id = {application_id};", *text.split("\n")],
        "files": files,
    }


def _await(is_so: Callable[[], bool]) -> None:
    end_s = time.monotonic() + WAIT_S
    while not is_so():
        if time.monotonic() > end_s:
            raise TimeoutError
        time.sleep(0.2)


if __name__ == "__main__":
    for each in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            make(each, Path(folder))
