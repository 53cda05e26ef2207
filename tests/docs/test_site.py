"""The site of the documentation: what is in it, what it says to programs, and how versions stand side by side."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs.site import build
from docs.site.publish import publish
from tests.github.files import ROOT, parsed
from tests.tools import TOOLS, program
from tests.waiting import HANG_S

GENERATOR = program("zensical", TOOLS / "docs" / "bin" / "zensical")
WORKFLOW = ROOT / ".github" / "workflows" / "docs.yml"


@pytest.fixture(scope="module", name="site")
def _site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if GENERATOR is None:
        pytest.skip("there is no zensical here: make tools")
    out = tmp_path_factory.mktemp("docs")
    assert (
        build.main(["--generator", GENERATOR, "--out", str(out), "--url", "https://docs.example/0.2.0/"]) == 0
    )
    return out / "site"


def test_every_page_is_in_the_navigation_once() -> None:
    listed = build.pages()
    folders = (
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "actions").glob("*/README.md"),
        *(ROOT / "examples").rglob("README.md"),
    )
    written = {str(path.relative_to(ROOT)) for path in folders} | {"README.md", "CONTRIBUTING.md"}
    assert sorted(listed) == sorted(written)


def test_situations_come_before_features_and_features_before_the_reference() -> None:
    titles = [title for title, _ in build.sections()]
    assert titles[:3] == ["prime-train", "Your situation", "Examples"]
    assert titles[-1] == "Reference"


def test_programs_find_every_page_as_markdown(site: Path) -> None:
    index = (site / "llms.txt").read_text()
    assert index.startswith("# prime-train\n\n> ")
    assert (
        "## Your situation\n\n- [My own script](<https://docs.example/0.2.0/docs/your-own-script.md>): "
        in index
    )
    for page in build.pages():
        name = page.replace("README.md", "index.md")
        assert f"https://docs.example/0.2.0/{name}>" in index
        text = (site / name).read_text()
        assert text.startswith((ROOT / page).read_text().partition("\n")[0]), page
        assert (
            f'type="text/markdown" href="./{Path(name).name}"'
            in (site / name).with_suffix(".html").read_text()
        )


def test_the_search_knows_what_every_page_is_about(site: Path) -> None:
    found = {
        entry["location"].partition("#")[0]
        for entry in json.loads((site / "search.json").read_text())["items"]
    }
    wanted = {page.replace("README.md", "index.md").removesuffix(".md") + ".html" for page in build.pages()}
    assert wanted - found == set()


@pytest.mark.parametrize(
    "link",
    [
        "docs/nothing.md",
        "docs/configs.md#nothing-there",
        "CHANGELOG.md",
        "configs/nothing.yaml",
        ".ci/run",
        "../elsewhere.txt",
    ],
)
def test_a_link_that_leads_nowhere_on_the_site_ends_the_build(
    link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if GENERATOR is None:
        pytest.skip("there is no zensical here: make tools")
    copy = tmp_path / "repository"
    for page in build.pages():
        (copy / page).parent.mkdir(parents=True, exist_ok=True)
        # No page has a link but the one that is wrong.
        (copy / page).write_text("# A page\n\n## A section\n")
    (copy / "docs" / "configs.md").write_text(f"# Configs\n\n[There](../{link}).\n")
    for name in (".ci/run", "CHANGELOG.md"):
        (copy / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    monkeypatch.setattr(build, "ROOT", copy)
    words = ["--generator", GENERATOR, "--out", str(tmp_path / "out")]
    assert build.main(words) == 1
    (copy / "docs" / "configs.md").write_text("# Configs\n\n[There](../README.md#a-section).\n")
    assert build.main(words) == 0


def built(folder: Path, words: str) -> Path:
    folder.mkdir()
    for name in ("index.html", "404.html", "llms.txt", "llms-full.txt"):
        (folder / name).write_text(words)
    return folder


def test_a_new_version_stands_beside_the_others_and_is_the_newest(tmp_path: Path) -> None:
    published = tmp_path / "published"
    for version in ("0.9.0", "0.10.0"):
        publish(built(tmp_path / version, version), published, version)
    listed = json.loads((published / "versions.json").read_text())
    assert [(one["version"], one["aliases"]) for one in listed] == [("0.10.0", ["latest"]), ("0.9.0", [])]
    assert (published / "0.9.0" / "index.html").read_text() == "0.9.0"
    assert (published / "latest" / "index.html").read_text() == "0.10.0"
    assert 'url=latest/"' in (published / "index.html").read_text()
    assert (published / "llms.txt").read_text() == "0.10.0"


def test_a_correction_of_an_older_version_is_not_the_newest(tmp_path: Path) -> None:
    published = tmp_path / "published"
    for version in ("0.10.0", "0.9.1"):
        publish(built(tmp_path / version, version), published, version)
    publish(built(tmp_path / "again", "0.9.1, corrected"), published, "0.9.1")
    assert (published / "latest" / "index.html").read_text() == "0.10.0"
    assert (published / "0.9.1" / "index.html").read_text() == "0.9.1, corrected"


@pytest.mark.parametrize("version", ["v0.2.0", "0.2", "../0.2.0", "latest"])
def test_what_is_no_version_is_not_published(version: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"give one such as 0\.2\.0"):
        publish(built(tmp_path / "built", "x"), tmp_path / "published", version)
    assert not (tmp_path / "published").exists()


GH = """\
#!/bin/sh
case "$*" in
  *matching-refs*) [ -z "$GH_FAILS" ] || exit 1; [ -z "$GH_BRANCH" ] || echo refs/heads/gh-pages;;
  *tarball*) tar -cz -C "$GH_BRANCH" --transform 's|^|owner-prime-train-0/|' .;;
esac
"""


def step(job: str, name: str) -> str:
    (found,) = [one["run"] for one in parsed(WORKFLOW)["jobs"][job]["steps"] if one.get("name") == name]
    return str(found)


def ran(text: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / "gh").write_text(GH)
    (folder / "bin" / "gh").chmod(0o755)
    reaching = {
        "PATH": os.pathsep.join((str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"])),
        "HOME": str(folder),
        "GITHUB_REF_NAME": "v0.3.0",
        "GITHUB_REPOSITORY": "owner/prime-train",
        "PYTHONPATH": str(ROOT),
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text]
    return subprocess.run(
        command, cwd=folder, env=reaching | env, capture_output=True, text=True, timeout=HANG_S, check=False
    )


def test_the_workflow_adds_the_tagged_version_to_those_of_the_branch(tmp_path: Path) -> None:
    branch = tmp_path / "branch"
    publish(built(tmp_path / "before", "0.2.0"), branch, "0.2.0")
    (tmp_path / "build" / "docs").mkdir(parents=True)
    built(tmp_path / "build" / "docs" / "site", "0.3.0")
    for name in ("Fetch the published versions", "Add this version"):
        done = ran(step("build", name), tmp_path, GH_BRANCH=str(branch))
        assert done.returncode == 0, done.stderr
    published = tmp_path / "build" / "published"
    assert [(published / name / "index.html").read_text() for name in ("0.2.0", "0.3.0", "latest")] == [
        "0.2.0",
        "0.3.0",
        "0.3.0",
    ]


def test_the_workflow_publishes_nothing_when_the_published_versions_cannot_be_read(tmp_path: Path) -> None:
    assert ran(step("build", "Fetch the published versions"), tmp_path).returncode == 0
    assert ran(step("build", "Fetch the published versions"), tmp_path, GH_FAILS="1").returncode != 0


@pytest.mark.parametrize("is_first", [True, False])
def test_the_workflow_pushes_all_versions_on_top_of_what_is_there(is_first: bool, tmp_path: Path) -> None:
    origin = tmp_path / "server" / "owner" / "prime-train.git"
    subprocess.run(["git", "init", "--quiet", "--bare", origin], check=True, timeout=HANG_S)
    env = {"GITHUB_SERVER_URL": (tmp_path / "server").as_uri()}
    for version in ("0.2.0",) if is_first else ("0.2.0", "0.3.0"):
        shutil.rmtree(tmp_path / "site", ignore_errors=True)
        built(tmp_path / "site", version)
        done = ran(step("publish", "Push"), tmp_path, GITHUB_REF_NAME=f"v{version}", **env)
        assert done.returncode == 0, done.stderr
    git = ["git", "-C", str(origin)]
    log = subprocess.run([*git, "log", "--format=%s", "gh-pages"], capture_output=True, text=True, check=True)
    assert log.stdout.split("\n")[0] == f"Documentation of v{version}"
    assert len(log.stdout.split("\n")) - 1 == (1 if is_first else 2)
    shown = subprocess.run([*git, "show", "gh-pages:index.html"], capture_output=True, text=True, check=True)
    assert shown.stdout == version
