"""The ready step `kaggle`: a run packs its data set, and a fresh environment without internet installs from
it.
"""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from prime_agent.after_training.kaggle import PackagingFailed, metadata, package
from prime_train.spec.causes import Cause
from prime_train.spec.spec import KaggleSpec
from tests.agent.attempts import attempt, demo_spec
from tests.agent.outputs.test_outputs import outputs_of

DATASET = "acme/digits-weights"


def wheel(folder: Path, name: str, *, needs: str = "") -> None:
    """Write a wheel of version 1.0 whose module has the number ONE."""
    folder.mkdir(exist_ok=True)
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as made:
        made.writestr(f"{name}.py", f"{'import ' + needs if needs else ''}\nONE = 1\n")
        requires = f"Requires-Dist: {needs}\n" if needs else ""
        made.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}")
        made.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        made.writestr(f"{info}/RECORD", "")


@pytest.fixture
def index(tmp_path: Path) -> dict[str, str]:
    """Return variables with which pip finds two wheels on this disk, one of which needs the other, and
    nothing else.
    """
    wheel(tmp_path / "index", "tiny_inner")
    wheel(tmp_path / "index", "tiny_outer", needs="tiny_inner")
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "index")}


def test_a_run_packs_what_a_notebook_without_internet_installs(tmp_path: Path, index: dict[str, str]) -> None:
    step = {
        "name": "pack",
        "kaggle": {
            "dataset": DATASET,
            "weights": ["weights.npz"],
            "requirements": ["needs.txt"],
            "files": ["model/**"],
        },
    }
    spec = demo_spec(
        "--steps 30 --save-every 10",
        trainer={"steps": 30},
        after=[step],
        environment={**index, "TOKENISH": "not packed"},
    )
    with attempt(
        tmp_path,
        spec,
        files={"needs.txt": b"tiny-outer>=1\n", "model/config.json": b"{}", "secret.txt": b"no"},
    ) as here:
        assert here.wait() == 0
        (last,) = here.plane.exits
        assert last.exit is not None
        assert (last.exit.cause, last.after_done, last.after_failed) == (Cause.FINISHED, 1, ""), here.log(
            "after.log"
        )
        packed = here.disk / "work" / "kaggle"
        assert [
            path.relative_to(packed).as_posix() for path in sorted(packed.rglob("*")) if path.is_file()
        ] == [
            "config/run.json",
            "dataset-metadata.json",
            "files/model/config.json",
            "requirements.txt",
            "weights/weights.npz",
            "wheels/tiny_inner-1.0-py3-none-any.whl",
            "wheels/tiny_outer-1.0-py3-none-any.whl",
        ]
        known = json.loads((packed / "config/run.json").read_text())
        assert (known["run"], known["step"], known["trainer"]["steps"]) == ("tiny-1", 30, 30)
        assert "not packed" not in json.dumps(known)
        outputs = outputs_of(here)
        assert outputs is not None
        assert "kaggle/wheels/tiny_outer-1.0-py3-none-any.whl" in {file.path for file in outputs.files}
        assert installed_offline(tmp_path / "notebook", packed) == "1"


def installed_offline(folder: Path, packed: Path) -> str:
    """Install the packed requirements into a fresh environment as the notebook does, and return what the
    package says.
    """
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    install = [
        "install",
        "-q",
        "--no-index",
        "--find-links",
        str(packed / "wheels"),
        "-r",
        str(packed / "requirements.txt"),
    ]
    subprocess.run([python, "-m", "pip", *install], check=True, env={"PATH": "/usr/bin:/bin"})
    said = subprocess.run(
        [python, "-c", "import tiny_outer; print(tiny_outer.ONE)"], check=True, capture_output=True, text=True
    )
    return said.stdout.strip()


def test_a_package_that_cannot_be_had_fails_the_step_and_says_so(
    tmp_path: Path, index: dict[str, str]
) -> None:
    step = {"name": "pack", "kaggle": {"dataset": DATASET, "requirements": ["needs.txt"]}}
    spec = demo_spec("--steps 20 --save-every 10", trainer={"steps": 20}, after=[step], environment=index)
    with attempt(tmp_path, spec, files={"needs.txt": b"tiny-unknown\n"}) as here:
        assert here.wait() == 0
        (last,) = here.plane.exits
        assert "pack failed: it ended with code 1: pip could not fetch the wheels" in last.after_failed
        assert "No matching distribution found for tiny-unknown" in here.log("after.log")


def packed(tmp_path: Path, **settings: Any) -> Path:
    checkpoint = tmp_path / "work" / "out" / "step_3"
    (checkpoint / "inner").mkdir(parents=True, exist_ok=True)
    (checkpoint / "model.safetensors").write_bytes(b"weights")
    (checkpoint / "inner" / "optimizer.pt").write_bytes(b"states")
    package(KaggleSpec(dataset=DATASET, **settings), {}, work=tmp_path / "work", checkpoint=str(checkpoint))
    return tmp_path / "work" / "kaggle"


def test_all_of_a_checkpoint_is_packed_unless_the_config_names_files(tmp_path: Path) -> None:
    whole = packed(tmp_path)
    assert {path.name for path in (whole / "weights").rglob("*") if path.is_file()} == {
        "model.safetensors",
        "optimizer.pt",
    }
    named = packed(tmp_path, weights=["*.safetensors"])
    assert {path.name for path in (named / "weights").rglob("*")} == {"model.safetensors"}
    with pytest.raises(
        PackagingFailed,
        match=r"no file of the checkpoint matches kaggle.weights \(\*.bin\); it has inner, model.safet",
    ):
        packed(tmp_path, weights=["*.bin"])


def test_a_link_packs_nothing_from_outside_of_the_tree(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("no")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "secret.txt").symlink_to(tmp_path / "secret")
    assert not list((packed(tmp_path, files=["*.txt"]) / "files").iterdir())
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "mine").touch()
    (tmp_path / "work" / "elsewhere").symlink_to(tmp_path / "away")
    with pytest.raises(PackagingFailed, match="elsewhere leads out of the working tree"):
        packed(tmp_path, folder="elsewhere")
    assert (tmp_path / "away" / "mine").exists()


def test_a_folder_of_the_code_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "work" / "model").mkdir(parents=True)
    (tmp_path / "work" / "model" / "net.py").touch()
    with pytest.raises(PackagingFailed, match="model exists and is no data set; choose another folder"):
        packed(tmp_path, folder="model")
    assert (tmp_path / "work" / "model" / "net.py").exists()
    packed(tmp_path)
    assert packed(tmp_path, weights=["*.safetensors"]).exists(), (
        "a second try replaces what the first has made"
    )


def test_without_a_checkpoint_nothing_is_packed(tmp_path: Path) -> None:
    with pytest.raises(PackagingFailed, match="there is no checkpoint"):
        package(KaggleSpec(dataset=DATASET), {}, work=tmp_path, checkpoint="")


@pytest.mark.parametrize(
    ("slug", "title"), [("arc-weights", "arc weights"), ("abc", "abc weights"), ("a" * 50, "a" * 50)]
)
def test_the_title_has_as_many_letters_as_kaggle_wants(slug: str, title: str) -> None:
    found = metadata(KaggleSpec(dataset=f"acme/{slug}"))
    assert (found["title"], found["id"], found["licenses"]) == (title, f"acme/{slug}", [{"name": "other"}])
