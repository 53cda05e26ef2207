"""A checkpoint in a new working tree, with what points to it."""

from pathlib import Path

import pytest

from prime_train.rehearsal.restored import pointing_to, restore
from prime_train.rehearsal.saves import Beside, Save, SavesSeen
from prime_train.rehearsal.written_files import Completed


def save_of(number: int, path: str, *members: str) -> Save:
    files = tuple(Completed(one, 0.0, 1.0, at, 5, "") for at, one in enumerate(members or (path,)))
    return Save(number, path, 0.0, 1.0, files)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("step_60", "step_40"),
        ("60", "40"),
        ("0060\n", "0040\n"),
        ("/old/tree/ck/step_60", "/old/tree/ck/step_40"),
        ('{"newest": "step_60", "at": 1764277722}', '{"newest": "step_40", "at": 1764277722}'),
        ("step_40", "step_40"),
        ("nothing of it", "nothing of it"),
    ],
)
def test_a_pointer_names_the_checkpoint_that_is_restored(text: str, expected: str) -> None:
    assert pointing_to(text, save_of(40, "ck/step_40")) == expected


def test_pointers_links_and_copies_follow_the_checkpoint(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "ck").mkdir(parents=True)
    (source / "ck/n_40.pt").write_bytes(b"forty")
    (source / "ck/last.pt").write_bytes(b"twenty")
    beside = (
        Beside("ck/last.pt", "copy"),
        Beside("ck/last_checkpoint", "pointer", f"{tmp_path}/first/ck/n_60.pt"),
        Beside("ck/newest", "link", "n_60.pt"),
        Beside("ck/best.pt", "best"),
    )

    restore(save_of(40, "ck/n_40.pt"), SavesSeen(beside=beside), source, target)

    assert (target / "ck/n_40.pt").read_bytes() == (target / "ck/last.pt").read_bytes() == b"forty"
    assert (target / "ck/last_checkpoint").read_text() == f"{target}/ck/n_40.pt"
    assert str((target / "ck/newest").readlink()) == "n_40.pt"
    assert not (target / "ck/best.pt").exists()


def test_a_folder_that_leads_out_of_the_tree_is_not_written_to(tmp_path: Path) -> None:
    source, target, elsewhere = (tmp_path / name for name in ("source", "target", "elsewhere"))
    (source / "ck").mkdir(parents=True)
    (source / "ck/n_40.pt").write_bytes(b"forty")
    elsewhere.mkdir()
    target.mkdir()
    (target / "ck").symlink_to(elsewhere)

    with pytest.raises(OSError, match="leads out of"):
        restore(save_of(40, "ck/n_40.pt"), SavesSeen(), source, target)

    assert list(elsewhere.iterdir()) == []
