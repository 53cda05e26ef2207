"""A spec read without pydantic has the values of the validated one, and nothing is read that pydantic would refuse."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from prime_train.core.fast_parsing import spec as spec_parser
from prime_train.core.fast_parsing.spec_fields import FIELDS
from prime_train.core.spec import RunSpec
from prime_train.core.stored.record_size import config_bytes
from tests.core import spec_table

CONFIGS = [path for path in sorted((Path(__file__).parents[2] / "configs").glob("*.yaml")) if "  variants:" not in path.read_text()]
"""The configs that ship, but for those with variants, which are left to pydantic."""
SMALL: dict[str, Any] = {"name": "a", "trainer": {"command": "python train.py"}, "budget": {"usd": 5}}
AFTER = [
    {"name": "a", "run": "x", "env": {"B": "c"}, "outputs": ["results/**"]},
    {"name": "b", "run": "y", "evaluate_every": 9},
    {"name": "c", "kaggle": {"dataset": "acme/abc"}},
]
PRIME_RL: dict[str, Any] = SMALL | {"trainer": {"kind": "prime_rl", "steps": 9, "prime_rl": {"config": "rl.toml", "ref": "a" * 40}}}
HF: dict[str, Any] = SMALL | {"trainer": {"kind": "hf", "command": "axolotl train c.yaml"}}
OF_EVERY_NUMBER = "_is_exact"
"""Validator that is checked here for every number, too, with its largest value."""
ASKED = {
    "RunSpec": {
        "_run_of_prime_rl_has_a_name",
        "_saved_where_the_trainer_saves",
        "_secrets_are_not_spelled_out",
        "_variants_are_configs",
        "_outputs_are_a_part_of_the_tree",
        "_steps_after_training_are_distinct",
        "_has_one_environment",
    },
    "TrainerSpec": {"_is_given_where_it_is_needed", "_part_goes_with_kind", "_known_placeholders", "_orders_do_not_contradict"},
    # Exit codes that are given are left to pydantic.
    "ExitCodesSpec": {"_are_failures"},
    "PrimeRlSpec": {"_overrides_are_not_ours"},
    "CodeSpec": {"_one_source"},
    "ProgressSpec": {"_pattern_goes_with_regex"},
    "HardwareSpec": {
        "_every_variant_can_be_chosen",
        "_fits_one_node",
        "_image_suits_the_provider",
        "_providers_can_be_rented_from",
        "_volumes_can_be_mounted",
    },
    "ImageSpec": {"_is_pinned"},
    "CheckpointSpec": {"_first_is_of_a_number", "_patterns_are_names"},
    "HealthSpec": {"_in_order", "_arguments_are_used"},
    "SuccessSpec": {"_names_a_criterion"},
    "AfterSpec": {"_does_one_thing", "_sets_no_variable_of_ours"},
}
"""The validators that `spec_parser` implements; it must also implement any other validator of a spec."""

_BRACED = ["{", "{step}", "a_{step}", "{step:06d}", "{checkpoint}", "{checkpoints}", "a{{b}}", "{{step}", "{{{step}}}", "{{{{step}}}}"]
_WORDS = [
    "",
    "a",
    "template:a",
    f"a/b@sha256:{'0' * 64}",
    "x/y",
    "../x",
    "/x",
    "local",
    "prime_rl",
    "hf",
    "checkpoint-{step}",
    "regex",
    "only",
    "never",
    "zstd",
    "1 MB",
    "5m",
    "1h 30m",
    "90",
    "100GB",
    "0s",
    "9" * 30,
    "A\n",
    "a\0",
    "-1",
    "**",
    "results/**",
    "checkpoints/step_*/x",
    *_BRACED,
]
_VALUES = st.one_of(st.none(), st.booleans(), st.integers(-1, 5), st.sampled_from([0.5, 2**60, 1e300]), st.sampled_from(_WORDS))
_PATHS = [(part, field) for part, fields in FIELDS.items() for field in fields]
_SECTIONS = {
    "RunSpec": (),
    "TrainerSpec": ("trainer",),
    "ExitCodesSpec": ("trainer", "recover_on"),
    "PrimeRlSpec": ("trainer", "prime_rl"),
    "CodeSpec": ("trainer", "code"),
    "ProgressSpec": ("trainer", "progress"),
    "BudgetSpec": ("budget",),
    "HardwareSpec": ("hardware",),
    "VolumeSpec": ("hardware", "volumes", "/data"),
    "ImageSpec": ("image",),
    "VerifySpec": ("verification",),
    "SmokeSpec": ("smoke",),
    "CheckpointSpec": ("checkpoints",),
    "HealthSpec": ("health",),
    "AlertSpec": ("alerts",),
    "WandbSpec": ("wandb",),
    "SuccessSpec": ("success",),
    "AfterSpec": ("after",),
    "KaggleSpec": ("after", "kaggle"),
}


def with_types(value: object) -> object:
    """Return the values of a spec, each with its type, so that 1 differs from 1.0, and a text from a member of an enumeration."""
    if isinstance(value, spec_parser.Part):
        return {name: with_types(inner) for name, inner in vars(value).items() if name[0] != "_"}
    if isinstance(value, dict):
        return {name: with_types(inner) for name, inner in value.items()}
    return tuple(map(with_types, value)) if isinstance(value, tuple) else (type(value), value)


def checked(values: dict[str, Any]) -> object:
    try:
        spec = RunSpec.model_validate_json(json.dumps(values), strict=True)
    except ValidationError:
        return None
    found = spec.model_dump()
    if spec.trainer.prime_rl is not None:
        found["trainer"]["prime_rl"]["folder"] = spec.trainer.prime_rl.folder
    return with_types(found)


def test_the_table_of_fields_is_fresh() -> None:
    assert spec_table.FILE.read_text(encoding="utf-8") == spec_table.text(), "python -m tests.core.spec_table"


def test_nothing_is_queried_of_a_spec_that_is_not_queried_here() -> None:
    found = {part: names - {OF_EVERY_NUMBER} for part, names in spec_table.validators().items()}
    assert {part: names for part, names in found.items() if names} == ASKED


def test_parts_have_nothing_but_fields_and_the_folder_of_prime_rl() -> None:
    """A rule may use every attribute of a part. A spec with variants is read by pydantic alone, and only such a spec is asked for one."""
    own = {f"{part.__name__}.{name}" for part in spec_table.parts(RunSpec) for name in vars(part) if name[0] != "_"}
    known = {f"{part}.{name}" for part, fields in FIELDS.items() for name in (*fields, "model_config")}
    assert own - known == {"PrimeRlSpec.folder", "RunSpec.variant"}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_config_that_ships_is_read_plainly(path: Path) -> None:
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert with_types(spec_parser.read(values)) == checked(values)


@pytest.mark.parametrize("values", [SMALL, PRIME_RL, HF], ids=["small", "prime_rl", "hf"])
def test_a_spec_is_as_large_as_it_is_stored_whichever_way_it_was_read(values: dict[str, Any]) -> None:
    read, spec = spec_parser.read(values), RunSpec.model_validate(values)
    assert read is not None
    assert config_bytes(read) == config_bytes(spec) == config_bytes(read.model_copy(update={}))


@st.composite
def changed(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a valid spec with some of its fields set to arbitrary values."""
    values: dict[str, Any] = json.loads(json.dumps(draw(st.sampled_from([SMALL, PRIME_RL, HF]))))
    for part, field in draw(st.lists(st.sampled_from(_PATHS), max_size=4)):
        at = values
        for step in _SECTIONS[part]:
            at = at.setdefault(step, {}) if isinstance(at, dict) else {}
        if isinstance(at, dict):
            value = draw(_VALUES)
            at[field] = draw(st.sampled_from([value, [value], {"A": value}]))
    for part in ("verification", "after"):
        if isinstance(values.get(part), dict):
            values[part] = [values[part]] * draw(st.integers(1, 2))
    return values


@settings(max_examples=1500, deadline=None)
@given(changed())
def test_what_is_read_plainly_is_what_the_library_reads(values: dict[str, Any]) -> None:
    found = spec_parser.read(values)
    assert found is None or with_types(found) == checked(values)


@pytest.mark.parametrize(
    "more",
    [{}, {"environment": {"A": "b"}, "secrets": ["C"]}, {"health": {"heartbeat_s": 5}}, {"success": {"loss_below": 3}}, {"after": AFTER}],
)
def test_a_plain_spec_is_understood(more: dict[str, Any]) -> None:
    assert spec_parser.read(SMALL | more) is not None
    assert spec_parser.read(PRIME_RL | more) is not None
    assert spec_parser.read(HF | more) is not None
