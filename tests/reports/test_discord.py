"""Alerts in Discord's format."""

import pytest

from prime_train.alerts.card import AlertCard
from prime_train.alerts.discord import Message, discord_message
from prime_train.runs.run import Severity
from tests import builders as b

CONTENT_MAX, DESCRIPTION_MAX, FIELDS_MAX, NAME_MAX, VALUE_MAX, ALL_MAX = 2000, 4096, 25, 256, 1024, 6000


def card(**changes: object) -> AlertCard:
    fields: dict[str, object] = {
        "key": "k",
        "run_id": b.RUN_ID,
        "kind": "lost",
        "severity": Severity.ERROR,
        "title": "lost",
        "text": "gone",
    }
    return AlertCard(**(fields | {"at_s": b.T0_S} | changes))  # type: ignore[arg-type]


def sizes(message: Message) -> int:
    (embed,) = message["embeds"]
    fields = sum(len(field["name"]) + len(field["value"]) for field in embed["fields"])
    return len(embed["description"]) + len(embed["footer"]["text"]) + fields


def test_a_message_has_title_text_facts_and_image() -> None:
    message = discord_message(card(facts=(("Spent", "$3"),), image="▁█"))
    (embed,) = message["embeds"]

    assert message["content"] == "lost"
    assert embed["description"] == "gone\n`▁█`"
    assert embed["fields"] == [{"name": "Spent", "value": "$3", "inline": False}]


def test_a_message_leads_to_the_runs_pages() -> None:
    (embed,) = discord_message(
        card(links=(("W&B", "https://wandb.ai/a/b/runs/c"), ("config", "https://x.test/y")))
    )["embeds"]

    assert embed["description"] == "gone\n[W&B](https://wandb.ai/a/b/runs/c) · [config](https://x.test/y)"


def test_nobody_is_mentioned_and_nothing_is_formatted() -> None:
    message = discord_message(
        card(title="@everyone <@123> **x**", text="[log](https://evil.example) # no heading")
    )

    assert message["allowed_mentions"] == {"parse": []}
    assert message["content"] == r"@everyone \<@123\> \*\*x\*\*"
    assert message["embeds"][0]["description"] == r"\[log\](https\://evil.example) # no heading"


@pytest.mark.parametrize("char", ["x", "*", "\\", "é", "🟢", "\n"])
def test_texts_of_any_length_fit(char: str) -> None:
    long = "a" + char * 20_000
    message = discord_message(
        card(title=long, text=long, key=long, facts=tuple((long, long) for _ in range(40)))
    )
    (embed,) = message["embeds"]

    assert len(message["content"]) <= CONTENT_MAX
    assert len(embed["description"]) <= DESCRIPTION_MAX
    assert len(embed["fields"]) <= FIELDS_MAX
    assert all(
        len(field["name"]) <= NAME_MAX and len(field["value"]) <= VALUE_MAX for field in embed["fields"]
    )
    assert sizes(message) <= ALL_MAX
