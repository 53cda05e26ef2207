"""Whatever a config contains, checking it results in findings with positions, and never in an exception.

PRIME_TRAIN_FUZZ_EXAMPLES=20000 tests longer.
"""

import io
import json
import os
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prime_train.checks.report.check import check
from prime_train.checks.report.formats import Format
from tests.adapters.toml_texts import toml_texts
from tests.rules.test_run_rules import AREAL, AREAL_RUN, PRIME_RL, RL_TOML, RUN, TRL, TRM, TRM_RUN

EXAMPLES = int(os.environ.get("PRIME_TRAIN_FUZZ_EXAMPLES", "40"))
TEXTS = {
    ".yaml": (RUN, PRIME_RL, AREAL, AREAL_RUN, TRL, TRM, TRM_RUN),
    ".toml": (RL_TOML,),
}
VALUES = (
    *(
        "0",
        "-1",
        "1.5",
        "1e999",
        "nan",
        "inf",
        "true",
        "null",
        '""',
        '"x"',
        "[]",
        "[1, [2]]",
        "{}",
        "{a: 1}",
        "{a = 1}",
        "'",
        '"""',
    ),
    *(
        "99999999999999999999",
        "2026-01-01",
        "${x}",
        "@",
        "--x",
        "*a",
        "&a [*a]",
        "!!str 1",
        "\t",
        "\u00e9",
        "\u2028",
        "a: b: c",
    ),
    *(
        "../../etc/passwd",
        "/dev/zero",
        "x" * 5000,
        "# prime-train: ignore[HW101]",
        "hf_" + "a" * 30,
        "'unclosed",
        "$(x)",
        "a;b",
        "\x7f",
    ),
)
slow = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def broken(draw: st.DrawFn, suffix: str) -> str:
    """Draw a valid config after a few edits."""
    lines = draw(st.sampled_from(TEXTS[suffix])).split("\n")
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        key, sign, _ = lines[at].partition(": " if suffix == ".yaml" else " = ")
        match draw(st.integers(0, 5)):
            case 0:
                lines[at] = f"{key}{sign}{draw(st.sampled_from(VALUES))}"
            case 1:
                lines[at] = lines[at][draw(st.integers(0, 3)) :]
            case 2:
                lines.insert(at, draw(st.sampled_from(lines)))
            case 3:
                lines[at] = draw(st.text(max_size=20))
            case 4:
                del lines[at]
                lines = lines or [""]
            case _:
                lines[at] += draw(st.sampled_from(VALUES))
    return "\n".join(lines)


def look_at(text: str, suffix: str) -> None:
    """Check the text in every output format, alone and with a run that names it."""
    with tempfile.TemporaryDirectory() as folder:
        path, run = Path(folder) / f"rl{suffix}", Path(folder) / "run.yaml"
        path.write_text(text, encoding="utf-8", errors="replace")
        run.write_text(PRIME_RL.replace("TREE", folder).replace('["@", more.toml]', f'["@", rl{suffix}]'))
        lines = path.read_text(encoding="utf-8").split("\n")
        for form in Format:
            with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()):
                code = check([path] if form is not Format.TEXT else [path, run], form)
            assert code in (0, 1)
            if form is Format.JSON:
                for row in json.loads(out.getvalue()):
                    assert 1 <= row["line"] <= len(lines), row
                    assert 1 <= row["column"] <= len(lines[row["line"] - 1]) + 1, row
                    assert row["message"]


@slow
@given(broken(".yaml"))
def test_a_broken_yaml_ends_in_findings(text: str) -> None:
    look_at(text, ".yaml")


@slow
@given(broken(".toml"))
def test_a_broken_toml_ends_in_findings(text: str) -> None:
    look_at(text, ".toml")


@settings(slow, max_examples=max(10, EXAMPLES // 4))
@given(toml_texts())
def test_a_toml_of_any_form_ends_in_findings(text: str) -> None:
    look_at(f"[trainer]\n{text}", ".toml")


@settings(slow, max_examples=max(10, EXAMPLES // 4))
@given(st.text(max_size=200))
@pytest.mark.parametrize("suffix", sorted(TEXTS))
def test_any_text_ends_in_findings(suffix: str, text: str) -> None:
    look_at(text, suffix)
