"""Real configs with changed bytes, and arbitrary bytes, result in findings.

PRIME_TRAIN_FUZZ_EXAMPLES=20000 tests longer; tests/benchmarks/fuzz/fuzz_atheris.py is guided by coverage.
"""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.checking import Format, Kind, check_bytes

ROOT = Path(__file__).parents[2]
EXAMPLES = int(os.environ.get("PRIME_TRAIN_FUZZ_EXAMPLES", "30"))
FOLDERS = (ROOT / "configs", ROOT / "tests" / "data")
REAL = {
    kind: [path.read_bytes() for folder in FOLDERS for path in sorted(folder.rglob(f"*.{kind}"))]
    for kind in ("yaml", "toml")
}
PIECES = (
    *(
        b"\x00",
        b"\xff",
        b"\r",
        b"\t",
        b"\n",
        b": ",
        b" = ",
        b"- ",
        b"[",
        b"]",
        b"{",
        b"}",
        b"[[",
        b"'",
        b'"',
        b'"""',
        b"#",
        b"&a ",
        b"*a",
        b"<<: ",
    ),
    *(
        b"!!python/none ",
        b"---\n",
        b"|\n",
        b"?",
        b"null",
        b"true",
        b"nan",
        b"-inf",
        b"1e999",
        b"9" * 5000,
        b"0x",
        b"\xe2\x80\xa8",
        b"\xef\xbb\xbf",
    ),
    *(
        b"2026-01-01",
        b"# prime-train: ignore[PT010] x\n",
        b"hf_" + b"a" * 30,
        b"${x}",
        b"\\u0000",
        b"\\UFFFFFFFF",
        b"a." * 30,
        b"x" * 3000,
    ),
)
slow = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def mutated(draw: st.DrawFn, kind: Kind) -> bytes:
    """Draw a real config in which some parts are removed, doubled, swapped or replaced."""
    data = draw(st.sampled_from(REAL[kind]))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 40)))
        other = draw(st.sampled_from(REAL[kind]))
        at = draw(st.integers(0, len(other)))
        piece = draw(
            st.sampled_from(
                (
                    b"",
                    data[start:end] * 2,
                    other[at : at + 200],
                    draw(st.sampled_from(PIECES)),
                    draw(st.binary(max_size=8)),
                )
            )
        )
        data = data[:start] + piece + data[end:]
    return data


@pytest.mark.parametrize("kind", ["yaml", "toml"])
@slow
@given(data=st.data())
def test_a_mutated_config_ends_in_findings(kind: Kind, data: st.DataObject) -> None:
    check_bytes(data.draw(mutated(kind)), kind)


@pytest.mark.parametrize("kind", ["yaml", "toml"])
@slow
@given(data=st.binary(max_size=300))
def test_any_bytes_end_in_findings(kind: Kind, data: bytes) -> None:
    check_bytes(data, kind, [Format.JSON])
