"""`prime-train image build`: what it is built from, which builder is called, and what is refused."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from prime_train.configs.image_requirements import problems
from prime_train.images.context import LAYERS_MAX, dockerfile
from prime_train.spec.image_contents import digest_of
from prime_train.spec.reader import read_config
from prime_train.spec.spec import ImageSpec
from tests.cli.documented import check
from tests.cli.shell import Shell
from tests.image.steps import STEPS
from tests.tools import program

PINNED = f"a==1 \\\n    --hash=sha256:{'0' * 64}\n"
CONFIG = """\
name: small
trainer: {command: ".venv/bin/python train.py {checkpoints}", steps: 3}
budget: {usd: 1}
image:
  requirements: [requirements.txt]
"""
ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


@pytest.fixture(name="shell")
def _shell(tmp_path: Path) -> Shell:
    """Return a shell in a checkout with a config, and with files beside it that are nobody else's
    business.
    """
    shell = Shell(tmp_path / "tree")
    for name, text in (
        ("config.yaml", CONFIG),
        ("requirements.txt", PINNED),
        ("train.py", ""),
        (".gitignore", ".env\n"),
    ):
        shell.write(name, text)
    shell.write(".env", "TOKEN=not-for-anybody-else\n")
    git(shell, "init", "-q")
    git(shell, "add", ".")
    return shell


def git(shell: Shell, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=shell.here, check=True, capture_output=True)


def refused(shell: Shell, *arguments: str) -> str:
    done = shell.run("image", "build", "config.yaml", *arguments)
    assert done.returncode != 0, done.stdout
    return done.stdout + done.stderr


# ------------------------------------------------------------------------------------------------------------
# the context


def test_the_context_contains_the_agent_and_the_requirements_and_nothing_else(shell: Shell) -> None:
    row = json.loads(shell.ok("image", "build", "config.yaml", "--output", "context", "--json"))
    check("image build --output", row)
    files = {
        path.relative_to(shell.here / "context").as_posix(): path
        for path in (shell.here / "context").rglob("*")
        if path.is_file()
    }

    assert sorted(files) == row["files"]
    named = {name for name in files if not name.endswith(".whl")}
    assert named == {
        "Dockerfile",
        "install.sh",
        "layers.py",
        "start.sh",
        "agent/runtime.txt",
        "environment/image.txt",
        "environment/requirements-01.txt",
    }
    assert files["environment/requirements-01.txt"].read_text() == PINNED
    assert not any(b"not-for-anybody-else" in path.read_bytes() for path in files.values())
    tag = row["image"].removeprefix("prime-train/small:")
    assert tag == digest_of({name: path.read_bytes() for name, path in files.items()})
    assert row["environment"] == digest_of(
        {n.partition("/")[2]: p.read_bytes() for n, p in files.items() if n.startswith("environment/")}
    )


def test_an_unchanged_config_gives_the_same_tag_and_changed_requirements_another(shell: Shell) -> None:
    def tag() -> str:
        row = json.loads(
            shell.ok(
                "image",
                "build",
                "config.yaml",
                "--output",
                str(shell.here.parent / f"{next(numbers)}"),
                "--json",
            )
        )
        return str(row["image"])

    numbers = iter(range(9))
    first = tag()
    shell.write("train.py", "print('changed')\n")
    assert tag() == first
    shell.write("requirements.txt", PINNED + "# a comment is a change, too\n")
    assert tag() != first


def test_only_the_dockerfile_is_printed(shell: Shell) -> None:
    text = shell.ok("image", "build", "config.yaml", "--print")
    assert text == dockerfile(ImageSpec(requirements=("requirements.txt",)))
    assert "cannot be combined" in refused(shell, "--print", "--output", "there")


def test_a_folder_with_files_is_not_written_to(shell: Shell) -> None:
    assert "is not empty" in refused(shell, "--output", ".")


# ------------------------------------------------------------------------------------------------------------
# what is refused


def test_requirements_that_git_does_not_track_are_refused_at_their_place(shell: Shell) -> None:
    git(shell, "rm", "--cached", "-q", "requirements.txt")
    text = refused(shell, "--print")
    assert "config.yaml:5:18: error PT025: requirements.txt is not tracked by git" in text
    assert "git add requirements.txt" in text


def test_a_link_to_a_file_outside_is_not_followed(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.txt").write_text(PINNED)
    (shell.here / "requirements.txt").unlink()
    (shell.here / "requirements.txt").symlink_to(tmp_path / "elsewhere.txt")
    git(shell, "add", ".")
    assert (
        "PT025: requirements.txt is a link that leads out of the working tree, and is not followed"
        in refused(shell, "--print")
    )


def test_outside_a_checkout_nothing_is_built(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for name, text in (("config.yaml", CONFIG), ("requirements.txt", PINNED), ("train.py", "")):
        shell.write(name, text)
    assert "is not a git checkout" in refused(shell, "--print")


def test_requirements_with_problems_are_found_by_validate_and_before_a_build(shell: Shell) -> None:
    token = "pit_" + "a1B2" * 8
    shell.write(
        "requirements.txt", f"{PINNED}numpy>=2\n--index-url https://me:{token}@example.com/simple\n-e .\n"
    )
    for found in (shell.run("validate", "config.yaml").stdout, refused(shell, "--print")):
        assert "requirements.txt:3:1: error PT025: numpy>=2 is not pinned by == and a hash" in found
        assert "requirements.txt:4:1: error PT025: what looks like a password or token" in found
        assert "requirements.txt:5:1: error PT025: -e . is not supported here" in found
        assert token not in found


def test_requirements_that_are_missing_are_an_error(shell: Shell) -> None:
    (shell.here / "requirements.txt").unlink()
    assert (
        "config.yaml:5:18: error PT025: there is no file requirements.txt"
        in shell.run("validate", "config.yaml").stdout
    )


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (PINNED, []),
        ("# a comment\n\n-i https://example.com/simple\n--find-links=here\n" + PINNED, []),
        (f"a @ https://example.com/a.whl --hash=sha256:{'0' * 64}\n", []),
        (
            f"a==1 ; python_version < '3.12' \\\n  --hash=sha256:{'0' * 64} \\\n  "
            f"--hash=sha512:{'0' * 128}\n",
            [],
        ),
        ("a==1\n", [1]),
        (f"a>=1 --hash=sha256:{'0' * 64}\nb==1 --hash=md5:{'0' * 32}\n", [1, 2]),
        (f"a==1 \\\n  --hash=sha256:{'0' * 63}\n\n-r other.txt\n--trusted-host a\n", [1, 4, 5]),
        ("a==1 \\", [1]),
    ],
)
def test_requirements_need_a_version_and_a_hash(text: str, lines: list[int]) -> None:
    assert [one.line for one in problems(text)] == lines


# ------------------------------------------------------------------------------------------------------------
# the Dockerfile


def test_the_image_runs_as_nobody_special_unless_the_provider_needs_root() -> None:
    assert "\nUSER 10001\n" in dockerfile(ImageSpec()).rpartition("FROM base\n")[2]
    assert "USER" not in dockerfile(ImageSpec(root=True)).rpartition("FROM base\n")[2]


def test_the_dockerfile_names_its_base_by_digest_and_copies_the_context_only_into_a_stage_that_is_not_kept() -> (
    None
):
    text = dockerfile(ImageSpec(packages=("git", "tmux=3.3a-3")))
    froms = [line.split()[1] for line in text.splitlines() if line.startswith("FROM")]
    assert froms == [ImageSpec().base, "base", "base"]
    assert "COPY" not in text.partition("AS build")[0]
    assert [line for line in text.splitlines() if line.startswith("COPY --from")] == [
        f"COPY --from=build /layers/{number} /" for number in range(LAYERS_MAX)
    ]
    assert text.count("COPY . ") == 1
    assert " git \\\n" in text
    assert " tmux=3.3a-3 \\\n" in text
    # An SSH server makes its keys when it is installed; what is in an image is everybody's.
    assert "/etc/ssh/ssh_host_*" in text


@pytest.mark.parametrize(
    "image",
    [ImageSpec(), ImageSpec(root=True, packages=("git",)), ImageSpec(packages=("openssh-server=1", "git=2"))],
)
def test_a_linter_finds_nothing_in_the_dockerfile(image: ImageSpec, tmp_path: Path) -> None:
    hadolint = program("hadolint", BIN / "hadolint")
    if hadolint is None:
        pytest.skip("there is no hadolint; make install installs it")
    (tmp_path / "Dockerfile").write_text(dockerfile(image))
    done = subprocess.run(
        [hadolint, str(tmp_path / "Dockerfile")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_a_linter_finds_nothing_in_the_steps() -> None:
    done = subprocess.run(
        [program("shellcheck", BIN / "shellcheck") or "shellcheck", *STEPS.glob("*.sh")], check=False
    )
    assert done.returncode == 0


# ------------------------------------------------------------------------------------------------------------
# the builders

FAILS = "#!/bin/sh\necho 'the service does not answer' >&2\nexit 1\n"
WORKS = """#!/bin/sh
if [ "$1" = build ]; then
  echo "$0 $*" >>"$LOG"
  for last; do :; done
  find "$last" -type f | wc -l >>"$LOG"
  echo building
fi
"""


def builders(shell: Shell, **scripts: str) -> dict[str, str]:
    """Return an environment whose path has these builders and git, and no other."""
    folder = shell.here.parent / "bin"
    folder.mkdir(exist_ok=True)
    for name in ("git", "find", "wc", "sh"):
        (folder / name).symlink_to(program(name) or name)
    for name, script in scripts.items():
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    return {"PATH": str(folder), "LOG": str(shell.here.parent / "log")}


def test_the_first_builder_that_works_is_called(shell: Shell) -> None:
    there = builders(shell, docker=FAILS, podman=WORKS, buildah=WORKS)
    done = shell.run("image", "build", "config.yaml", "--name", "ghcr.io/me/small", "--json", **there)
    row = json.loads(done.stdout)
    check("image build", row)
    call, files = Path(there["LOG"]).read_text().splitlines()

    assert row["builder"] == "podman"
    assert row["image"].startswith("ghcr.io/me/small:")
    assert f"--tag {row['image']} " in call
    assert "--platform=linux/amd64" in call
    assert "--timestamp=315532800 --build-arg=SOURCE_DATE_EPOCH=315532800" in call
    assert files.strip() == "8"
    assert "building" in done.stderr


def test_each_layer_that_is_copied_stays_a_layer(shell: Shell) -> None:
    there = builders(shell, podman=WORKS)
    done = shell.run("image", "build", "config.yaml", **there)
    assert done.returncode == 0, done.stderr
    assert "podman build --layers --no-cache --timestamp" in Path(there["LOG"]).read_text()


def test_a_layer_that_no_registry_takes_is_named(shell: Shell) -> None:
    sizes = (
        'if [ "$1" = history ]; then printf "9000000000\\tCOPY /layers/0\\n10500000000\\tRUN '
        "apt-get "
        'install cuda # buildkit\\n"; fi\n'
    )
    done = shell.run("image", "build", "config.yaml", **builders(shell, docker=WORKS + sizes))
    assert done.returncode != 0
    assert (
        "has a layer of 10.5 GB, and registries take at most 10 GB: RUN apt-get install cuda # buildkit"
        in done.stderr
    )
    assert "was built" not in done.stdout


def test_without_a_builder_each_is_named_with_the_reason(shell: Shell) -> None:
    done = shell.run("image", "build", "config.yaml", **builders(shell, docker=FAILS))
    assert done.returncode == 2
    assert (
        "docker does not work: the service does not answer; podman is not installed; buildah is not installed"
        in done.stderr
    )
    assert "--output FOLDER" in done.stderr


def test_a_build_that_failed_is_an_error(shell: Shell) -> None:
    there = builders(shell, buildah=WORKS.replace("echo building", "exit 3"))
    done = shell.run("image", "build", "config.yaml", **there)
    assert done.returncode != 0
    assert "buildah could not build prime-train/small:" in done.stderr
    assert "was built" not in done.stdout


@pytest.mark.parametrize(
    ("option", "value"),
    [("--builder", "kaniko"), ("--name", "a:1"), ("--name", "A/b"), ("--name", "--privileged")],
)
def test_options_that_make_no_sense_are_refused(shell: Shell, option: str, value: str) -> None:
    done = shell.run("image", "build", "config.yaml", f"{option}={value}", **builders(shell, docker=WORKS))
    assert done.returncode == 2
    assert value in done.stderr


def test_the_dockerfile_of_this_repository_is_that_of_its_config() -> None:
    folder = ROOT / ".github" / "image"
    spec = read_config(folder / "trainers.yaml").spec
    assert spec is not None
    assert (folder / "Dockerfile").read_text() == dockerfile(spec.image or ImageSpec())
