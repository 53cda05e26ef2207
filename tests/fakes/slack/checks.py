"""What Slack looks at before it takes a message."""

import json
import re
from typing import Any

from slack_sdk.errors import SlackObjectFormationError
from slack_sdk.models.blocks import Block

BLOCKS_MAX = 50
TEXT_CHARS_MAX = 40_000
BLOCK_CHARS_MAX = 13_000
FIELD_CHARS_MAX = 2000
METADATA_BYTES_MAX = 16_000

_MENTION = re.compile(r"<[!@#][^>]*>")


def objection(body: dict[str, Any]) -> str:
    """Slack's word for what is wrong with a message; empty where it is taken."""
    blocks = body.get("blocks") or []
    if not body.get("text") and not blocks:
        return "no_text"
    if len(body.get("text") or "") > TEXT_CHARS_MAX:
        return "msg_too_long"
    if not isinstance(blocks, list) or len(blocks) > BLOCKS_MAX or not all(map(_is_block, blocks)):
        return "invalid_blocks"
    if len(json.dumps(blocks, ensure_ascii=False)) > BLOCK_CHARS_MAX:
        return "msg_blocks_too_long"
    return _metadata_objection(body.get("metadata"))


def mentions(message: dict[str, Any]) -> list[str]:
    """Whom it calls."""
    return _MENTION.findall(json.dumps([message.get("text"), message.get("blocks")], ensure_ascii=False))


def _is_block(block: Any) -> bool:
    """By the SDK's own models; it reads a kind that it does not know as None."""
    try:
        (read,) = Block.parse_all([block])
        if read is None:
            return False
        read.validate_json()
    except (SlackObjectFormationError, TypeError, ValueError, AttributeError):
        return False
    texts = [block.get("text") or {}, *(block.get("fields") or []), *(block.get("elements") or [])]
    return all(text.get("text") != "" for text in texts) and all(len(f["text"]) <= FIELD_CHARS_MAX for f in block.get("fields") or [])


def _metadata_objection(metadata: Any) -> str:
    if metadata is None:
        return ""
    if not isinstance(metadata, dict) or set(metadata) != {"event_type", "event_payload"}:
        return "invalid_metadata_format"
    if not re.fullmatch(r"[a-z0-9_]{1,255}", str(metadata["event_type"])):
        return "invalid_metadata_format"
    return "metadata_too_large" if len(json.dumps(metadata)) > METADATA_BYTES_MAX else ""
