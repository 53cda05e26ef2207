"""Where the workflows that a repository gets come from, and when a file there is still ours."""

import json

import pytest

from prime_train.errors import UsageError
from prime_train.github.setup.files import (
    FileState,
    Pin,
    WorkflowsRef,
    given_source,
    source_of,
    state_of,
    workflow_files,
)
from prime_train.github.setup.state import places_of

COMMIT, OTHER = "a1" * 20, "b2" * 20
PIN = Pin("acme/prime-train", COMMIT, "v1.2.3")
VALIDATE = ".github/workflows/validate.yml"


def installed(url: str, commit: str = COMMIT) -> str:
    return json.dumps(
        {"url": url, "vcs_info": {"vcs": "git", "requested_revision": "v1", "commit_id": commit}}
    )


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/acme/prime-train",
        "https://github.com/acme/prime-train.git",
        "https://someone:secret@github.com/acme/prime-train.git",
        "ssh://git@github.com/acme/prime-train.git",
    ],
)
def test_the_commit_that_was_installed_is_the_one_that_the_workflows_are_pinned_to(url: str) -> None:
    assert source_of(installed(url), "1.2.3") == WorkflowsRef("acme/prime-train", COMMIT, "v1.2.3")


@pytest.mark.parametrize(
    "text",
    [
        None,
        "no json",
        "[]",
        json.dumps({"url": "file:///src/prime-train", "dir_info": {"editable": True}}),
        installed("https://gitlab.com/acme/prime-train"),
        installed("https://github.com/acme/prime-train", commit="main"),
        installed("https://github.com/acme/prime-train/../other"),
        installed("https://github.com.evil.example/acme/prime-train"),
    ],
)
def test_an_installation_from_elsewhere_names_no_repository(text: str | None) -> None:
    assert source_of(text, "1.2.3") is None


def test_without_a_ref_the_tag_of_the_version_is_meant() -> None:
    assert given_source("acme/prime-train", "1.2.3") == WorkflowsRef("acme/prime-train", "v1.2.3", "v1.2.3")
    assert given_source("acme/prime-train@main", "1.2.3").ref == "main"
    for wrong in ("acme", "acme/a/b", "acme/a@", "acme/a@x y", "https://github.com/acme/a"):
        with pytest.raises(UsageError, match="is not a repository"):
            given_source(wrong, "1.2.3")


def test_every_workflow_calls_that_of_the_pinned_commit() -> None:
    files = workflow_files(PIN)
    assert len(files) == 4
    for path, text in files.items():
        assert text.count(f"uses: acme/prime-train/{path}@{COMMIT} # v1.2.3\n") == 1
        assert "owner/" not in text


def test_a_file_is_ours_as_long_as_nothing_but_the_commit_differs() -> None:
    ours, older = (
        workflow_files(PIN)[VALIDATE],
        workflow_files(Pin("acme/prime-train", OTHER, "v1.0.0"))[VALIDATE],
    )
    assert state_of(None, ours) is FileState.NEW
    assert state_of(ours, ours) is FileState.SAME
    assert state_of(older, ours) is FileState.OLDER
    for changed in (
        ours.replace("name: validate", "name: check", 1),
        older.replace("contents: read", "contents: write"),
        ours.replace(f"@{COMMIT} # v1.2.3", "@v1"),
        f"{older}# mine\n",
        "",
    ):
        assert state_of(changed, ours) is FileState.CHANGED


def test_a_file_that_hands_on_a_secret_for_each_provider_is_of_an_earlier_version() -> None:
    for path, one, before in (
        (VALIDATE, "PRIME_TRAIN_OFFERS_KEYS", ("PRIME_OFFERS_KEY", "SSH_OFFERS")),
        (".github/workflows/watch.yml", "PRIME_TRAIN_CREDENTIALS", ("PRIME_API_KEY", "VAST_API_KEY")),
    ):
        ours, older = (
            workflow_files(PIN)[path],
            workflow_files(Pin("acme/prime-train", OTHER, "v1.0.0"))[path],
        )
        line = f"      {one}: ${{{{ secrets.{one} }}}}\n"
        assert (
            state_of(older.replace(line, "".join(line.replace(one, name) for name in before)), ours)
            is FileState.OLDER
        )
        assert state_of(older.replace(line, line + line.replace(one, "MY_OWN")), ours) is FileState.CHANGED


def test_a_key_that_rents_is_kept_in_environments_and_one_that_only_looks_in_the_repository() -> None:
    assert places_of("PRIME_TRAIN_OFFERS_KEYS") == ("",)
    assert places_of("PRIME_TRAIN_MARKET_KEY") == ("",)
    assert places_of("PRIME_TRAIN_LAUNCH_KEY") == ("gpu", "gpu-watch")
    assert places_of("PRIME_TRAIN_CREDENTIALS") == ("gpu", "gpu-watch")
    assert places_of("WANDB_API_KEY") == ("gpu-watch",)
    with pytest.raises(UsageError, match="no workflow knows"):
        places_of("PATH")
