"""The two commands of docs/github.md lead to a pull request whose check, as act runs it, answers."""

import os
import re
import shlex
import sys
from pathlib import Path

from tests.cli.shell import Shell
from tests.fakes.github import FakeGitHub
from tests.github import scratch
from tests.github.act import Act, act_program, needs_act
from tests.github.files import ROOT

REPO, ACTIONS = "acme/models", "acme/prime-train"
SCOPES = ["repo", "workflow"]
RIGHTS = {"contents": "read", "pull-requests": "write", "statuses": "write"}


def commands() -> list[str]:
    """Return the lines of the page's first block."""
    (first, *_) = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "github.md").read_text(), re.DOTALL)
    return str(first).strip().splitlines()


def gh_in(folder: Path) -> str:
    """Write the fake of gh into a folder, and return the PATH with it."""
    folder.mkdir()
    program = folder / "gh"
    program.write_text(f"#!{sys.executable} -IS\n{(ROOT / 'tests/fakes/github/gh.py').read_text()}")
    program.chmod(0o755)
    return os.pathsep.join((str(folder), os.environ.get("PATH", os.defpath)))


@needs_act
def test_two_commands_lead_to_a_checked_pull_request(
    github: FakeGitHub, project: Path, installed: Path, tmp_path: Path
) -> None:
    install, init = commands()
    assert install.startswith("pip install ")
    folder = scratch.repository(tmp_path / "models", {"README.md": "models\n"}, name=REPO)
    github.add_repo(REPO, folder=str(folder))
    github.add_user("ann", repo=REPO, role="admin")
    github.add_repo(ACTIONS, is_private=False, files={"README.md": "prime-train\n"})
    with github.lock:
        refs = github.world.repos[ACTIONS].git.refs
        pin = refs["refs/tags/v1"] = refs["refs/heads/main"]
    env = {
        "PATH": gh_in(tmp_path / "bin"),
        "GH_FAKE_URL": github.url,
        "GH_TOKEN": github.login_token("ann", SCOPES),
    }
    # What pip would have recorded is named, and the question is answered.
    words = [*shlex.split(init)[1:], "--actions", f"{ACTIONS}@v1", "--yes"]
    done = Shell(folder).run(*words, **env)
    assert done.returncode == 0, done.stdout + done.stderr

    program = act_program()
    assert program
    (tmp_path / "proposed").mkdir()
    proposed = scratch.repository(tmp_path / "proposed", github.files(REPO, "prime-train-setup"), name=REPO)
    act = Act(program, tmp_path / "act", {**scratch.folders(project), f"{ACTIONS}@{pin}": project})
    (event,) = [each["payload"] for each in github.events() if each["name"] == "pull_request"]
    ran = act.run(
        proposed,
        "validate.yml",
        "pull_request",
        event,
        api_url=github.url,
        secrets={"GITHUB_TOKEN": github.job_token(REPO, RIGHTS)},
        env={scratch.WARM: str(installed)},
    )
    assert list(ran.jobs.values()) == ["success"], ran.reported
    (comment,) = github.comments(REPO, 1)
    assert "configs/hf-sft.yaml" in comment["body"]
    assert "GPU memory" in comment["body"]
