"""What is recorded of a provider's answer: its form, and nothing that is nobody else's business."""

import json

from prime_train.providers.answers.hidden import ITEMS_KEPT, Hider
from prime_train.providers.answers.shape import shape

KEY = "plain-secret-1"
ACCOUNT = {
    "data": {
        "id": "user_2f4k8",
        "email": "maya@example.org",
        "name": "Maya Mustermann",
        "teamId": None,
        "sshKeys": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFake maya@laptop",
        "note": f"key {KEY}, from 203.0.113.7 and 2001:db8:0:1::7 at 12:30:45",
        "apiKey": "rpa_ABCDEFGHIJKLMNOPQRSTUVWX",
        "trace": "0f8fad5b-d9cb-469f-a165-70867728950e",
        "token2": "abcdefghijklmnopqrstuvwxyz0123456789ABCD",
        "env": {"PUBLIC_KEY": "x", "HF_TOKEN": "hf_1", "DEPTH": 3},
        "public_ipaddr": "203.0.113.8",
        "machine_id": 4711,
        "status": "RUNNING",
        "image": "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404",
        "price": 0.34,
    }
}


def test_nothing_private_of_an_answer_is_kept() -> None:
    text = json.dumps(Hider([KEY]).hidden(ACCOUNT))
    private = [
        "2f4k8",
        "maya",
        "Maya",
        "Mustermann",
        "AAAA",
        KEY,
        "203.0.113",
        "2001:db8",
        "rpa_",
        "0f8fad5b",
        "0123456789",
        "hf_1",
        "4711",
    ]
    assert [one for one in private if one in text] == []


def test_what_is_public_of_an_answer_is_kept_and_so_are_all_types() -> None:
    kept = Hider([KEY]).hidden(ACCOUNT)
    assert isinstance(kept, dict)
    assert shape(kept) == shape(ACCOUNT)
    assert (kept["data"]["status"], kept["data"]["price"]) == ("RUNNING", 0.34)
    assert kept["data"]["note"].endswith("at 12:30:45")
    assert kept["data"]["env"]["DEPTH"] == 3


def test_the_same_id_is_the_same_everywhere_and_another_one_is_not() -> None:
    hider = Hider()
    first = hider.hidden({"id": "a1", "podId": "a1", "userId": "b2"})
    assert first == {"id": "id-1", "podId": "id-1", "userId": "id-2"}
    assert hider.hidden({"instance_ids": ["b2", "c3"]}) == {"instance_ids": ["id-2", "id-3"]}


def test_of_a_long_list_only_the_beginning_is_kept() -> None:
    kept = Hider().hidden(list(range(1000)))
    assert isinstance(kept, list)
    assert len(kept) == ITEMS_KEPT


def test_a_text_that_repeats_a_secret_is_kept_without_it() -> None:
    assert Hider([KEY]).text(f"refused: {KEY}") == "refused: (hidden)"
