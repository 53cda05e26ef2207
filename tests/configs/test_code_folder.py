"""Where the folder of the code may lie that a config names."""

from pathlib import Path

import pytest

from prime_train.configs.code_folder import folder_outside, leads_out
from prime_train.configs.loader import of_config
from prime_train.spec.reader import read_text


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    for folder in ("repo/.git", "repo/configs", "repo/src", "other", ".ssh"):
        (home / folder).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "repo")
    return home


@pytest.mark.parametrize("folder", [".", "src", "./src/", "src/..", "configs"])
def test_a_folder_of_the_repository_may_be_packed(home: Path, folder: str) -> None:
    assert folder_outside(folder, "configs/a.yaml") is None
    assert folder_outside(str(home / "repo" / folder), "configs/a.yaml") is None


@pytest.mark.parametrize(
    "folder", ["..", "../other", "../.ssh", "~", "~/.ssh", "/", "/etc", "src/../../other"]
)
def test_a_folder_outside_may_not(home: Path, folder: str) -> None:
    assert folder_outside(folder, "configs/a.yaml") is not None


def test_a_link_inside_that_leads_out_is_outside(home: Path) -> None:
    (home / "repo" / "data").symlink_to(home / ".ssh")
    assert folder_outside("data", "configs/a.yaml") == home / ".ssh"
    assert leads_out(home / "repo" / "data" / "id", home / "repo")


def test_the_person_at_the_terminal_may_name_another_folder(home: Path) -> None:
    assert folder_outside("../other", "configs/a.yaml", [Path("../other")]) is None
    assert folder_outside("../.ssh", "configs/a.yaml", [Path("../other")]) is not None


def test_a_link_to_a_config_elsewhere_does_not_widen_what_may_be_packed(home: Path) -> None:
    (home / "other" / "b.yaml").write_text("x")
    (home / "repo" / "b.yaml").symlink_to(home / "other" / "b.yaml")
    assert folder_outside(str(home / "other"), "b.yaml") is not None


def test_without_a_repository_it_is_the_folder_of_the_config_or_the_current_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home / "other")
    config = str(home / ".ssh" / "a.yaml")
    assert folder_outside(".", config) is None
    assert folder_outside(str(home / ".ssh"), config) is None
    assert folder_outside(str(home / "repo"), config) is not None
    assert folder_outside("..", "") is not None


def test_a_home_folder_is_not_packed_though_the_command_is_run_in_it_or_git_tracks_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".git").mkdir()
    monkeypatch.chdir(home)
    assert folder_outside(".", "task.yaml") == home
    assert folder_outside("other", "other/task.yaml") is None
    assert folder_outside(".ssh", "other/task.yaml") is not None


def test_validate_names_the_folder_and_reads_nothing_in_it(home: Path) -> None:
    (home / ".ssh" / "req.txt").write_text("not-a-requirement secret-words\n")
    text = (
        "name: a\ntrainer: {command: x, code: {folder: ../.ssh}}\nimage: "
        "{requirements: "
        "[req.txt]}\nbudget: {usd: 1}\n"
    )
    found = of_config(read_text(text, "a.yaml")).findings
    assert [(one.code, one.line) for one in found] == [("PT030", 2)]
    assert str(home / ".ssh") in found[0].message
    assert "--allow-folder" in found[0].fix
