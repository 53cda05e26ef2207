"""Each mistake in a config is a finding with its code, place, words and remedy; nothing in a file makes
reading it fail.
"""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_train.spec.choices import Spot
from prime_train.spec.finding import Finding
from prime_train.spec.reader import BYTES_MAX, read_config, read_text
from prime_train.spec.yaml_tree import ALIASES_MAX, DEPTH_MAX, VALUES_MAX

ROOT = Path(__file__).parents[2]
HEAD = "name: tiny\ntrainer:\n  command: python train.py\nbudget:\n  usd: 20\n"
HF = "hf_" + "a" * 30


def findings(text: str) -> tuple[Finding, ...]:
    return read_text(text, "run.yaml").findings


def only(text: str) -> Finding:
    found = findings(text)
    assert len(found) == 1, found
    return found[0]


def test_the_smallest_config_is_five_lines() -> None:
    read = read_text(HEAD, "run.yaml")
    assert read.findings == ()
    assert read.is_fit
    assert read.spec is not None
    assert (read.spec.name, read.spec.trainer.command, read.spec.budget.usd) == (
        "tiny",
        "python train.py",
        20,
    )


def test_a_config_with_everything_is_read() -> None:
    text = HEAD + (
        "hardware: {gpus: [H100_80GB, A100_80GB], count: 8, spot: only, usd_per_hour_max: 3.5}\n"
        "setup:\n  - pip install -r requirements.txt\n"
        'verification:\n  - {path: "data/**/dataset.json", exactly: 2, size_min: 1 MB}\n'
        "smoke: {command: python train.py --steps 2, timeout_s: 300}\n"
        "health: {log_rules: [{pattern: loss is nan, cause: not_finite}]}\n"
        "environment: {DEBUG: '1', STAMP: 2026-01-01, CLOCK: 12:30:45, MASK: 0x1F, MODE: 010}\n"
        "secrets: [HF_TOKEN]\n"
    )
    read = read_text(text, "run.yaml")
    assert read.findings == ()
    assert read.spec is not None
    assert read.spec.hardware.spot is Spot.ONLY
    assert read.spec.verification[0].size_min == 10**6
    assert read.spec.environment == {
        "DEBUG": "1",
        "STAMP": "2026-01-01",
        "CLOCK": "12:30:45",
        "MASK": "0x1F",
        "MODE": "010",
    }


# Each row: what is added to a good config, and what is found: code, line, column, words, remedy.
MISTAKES = [
    ("hardwear: {}", "PT010", 6, 1, "unknown key 'hardwear'", "did you mean hardware?"),
    ("hardware:\n  spott: only", "PT010", 7, 3, "unknown key 'spott' in hardware", "did you mean spot?"),
    ("hardware:\n  usd: 3", "PT010", 7, 3, "unknown key 'usd' in hardware", "did you mean budget.usd?"),
    (
        "hardware:\n  budget: 3",
        "PT010",
        7,
        3,
        "unknown key 'budget' in hardware",
        "write budget without indentation",
    ),
    ("health:\n  silence_s: 5 moons", "PT013", 7, 14, "'5 moons' is not a duration", ""),
    ("hardware:\n  disk_gib: 5 floppies", "PT013", 7, 13, "'5 floppies' is not a size", ""),
    ("hardware:\n   count: 1\n  spot: only", "PT004", 8, 3, "indented by 2", "indent it like the line above"),
    (
        "after:\n  - {name: a, command: b}",
        "PT010",
        7,
        15,
        "unknown key 'command' in after",
        "did you mean run?",
    ),
    (
        "after:\n  - {name: a, run: b}\n  - {name: a, run: c}",
        "PT013",
        8,
        12,
        "after[1].name: another step is called a, too",
        "",
    ),
    (
        "after:\n  - {name: a, run: b, env: {PRIME_TRAIN_STEP: '1'}}",
        "PT013",
        7,
        47,
        "prime-train sets the variables that begin",
        "",
    ),
    (
        "after:\n  - {name: A b, run: c}",
        "PT013",
        7,
        12,
        "must be at most 32 lower-case letters, digits and inner hyphens",
        "",
    ),
    (
        "after:\n  - {name: a, run: b, outputs: ['**']}",
        "PT013",
        7,
        32,
        "after[0].outputs: '**' matches the entire working tree",
        "",
    ),
    (
        "after:\n  - {name: a, run: b, env: {DB_PASSWORD: abc}}",
        "PT020",
        7,
        42,
        "after.0.env.DB_PASSWORD contains a secret",
        "write secrets: [DB_PASSWORD]",
    ),
    ("gpu: [H100]", "PT010", 6, 1, "unknown key 'gpu'", "did you mean hardware.gpus?"),
    ("env: {A: b}", "PT010", 6, 1, "unknown key 'env'", "did you mean environment?"),
    ("heartbeat_s: 5", "PT010", 6, 1, "unknown key 'heartbeat_s'", "did you mean health.heartbeat_s?"),
    (
        "wandb:\n  xyzzy: 1\n  project: p",
        "PT010",
        7,
        3,
        "unknown key 'xyzzy' in wandb",
        "known in wandb: project, entity",
    ),
    (
        "smoke: {timeout_s: 5}",
        "PT011",
        6,
        1,
        "smoke.command is missing",
        "add it, such as command: python train.py --steps 2",
    ),
    (
        "verification:\n  - {exactly: 2}",
        "PT011",
        7,
        5,
        "verification[0].path is missing",
        'add it, such as path: "data/**/*.json"',
    ),
    (
        "hardware:\n  count: three",
        "PT012",
        7,
        10,
        "hardware.count: expected a whole number, got 'three'",
        "write digits only",
    ),
    (
        "hardware:\n  count: '3'",
        "PT012",
        7,
        10,
        "expected a whole number, got '3'",
        "write digits only, without quotes",
    ),
    ("hardware:\n  count: 1.5", "PT012", 7, 10, "expected a whole number, got 1.5", ""),
    (
        "hardware:\n  count: yes",
        "PT012",
        7,
        10,
        "expected a whole number, got yes, which YAML reads as true",
        "",
    ),
    ("hardware:\n  count: 010", "PT012", 7, 10, "expected a whole number, got '010'", "write digits only"),
    (
        "hardware:\n  usd_per_hour_max: $3",
        "PT012",
        7,
        21,
        "expected a number, got '$3'",
        "write digits only, without quotes and units",
    ),
    ("hardware:\n  usd_per_hour_max: .inf", "PT012", 7, 21, "expected a number, got '.inf'", ""),
    ("hardware:\n  gpus: H100", "PT012", 7, 9, "expected a list, got 'H100'", "make it a list: [H100]"),
    ("setup:\n  a: b", "PT012", 7, 3, "expected a list, got keys with values", "start each item with -"),
    (
        "hardware: big",
        "PT012",
        6,
        11,
        "expected keys with values, got 'big'",
        "its keys are provider, providers, image, gpus, count, variants, spot",
    ),
    ("hardware:", "PT012", 6, 1, "expected keys with values, got nothing", "delete the line"),
    ("environment:\n  - A=b", "PT012", 7, 3, "expected keys with values, got a list", "NAME: value"),
    ("checkpoints:\n  in_place: maybe", "PT012", 7, 13, "expected true or false, got 'maybe'", ""),
    ("hardware:\n  count: 0", "PT013", 7, 10, "must be at least 1, got 0", ""),
    ("hardware:\n  disk_gib: 1000000", "PT013", 7, 13, "must be at most 100000, got 1000000", ""),
    ("hardware:\n  spot: always", "PT013", 7, 9, "expected one of prefer, only, never; got 'always'", ""),
    (
        "hardware:\n  spot: nevr",
        "PT013",
        7,
        9,
        "expected one of prefer, only, never; got 'nevr'",
        "did you mean never?",
    ),
    (
        "hardware:\n  count: 3\n  gpus: [H100]",
        "PT013",
        7,
        10,
        "3 GPUs do not fit one node; use one of 1, 2, 4, 8",
        "",
    ),
    ("smoke: {command: ''}", "PT013", 6, 18, "smoke.command: must not be empty", ""),
    ("environment:\n  1X: a", "PT013", 7, 3, "must be the name of a variable", ""),
    (
        "secrets: [my-token]",
        "PT013",
        6,
        11,
        "must be the name of a variable of the control plane, such as HF_TOKEN",
        "",
    ),
    ("checkpoints:\n  pattern: a/b", "PT013", 7, 12, "pattern 'a/b' must be one name, with {step}", ""),
    ("health:\n  log_rules: [{pattern: '('}]", "PT013", 7, 25, "'(' is not a regular expression", ""),
    ("hardware:\n  spot: no", "PT014", 7, 9, "got no, which YAML reads as false", "did you mean never?"),
    (
        "environment:\n  A: on",
        "PT014",
        7,
        6,
        "expected text, got on, which YAML reads as true",
        'quote it: "on"',
    ),
    ("environment:\n  A: 1", "PT014", 7, 6, "expected text, got 1", 'quote it: "1"'),
    ("environment:\n  A: 1.50", "PT014", 7, 6, "expected text, got 1.50", 'quote it: "1.50"'),
    ("environment:\n  A:", "PT012", 7, 3, "expected text, got nothing", "write a value, or delete the line"),
    (
        "setup: [a]\nsetup: [b]",
        "PT006",
        7,
        1,
        "the key 'setup' is written twice, first in line 6",
        "keep one of them",
    ),
    ("setup: !!python/tuple [a]", "PT007", 6, 8, "the tag !!python/tuple is not supported", "remove it"),
    (
        "setup: [!!python/object/apply:os.system ls]",
        "PT007",
        6,
        9,
        "the tag !!python/object/apply:os.system is not supported",
        "",
    ),
    ("? [a, b]\n: c", "PT007", 6, 3, "a key must be one word", "quote"),
    ("setup: &a [*a]", "PT008", 6, 12, "*a contains itself", "write the values out"),
    (
        "setup: *a",
        "PT004",
        6,
        8,
        "the alias *a has no anchor before it",
        "put quotes around text that starts with *",
    ),
    (
        "hardware:\n\tspot: only",
        "PT004",
        7,
        1,
        "a tab character: YAML allows only spaces for indentation",
        "replace the tab",
    ),
    ("setup: a: b", "PT004", 6, 9, "a colon in a place where none is allowed", "quote the text"),
    ("setup: [a", "PT004", 6, 10, "not YAML", ""),
    ('setup: ["\\UFFFFFFFF"]', "PT004", 6, 8, "not YAML", ""),
    ('setup: ["\\ud800"]', "PT003", 6, 9, "an escape that is not a valid character", ""),
    ("setup: [\x07]", "PT003", 6, 9, "U+0007 is not allowed in text", ""),
    ("---\nname: b", "PT005", 6, 1, "a second document", "a file of its own"),
    (
        f"environment:\n  HF_TOKEN: {HF}",
        "PT020",
        7,
        13,
        "environment.HF_TOKEN contains a secret",
        "write secrets: [HF_TOKEN]",
    ),
    (
        "environment:\n  WANDB_API_KEY: 0123456789abcdef",
        "PT020",
        7,
        18,
        "environment.WANDB_API_KEY contains a secret",
        "secrets",
    ),
    (
        "hardware:\n  variants:\n    - {count: 1, set: {environment.DB_PASSWORD: abc}}",
        "PT020",
        8,
        49,
        "environment.DB_PASSWORD contains a secret",
        "write secrets: [DB_PASSWORD]",
    ),
    (
        "hardware:\n  provider: local\n  image: prime_rl",
        "PT013",
        8,
        10,
        "provider local trains on this machine as it is and starts it from no image; delete this key",
        "",
    ),
    (
        f"hardware:\n  provider: prime\n  image: ghcr.io/me/a@sha256:{'0' * 64}",
        "PT013",
        8,
        10,
        "make a template of the image on its dashboard, and write template:ID with the template's id",
        "",
    ),
    ("hardware:\n  image: ghcr.io/me/a:1", "PT013", 7, 10, "'ghcr.io/me/a:1' names no image; write", ""),
    ("image:\n  base: debian:12", "PT013", 7, 9, "'debian:12' is not an image with its digest; write", ""),
    ("image:\n  packages: [git; reboot]", "PT013", 7, 14, "", ""),
    (
        "image:\n  requirements: [../a.txt]",
        "PT013",
        7,
        18,
        "must be a relative path that stays inside the working tree",
        "",
    ),
    (
        "environment:\n  DB_PASSWORD: abc",
        "PT020",
        7,
        16,
        "environment.DB_PASSWORD contains a secret",
        "secrets",
    ),
    (
        "environment:\n  X: AKIA" + "Q" * 16,
        "PT020",
        7,
        6,
        "looks like a secret",
        "put the name of its variable under secrets",
    ),
    (
        f"setup:\n  - huggingface-cli login --token {HF}",
        "PT020",
        7,
        5,
        "looks like a secret",
        "under secrets",
    ),
    (
        "setup: [git clone https://me:ghijkl@example.com/a]",
        "PT020",
        6,
        9,
        "looks like a secret",
        "under secrets",
    ),
]


@pytest.mark.parametrize(
    ("added", "code", "line", "column", "words", "fix"), MISTAKES, ids=[m[0][:40] for m in MISTAKES]
)
def test_an_error_is_found_where_it_is(
    added: str, code: str, line: int, column: int, words: str, fix: str
) -> None:
    found = only(HEAD + added)
    assert (found.code, found.line, found.column) == (code, line, column), found
    assert words in found.message
    assert fix in found.fix


@pytest.mark.parametrize(
    ("text", "code", "line", "words"),
    [
        ("", "PT005", 1, "the file is empty"),
        ("# only a comment\n", "PT005", 1, "the file is empty"),
        ("- a\n- b\n", "PT005", 1, "the file holds a list"),
        ("just words", "PT005", 1, "the file holds a single value"),
    ],
)
def test_a_file_without_a_mapping_says_so(text: str, code: str, line: int, words: str) -> None:
    found = only(text)
    assert (found.code, found.line) == (code, line)
    assert words in found.message


def test_missing_sections_are_found_at_the_top() -> None:
    assert [(f.code, f.line, f.message) for f in findings("name: tiny\n")] == [
        ("PT011", 1, "budget is missing"),
        ("PT011", 1, "trainer is missing"),
    ]


def test_all_errors_come_at_once() -> None:
    text = (
        "name: My Run\ntrainer:\n  comand: python x\n  steps: three\nhardware:\n  spot: no\nbudgett:\n "
        " "
        "usd: 1\n"
    )
    assert [(f.line, f.column, f.code) for f in findings(text)] == [
        (1, 7, "PT013"),
        (3, 3, "PT010"),
        (4, 10, "PT012"),
        (6, 9, "PT014"),
        (7, 1, "PT010"),
    ]


def test_a_misspelt_key_does_not_hide_what_its_section_says_as_a_whole() -> None:
    found = findings(HEAD + "health:\n  beet_s: 1\n  overdue_s: 900\n")
    assert [f.code for f in found] == ["PT010", "PT013"]
    assert "overdue_s 900 <= silence_s 300 must hold" in found[1].message


@pytest.mark.parametrize(
    "line",
    [
        'PAD_TOKEN: "<pad>"',
        "TOKENIZERS_PARALLELISM: 'false'",
        "MAX_TOKENS: '4096'",
        "HF_TOKEN_PATH: /root/.token",
        "SECRET_FILE: /run/secrets/a",
        "API_KEY: ${MY_KEY}",
        "SK: sk-learn",
    ],
)
def test_what_only_sounds_like_a_secret_is_let_pass(line: str) -> None:
    assert findings(f"{HEAD}environment:\n  {line}\n") == ()


def test_a_secret_is_never_repeated() -> None:
    read = read_text(f"{HEAD}secrets:\n  {HF}: {HF}\nhardware: {{gpus: {HF}, count: {HF}}}\n", "run.yaml")
    assert read.findings
    assert HF not in repr(read.findings)
    assert HF not in repr(read)


def test_a_config_with_a_secret_must_not_be_launched() -> None:
    read = read_text(f"{HEAD}environment: {{HF_TOKEN: {HF}}}\n", "run.yaml")
    assert read.spec is not None
    assert not read.is_fit


def test_an_alias_stands_for_its_values() -> None:
    read = read_text(HEAD + "setup: &s [a, b]\nsmoke: {command: x}\nsecrets: *s\n", "run.yaml")
    assert read.spec is not None
    assert read.spec.secrets == ("a", "b")


def test_a_bomb_of_aliases_is_refused_before_it_goes_off() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n"
    found = only(bomb)
    assert found.code == "PT008"
    assert found.line < 9


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: " + "[" * (DEPTH_MAX + 1), f"more than {DEPTH_MAX} levels"),
        ("a: [" + "x, " * VALUES_MAX + "]", f"more than {VALUES_MAX:,} values"),
        ("a: &a x\nb: [" + "*a, " * (ALIASES_MAX + 1) + "]", f"more than {ALIASES_MAX} aliases"),
    ],
)
def test_more_yaml_than_a_config_needs_is_refused(text: str, words: str) -> None:
    found = only(text)
    assert found.code == "PT008"
    assert words in found.message


# ------------------------------------------------------------------------------------------------------------
# files


def test_a_file_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    (found,) = read_config(tmp_path / "no.yaml").findings
    assert found.code == "PT001"
    assert "there is no file" in found.message


def test_a_folder_is_a_finding(tmp_path: Path) -> None:
    (found,) = read_config(tmp_path).findings
    assert (found.code, found.fix) == ("PT001", "write the path of the file inside it")


def test_a_pipe_is_a_finding_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in read_config(tmp_path / "pipe").findings[0].message


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_may_not_be_read_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.touch(mode=0)
    assert "Permission denied" in read_config(path).findings[0].message


def test_a_name_with_a_nul_is_a_finding() -> None:
    assert read_config(Path("a\0b")).findings[0].code == "PT001"


def test_ten_megabytes_are_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_bytes(b"a: b\n" * (2 * BYTES_MAX))
    (found,) = read_config(path).findings
    assert found.code == "PT002"
    assert "larger than 1 MiB" in found.message


def test_bytes_that_are_no_text_are_a_finding_at_their_place(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_bytes(b"name: tiny\nab\xff")
    (found,) = read_config(path).findings
    assert (found.code, found.line, found.column) == ("PT003", 2, 3)
    path.write_bytes(b"\x7fELF\0\0")
    assert read_config(path).findings[0].code == "PT003"


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + HEAD.encode())
    assert read_config(path).is_fit


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda p: p.name)
def test_the_configs_of_this_repository_are_fit(path: Path) -> None:
    assert read_config(path).findings == ()


# ------------------------------------------------------------------------------------------------------------
# anything

PIECES = [
    "name",
    "trainer",
    "budget",
    "usd",
    ": ",
    "- ",
    "\n",
    "  ",
    "[",
    "]",
    "{",
    "}",
    "&a ",
    "*a",
    "!!int ",
    "|\n",
    "'",
    '"',
    "#",
    "no",
    "1e999",
]
YAML_LIKE = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=40).map("".join)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200) | YAML_LIKE | YAML_LIKE.map(lambda text: HEAD + text))
def test_no_text_makes_reading_fail(text: str) -> None:
    read = read_text(text, "run.yaml")
    assert read.is_fit or read.findings
    assert all(finding.line >= 1 and finding.column >= 1 for finding in read.findings)


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "name",
                        "trainer",
                        "command",
                        "budget",
                        "usd",
                        "code",
                        "repo",
                        "health",
                        "environment",
                        "x",
                    ]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=20,
    )
)
def test_no_values_make_reading_fail(values: object) -> None:
    import yaml

    read = read_text(yaml.safe_dump({"trainer": values, "health": values, "environment": values}), "run.yaml")
    assert not read.is_fit
    assert read.findings
