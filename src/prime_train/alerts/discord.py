"""An alert as a message to a Discord webhook.

The limits are Discord's: 2,000 characters of content, which is what a phone shows; 4,096 of description, 25
fields with names of 256 and values of 1,024, and 6,000 in total for description and fields. Mentions,
Markdown and links in the alert's texts are disabled.
"""

import re
from typing import TypedDict

from prime_train.alerts.card import AlertCard
from prime_train.runs.run import Severity
from prime_train.text.markdown import cut

TITLE_CHARS_MAX = 250
TEXT_CHARS_MAX = 2000
FIELDS_MAX = 8
NAME_CHARS_MAX = 60
VALUE_CHARS_MAX = 250

_SPECIAL = re.compile(r"[\\*_~`|>\[\]<]|^[#-]|:(?=//)")
_COLOURS = {
    Severity.QUIET: 0x8B949E,
    Severity.INFO: 0x2DA44E,
    Severity.WARNING: 0xD29922,
    Severity.ERROR: 0xCF222E,
}


class Field(TypedDict):
    name: str
    value: str
    inline: bool


class Embed(TypedDict):
    description: str
    color: int
    fields: list[Field]
    footer: dict[str, str]


class Message(TypedDict):
    content: str
    embeds: list[Embed]
    allowed_mentions: dict[str, list[str]]


def discord_message(card: AlertCard) -> Message:
    image = f"\n`{card.image}`" if card.image else ""
    links = "\n" + " · ".join(f"[{name}]({url})" for name, url in card.links) if card.links else ""
    embed = Embed(
        description=_plain(card.text, TEXT_CHARS_MAX) + image + links,
        color=_COLOURS[card.severity],
        fields=[_field(name, value) for name, value in card.facts[:FIELDS_MAX]],
        footer={"text": cut(f"{card.run_id} · {card.kind} · {card.key}", TITLE_CHARS_MAX)},
    )
    return Message(
        content=_plain(card.title, TITLE_CHARS_MAX), embeds=[embed], allowed_mentions={"parse": []}
    )


def _field(name: str, value: str) -> Field:
    return Field(name=_plain(name, NAME_CHARS_MAX), value=_plain(value, VALUE_CHARS_MAX), inline=False)


def _plain(text: str, chars: int) -> str:
    """Return the text with Markdown escaped, cut to at most `chars` characters including the backslashes; no
    backslash is left alone at the end.
    """
    kept = cut(text, chars)
    while len(escaped := _SPECIAL.sub(r"\\\g<0>", kept)) > chars:
        kept = cut(kept, len(kept) - max(1, (len(escaped) - chars) // 2))
    return escaped
