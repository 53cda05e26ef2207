"""Which Python the commands of a run use: the image's where it can be installed into, and else one of the
attempt's own above it.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from prime_agent.before_training.own_python import Interpreter, give_python, own_variables, why_unfit
from prime_agent.before_training.phase import CallOff, Shell
from prime_agent.processes import LocalProcesses
from tests.fakes.machine_images import CONDA, NO_PYTHON, RUNPOD_24_04, UBUNTU_24_04, Image

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="images are those of Linux")


def shell_in(folder: Path, env: Mapping[str, str]) -> Shell:
    (folder / "work").mkdir(exist_ok=True)
    variables = {"HOME": str(folder), **env}
    return Shell(LocalProcesses("tests-e1"), folder / "work", variables, folder / "setup.log", CallOff())


def said_by(shell: Shell, variables: Mapping[str, str], command: str) -> str:
    """Return what a command of the run prints."""
    ended = Shell(shell.processes, shell.cwd, {**shell.env, **variables}, shell.log, shell.called_off).run(
        command, name="asked", timeout_s=120
    )
    assert ended.code == 0, ended.tail
    return ended.tail.strip()


def on(image: Image, folder: Path) -> Shell:
    return shell_in(folder, image.walls(folder / "image").env)


WHERE = "import sys; print(sys.prefix)"


@pytest.mark.parametrize("image", [CONDA, RUNPOD_24_04], ids=lambda image: image.name)
def test_a_python_into_which_one_may_install_is_kept(image: Image, tmp_path: Path) -> None:
    shell = on(image, tmp_path)
    found = give_python(shell, tmp_path / "python", note=lambda _: None)
    assert found.variables == {}
    assert not (tmp_path / "python").exists()


@pytest.mark.parametrize(
    ("image", "why"),
    [(UBUNTU_24_04, "refuses installations (EXTERNALLY-MANAGED)"), (NO_PYTHON, "there is no Python on PATH")],
    ids=lambda value: getattr(value, "name", ""),
)
def test_an_image_without_such_a_python_gets_an_environment_with_pip(
    image: Image, why: str, tmp_path: Path
) -> None:
    shell = on(image, tmp_path)
    found = give_python(shell, tmp_path / "python", note=lambda _: None)
    assert why in found.why
    for command in (f"python -c '{WHERE}'", f"python3 -c '{WHERE}'"):
        assert said_by(shell, found.variables, command) == str(tmp_path / "python")
    assert str(tmp_path / "python") in said_by(shell, found.variables, "pip --version")
    assert found.variables["VIRTUAL_ENV"] == str(tmp_path / "python")


def test_what_the_image_has_installed_stays_usable_with_its_programs(tmp_path: Path) -> None:
    shell = on(UBUNTU_24_04, tmp_path)
    prefix = tmp_path / "image" / "root" / "usr"
    (packages,) = prefix.glob("lib/python*/site-packages")
    (packages / "torch.py").write_text(
        "def main():\n    import added\n    print('torch sees', added.__name__)\n"
    )
    (packages / "torch-2.9.dist-info").mkdir()
    (packages / "torch-2.9.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.9\n"
    )
    (packages / "torch-2.9.dist-info" / "entry_points.txt").write_text(
        "[console_scripts]\ntorchrun = torch:main\n"
    )
    (prefix / "bin" / "torchrun").write_text(f"#!{prefix}/bin/python3\nfrom torch import main\nmain()\n")
    (prefix / "bin" / "torchrun").chmod(0o755)
    found = give_python(shell, tmp_path / "python", note=lambda _: None)
    (own,) = (tmp_path / "python").glob("lib/python*/site-packages")
    (own / "added.py").write_text("")
    assert said_by(shell, found.variables, "torchrun") == "torch sees added"
    assert "torch 2.9" in " ".join(said_by(shell, found.variables, "pip list").split())


def test_the_agents_own_packages_do_not_change_with_what_a_run_installs(tmp_path: Path) -> None:
    shell = shell_in(
        tmp_path, {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    )
    found = give_python(shell, tmp_path / "python", note=lambda _: None)
    assert "belongs to prime-train" in found.why
    assert said_by(shell, found.variables, f"python -c '{WHERE}'") == str(tmp_path / "python")
    assert said_by(shell, found.variables, "python -c 'import prime_train; print(1)'") == "1"
    assert str(tmp_path / "python") in said_by(
        shell, found.variables, "python -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))'"
    )


def test_an_environment_that_cannot_be_made_leaves_things_as_they_are_and_says_so(tmp_path: Path) -> None:
    shell = on(NO_PYTHON, tmp_path)
    (tmp_path / "python").write_text("in the way")
    found = give_python(shell, tmp_path / "python", note=lambda _: None)
    assert found.variables == {}
    assert "no environment could be made: " in found.why


def test_a_program_that_calls_itself_python_and_is_none_counts_as_missing(tmp_path: Path) -> None:
    shell = on(NO_PYTHON, tmp_path)
    for name in ("python", "python3"):
        (tmp_path / "image" / "root" / "usr" / "bin" / name).write_text(
            "#!/bin/sh\necho 'python here: prefix=/'\n"
        )
        (tmp_path / "image" / "root" / "usr" / "bin" / name).chmod(0o755)
    assert "there is no Python on PATH" in give_python(shell, tmp_path / "python", note=lambda _: None).why


def test_variables_that_make_tools_install_elsewhere_are_switched_off_with_an_environment_of_its_own() -> (
    None
):
    found = own_variables({"PATH": "/bin", "PIP_USER": "1", "UV_SYSTEM_PYTHON": "1"}, Path("/p"), before=None)
    assert found == {"PATH": "/p/bin:/bin", "VIRTUAL_ENV": "/p", "PIP_USER": "0", "UV_SYSTEM_PYTHON": "0"}
    assert own_variables({"PATH": "/bin"}, Path("/p"), before=None) == {
        "PATH": "/p/bin:/bin",
        "VIRTUAL_ENV": "/p",
    }


def test_a_program_that_the_config_puts_first_on_the_path_stays_the_first() -> None:
    found = own_variables({"PATH": "/mine:/usr/bin:/bin"}, Path("/p"), before=Path("/usr/bin"))
    assert found["PATH"] == "/mine:/p/bin:/usr/bin:/bin"


@pytest.mark.parametrize(
    ("facts", "env", "why"),
    [
        ({}, {}, ""),
        ({"is_managed": True}, {}, "refuses installations"),
        ({"is_managed": True}, {"PIP_BREAK_SYSTEM_PACKAGES": "1"}, ""),
        ({"is_managed": True}, {"PIP_BREAK_SYSTEM_PACKAGES": "0"}, "refuses installations"),
        ({"is_managed": True, "base": "/usr/local"}, {}, ""),
        ({"is_writable": False}, {}, "/usr/lib/python3/site-packages is not writable"),
        ({"has_pip": False}, {}, "has no pip"),
        ({"prefix": sys.prefix}, {}, "belongs to prime-train"),
    ],
)
def test_a_python_is_unfit_for_one_reason(
    facts: dict[str, object], env: dict[str, str], why: str, tmp_path: Path
) -> None:
    for name in ("python", "pip"):
        shutil.copy("/bin/true", tmp_path / name)
    usual: dict[str, object] = {
        "prefix": "/usr",
        "base": "/usr",
        "is_writable": True,
        "is_managed": False,
        "has_pip": True,
    }
    found = Interpreter(
        path=Path("/usr/bin/python3"),
        version="3.12",
        packages="/usr/lib/python3/site-packages",
        **(usual | facts),  # type: ignore[arg-type]  # the fields have several types
    )
    said = why_unfit(found, {"PATH": str(tmp_path), **env}, agent_prefix=sys.prefix)
    assert why in said
    assert bool(said) == bool(why)
