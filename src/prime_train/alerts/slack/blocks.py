"""Messages in Slack's Block Kit, built with the SDK's models, which check its limits.

Text from others is shown literally: `&`, `<` and `>` are escaped, so that a trainer's output cannot mention
people or create links, and `verbatim` stops Slack from parsing names and addresses in the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from slack_sdk.models.blocks import (
    Block,
    ContextBlock,
    HeaderBlock,
    MarkdownTextObject,
    PlainTextObject,
    SectionBlock,
)

from prime_train.alerts.card import AlertCard
from prime_train.alerts.sparkline import sparkline
from prime_train.runs.headline import headline
from prime_train.runs.links import links
from prime_train.runs.run import ACTIVE_STATES, Lease, Run, RunState, Severity
from prime_train.text.formatting import usd
from prime_train.text.redaction import redacted

HEADER_CHARS_MAX = 150
TITLE_CHARS_MAX = 300
LINE_CHARS_MAX = 180
TEXT_CHARS_MAX = 2400
NAME_CHARS_MAX = 80
VALUE_CHARS_MAX = 400
FACTS_MAX = 10
LINES_A_BLOCK = 8

MARKS = {Severity.QUIET: "▫️", Severity.INFO: "🟢", Severity.WARNING: "🟠", Severity.ERROR: "🔴"}
_STATE_MARKS = {
    RunState.SUCCEEDED: "✅",
    RunState.FAILED: "❌",
    RunState.STOPPED: "🛑",
    RunState.CANCELLED: "⛔",
}


@dataclass(frozen=True)
class Message:
    """A Slack message. `text` is shown in notifications."""

    text: str
    blocks: tuple[Block, ...]


def safe_text(text: str, chars_max: int) -> str:
    """Return untrusted text, escaped, and cut so that the escaped text has at most `chars_max` characters."""
    printable = "".join(char if char.isprintable() or char == "\n" else " " for char in text).strip()
    escaped = [_ESCAPED.get(char, char) for char in printable]
    if sum(map(len, escaped)) <= chars_max:
        return "".join(escaped)
    left, last = chars_max - 1, 0
    while last < len(escaped) and left >= len(escaped[last]):
        left -= len(escaped[last])
        last += 1
    return "".join(escaped[:last]).rstrip() + "…"


_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def alert_message(card: AlertCard, mention: str = "") -> Message:
    """Return the message of one alert. `mention` is prefixed, in Slack's syntax, if the alert calls for a
    person.
    """
    title = safe_text(card.title, TITLE_CHARS_MAX)
    called = f"{mention} " if mention and card.calls else ""
    blocks: list[Block] = [
        _section(f"{called}{MARKS[card.severity]} *{title}*\n{safe_text(card.text, TEXT_CHARS_MAX)}")
    ]
    if card.facts:
        blocks.append(SectionBlock(fields=[_fact(name, value) for name, value in card.facts[:FACTS_MAX]]))
    if card.image:
        blocks.append(_section(f"`{card.image}`"))
    blocks.append(_context(f"{card.kind} · attempt {card.attempt} · {_utc(card.at_s)}", card.links))
    return Message(title, tuple(blocks))


def digest_message(cards: Sequence[AlertCard], mention: str = "") -> Message:
    """Return one message for many alerts, one line each, in their order."""
    run_count = len({card.run_id for card in cards})
    count = f"{len(cards)} alerts of {'one run' if run_count == 1 else f'{run_count} runs'}"
    called = f"{mention} " if mention and any(card.calls for card in cards) else ""
    lines = [
        f"{MARKS[card.severity]} {_utc(card.at_s)} {safe_text(card.title, LINE_CHARS_MAX)}" for card in cards
    ]
    sections = [
        _section("\n".join(lines[at : at + LINES_A_BLOCK])) for at in range(0, len(lines), LINES_A_BLOCK)
    ]
    return Message(count, (_section(f"{called}*{count}* arrived at once"), *sections))


def head_message(run: Run, lease: Lease, now_s: int) -> Message:
    """Return the first message of a run's thread, which shows the run's current state."""
    line = headline(run, lease, now_s)
    mark = _STATE_MARKS.get(run.state, "🟢" if run.state is RunState.TRAINING else "🟡")
    blocks: list[Block] = [
        HeaderBlock(text=PlainTextObject(text=safe_text(run.run_id, HEADER_CHARS_MAX), emoji=False)),
        _section(f"{mark} {safe_text(line, TITLE_CHARS_MAX)}"),
    ]
    if why := safe_text(redacted(run.why), TEXT_CHARS_MAX):
        blocks.append(_section(why))
    if run.current_attempt is not None and run.state in ACTIVE_STATES:
        offer = run.current_attempt.offer
        gpus = f"{offer.gpu_count} × {offer.gpu}, " if offer.gpu else ""
        blocks.append(
            _context(
                f"attempt {run.attempt}: {gpus}{offer.provider}, {usd(offer.usd_per_hour)} an hour",
                links(run),
            )
        )
    elif links(run):
        blocks.append(_context(run.state.value, links(run)))
    if image := sparkline(run, lease, now_s):
        blocks.append(_section(f"`{image}`"))
    return Message(safe_text(f"{run.run_id} {line}", TITLE_CHARS_MAX), tuple(blocks))


def _section(text: str) -> SectionBlock:
    return SectionBlock(text=MarkdownTextObject(text=text, verbatim=True))


def _context(text: str, leading: Sequence[tuple[str, str]]) -> ContextBlock:
    """Return a context block. `leading` holds link names and trusted URLs, which are not escaped."""
    parts = [
        safe_text(text, TITLE_CHARS_MAX),
        *(f"<{url}|{safe_text(name, NAME_CHARS_MAX)}>" for name, url in leading),
    ]
    return ContextBlock(elements=[MarkdownTextObject(text=" · ".join(parts), verbatim=True)])


def _fact(name: str, value: str) -> MarkdownTextObject:
    return MarkdownTextObject(
        text=f"*{safe_text(name, NAME_CHARS_MAX)}*\n{safe_text(value, VALUE_CHARS_MAX)}", verbatim=True
    )


def _utc(at_s: int) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M} UTC"
