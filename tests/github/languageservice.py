"""GitHub's own checks of workflows and actions: fetched from npm by the lock file, bundled, and cached under
build/.
"""

import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from tests.github.files import ROOT, SHIMS

SOURCE = Path(__file__).parent / "languageservice"
KEPT = ROOT / "build" / "languageservice"
OWN = "owner/prime-train"
FETCH_S_MAX = 120
CHECK_S_MAX = 60


def complaints(root: Path, files: Iterable[str]) -> list[str]:
    """Return each complaint as file:line: message. The test is skipped if there is no node, or npm cannot
    fetch.
    """
    command = ["node", str(_bundle()), str(root), OWN, str(SHIMS), *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_S_MAX, check=True)
    return [f"{found['file']}:{found['line']}: {found['message']}" for found in json.loads(done.stdout)]


@cache
def _bundle() -> Path:
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("there is no node, with npm, to run GitHub's language service")
    sources = sorted(SOURCE.iterdir())
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    bundle = KEPT / f"{digest}.cjs"
    if not bundle.exists():
        _make(sources, bundle)
    return bundle


def _make(sources: list[Path], bundle: Path) -> None:
    """Make the bundle completely or not at all, because other processes may be making it, too."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=KEPT) as folder:
        for path in sources:
            shutil.copy(path, folder)
        fetched = _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)
        if fetched.returncode:
            pytest.skip(f"npm cannot fetch GitHub's language service: {fetched.stderr[-300:]}")
        options = [
            "--bundle",
            "--platform=node",
            "--format=cjs",
            "--outfile=bundle.cjs",
            "--log-level=warning",
        ]
        _run(["node_modules/.bin/esbuild", "check.mjs", *options], folder).check_returncode()
        (Path(folder) / "bundle.cjs").replace(bundle)


def _run(command: list[str], folder: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=FETCH_S_MAX, check=False
    )
