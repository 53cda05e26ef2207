"""Whether a real answer is as the table says."""

import pytest

from prime_train.providers.answers.known import KnownAnswer, answer_in, template_of

POD = KnownAnswer(
    "GET",
    "/v2/pods/{id}",
    (200,),
    "the pod",
    "belief",
    fields={
        "id": "text",
        "cost": "number",
        "ip": "text|null?",
        "ports": "list|null?",
        "ports[].public": "number",
    },
    values={"status": ("RUNNING", "EXITED")},
)
LIST = KnownAnswer(
    "GET", "/v2/pods/", (200,), "all pods", "a page", fields={"pods": "list", "pods[].id": "text"}
)
ANY = KnownAnswer("*", "/v2/{any}", (429, 500), "not now", "belief")
GRAPHQL = KnownAnswer("POST", "/graphql", (200,), "the account", "a client", asks="myself")
TABLE = (POD, LIST, ANY, GRAPHQL)
RIGHT = {"id": "a", "cost": 1, "status": "RUNNING", "ports": [{"public": 22}], "more": 1}


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (RIGHT, ""),
        ({**RIGHT, "ports": None}, ""),
        ({**RIGHT, "cost": "1.0"}, "cost: text, not number"),
        ({**RIGHT, "cost": None}, "cost: null, not number"),
        ({key: value for key, value in RIGHT.items() if key != "id"}, "id: not there, text expected"),
        ({**RIGHT, "ports": [{}]}, "ports[].public: not there, number expected"),
        ({**RIGHT, "status": "PAUSED"}, "status: value never seen: 'PAUSED'"),
        (["a"], "id: not there, text expected"),
    ],
)
def test_a_fault_of_an_answer_is_named_by_its_field(content: object, fault: str) -> None:
    found = list(POD.faults(content))
    assert found[:1] == ([fault] if fault else [])


def test_an_answer_is_found_by_call_status_and_what_was_asked() -> None:
    assert answer_in(TABLE, "GET", "/v2/pods/abc", "null", 200) is POD
    assert answer_in(TABLE, "GET", "/v2/pods", "null", 200) is LIST
    assert answer_in(TABLE, "DELETE", "/v2/pods/abc", "null", 500) is ANY
    assert answer_in(TABLE, "DELETE", "/v2/pods/abc", "null", 418) is None
    assert answer_in(TABLE, "POST", "/graphql", '"query { myself { id } }"', 200) is GRAPHQL
    assert answer_in(TABLE, "POST", "/graphql", '"query { gpuTypes }"', 200) is None


def test_a_path_is_shown_without_ids_also_one_that_nobody_knows() -> None:
    assert template_of(TABLE, "GET", "/v2/pods/abc123", "null") == "/v2/pods/{id}"
    assert template_of(TABLE, "PATCH", "/v2/volumes/vol-77/keys", "null") == "/v2/volumes/{id}/keys"
