"""Configs that a coverage-guided fuzzer makes up: none may end in an exception, take a second, or 200 MB.

Needs Linux, and atheris, which nothing else needs:

    pip install atheris
    PYTHONPATH=. python tests/benchmarks/fuzz/fuzz_atheris.py --kind toml --seconds 600
"""

import argparse
import importlib
import os
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
BYTES_MAX = 20_000
"""Size limit of an input in bytes; effects of size alone are tested by `hostile`."""
WORDS = (
    *(
        "trainer:",
        "budget:",
        "usd:",
        "name:",
        "hardware:",
        "gpus:",
        "prime_rl:",
        "command:",
        "<<:",
        "&a ",
        "*a",
        "!!str ",
        "|\n",
        ">-\n",
    ),
    *(
        "[trainer]\n",
        "[orchestrator]\n",
        "[inference.vllm]\n",
        "[[a]]\n",
        '"""',
        "'''",
        "{a = 1}",
        "# prime-train: ignore[",
        "hf_",
        "sk-",
    ),
    *(
        "true",
        "null",
        "0x1f",
        "1e999",
        "nan",
        "2026-01-01",
        "\\u0000",
        "---\n",
        "...\n",
        "\t",
        "\u2028",
        "\ufeff",
        "\r\n",
        "${oc.env:A}",
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", choices=("yaml", "toml"), default="yaml")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--keep", type=Path, help="a folder for what was found, and to go on from")
    options = parser.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="fuzz-"))
    seeds, found = folder / "seeds", folder / "found"
    _seed(seeds, options.kind)
    found.mkdir(parents=True, exist_ok=True)
    (folder / "words").write_text("".join(f'"{_escaped(word)}"\n' for word in WORDS), encoding="utf-8")
    limits = [
        f"-max_total_time={options.seconds}",
        f"-max_len={BYTES_MAX}",
        "-timeout=30",
        "-rss_limit_mb=4096",
        "-print_final_stats=1",
    ]
    _fuzz(
        options.kind,
        [*limits, f"-dict={folder / 'words'}", f"-artifact_prefix={folder}/", str(found), str(seeds)],
    )


def _fuzz(kind: str, arguments: list[str]) -> None:
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["prime_train", "tomllib", "yaml"]):
        from tests.fuzz import checking

        # Much is imported only where it is needed, and must be watched too.
        for seed in sorted(Path(arguments[-1]).iterdir()):
            checking.check_bytes(seed.read_bytes(), kind)  # type: ignore[arg-type]
    forms = list(checking.Format)

    def one(data: bytes) -> None:
        # Every input in the form that is looked into, and in one of the others.
        other = forms[zlib.crc32(data) % len(forms)]
        held = _held_bytes()
        checked = checking.check_bytes(data, kind, list(dict.fromkeys((checking.Format.JSON, other))))  # type: ignore[arg-type]
        assert checked.cpu_s <= checking.CPU_S_MAX, f"{checked.cpu_s:.2f} s"
        grown = checking.peak_bytes() - held if checked.grown_bytes else 0
        assert grown <= checking.BYTES_MAX, f"{grown:,} bytes"

    atheris.Setup([sys.argv[0], *arguments], one)
    atheris.Fuzz()


def _seed(folder: Path, kind: str) -> None:
    """Write every existing config of this kind into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(
        (*(ROOT / "configs").rglob(f"*.{kind}"), *(ROOT / "tests" / "data").rglob(f"*.{kind}"))
    ):
        (folder / str(path.relative_to(ROOT)).replace(os.sep, "-")).write_bytes(path.read_bytes())


def _escaped(word: str) -> str:
    return "".join(
        char if char.isascii() and char.isprintable() and char not in '"\\' else _hex(char) for char in word
    )


def _hex(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in char.encode())


def _held_bytes() -> int:
    """Return the memory that the process holds now."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
