"""The modules that `validate` loads for a valid config, because its time is the time of loading."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.waiting import HANG_S

ROOT = Path(__file__).parents[3]
CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))
"""The configs that ship."""
HEAVY = ("rich", "asyncio", "prime_train.checks.deep_validation")
PRIME_RL = (
    "prime_train.trainers.prime_rl.rules.all_rules",
    "prime_train.checks.gpu_memory",
    "prime_train.estimate.memory.phases",
    "prime_train.estimate.cost.duration",
    "tomllib",
)
FORMS = (
    "prime_train.checks.report.sarif",
    "prime_train.checks.report.github",
    "prime_train.checks.report.markdown",
)
CODE = """
import sys
from prime_train.cli.main import main
sys.argv = ["prime-train", *sys.argv[1:]]
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


def test_the_modules_that_are_looked_for_exist() -> None:
    assert [name for name in (*HEAVY, *PRIME_RL, *FORMS) if find_spec(name) is None] == []


def loaded(*words: str) -> set[str]:
    """Return the names of the modules loaded by a call without findings."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return set(done.stderr.split())


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_what_other_commands_and_formats_need_is_not_loaded(path: Path) -> None:
    assert loaded("validate", str(path)).isdisjoint((*HEAVY, *FORMS))


def test_a_trainers_own_config_needs_them_as_little() -> None:
    assert loaded("validate", "tests/data/prime_rl_configs/good.toml").isdisjoint(HEAVY)


def test_rules_of_other_trainers_are_not_loaded() -> None:
    assert loaded("validate", "configs/demo.yaml").isdisjoint(
        (*PRIME_RL, "prime_train.trainers.areal.rules", "prime_train.trainers.trm.rules")
    )
    assert loaded("lint", "configs/qwen3-4b-lora.yaml").isdisjoint(
        ("prime_train.trainers.areal.rules", "prime_train.trainers.trm.rules")
    )


@pytest.mark.parametrize("verb", ["validate", "lint"])
def test_the_help_of_a_check_loads_nothing_of_the_check(verb: str) -> None:
    assert loaded(verb, "--help").isdisjoint(("prime_train.spec.spec", "prime_train.checks.validate", "yaml"))
