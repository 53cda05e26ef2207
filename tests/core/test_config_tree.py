"""Trees: the position of each node, and merged trees."""

from prime_train.spec.merge import merged, nested, with_nulls
from prime_train.spec.toml_tree import read_code
from prime_train.spec.tree import Mapping, Scalar, SourcePosition, find, place_of, plain


def tree(text: str, file: str = "") -> Mapping:
    return read_code(text, file)


def test_what_stands_at_a_path() -> None:
    root = tree("[a]\nb = [1, {c = 2}]\n")
    node = find(root, ("a", "b", 1, "c"))
    assert isinstance(node, Scalar)
    assert node.value == 2
    assert [
        find(root, path) for path in (("x",), ("a", 0), ("a", "b", "c"), ("a", "b", 2), ("a", "b", -1))
    ] == [None] * 5


def test_a_file_laid_over_another_wins_and_keeps_its_places() -> None:
    base, over = (
        tree("x = 1\n[a]\nb = 1\nc = [1]\n", "base.toml"),
        tree("[a]\nc = [2, 3]\nd = 4\n", "over.toml"),
    )
    root = merged(base, over)
    assert plain(root) == {"x": 1, "a": {"b": 1, "c": [2, 3], "d": 4}}
    assert place_of(root, ("a", "b")) == SourcePosition(3, 5, "base.toml")
    assert place_of(root, ("a", "c")) == SourcePosition(2, 5, "over.toml")
    assert place_of(root, ("a", "e")).file == "base.toml"


def test_a_value_laid_over_a_part_replaces_it() -> None:
    assert plain(merged(tree("[a]\nb = 1\n"), tree("a = 2\n"))) == {"a": 2}
    assert plain(merged(tree("a = 2\n"), tree("[a]\nb = 1\n"))) == {"a": {"b": 1}}


def test_a_tree_is_laid_into_a_part() -> None:
    assert plain(nested(("a", "b"), tree("c = 1\n"), SourcePosition())) == {"a": {"b": {"c": 1}}}


def test_a_word_for_nothing_is_nothing_wherever_it_is_a_value() -> None:
    root = with_nulls(tree('a = "None"\nb = {c = "None", d = "none"}\ne = ["None", {f = "None"}]\n'), "None")
    assert plain(root) == {"a": None, "b": {"c": None, "d": "none"}, "e": ["None", {"f": None}]}
