"""Numbers that no machine can represent, in every field of a run's spec and in a trainer's config, result in
findings and never end the check.
"""

import json
import re
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from prime_train.checks.validate import check_configs
from prime_train.configs.loader import load_configs
from prime_train.github.commands.config_section import block
from prime_train.launch.review import review
from prime_train.spec.spec import RunSpec
from prime_train.text.sizes import NUMBER_MAX, parse_size
from tests.fuzz.checking import Format, reported

ROOT = Path(__file__).parents[2]
NUMBERS = (
    "1e999",
    "-.inf",
    ".nan",
    "9" * 400,
    "9" * 5000,
    "-" + "9" * 400,
    "1e308",
    "'" + "9" * 400 + " GB'",
    "'1e999h'",
    "0x" + "f" * 2000,
)
TOML_NUMBERS = (
    "inf",
    "-inf",
    "nan",
    "9" * 18,
    "9" * 400,
    "9" * 5000,
    "1e308",
    "1e999",
    "-1",
    "0x" + "f" * 2000,
)
BASE = {"name": "name: a", "trainer": "trainer: {command: python x}", "budget": "budget: {usd: 1}"}
NEEDED = {"trainer": "command: python x, ", "budget": "usd: 1, "}

Path_ = tuple[tuple[str, bool], ...]
"""Names of keys from the outside in, each with whether its value is a list."""


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from models_in(inner)


def fields_of(model: type[BaseModel], above: Path_ = ()) -> Iterator[Path_]:
    for name, field in model.model_fields.items():
        yield (*above, (name, False))
        for part in dict.fromkeys(models_in(field.annotation)):
            yield from fields_of(part, (*above, (name, "tuple" in str(field.annotation))))


FIELDS = tuple(fields_of(RunSpec))


def spec_with(path: Path_, number: str) -> str:
    text = number
    for name, is_list in reversed(path):
        text = f"{{{name}: [{text}]}}" if is_list else f"{{{name}: {text}}}"
    top, body = path[0][0], text[1:-1]
    if len(path) > 1 and top in NEEDED and path[1][0] not in NEEDED[top]:
        body = body.replace("{", "{" + NEEDED[top], 1)
    return "\n".join([*(line for name, line in BASE.items() if name != top), body, ""])


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: f"{number[:9]} ({len(number)})")
def test_no_number_in_any_field_of_a_spec_ends_the_check_or_what_the_pull_request_says(
    number: str, tmp_path: Path
) -> None:
    assert len(FIELDS) > 60
    file = tmp_path / "run.yaml"
    for path in FIELDS:
        file.write_text(spec_with(path, number))
        read = load_configs([file])
        found, _ = check_configs(read)
        assert "PT099" not in {finding.code for finding in found}, (path, found)
        assert all(len(finding.message) < 1000 for finding in found), (path, found)
        for loaded in read:
            if loaded.subject is not None and loaded.subject.spec is not None:
                assert block(loaded.file, review(loaded, None, before={}, after=loaded.sources))


def test_no_number_in_a_trainers_config_ends_the_check(tmp_path: Path) -> None:
    text, file = (ROOT / "configs/qwen3-4b-lora/rl.toml").read_text(), tmp_path / "rl.toml"
    places = list(re.finditer(r"(?m)^\s*[\w.-]+\s*=\s*(-?[\d_]+(?:\.\d+)?(?:e-?\d+)?)\s*$", text))
    assert len(places) > 5
    for place in places:
        for number in TOML_NUMBERS:
            file.write_text(text[: place.start(1)] + number + text[place.end(1) :])
            found, _ = check_configs(load_configs([file]))
            assert "PT099" not in {finding.code for finding in found}, (place.group(), number[:9], found)


@pytest.mark.parametrize(
    "line",
    [
        f"verification: [{{path: a, exactly: 1, size_min: {'9' * 400} GB}}]",
        "verification: [{path: a, exactly: 1, size_min: 9999999 TB}]",
        "budget: {usd: 1, hours: 1e300}",
        "budget: {usd: 1e300}",
        f"checkpoints: {{keep: {2**60}}}",
    ],
)
def test_a_number_that_no_store_could_hold_is_a_finding_and_the_file_beside_it_is_judged(
    line: str, tmp_path: Path
) -> None:
    kept = [text for name, text in BASE.items() if not line.startswith(name)]
    (tmp_path / "large.yaml").write_text("\n".join([*kept, line, ""]))
    (tmp_path / "other.yaml").write_text("\n".join([*BASE.values(), "unknown: 1", ""]))
    rows = json.loads(reported(tmp_path, Format.JSON).out)
    by_file = {
        name: {row["code"] for row in rows if row["file"].endswith(name)}
        for name in ("large.yaml", "other.yaml")
    }
    assert "PT010" in by_file["other.yaml"]
    assert by_file["large.yaml"] & {"PT012", "PT013"}, rows


def test_a_size_is_exact_up_to_the_largest_one() -> None:
    assert parse_size(str(NUMBER_MAX)) == NUMBER_MAX
    for text in (str(NUMBER_MAX * 2), "9" * 400 + " GB", "9" * 5000):
        with pytest.raises(ValueError, match="too large: at most"):
            parse_size(text)
