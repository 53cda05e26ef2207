"""What the actions install, and what they do not change."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import prime_train
from tests.github import scratch
from tests.github.act import PATH, Act, needs_act
from tests.github.files import MAJOR, ROOT

FETCHING = (
    "PIP_CERT",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "SSL_CERT_FILE",
    "UV_DEFAULT_INDEX",
    "UV_FIND_LINKS",
    "UV_INDEX_URL",
)
"""Variables with which this machine fetches packages, if the environment sets them."""

NEEDED = ("bash", "cat", "cut", "dirname", "find", "rm", "sha256sum", "sort", "xargs")
"""Programs that install.sh assumes to exist."""

CALLER = """\
on: [push]
jobs:
  train:
    runs-on: ubuntu-latest
    env:
      VIRTUAL_ENV: /of/the/caller
      PYTHONPATH: hostile
      UV_SYSTEM_PYTHON: "1"
      UV_PROJECT_ENVIRONMENT: /of/the/caller
      PIP_TARGET: /of/the/caller
    steps:
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1
      - id: before
        run: env -u GITHUB_ACTION -u _ | grep -v '^GITHUB_' | grep -v '^PATH=' | sort; command -v python3
      - id: first
        uses: owner/prime-train/actions/setup@MAJOR
      - id: after
        run: env -u GITHUB_ACTION -u _ | grep -v '^GITHUB_' | grep -v '^PATH=' | sort; command -v python3
      - id: second
        uses: owner/prime-train/actions/setup@MAJOR
      - id: used
        env:
          PYTHONPATH: ""
        run: prime-train --version
""".replace("setup@MAJOR", f"setup@{MAJOR}")

HOSTILE = {
    "hostile/yaml.py": "raise SystemExit('the caller's yaml was imported')\n",
    "hostile/typing_extensions.py": "raise SystemExit('the caller's typing_extensions was imported')\n",
    "venv.py": "raise SystemExit('the caller's venv was run')\n",
    "uv.toml": "this is no TOML\n",
    "pyproject.toml": "[tool.uv]\nrequired-version = '==0.0.1'\n",
}


def with_uv(act: Act, folder: Path) -> Act:
    """Return a PATH with uv, and no other program of this environment."""
    folder.mkdir()
    (folder / "uv").symlink_to(Path(sys.executable).parent / "uv")
    return replace(act, path=f"{folder}:{PATH}")


def fetching() -> dict[str, str]:
    return {name: os.environ[name] for name in FETCHING if name in os.environ} | {
        "UV_CACHE_DIR": str(ROOT / "build" / "uv-cache")
    }


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the project with its code, to be installed."""
    return scratch.product(tmp_path_factory.mktemp("whole"), has_code=True)


@pytest.mark.slow
@needs_act
@pytest.mark.exhaustive
def test_setup_installs_this_very_code_once_and_leaves_the_callers_python_alone(
    act: Act, complete: Path, tmp_path: Path
) -> None:
    repository = scratch.repository(tmp_path / "models", {".github/workflows/w.yml": CALLER, **HOSTILE})
    act = replace(with_uv(act, tmp_path / "programs"), folders=scratch.folders(complete))
    ran = act.run(repository, "w.yml", "push", {}, env=fetching())
    assert ran.jobs == {"train": "success"}, ran.reported
    assert ran.step("train", "first").outputs["version"] == prime_train.__version__
    assert ran.step("train", "used").text == f"prime-train {prime_train.__version__}\n"
    assert ran.step("train", "after").text == ran.step("train", "before").text
    assert "installed already" in ran.step("train", "second/1").text


@needs_act
def test_nothing_is_installed_where_it_is_already(act: Act, installed: Path, tmp_path: Path) -> None:
    workflow = CALLER.replace("PYTHONPATH: hostile", "PYTHONPATH: ''")
    repository = scratch.repository(tmp_path / "models", {".github/workflows/w.yml": workflow})
    ran = act.run(repository, "w.yml", "push", {}, env={scratch.WARM: str(installed)})
    assert ran.jobs == {"train": "success"}, ran.reported
    assert "installed already" in ran.step("train", "first/1").text


def test_a_runner_without_uv_or_a_python_of_this_decade_is_reported_what_to_do(
    project: Path, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in NEEDED:
        (programs / name).symlink_to(str(shutil.which(name, path=PATH)))
    (programs / "python3").write_text("#!/bin/sh\nexit 1\n")
    (programs / "python3").chmod(0o755)
    environment = {"PATH": str(programs), "RUNNER_TEMP": str(tmp_path)}
    done = subprocess.run(
        [project / "actions/setup/install.sh"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "::error title=prime-train::prime-train needs uv, or a python3 of 3.11 or later" in done.stdout
    assert not (tmp_path / "prime-train" / ".installed").exists()


def test_other_code_is_another_installation(project: Path, tmp_path: Path) -> None:
    changed = shutil.copytree(project, tmp_path / "changed")
    (changed / "src" / "new.py").touch()
    assert fingerprint(project) != fingerprint(changed)


def test_the_same_code_elsewhere_is_the_same_installation(project: Path, tmp_path: Path) -> None:
    assert fingerprint(project) == fingerprint(shutil.copytree(project, tmp_path / "elsewhere"))


def fingerprint(project: Path) -> str:
    return subprocess.run(
        [project / "actions/setup/fingerprint.sh"], capture_output=True, text=True, check=True
    ).stdout


def test_what_builds_the_project_is_pinned_by_hash() -> None:
    lines = (ROOT / "requirements" / "build.txt").read_text().replace("\\\n", "").splitlines()
    assert [line for line in lines if line.startswith("hatchling==")]
    assert all("--hash=sha256:" in line for line in lines)
