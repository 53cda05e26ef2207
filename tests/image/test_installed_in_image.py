"""What the steps of a build install is recognised by the hash of every file, and used; what is not as it was
built is not used.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from prime_agent.before_training.image_environment import install_commands, on_path, provide, why_unusable
from prime_agent.before_training.phase import CallOff, PhaseError, Shell
from prime_agent.processes import LocalProcesses
from prime_train.spec.causes import Cause
from prime_train.spec.image_contents import digest_of, environment_files
from prime_train.spec.spec import ImageSpec
from tests import builders as b
from tests.image.steps import EPOCH_S, STEPS, digest_of_folder, install, write_context

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="images are built for Linux")

BRING_UP = STEPS.parents[1] / "providers" / "install" / "bring_up.sh"


@pytest.fixture(scope="module", name="context")
def _context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_context(tmp_path_factory.mktemp("context"))


@pytest.fixture(scope="module", name="built")
def _built(context: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an image in which everything was installed. Tests that change something copy
    it.
    """
    target = tmp_path_factory.mktemp("image") / "prime-train"
    done = install(context, target)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(name="shell")
def _shell(tmp_path: Path) -> Shell:
    work = tmp_path / "work"
    work.mkdir()
    return Shell(
        LocalProcesses(f"image-{tmp_path.name}-{os.getpid()}"), work, os.environ, tmp_path / "log", CallOff()
    )


def agent_of(built: Path) -> Path:
    return next(built.glob("agent-*"))


def environment_of(built: Path) -> Path:
    return next(built.glob("environment-*"))


def look(image: Path, digest: str, home: Path) -> str:
    """Return what the script that installs agents says about a machine with this image."""
    words = ["/bin/sh", "-s", "--", "look", "r-e1", digest, "", str(image), "~"]
    variables = {"HOME": str(home), "PATH": os.environ["PATH"]}
    return subprocess.run(
        words, input=BRING_UP.read_text(), env=variables, capture_output=True, text=True, check=True
    ).stdout.strip()


# ------------------------------------------------------------------------------------------------------------
# the agent


def test_an_agent_in_the_image_is_recognised_by_the_hash_of_what_would_be_sent(
    built: Path, context: Path, tmp_path: Path
) -> None:
    digest = digest_of_folder(context / "agent")
    assert look(built, digest, tmp_path) == "installed"
    assert look(built, "0" * 16, tmp_path) == "bare"
    assert look(tmp_path / "nowhere", digest, tmp_path) == "bare"


@pytest.mark.parametrize(
    "change", ["a module", "what it was installed from", "one more module", "another Python"]
)
def test_an_agent_that_is_not_as_it_was_built_is_not_used(
    built: Path, context: Path, tmp_path: Path, change: str
) -> None:
    image = tmp_path / "image"
    shutil.copytree(agent_of(built), image / agent_of(built).name, symlinks=True)
    agent = agent_of(image)
    (packages,) = (agent / "venv").glob("lib/python*/site-packages")
    match change:
        case "a module":
            (packages / "small_agent.py").write_text("VALUE = 2\n")
        case "what it was installed from":
            (agent / "files" / "runtime.txt").write_text("# another\n")
        case "one more module":
            (packages / "sitecustomize.py").write_text("")
        case _:
            (agent / "venv" / "bin" / "python3").unlink()
            (agent / "venv" / "bin" / "python3").symlink_to("/bin/sh")
    assert look(image, digest_of_folder(context / "agent"), tmp_path) == "bare"


# ------------------------------------------------------------------------------------------------------------
# the environment


def with_requirements(shell: Shell, context: Path) -> ImageSpec:
    """Write the requirements of the small environment into the working tree, and return what a config says
    about them.
    """
    (shell.cwd / "requirements.txt").write_bytes(
        (context / "environment" / "requirements-01.txt").read_bytes()
    )
    return ImageSpec(requirements=("requirements.txt",))


def python(shell: Shell, program: str) -> str:
    words = [str(shell.cwd / ".venv" / "bin" / "python"), "-c", program]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def test_the_environment_of_the_image_is_used_without_installing_anything(
    built: Path, context: Path, shell: Shell
) -> None:
    image, notes = with_requirements(shell, context), list[str]()
    provide(image, shell, timeout_s=60, note=notes.append, folder=built)

    assert "every file of it as built" in notes[-1]
    assert not any("installing" in note for note in notes)
    assert python(shell, "import small_trainer; print(small_trainer.__file__)").startswith(str(built))
    # Programs are found, and run in the environment of the working tree.
    spec = b.spec().model_copy(update={"image": image})
    variables = on_path(spec, shell.cwd, os.environ)
    assert (
        subprocess.run(["train"], env=variables, capture_output=True, text=True, check=True).stdout
        == "trained\n"
    )
    assert str(shell.cwd) in (shell.cwd / ".venv" / "bin" / "train").read_text().partition("\n")[0]


def test_what_setup_installs_does_not_change_the_environment_of_the_image(
    built: Path, context: Path, shell: Shell
) -> None:
    image = with_requirements(shell, context)
    provide(image, shell, timeout_s=60, note=print, folder=built)
    where = python(shell, "import sysconfig; print(sysconfig.get_path('purelib'))")

    assert Path(where).is_relative_to(shell.cwd)
    assert "small_trainer" in python(
        shell, "import importlib.metadata as m; print(*(d.name for d in m.distributions()))"
    )
    assert "Requirement already satisfied: small_trainer" in python(
        shell,
        "import pip, sys; from pip._internal.cli.main import main; main(['install', '--no-index', "
        "'small_trainer'])",
    )
    assert why_unusable(environment_of(built)) is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("{packages}/small_trainer.py", "was changed"),
        ("{packages}/sitecustomize.py", "was added"),
        ("sums", "sums has the line"),
        ("links", "symbolic links"),
    ],
)
def test_an_environment_that_is_not_as_it_was_built_is_not_used(
    built: Path, tmp_path: Path, change: str, why: str
) -> None:
    made = tmp_path / "made"
    shutil.copytree(environment_of(built), made, symlinks=True)
    (packages,) = made.glob("venv/lib/python*/site-packages")
    assert why_unusable(made) is None
    (made / change.format(packages=packages)).write_text("changed\n")
    assert why in (why_unusable(made) or "")


def test_a_machine_whose_image_has_another_environment_installs_this_one(
    context: Path, shell: Shell, tmp_path: Path
) -> None:
    image, notes = with_requirements(shell, context), list[str]()
    offline = {"PIP_NO_INDEX": "1", "UV_OFFLINE": "1", "UV_NO_INDEX": "1"}
    there = Shell(shell.processes, shell.cwd, {**os.environ, **offline}, shell.log, shell.called_off)
    provide(image, there, timeout_s=120, note=notes.append, folder=tmp_path / "none")

    assert "because the image has no" in notes[1]
    assert Path(python(shell, "import small_trainer; print(small_trainer.__file__)")).is_relative_to(
        shell.cwd
    )


def test_requirements_that_are_not_in_the_working_tree_end_the_attempt_with_their_name(
    shell: Shell, tmp_path: Path
) -> None:
    with pytest.raises(PhaseError) as caught:
        provide(ImageSpec(requirements=("gone.txt",)), shell, timeout_s=60, note=print, folder=tmp_path)
    assert caught.value.cause is Cause.SETUP_FAILED
    assert "gone.txt: No such file" in caught.value.detail


def test_the_hash_of_an_environment_depends_on_all_that_determines_it() -> None:
    content = {"a.txt": b"a==1", "b.txt": b"b==1"}
    images = [
        ImageSpec(requirements=("a.txt",)),
        ImageSpec(requirements=("b.txt",)),
        ImageSpec(requirements=("a.txt",), packages=("git",)),
        ImageSpec(requirements=("a.txt",), packages=("git=1:2.39.5-0+deb12u2",)),
        ImageSpec(requirements=("a.txt",), base=f"debian@sha256:{'0' * 64}"),
    ]
    assert len({digest_of(environment_files(image, content.__getitem__)) for image in images}) == len(images)
    # Who runs it and in which order packages are named makes no other environment.
    same = [ImageSpec(packages=("a", "b")), ImageSpec(packages=("b", "a"), root=True)]
    assert len({digest_of(environment_files(image, content.__getitem__)) for image in same}) == 1


def test_packages_that_the_machine_has_are_not_installed_again(shell: Shell) -> None:
    (command,) = install_commands(ImageSpec(packages=("dpkg=1",)))
    (shell.cwd / "dpkg-query").write_text("#!/bin/sh\nprintf 'install ok installed'\n")
    (shell.cwd / "apt-get").write_text("#!/bin/sh\ntouch asked\n")
    for name in ("dpkg-query", "apt-get"):
        (shell.cwd / name).chmod(0o755)
    there = Shell(
        shell.processes, shell.cwd, {"PATH": f"{shell.cwd}:{os.environ['PATH']}"}, shell.log, shell.called_off
    )
    assert there.run(command, name="packages", timeout_s=60).code == 0
    assert not (shell.cwd / "asked").exists()
    (shell.cwd / "dpkg-query").write_text("#!/bin/sh\nexit 1\n")
    assert there.run(command, name="packages", timeout_s=60).code == 0 or os.geteuid() != 0
    assert (shell.cwd / "asked").exists() or os.geteuid() != 0


# ------------------------------------------------------------------------------------------------------------
# the build


@pytest.mark.slow
@pytest.mark.exhaustive
def test_two_builds_from_the_same_files_have_the_same_bytes(
    built: Path, context: Path, tmp_path: Path
) -> None:
    """The folder has to be the same, because installed programs contain its path."""
    before = listing(built)
    aside = tmp_path / "aside"
    built.rename(aside)
    try:
        assert install(context, built).returncode == 0
        assert listing(built) == before
    finally:
        shutil.rmtree(built, ignore_errors=True)
        aside.rename(built)


def listing(folder: Path) -> list[tuple[str, float, bytes]]:
    found = sorted(path for path in folder.rglob("*") if not path.is_dir())
    return [
        (
            str(path.relative_to(folder)),
            path.lstat().st_mtime,
            b"" if path.is_symlink() else path.read_bytes(),
        )
        for path in found
    ]


def test_a_base_without_a_suitable_python_is_refused_with_what_to_do(context: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin" / "python3").chmod(0o755)
    done = install(context, tmp_path / "image", PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert "the base image needs Python 3.11 or later with venv" in done.stderr


def test_requirements_with_another_hash_end_the_build(context: Path, tmp_path: Path) -> None:
    other = tmp_path / "context"
    shutil.copytree(context, other)
    path = other / "environment" / "requirements-01.txt"
    path.write_text(path.read_text().partition("sha256:")[0] + "sha256:" + "0" * 64 + "\n")
    done = install(other, tmp_path / "image")
    assert done.returncode != 0
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in done.stderr


def layers(folder: Path, target: Path, *, layer_bytes: int, count: int) -> subprocess.CompletedProcess[str]:
    """Carry out the step of the build that spreads what was installed."""
    words = [sys.executable, str(STEPS / "layers.py"), str(folder), str(target), str(layer_bytes), str(count)]
    return subprocess.run(
        words, env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH_S}, capture_output=True, text=True, check=False
    )


def content(folder: Path) -> dict[str, bytes | str]:
    """Return the content of each file and the target of each link, by path; folders have none."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    return {
        name: str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        for name, path in found.items()
    }


def test_layers_are_small_and_give_what_was_installed(built: Path, tmp_path: Path) -> None:
    spread = tmp_path / "spread"
    shutil.copytree(built, spread, symlinks=True)
    size = sum(path.lstat().st_size for path in built.rglob("*") if path.is_file() or path.is_symlink())
    assert layers(spread, tmp_path / "layers", layer_bytes=size // 3, count=5).returncode == 0
    each = [
        sum(path.lstat().st_size for path in one.rglob("*") if path.is_file())
        for one in sorted((tmp_path / "layers").iterdir())
    ]
    assert (max(each) <= size // 3, sum(1 for one in each if one) >= 3, len(each)) == (True, True, 5)
    whole = tmp_path / "image"
    for one in sorted((tmp_path / "layers").iterdir()):
        shutil.copytree(one, whole, symlinks=True, dirs_exist_ok=True)
    assert content(whole / spread.relative_to("/")) == content(built)


def test_a_file_that_is_larger_than_a_layer_is_named_and_so_are_too_many_layers(tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    (made / "libcublas.so").write_bytes(bytes(1000))
    (made / "other").write_bytes(bytes(600))
    done = layers(made, tmp_path / "a", layer_bytes=999, count=5)
    assert (done.returncode, "libcublas.so has" in done.stderr) == (1, True)
    done = layers(made, tmp_path / "b", layer_bytes=1000, count=1)
    assert (done.returncode, f"from {made / 'other'} on; leave packages out" in done.stderr) == (1, True)
    assert (made / "libcublas.so").exists()
