"""TOML with positions: the library's values, each at its place in the text, and errors at the place of the
mistake.
"""

import math
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings

from prime_train.spec.finding_drafts import ParseAborted
from prime_train.spec.reader import read_trainer_config
from prime_train.spec.toml_tree import read_code
from prime_train.spec.tree import Listing, Mapping, Node, Scalar, SourcePosition, TreeEntry, place_of, plain
from prime_train.spec.yaml_tree import DEPTH_MAX, VALUES_MAX
from tests.adapters.toml_texts import toml_texts

EXAMPLES = int(os.environ.get("PRIME_TRAIN_FUZZ_EXAMPLES", "40"))
"""Number of generated texts to try; more of them find rarer forms."""

TEXT = """\
# One of everything.
max_steps = 20
[trainer.model.lora]
rank = 16  # small
"target modules" = ["q", 'k',
  "v"]
[[orchestrator.train.source]]
env.taskset = {id = "a", args.split = "train"}
[[orchestrator.train.source]]
name = \"\"\"
two
lines\"\"\"
[trainer]
lr = 1e-6
"""


def at(source: str, place: SourcePosition) -> str:
    """Return the rest of the text from this position on."""
    lines = source.replace("\r\n", "\n").split("\n")
    return "\n".join([lines[place.line - 1][place.column - 1 :], *lines[place.line :]])


def entries(node: Node) -> Iterator[TreeEntry]:
    match node:
        case Mapping():
            for entry in node.entries:
                yield entry
                yield from entries(entry.value)
        case Listing():
            for item in node.items:
                yield from entries(item)
        case Scalar():
            return


def leaves(node: Node) -> Iterator[Scalar]:
    match node:
        case Scalar():
            yield node
        case Listing():
            for item in node.items:
                yield from leaves(item)
        case Mapping():
            for entry in node.entries:
                yield from leaves(entry.value)


def reported(value: object) -> object:
    """Return the library's value as the tree represents it: times become text."""
    match value:
        case dict():
            return {key: reported(inner) for key, inner in value.items()}
        case list():
            return [reported(item) for item in value]
        case bool() | int() | float() | str():
            return value
        case _:
            return str(value)


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        (("max_steps",), 2, 13),
        (("trainer", "model", "lora", "rank"), 4, 8),
        (("trainer", "model", "lora", "target modules", 1), 5, 26),
        (("trainer", "model", "lora", "target modules", 2), 6, 3),
        (("orchestrator", "train", "source", 0, "env", "taskset", "args", "split"), 8, 39),
        (("orchestrator", "train", "source", 1), 9, 22),
        (("orchestrator", "train", "source", 1, "name"), 10, 8),
        (("trainer", "lr"), 14, 6),
        (("trainer",), 13, 2),
    ],
)
def test_a_value_is_found_where_it_is(path: tuple[str | int, ...], line: int, column: int) -> None:
    assert place_of(read_code(TEXT), path) == SourcePosition(line, column)


def test_what_is_missing_is_reported_at_the_section_it_is_missing_from() -> None:
    root = read_code(TEXT)
    assert place_of(root, ("trainer", "model", "lora", "alpha")) == SourcePosition(3, 16)
    assert place_of(root, ("orchestrator", "train", "source", 1, "env", "id")) == SourcePosition(9, 22)
    assert place_of(root, ("ckpt", "interval")) == SourcePosition(1, 1)


def test_windows_line_ends_change_nothing() -> None:
    assert read_code(TEXT.replace("\n", "\r\n")) == read_code(TEXT)


def test_the_places_of_an_included_file_say_its_name() -> None:
    assert place_of(read_code(TEXT, "overlay.toml"), ("max_steps",)) == SourcePosition(2, 13, "overlay.toml")


@settings(max_examples=EXAMPLES, deadline=None)
@given(toml_texts())
def test_every_key_and_value_of_any_text_is_found_at_its_place(source: str) -> None:
    root = read_code(source)
    assert plain(root) == reported(tomllib.loads(source))
    for entry in entries(root):
        # The place may be another mention of the same section, but of that key.
        name = re.match(r"key\d+x", entry.key)
        assert name is not None
        assert re.match(rf"[\"']?{name[0]}", at(source, entry.place)), (entry, at(source, entry.place)[:30])
    for leaf in leaves(root):
        rest = at(source, leaf.place)
        if isinstance(leaf.value, str) and (word := re.search(r"val\d+x", leaf.text)):
            assert re.match(rf"[\"']{{1,3}}\n?{word[0]}", rest), (leaf, rest[:30])
        elif isinstance(leaf.value, bool | int | float):
            assert rest.startswith(leaf.text)
            assert float(tomllib.loads(f"v = {leaf.text}")["v"]) == float(leaf.value) or math.isnan(
                float(leaf.value)
            )


@pytest.mark.parametrize(
    ("source", "code", "line", "column", "words"),
    [
        ("a = Qwen/Qwen3", "PT004", 1, 5, "not a TOML value"),
        ("a = 1\nb : 2", "PT004", 2, 3, "there is no = after the key"),
        ("a = 1 2", "PT004", 1, 7, "more than one value on a line"),
        ("a = 1\na = 2", "PT006", 2, 1, "written twice, first in line 1"),
        ("[a]\nb = 1\n[a]\nc = 2", "PT006", 3, 2, "written twice, first in line 1"),
        ("a = 1\n[a.b]", "PT004", 2, 5, "not TOML"),
        ("a = [1,\n2", "PT004", 2, 2, "without its ]"),
        ('a = "x', "PT004", 1, 5, "Unterminated string"),
        ("[a", "PT004", 1, 3, "not TOML"),
        ("a = 1979-13-45", "PT004", 1, 9, "not TOML"),
        ("= 1", "PT004", 1, 1, "neither a key nor a [section]"),
    ],
)
def test_an_error_is_reported_where_it_is(source: str, code: str, line: int, column: int, words: str) -> None:
    with pytest.raises(ParseAborted) as caught:
        read_code(source)
    draft = caught.value.draft
    assert (draft.code, draft.place.line) == (code, line), draft
    assert abs(draft.place.column - column) <= 1, draft
    assert words in draft.message


@pytest.mark.parametrize(
    "source",
    [
        "a = " + "[" * 5000,
        "a = " + "{b=" * 5000,
        ".".join("a" * 5000) + " = 1",
        "[" + ".".join("a" * 5000) + "]",
        "a = [" + "1," * (VALUES_MAX + 1) + "]",
        "".join(f"[a{n}]\n" for n in range(VALUES_MAX + 1)),
    ],
    ids=["lists", "tables", "dots", "header", "values", "sections"],
)
def test_what_would_be_slow_to_read_is_refused(source: str) -> None:
    with pytest.raises(ParseAborted) as caught:
        read_code(source)
    assert caught.value.draft.code == "PT008"


def test_as_many_levels_as_are_allowed_are_read() -> None:
    deep = "a = " + "[" * (DEPTH_MAX - 2) + "]" * (DEPTH_MAX - 2)
    assert isinstance(read_code(deep).entries[0].value, Listing)


def test_a_secret_in_a_trainers_config_is_found_and_not_repeated(tmp_path: Path) -> None:
    secret = "hf_" + "x" * 30
    path = tmp_path / "rl.toml"
    path.write_text(f'[trainer.env_vars]\nHF_TOKEN = "{secret}"\nWANDB_MODE = "online"\n')
    (found,) = read_trainer_config(path).findings
    assert (found.code, found.line) == ("PT020", 2)
    assert "trainer.env_vars.HF_TOKEN" in found.message
    assert secret not in repr(found)
