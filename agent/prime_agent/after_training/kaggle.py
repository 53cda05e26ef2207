"""The ready step `kaggle`: a folder that Kaggle's command line uploads as a data set, and that a notebook
without internet installs from.

    dataset-metadata.json    the id, title and licence that `kaggle datasets create` requires
    weights/                 files of the last checkpoint
    wheels/                  the wheels of the requirements and of all that they depend on
    requirements.txt         exactly these wheels
    files/                   files of the working tree
    config/run.json          what was trained: run, step and trainer, without the environment

It runs as a process of its own, like every step, because pip builds in it. (Metadata:
docs/datasets_metadata.md of Kaggle/kaggle-api, 2026: a title of 6 to 50 characters, a slug of 3 to 50, one
licence.)
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from prime_train.spec.after_steps import CHECKPOINT_VARIABLE, STEP_VARIABLE
from prime_train.spec.spec import KaggleSpec, RunSpec

TITLE_CHARS_MIN, TITLE_CHARS_MAX = 6, 50
PYTHONS = (".venv/bin/python", "python3", "python")
"""The Pythons whose pip may fetch the wheels: the trainer's own first, as wheels are for one version of
Python.
"""
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "linux_x86_64", "any")
LICENCE = "other"
METADATA = "dataset-metadata.json"
_WHEEL = re.compile(r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-]+)(-[^-]+){3,4}\.whl")


class PackagingFailed(Exception):
    """The data set cannot be packed. The text says why, and what to do."""


def command(kaggle: KaggleSpec, spec: RunSpec, run_id: str) -> str:
    """Return the command line of the step."""
    trained = {
        "run": run_id,
        "name": spec.name,
        "trainer": spec.trainer.model_dump(mode="json", exclude={"code"}),
    }
    words = [
        sys.executable,
        "-P",
        "-m",
        "prime_agent.after_training.kaggle",
        kaggle.model_dump_json(),
        json.dumps(trained),
    ]
    return shlex.join(words)


def main() -> int:
    kaggle = KaggleSpec.model_validate_json(sys.argv[1])
    try:
        package(
            kaggle,
            json.loads(sys.argv[2]),
            work=Path.cwd(),
            checkpoint=os.environ.get(CHECKPOINT_VARIABLE, ""),
        )
    except PackagingFailed as error:
        print(error)
        return 1
    print(f"{kaggle.folder} is ready: kaggle datasets create -p {kaggle.folder} -r zip")
    return 0


def package(kaggle: KaggleSpec, trained: dict[str, object], *, work: Path, checkpoint: str) -> None:
    """Make the folder anew. Raises PackagingFailed."""
    if not checkpoint:
        raise PackagingFailed("there is no checkpoint to pack: the trainer saved none")
    folder = work / kaggle.folder
    if folder.is_symlink() or not folder.resolve().is_relative_to(work.resolve()):
        raise PackagingFailed(f"{kaggle.folder} leads out of the working tree; choose another folder")
    if folder.exists() and not (folder / METADATA).exists():
        # It would be deleted: it may be the code.
        raise PackagingFailed(f"{kaggle.folder} exists and is no data set; choose another folder")
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("weights", "wheels", "files", "config"):
        (folder / name).mkdir(parents=True)
    (folder / METADATA).write_text(json.dumps(metadata(kaggle), indent=2) + "\n")
    _pack_weights(kaggle, Path(checkpoint), folder / "weights")
    _copied(work, _matching(work, kaggle.files, but=folder), folder / "files")
    known = {**trained, "step": int(os.environ.get(STEP_VARIABLE) or 0)}
    (folder / "config" / "run.json").write_text(json.dumps(known, indent=2) + "\n")
    _pack_wheels(kaggle, work, folder)


def metadata(kaggle: KaggleSpec) -> dict[str, object]:
    """Return what Kaggle must know of the data set."""
    words = kaggle.dataset.partition("/")[2].replace("-", " ")
    title = kaggle.title or (words if len(words) >= TITLE_CHARS_MIN else f"{words} weights")
    return {"title": title[:TITLE_CHARS_MAX], "id": kaggle.dataset, "licenses": [{"name": LICENCE}]}


def _pack_weights(kaggle: KaggleSpec, checkpoint: Path, target: Path) -> None:
    if checkpoint.is_file():
        _copied(checkpoint.parent, [checkpoint], target)
        return
    found = list(_matching(checkpoint, kaggle.weights))
    if not found:
        present = ", ".join(sorted(path.name for path in checkpoint.iterdir())[:10])
        raise PackagingFailed(
            f"no file of the checkpoint matches kaggle.weights ({', '.join(kaggle.weights)}); it has "
            f"{present or 'none'}"
        )
    _copied(checkpoint, found, target)


def _matching(root: Path, patterns: Iterable[str], *, but: Path | None = None) -> Iterator[Path]:
    """Yield the files below `root` that match; none that a link leads to outside of it."""
    seen = set[Path]()
    for pattern in patterns:
        for path in sorted(root.glob(f"{pattern}/*" if pattern.endswith("**") else pattern)):
            is_inside = path.resolve().is_relative_to(root.resolve()) and not (
                but is not None and path.is_relative_to(but)
            )
            if path.is_file() and is_inside and path not in seen:
                seen.add(path)
                yield path


def _copied(root: Path, paths: Iterable[Path], target: Path) -> None:
    for path in paths:
        copy = target / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path.resolve(), copy)
        except OSError:
            # Another disk, or one without hard links.
            shutil.copyfile(path, copy)


def _pack_wheels(kaggle: KaggleSpec, work: Path, folder: Path) -> None:
    if kaggle.requirements:
        named = [word for path in kaggle.requirements for word in ("-r", str(work / path))]
        if kaggle.python:
            platforms = [word for name in PLATFORMS for word in ("--platform", name)]
            how = [
                "download",
                "--only-binary=:all:",
                "--python-version",
                kaggle.python,
                "--implementation",
                "cp",
                *platforms,
                "--dest",
            ]
        else:
            how = ["wheel", "--wheel-dir"]
        _pip(work, [*how, str(folder / "wheels"), *named])
    (folder / "requirements.txt").write_text("".join(f"{one}\n" for one in _pins(folder / "wheels")))


def _pip(work: Path, arguments: list[str]) -> None:
    """Run pip. Raises PackagingFailed."""
    for python in PYTHONS:
        program = str(work / python) if "/" in python else python
        if shutil.which(program) is None or not _has_pip(program):
            continue
        words = [program, "-m", "pip", "--disable-pip-version-check", *arguments]
        if subprocess.run(words, check=False, cwd=work).returncode:
            raise PackagingFailed(
                "pip could not fetch the wheels: see above; a package without wheels needs kaggle.python "
                "left out"
            )
        return
    raise PackagingFailed(f"no Python with pip was found (tried {', '.join(PYTHONS)}); install pip in setup")


def _has_pip(python: str) -> bool:
    return (
        subprocess.run([python, "-m", "pip", "--version"], check=False, capture_output=True).returncode == 0
    )


def _pins(wheels: Path) -> list[str]:
    found = (_WHEEL.fullmatch(path.name) for path in sorted(wheels.glob("*.whl")))
    return [f"{match['name']}=={match['version']}" for match in found if match is not None]


if __name__ == "__main__":
    sys.exit(main())
