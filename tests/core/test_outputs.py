"""Which version of an output counts, over all attempts of a run, and what differs between two sets of
them.
"""

import pytest
from pydantic import ValidationError

from prime_train.checkpoints.manifest import Chunk
from prime_train.outputs.manifest import (
    OutputFile,
    OutputManifest,
    newest_outputs,
    output_changes,
    previous_outputs,
)
from tests.builders import digest


def output(path: str, content: int, step: int = 1) -> OutputFile:
    chunk = Chunk(digest=digest(content), size=10, stored=10)
    return OutputFile(path=path, size=10, chunks=(chunk,), step=step, uploaded_s=step)


def manifest(attempt: int, *files: OutputFile) -> OutputManifest:
    return OutputManifest(run="tiny-1", attempt=attempt, identity=f"{attempt:016x}").with_versions(files)


def test_the_newest_attempt_that_has_an_output_counts_and_older_attempts_keep_theirs() -> None:
    first = manifest(1, output("a", 1, step=90), output("b", 2))
    second = manifest(2, output("a", 3, step=60))
    found = newest_outputs([first, second])
    assert {path: (version.manifest.attempt, version.file.step) for path, version in found.items()} == {
        "a": (2, 60),
        "b": (1, 1),
    }


def test_a_file_takes_the_place_of_an_earlier_folder_and_the_other_way_round() -> None:
    first, second = (
        manifest(1, output("a/x", 1), output("b", 2)),
        manifest(2, output("a", 3), output("b/y", 4)),
    )
    assert list(newest_outputs([first, second])) == ["a", "b/y"]
    assert list(newest_outputs([second, first])) == ["a/x", "b"]
    assert [file.path for file in first.with_versions([output("a", 3), output("b/y", 4)]).files] == [
        "a",
        "b/y",
    ]


def test_versions_up_to_a_step_are_found() -> None:
    made = manifest(1, output("a", 1, step=10))
    for step in (20, 30):
        made = made.with_versions([output("a", step, step=step)])
    assert newest_outputs([made], step=25)["a"].file.step == 20
    assert newest_outputs([made], step=5) == {}
    assert previous_outputs(made)["a"].file.step == 20


def test_only_outputs_of_other_content_differ() -> None:
    before = newest_outputs([manifest(1, output("same", 1), output("changed", 2), output("gone", 3))])
    after = newest_outputs([manifest(2, output("same", 1, step=9), output("changed", 4), output("new", 5))])
    assert [(one.path, one.kind) for one in output_changes(before, after)] == [
        ("changed", "changed"),
        ("gone", "removed"),
        ("new", "added"),
    ]


@pytest.mark.parametrize("path", ["../up", "/etc/passwd", "a/../../b", ".", "", "a//b", "back\\slash"])
def test_a_path_that_leads_out_of_the_folder_is_no_output(path: str) -> None:
    with pytest.raises(ValidationError):
        output(path, 1)


def test_a_manifest_with_a_file_inside_a_file_is_refused() -> None:
    with pytest.raises(ValidationError, match="is listed as a file and as a folder"):
        OutputManifest(run="tiny-1", attempt=1, identity="0" * 16, files=(output("a", 1), output("a/b", 2)))
