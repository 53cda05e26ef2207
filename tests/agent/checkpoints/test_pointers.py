"""What a trainer finds its checkpoint by is stored with it, and written again on another machine."""

import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from prime_agent.checkpoints.pointers import pointers_of
from prime_agent.checkpoints.units import Units
from prime_train.checkpoints.manifest import Manifest, ManifestFile, Pointer
from prime_train.checkpoints.pointers import write_pointers
from prime_train.spec.checkpoint_names import CheckpointNames
from tests.builders import RUN_ID

NAMES = CheckpointNames("ckpt-{step}.pt", folder="out")


def lay(tree: Path, *steps: int) -> Path:
    folder = tree / "out"
    folder.mkdir(parents=True)
    for step in steps:
        (folder / f"ckpt-{step:06d}.pt").write_bytes(b"weights %d" % step * 1000)
    return folder


def found(tree: Path, step: int, learned: tuple[Pointer, ...] = ()) -> dict[str, Pointer]:
    units = {unit.step: unit for unit in Units(NAMES, tree).found()[0]}
    unit = units[step]
    known = {one.name: one for one in learned}
    pointers = pointers_of(unit, unit.files(), NAMES, work=tree, present=set(units), learned=known)
    return {pointer.name: pointer for pointer in pointers}


def restored(pointers: dict[str, Pointer], tree: Path, step: int) -> Path:
    """Write the pointers beside that checkpoint in another tree, and return the folder."""
    folder = lay(tree, step)
    file = ManifestFile(path=f"ckpt-{step:06d}.pt", size=0)
    manifest = Manifest(
        run=RUN_ID,
        attempt=1,
        step=step,
        created_s=1,
        folder=file.path,
        files=(file,),
        unit="files",
        pointers=tuple(pointers.values()),
    )
    write_pointers(manifest, folder, number=step, tree=tree, replace=True)
    return folder


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("latest", "ckpt-000100.pt\n", "ckpt-000100.pt\n"),
        ("latest", "ckpt-000100", "ckpt-000100"),
        ("iteration.txt", "100", "100"),
        (
            "state.json",
            '{"last": "out/ckpt-000100.pt", "step": 100, "of": 900}',
            '{"last": "out/ckpt-000100.pt", "step": 100, "of": 900}',
        ),
        ("last_checkpoint", "TREE/out/ckpt-000100.pt", "TREE/out/ckpt-000100.pt"),
    ],
)
def test_a_text_that_names_the_checkpoint_names_it_on_the_new_machine(
    tmp_path: Path, name: str, content: str, wanted: str
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    (lay(old, 80, 100) / name).write_text(content.replace("TREE", str(old)))
    assert (restored(found(old, 100), new, 100) / name).read_text() == wanted.replace("TREE", str(new))


@pytest.mark.parametrize("named", ["ckpt-000080.pt", "ckpt-000120.pt"])
def test_a_pointer_to_the_checkpoint_before_or_after_is_restored_as_one_to_this(
    tmp_path: Path, named: str
) -> None:
    (lay(tmp_path / "old", 80, 100, 120) / "latest").write_text(named)
    assert (
        restored(found(tmp_path / "old", 100), tmp_path / "new", 100) / "latest"
    ).read_text() == "ckpt-000100.pt"


@pytest.mark.parametrize("absolute", [True, False])
def test_a_link_to_the_newest_becomes_a_relative_one(tmp_path: Path, absolute: bool) -> None:
    folder = lay(tmp_path / "old", 80, 100)
    (folder / "latest.pt").symlink_to(folder / "ckpt-000080.pt" if absolute else "ckpt-000080.pt")
    link = restored(found(tmp_path / "old", 100), tmp_path / "new", 100) / "latest.pt"
    assert os.readlink(link) == "ckpt-000100.pt"  # noqa: PTH115


@pytest.mark.parametrize("is_linked", [True, False])
def test_a_copy_or_hard_link_of_the_newest_is_a_file_of_its_own_and_the_best_one_is_left_out(
    tmp_path: Path, is_linked: bool
) -> None:
    folder = lay(tmp_path / "old", 100)
    source = folder / "ckpt-000100.pt"
    for name in ("latest.pt", "best.pt"):
        (folder / name).hardlink_to(source) if is_linked else (folder / name).write_bytes(source.read_bytes())
    (folder / "ema.pt").write_bytes(b"another " * 1000)
    assert set(found(tmp_path / "old", 100)) == {"latest.pt"}
    there = restored(found(tmp_path / "old", 100), tmp_path / "new", 100)
    assert (there / "latest.pt").read_bytes() == source.read_bytes()
    assert not (there / "latest.pt").samefile(there / "ckpt-000100.pt")


def test_a_copy_that_is_not_made_yet_is_known_from_the_save_before(tmp_path: Path) -> None:
    folder = lay(tmp_path / "old", 80, 100)
    (folder / "latest.pt").write_bytes((folder / "ckpt-000080.pt").read_bytes())
    learned = tuple(found(tmp_path / "old", 80).values())
    assert found(tmp_path / "old", 100, learned)["latest.pt"].of == "ckpt-000100.pt"


def test_logs_and_tables_beside_checkpoints_are_no_pointers(tmp_path: Path) -> None:
    folder = lay(tmp_path / "old", 100)
    (folder / "log.txt").write_text('{"epoch": 100, "loss": 0.5}\n')
    (folder / "args.yaml").write_text("steps: 100\nbatch: 8\n")
    (folder / "latest.pt.tmp").write_bytes((folder / "ckpt-000100.pt").read_bytes())
    assert found(tmp_path / "old", 100) == {}


@pytest.mark.parametrize(
    ("name", "kind", "parts", "of"),
    [
        ("../latest", "text", ("ckpt-", 6), ""),
        (".bashrc", "text", ("x", 6), ""),
        ("sitecustomize.py", "text", ("import os #", 6), ""),
        ("run.sh", "copy", (), "ckpt-000100.pt"),
        ("latest", "text", ("anything",), ""),
        ("latest", "link", (), "/etc/passwd"),
        ("latest.pt", "copy", (), "other.pt"),
        ("ckpt-000100.pt", "copy", (), "ckpt-000100.pt"),
    ],
)
def test_a_manifest_of_a_strange_machine_writes_no_file_of_its_choice(
    name: str, kind: str, parts: tuple[str | int, ...], of: str
) -> None:
    pointer = {"name": name, "kind": kind, "parts": parts, "of": of}
    file = {"path": "ckpt-000100.pt", "size": 0}
    values = {
        "run": RUN_ID,
        "attempt": 1,
        "step": 100,
        "created_s": 1,
        "folder": "ckpt-000100.pt",
        "unit": "files",
        "files": [file],
    }
    with pytest.raises(ValidationError):
        Manifest.model_validate(values | {"pointers": [pointer]})
