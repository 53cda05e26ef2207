"""The config in a bundle launches the same run again, whatever kind of trainer it is of."""

from pathlib import Path

import pytest

from prime_train.interop.bundle.contents import config_of
from prime_train.runs.run import RunState
from prime_train.spec.reader import read_config, read_text
from prime_train.spec.spec import CodeSpec, RunSpec
from tests import builders as b

CONFIGS = sorted((Path(__file__).parents[2] / "configs").rglob("*.yaml"))
COMMIT = "0123456789" * 4


def again(spec: RunSpec, commit: str = "") -> RunSpec:
    found = read_text(config_of(b.run(RunState.SUCCEEDED, spec=spec, commit=commit)), "config.yaml")
    assert found.spec is not None, found.findings
    return found.spec


def with_code(spec: RunSpec, code: CodeSpec) -> dict[str, object]:
    return spec.model_copy(update={"trainer": spec.trainer.model_copy(update={"code": code})}).model_dump()


@pytest.mark.parametrize(
    "path", [path for path in CONFIGS if read_config(path).spec is not None], ids=lambda path: path.stem
)
def test_every_config_that_ships_is_the_same_in_a_bundle_but_for_its_code(path: Path) -> None:
    spec = read_config(path).spec
    assert spec is not None
    code = spec.trainer.code
    wanted = code.model_copy(update={"ref": COMMIT}) if code.repo else CodeSpec(folder="code")
    assert again(spec, COMMIT).model_dump() == with_code(spec, wanted)


def test_a_repository_is_taken_at_the_commit_that_was_used_if_it_is_known() -> None:
    spec = b.spec(
        trainer={"code": {"repo": "https://github.com/acme/models"}},
        success={"loss_below": 3},
        outputs=["a b/**", "*.csv"],
    )
    assert again(spec, COMMIT).trainer.code.ref == COMMIT
    assert again(spec).trainer.code.ref is None
    assert again(spec).model_dump() == spec.model_dump()
