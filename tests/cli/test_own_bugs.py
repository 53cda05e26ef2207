"""A bug of prime-train in the check of one file is reported for that file, with an exit code of its own, and
does not end the command.
"""

from pathlib import Path

import pytest

from prime_train.checks.report.check import check
from prime_train.checks.report.formats import Format
from prime_train.checks.validate import check_configs
from prime_train.configs.bug_findings import bug_as_finding, has_bug
from prime_train.configs.loader import LoadedConfig, load_configs
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.spec.rule import Document, Subject
from prime_train.spec.tree import Mapping, Node, SourcePosition
from prime_train.text.explained_errors import is_debugging

SECRET = "a-secret-value"


class Breaking(Document):
    """A config that makes a rule fail."""

    def at(self, *path: str | int) -> Node | None:
        raise OverflowError(f"cannot convert {SECRET}")


def broken() -> LoadedConfig:
    document = Breaking("broken.toml", Mapping(SourcePosition(1, 1), (), 0))
    return LoadedConfig("broken.toml", Subject(trainer=document, format="prime_rl"))


def test_one_file_that_brings_out_a_bug_does_not_keep_the_others_from_being_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.yaml").write_text(
        "name: a\ntrainer: {command: python x}\nbudget: {usd: 1}\nunknown: 1\n"
    )
    read = [broken(), *load_configs([tmp_path])]
    found, _ = check_configs(read)
    codes = {
        finding.file.rpartition("/")[2]: finding.code
        for finding in found
        if finding.severity.value == "error"
    }
    assert codes == {"broken.toml": "PT099", "other.yaml": "PT010"}
    assert check([tmp_path], Format.TEXT, extend=lambda _: read) is Exit.BUG
    output = capsys.readouterr().out
    assert "OverflowError" in output
    assert SECRET not in output


def test_what_has_an_exit_code_of_its_own_is_no_bug() -> None:
    with pytest.raises(UsageError):
        bug_as_finding("a.yaml", UsageError("no"))
    assert has_bug((bug_as_finding("a.yaml", OverflowError("bug")),))
    with pytest.raises(OverflowError):
        bug_as_finding("a.yaml", OverflowError("bug"), debug=is_debugging({"PRIME_TRAIN_DEBUG": "1"}))


def test_a_bug_cannot_be_ignored_by_a_comment(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(
        "name: a  # prime-train: ignore[PT099] not now\ntrainer: {command: python x}\nbudget: {usd: 1}\n"
    )
    found, _ = check_configs(load_configs([file]))
    assert any("PT099 cannot be ignored" in finding.message for finding in found)
