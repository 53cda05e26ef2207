"""The files that act runs: the project as other repositories refer to it, a repository that uses it, and a
prime-train that needs no installation.

act does not support `$/actions/x`, so copies of workflows use `owner/prime-train/actions/x@REF`; a folder
replaces that, and shims replace third-party actions. Everything else that act refuses is left out of the
copies.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.github.files import MAJOR, ROOT, SHIMS, uses_of, workflows

OWN = "owner/prime-train"
REF = MAJOR
PARTS = (
    "actions",
    "requirements",
    "configs/demo.yaml",
    "configs/presets",
    "examples/consumer-repo/.github/workflows",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)
CODE = ("src", "agent", "lambdas")
AUTHOR = ("-c", "user.name=octocat", "-c", "user.email=octocat@example.com")
WARM = "PRIME_TRAIN_TESTS_WARM"
"""Variable by which the replacement of setup-uv finds the replacement of an installation; unset: nothing is
installed.
"""

Tokens = Callable[[Mapping[str, str]], str]
"""A function that returns a token with the permissions of one job."""


def product(folder: Path, *, has_code: bool) -> Path:
    """Write the project's files as in a released tag. Without its code it is much smaller, which is enough if
    the installation is replaced.
    """
    for part in (*PARTS, *(CODE if has_code else ())):
        source, target = ROOT / part, folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    for part in () if has_code else CODE:
        (folder / part).mkdir()
        (folder / part / "left-out").touch()
    write_workflows(folder)
    return folder


def write_workflows(folder: Path, tokens: Tokens | None = None) -> dict[str, str]:
    """Write the project's workflows, each job with a token of its own, if one is made. Return the variables
    that hold the tokens.
    """
    variables: dict[str, str] = {}
    target = folder / ".github" / "workflows"
    target.mkdir(parents=True, exist_ok=True)
    for path in workflows():
        # `on` is a boolean to YAML 1.1, and is written as it was.
        text = yaml.safe_load(path.read_text())
        text["on"] = text.pop(True)
        _without_what_act_refuses(text)
        for job_id, job in text["jobs"].items():
            _without_what_act_refuses(job)
            for step in job.get("steps", []):
                _point_to_copy(step)
                if tokens and str(step.get("uses", "")).startswith(OWN):
                    name = f"TOKEN_{path.stem}_{job_id}".upper().replace("-", "_")
                    variables[name] = variables.get(name) or tokens(job.get("permissions", {}))
                    step.setdefault("with", {})["token"] = f"${{{{ vars.{name} }}}}"
        (target / path.name).write_text(yaml.safe_dump(text, sort_keys=False))
    return variables


def _point_to_copy(step: dict[str, Any]) -> None:
    if str(step.get("uses", "")).startswith("$/"):
        step["uses"] = f"{OWN}/{step['uses'][2:]}@{REF}"


def _without_what_act_refuses(part: dict[str, Any]) -> None:
    """Return the part without keys that are newer than act's schema and have no effect in act."""
    part.get("concurrency", {}).pop("queue", None)
    part.get("environment", {}).pop("deployment", None)


def folders(project: Path) -> dict[str, Path]:
    """Return the replacements of fetched actions, by the text after `uses:`."""
    found = {f"{OWN}@{REF}": project}
    for use in uses_of(ROOT):
        owner, name = use.partition("@")[0].split("/")[:2]
        found[f"{owner}/{name}@{use.partition('@')[2]}"] = SHIMS / owner / name
    return found


def warm(folder: Path, project: Path, program: Path = Path(sys.executable).parent / "prime-train") -> Path:
    """Write what install.sh finds as installed already: the interpreter and the code that run these tests.
    `program`: what `prime-train` is.

    Its python drops INPUT_*, as GitHub's runner does and act does not.
    """
    (folder / "bin").mkdir(parents=True)
    (folder / "command").mkdir()
    python = folder / "bin" / "python"
    python.write_text(
        f"#!{sys.executable} -IS\n"
        "import os, sys\n"
        f"os.execve({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]],"
        " {name: value for name, value in os.environ.items() if not name.startswith('INPUT_')})\n"
    )
    python.chmod(0o755)
    (folder / "bin" / "prime-train").symlink_to(program)
    (folder / "command" / "prime-train").symlink_to("../bin/prime-train")
    fingerprint = subprocess.run(
        [project / "actions/setup/fingerprint.sh"], capture_output=True, text=True, check=True
    )
    (folder / ".installed").write_text(f"{fingerprint.stdout.strip()} watcher\n")
    return folder


def repository(folder: Path, files: Mapping[str, str], *, name: str = "acme/models") -> Path:
    """Create a git repository with one commit on main, known to act as `name`."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "remote", "add", "origin", f"https://github.com/{name}.git")
    commit(folder, files, "Start")
    return folder


def commit(folder: Path, files: Mapping[str, str], message: str) -> str:
    """Commit everything in the folder, with these files in it. Return the commit."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(folder, "rev-parse", "HEAD")


def git(folder: Path, *arguments: str) -> str:
    quiet = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *AUTHOR, *arguments], cwd=folder, env=quiet, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def pull_request(
    number: int = 7, *, action: str = "opened", base: str = "main", head: str = "change", **more: Any
) -> dict[str, Any]:
    """Return the fields of the event that workflows and commands use. `more`: further fields."""
    here = {
        "full_name": "acme/models",
        "name": "models",
        "owner": {"login": "acme"},
        "default_branch": "main",
    }
    pull = {
        "number": number,
        "state": "open",
        "merged": False,
        "html_url": f"https://github.com/acme/models/pull/{number}",
        "user": {"login": "octocat", "type": "User"},
        "head": {"ref": head, "sha": "", "repo": here},
        "base": {"ref": base, "sha": "", "repo": here},
    }
    event = {
        "action": action,
        "number": number,
        "pull_request": pull,
        "repository": here,
        "sender": {"login": "octocat", "type": "User"},
    }
    return json.loads(json.dumps({**event, **more}))  # type: ignore[no-any-return]
