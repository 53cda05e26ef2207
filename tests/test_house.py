"""Rules of the repository that no other test checks: what is committed, pinned and shipped."""

import re
import subprocess
import sys
import tomllib
import zipfile
from collections import Counter
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import prime_train
from tests.github.files import consumer_workflows
from tests.test_dependency_table import ORDER

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINNED = [
    ROOT / "requirements" / "dev.txt",
    ROOT / "requirements" / "runtime.txt",
    ROOT / "requirements" / "watcher.txt",
]

MODULES_MAX = 36
"""The most modules side by side in a folder: a feature is one folder."""
MADE = re.compile(r"(^|/)(\.venv|build|dist|__pycache__|\.\w+_cache|\.hypothesis|\.benchmarks)/")

# Joined here, so that this file does not contain what it looks for.
FORBIDDEN = [
    ".".join(("pypi", "org")),
    ".".join(("pythonhosted", "org")),
    ".".join(("anaconda", "org")),
    ".".join(("npmjs", "org")),
    "/".join(("", "work", "main")),
    "/".join(("", "work", ".library")),
    "/".join(("", "opt", "wheels")),
    "/".join(("..", "shared")),
]


def committed_files() -> list[Path]:
    """Return the files that are in the repository or would be with the next commit."""
    if not (ROOT / ".git").exists():
        # An unpacked archive: what git ignores is told by its folder's name.
        return [
            path
            for path in ROOT.rglob("*")
            if path.is_file() and not MADE.search(str(path.relative_to(ROOT)))
        ]
    # The checkout may belong to another user, as in a container.
    git = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(git, cwd=ROOT, capture_output=True, check=True)
    paths = (ROOT / name for name in listing.stdout.decode().split("\0") if name)
    return [path for path in paths if path.is_file()]


def pins(path: Path) -> dict[str, str]:
    """Return each requirement's complete line, with continuation lines joined, by its name and marker."""
    joined = path.read_text(encoding="utf-8").replace("\\\n", " ")
    return {line.split("--hash")[0].strip(): line for line in joined.splitlines() if line.strip()}


def names(path: Path) -> set[str]:
    return {pin.split("==")[0] for pin in pins(path)}


def wanted(requirements: list[str]) -> set[str]:
    found = (re.match(r"[A-Za-z0-9._-]+", requirement) for requirement in requirements)
    return {re.sub(r"[._-]+", "-", match[0]).lower() for match in found if match}


def test_no_file_names_a_registry_or_a_path_of_one_machine() -> None:
    found = []
    for path in committed_files():
        content = path.read_bytes()
        found += [f"{path.relative_to(ROOT)}: {text}" for text in FORBIDDEN if text.encode() in content]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    "package", ["src/prime_train", "agent/prime_agent", "lambdas/prime_lambdas", "tests"]
)
def test_no_folder_has_more_modules_than_one_can_overlook(package: str) -> None:
    modules = Counter(path.parent.relative_to(ROOT).as_posix() for path in (ROOT / package).rglob("*.py"))
    assert {folder: count for folder, count in modules.items() if count > MODULES_MAX} == {}


def test_every_requirement_is_pinned_with_hashes() -> None:
    for path in PINNED:
        lines = pins(path)
        assert lines
        for requirement, line in lines.items():
            assert re.match(r"[a-z0-9-]+==[^ ]+( ; .+)?$", requirement), f"{path.name}: {requirement}"
            assert re.search(r"--hash=sha256:[0-9a-f]{64}", line), f"{path.name}: {requirement}"


def test_what_runs_is_what_was_tested() -> None:
    dev, runtime, watcher = (pins(path) for path in PINNED)
    assert set(runtime) <= set(watcher) <= set(dev)


def test_what_the_project_asks_for_is_pinned() -> None:
    extras = PROJECT["optional-dependencies"]
    dev = wanted(PROJECT["dependencies"])
    for requirements in extras.values():
        dev |= wanted(requirements)
    assert dev <= names(PINNED[0])
    runtime = wanted(PROJECT["dependencies"])
    assert runtime <= names(PINNED[1])
    assert runtime | wanted(extras["wandb"]) <= names(PINNED[2])


OPTIONAL = {"jwt", "mangum", "prime_rl", "resvg_py", "slack_sdk", "torch", "wandb"}
"""What is imported only where an extra, or a machine's own trainer, has installed it."""


def test_the_default_install_has_all_that_a_laptop_needs() -> None:
    imported = {name for package in ORDER for name in package.others}
    found = packages_distributions()
    installed, waiting = set(), [Requirement(text) for text in PROJECT["dependencies"]]
    while waiting:
        requirement = waiting.pop()
        name = re.sub(r"[._-]+", "-", requirement.name).lower()
        if name not in installed:
            installed.add(name)
            needs = (Requirement(text) for text in requires(requirement.name) or ())
            waiting += [need for need in needs if _is_needed(need, {"", *requirement.extras})]
    missing = {
        name
        for name in imported
        if not {re.sub(r"[._-]+", "-", one).lower() for one in found.get(name, ())} & installed
    }
    assert missing == OPTIONAL


def _is_needed(requirement: Requirement, extras: set[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras)


def test_the_version_is_the_same_everywhere() -> None:
    assert ("version" in PROJECT, PROJECT["dynamic"]) == (False, ["version"])
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## (\S+) - \d{4}-\d\d-\d\d$", changelog, re.MULTILINE)
    # Between releases, what is new stands in changes/ and the version is already the next one.
    assert prime_train.__version__ in released or list((ROOT / "changes").glob("*.md"))


def test_the_wheel_holds_three_packages_and_the_demo_configuration(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        shipped = set(archive.namelist())
    expected = {
        "prime_train/__init__.py",
        "prime_train/py.typed",
        "prime_train/demo/demo.yaml",
        *(f"prime_train/demo/presets/{path.name}" for path in (ROOT / "configs" / "presets").iterdir()),
        *(
            f"prime_train/examples/consumer-repo/.github/workflows/{path.name}"
            for path in consumer_workflows()
        ),
        "prime_agent/__init__.py",
        "prime_agent/py.typed",
        "prime_lambdas/__init__.py",
    }
    assert expected <= shipped
    own = (
        "prime_train/",
        "prime_agent/",
        "prime_lambdas/",
        f"prime_train-{prime_train.__version__}.dist-info/",
    )
    assert not [name for name in shipped if not name.startswith(own)]
