"""prime-rl's repository, on this disk: commits that contain only their number."""

import os
import subprocess
from pathlib import Path

from prime_train.trainers.prime_rl.install import REPOSITORY

_AUTHOR = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


def upstream_in(folder: Path, *, versions: int = 1) -> tuple[dict[str, str], list[str]]:
    """Return variables with which git finds the repository in `folder`, and its commits, oldest first;
    VERSION in them counts from 1.
    """
    env = {**os.environ, **_AUTHOR}
    git = ["git", "-C", str(folder)]
    subprocess.run(["git", "init", "-q", str(folder)], check=True, env=env)
    # As at the real one, any commit may be asked for.
    for setting in ("uploadpack.allowAnySHA1InWant", "uploadpack.allowFilter"):
        subprocess.run([*git, "config", setting, "true"], check=True, env=env)
    commits = []
    for version in range(1, versions + 1):
        (folder / "VERSION").write_text(str(version))
        subprocess.run([*git, "add", "-A"], check=True, env=env)
        subprocess.run([*git, "commit", "-qm", str(version)], check=True, env=env)
        commits.append(
            subprocess.run(
                [*git, "rev-parse", "HEAD"], check=True, env=env, capture_output=True, text=True
            ).stdout.strip()
        )
    instead = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{folder}.insteadOf",
        "GIT_CONFIG_VALUE_0": REPOSITORY,
    }
    return instead, commits
