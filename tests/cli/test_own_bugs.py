"""A mistake of ours in one file is told of that file, with an exit code of its own, and ends nothing else."""

from pathlib import Path

import pytest

from prime_train.cli.findings.check import check
from prime_train.cli.findings.formats import Format
from prime_train.configs.loaded import Matter
from prime_train.configs.loader import matters
from prime_train.configs.shielding import has_bug, shielded
from prime_train.core.config_tree import Mapping, Node, Place
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit
from prime_train.core.finding import Finding
from prime_train.operations.validate import found_in
from prime_train.rules.rule import Document, Subject

SECRET = "a-secret-value"


class Breaking(Document):
    """A config that a rule cannot look at."""

    def at(self, *path: str | int) -> Node | None:
        raise OverflowError(f"cannot convert {SECRET}")


def broken() -> Matter:
    document = Breaking("broken.toml", Mapping(Place(1, 1), (), 0))
    return Matter("broken.toml", Subject(trainer=document, kind="prime_rl"))


def test_one_file_that_brings_out_a_bug_does_not_keep_the_others_from_being_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.yaml").write_text("name: a\ntrainer: {command: python x}\nbudget: {usd: 1}\nunknown: 1\n")
    read = [broken(), *matters([tmp_path])]
    found, _ = found_in(read)
    codes = {finding.file.rpartition("/")[2]: finding.code for finding in found if finding.severity.value == "error"}
    assert codes == {"broken.toml": "PT099", "other.yaml": "PT010"}
    assert check([tmp_path], Format.TEXT, ask=lambda _: read) is Exit.BUG
    said = capsys.readouterr().out
    assert "OverflowError" in said
    assert SECRET not in said


def test_what_has_an_exit_code_of_its_own_is_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses() -> tuple[Finding, ...]:
        raise UsageError("no")

    def breaks() -> tuple[Finding, ...]:
        raise OverflowError("bug")

    with pytest.raises(UsageError):
        shielded("a.yaml", refuses, lambda finding: (finding,))
    assert has_bug(shielded("a.yaml", breaks, lambda finding: (finding,)))
    monkeypatch.setenv("PRIME_TRAIN_DEBUG", "1")
    with pytest.raises(OverflowError):
        shielded("a.yaml", breaks, lambda finding: (finding,))


def test_a_bug_cannot_be_ignored_by_a_comment(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("name: a  # prime-train: ignore[PT099] not now\ntrainer: {command: python x}\nbudget: {usd: 1}\n")
    found, _ = found_in(matters([file]))
    assert any("PT099 cannot be ignored" in finding.message for finding in found)
