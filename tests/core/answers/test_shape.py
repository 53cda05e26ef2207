"""Shapes of JSON documents, and what differs between two of them."""

from prime_train.providers.answers.shape import differences, merged, shape, without_figures


def test_a_field_that_one_item_of_a_list_lacks_may_be_missing() -> None:
    found = shape({"data": [{"id": "a", "ip": None}, {"id": "b"}]})
    assert found["data[].id"] == {"text"}
    assert found["data[].ip"] == {"null", "missing"}


def test_keys_that_are_names_are_one_field() -> None:
    found = shape({"data": {"gpu_a": {"n": 1}, "gpu_b": {"n": 1.5, "m": True}}}, maps=["data"])
    assert set(found) == {"", "data", "data.*", "data.*.n", "data.*.m"}
    assert found["data.*.m"] == {"flag", "missing"}


def test_a_new_field_a_lost_one_and_another_type_differ() -> None:
    known, seen = shape({"id": 1, "name": "x", "at": None}), shape({"id": "1", "at": None, "new": []})
    assert differences(known, seen) == [
        "id: text, not number",
        "name: not there, text expected",
        "new: new, list",
    ]


def test_an_empty_list_and_null_say_nothing_about_what_they_would_hold() -> None:
    full, empty = shape({"pods": [{"id": 1}], "ssh": {"port": 1}}), shape({"pods": [], "ssh": None})
    assert differences(full, empty) == ["ssh: null, not object"]
    assert differences(empty, full) == ["ssh: object, not null"]


def test_what_only_one_of_several_answers_has_may_be_missing() -> None:
    both = merged([shape({"id": 1, "ip": "x"}), shape({"id": 2})])
    assert both["ip"] == {"text", "missing"}
    assert differences(both, shape({"id": 3})) == []


def test_answers_that_differ_in_figures_and_times_are_the_same() -> None:
    one = {"up": 1.5, "at": "2026-11-27T02:00:00Z", "name": "x", "ok": True}
    assert without_figures(one) == without_figures({**one, "up": 7, "at": "2026-11-28T00:00:00.1Z"})
    assert without_figures(one) != without_figures({**one, "name": "y"})
