"""What others use exists: each release moves the tag that all examples name, and its notes are those of the
changelog.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.github.files import MAJOR, ROOT, parsed
from tests.waiting import HANG_S

NAMED = re.compile(
    r"(?:owner/prime-train(?:\.git)?(?:/[\w./-]+)?@|githubusercontent\.com/owner/prime-train/)([\w.-]+)"
)
"""How a page or an example names a version of an action, a workflow, the package or the schema."""
RELEASE = ROOT / ".github" / "workflows" / "release.yml"
SAYS = """\
#!/bin/sh
printf '%s\\n' "$*" >>"$GH_TOLD"
case "$*" in
  *matching-refs*) printf 'refs/tags/%s\\n' $GH_TAGS;;
  *PATCH*) test -n "$GH_HAS_MAJOR";;
esac
"""
CHANGELOG = """\
# Changelog

## 0.3.0

- Next.

## 0.2.0 - 2026-11-30

- Second.
- And more.

## 0.1.0 - 2026-11-01

- First.
"""


def places() -> list[Path]:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "actions").glob("*/README.md")]
    code = [
        path
        for folder in ("src", "lambdas", "agent", "examples")
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
    ]
    return [
        *pages,
        *(path for path in code if path.suffix in (".py", ".md", ".yml", ".yaml", ".toml", ".txt", ".sh")),
    ]


def test_everything_that_names_a_version_of_the_project_names_the_tag_that_releases_move() -> None:
    found = {path: set(NAMED.findall(path.read_text(encoding="utf-8"))) for path in places()}
    named = {str(path.relative_to(ROOT)): versions for path, versions in found.items() if versions}
    assert {
        "docs/aws.md",
        "docs/github.md",
        "actions/launch/README.md",
        "examples/consumer-repo/.github/workflows/launch.yml",
    } <= set(named)
    assert {path: versions for path, versions in named.items() if versions != {MAJOR}} == {}


def script(job: str, step: str) -> str:
    (found,) = [one["run"] for one in parsed(RELEASE)["jobs"][job]["steps"] if one.get("name") == step]
    return str(found)


def ran(text: str, folder: Path, tag: str, **env: str) -> subprocess.CompletedProcess[str]:
    told = {
        "GITHUB_REF_NAME": tag,
        "GITHUB_REPOSITORY": "owner/prime-train",
        "GITHUB_SHA": "ab" * 20,
        "GH_TOLD": str(folder / "told"),
    }
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    bash = shutil.which("bash") or "bash"
    command = [bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", text]
    return subprocess.run(
        command,
        cwd=folder,
        env={"PATH": path, **told, **env},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    (tmp_path / "gh").write_text(SAYS)
    (tmp_path / "gh").chmod(0o755)
    (tmp_path / "dist").mkdir()
    (tmp_path / "changes").mkdir()
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    return tmp_path


def test_the_notes_of_a_release_are_the_changelogs_section_of_its_version(folder: Path) -> None:
    done = ran(
        script("build", "The changelog has a section of this version, with its date"), folder, "v0.2.0"
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert (folder / "dist" / "notes.md").read_text().strip() == "- Second.\n- And more."


@pytest.mark.parametrize("tag", ["v0.3.0", "v0.4.0"], ids=["not dated", "not there"])
def test_a_version_without_a_dated_section_is_not_released(folder: Path, tag: str) -> None:
    done = ran(script("build", "The changelog has a section of this version, with its date"), folder, tag)
    assert (done.returncode, f"there is no section such as: ## {tag[1:]} - 2026-01-31" in done.stdout) == (
        1,
        True,
    )


def test_a_version_whose_news_are_not_all_in_the_changelog_is_not_released(folder: Path) -> None:
    (folder / "changes" / "faster.fix.md").write_text("Faster.\n")
    done = ran(
        script("build", "The changelog has a section of this version, with its date"), folder, "v0.2.0"
    )
    assert (
        done.returncode,
        "in no section of CHANGELOG.md" in done.stdout,
        "changes/faster.fix.md" in done.stdout,
    ) == (1, True, True)


def test_the_files_in_changes_become_the_section_of_a_release(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "changes", tmp_path / "changes")
    (tmp_path / "changes" / "faster.fix.md").write_text("It is faster.\n")
    # It takes the files out of git's index.
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True, timeout=HANG_S)
    build = [
        sys.executable,
        "-m",
        "towncrier",
        "build",
        "--version",
        "0.2.0",
        "--date",
        "2026-12-01",
        "--yes",
    ]
    made = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    assert list((tmp_path / "changes").glob("*.md")) == []
    (tmp_path / "dist").mkdir()
    done = ran(
        script("build", "The changelog has a section of this version, with its date"), tmp_path, "v0.2.0"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    mended = (tmp_path / "dist" / "notes.md").read_text().partition("### Mended\n\n")[2]
    assert "- It is faster.\n" in mended


def test_each_file_in_changes_is_of_a_known_kind() -> None:
    news = {path.name for path in (ROOT / "changes").glob("*.md")}
    assert {name for name in news if not re.fullmatch(r"[\w-]+\.(feature|change|fix)\.md", name)} == set()


@pytest.mark.parametrize(("tag", "major"), [("v0.2.0", "v0"), ("v1.0.0", "v1")])
@pytest.mark.parametrize("has_major", ["yes", ""], ids=["there is a tag", "the first of its major version"])
def test_a_release_moves_the_tag_of_its_major_version(
    folder: Path, tag: str, major: str, has_major: str
) -> None:
    tags = "v0.1.0 v0.2.0" if major == "v0" else "v1.0.0"
    done = ran(
        script("publish", "Move the tag of the major version"),
        folder,
        tag,
        GH_TAGS=tags,
        GH_HAS_MAJOR=has_major,
    )
    assert done.returncode == 0, done.stderr
    told = (folder / "told").read_text().splitlines()
    moved = (
        f"api --method PATCH repos/owner/prime-train/git/refs/tags/{major} -f sha={'ab' * 20} -F force=true"
    )
    made = f"api --method POST repos/owner/prime-train/git/refs -f ref=refs/tags/{major} -f sha={'ab' * 20}"
    assert told[1:] == ([moved] if has_major else [moved, made])


def test_a_correction_of_an_older_version_leaves_the_tag_at_the_newest(folder: Path) -> None:
    tags = "v0.9.0 v0.9.1 v0.10.0 v0.10.0-rc1"
    done = ran(
        script("publish", "Move the tag of the major version"),
        folder,
        "v0.9.1",
        GH_TAGS=tags,
        GH_HAS_MAJOR="yes",
    )
    assert (done.returncode, done.stdout) == (0, "v0 stays at v0.10.0\n"), done.stderr
    assert not [
        line for line in (folder / "told").read_text().splitlines() if "PATCH" in line or "POST" in line
    ]


def test_the_tag_that_starts_a_release_is_that_of_any_version() -> None:
    assert parsed(RELEASE)["on"]["push"]["tags"] == ["v[0-9]+.[0-9]+.[0-9]+"], json.dumps(
        parsed(RELEASE)["on"]
    )
