"""What a provider answered, without what is nobody else's business: keys, addresses, people and accounts.

Hidden are: known secrets, wherever they stand; whatever looks like a secret, an address or a key; and the
values of fields by their names. Ids become numbers, the same one for the same id, so that it can still be
seen which answers are about the same thing. Types are kept.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prime_train.text.redaction import HIDDEN, redacted

ITEMS_KEPT = 40
TEXT_CHARS_MAX = 2_000
DEPTH_MAX = 20
ENVIRONMENTS = frozenset({"env", "envs", "envvars", "extra_env", "docker_env", "environment"})
"""Fields with variables, of which only the names are kept."""
_PRIVATE = re.compile(
    r"e?mail|password|secret|token|authori[sz]ation|cookie|api_?key|public_?key|ssh_?key|jupyter|fingerprint|"
    r"(?:first|last|full|user)_?name|phone|(?:public_?)?ip_?(?:addr(?:ess)?|v4|v6)?|public_ipaddr|hostname|"
    r"hostid|host_?ip|ssh_?host|"
    r"address|street|company|organi[sz]ation|onstart|docker_?login|command|ssh_?connection",
    re.IGNORECASE,
)
"""Names of fields whose texts are hidden as a whole."""
_OF_PEOPLE = frozenset(
    {"name", "slug", "login", "username", "nickname", "image", "avatar", "picture", "bio", "url"}
)
"""Names of fields that are hidden in an object which has an e-mail address, too, because it describes a
person.
"""
_OPEN_IDS = frozenset({"cloudId", "gpuTypeId", "dataCenterId", "data_center_id", "cloud_id"})
"""Ids that are the provider's own names for what everybody may rent."""
_ID = re.compile(r"id|ids|.*(?:_id|Id|_ids|Ids|ID)|new_contract|bundle_id")
_LOOKS = re.compile(
    r"\b(?:\d{1,3}\.){3}\d{1,3}\b"  # IPv4
    r"|(?<![\w:])(?:[0-9A-Fa-f]{1,4}:){2,7}(?::?[0-9A-Fa-f]{1,4})(?![\w:])"  # IPv6, but for a time of day
    r"|\b[\w.+-]+@[\w-]+\.[\w.-]+\b"  # e-mail
    r"|\b(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-\S+|sk-\S+@openssh\.com) [A-Za-z0-9+/=]+(?: \S+)?"  # SSH keys
    r"|\b[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\b"  # UUIDs
    r"|(?<![A-Za-z0-9+/_])(?=[A-Za-z_+/]*\d)[A-Za-z0-9_+/]{32,}={0,2}"  # keys of whatever kind
)
_CLOCK = re.compile(r"\d{1,2}:\d{2}:\d{2}")


@dataclass
class Hider:
    """Hides, with the same number for the same id. `secrets`: values that are hidden wherever they stand. Not
    thread-safe.
    """

    secrets: Sequence[str] = ()
    _ids: dict[str, int] = field(default_factory=dict)

    def hidden(self, content: object, *, name: str = "", depth: int = 0) -> object:
        """Return the content with the same fields and types. Of a long list, the first `ITEMS_KEPT` items are
        kept.
        """
        if depth > DEPTH_MAX:
            return HIDDEN
        match content:
            case dict():
                inner = name.lower() in ENVIRONMENTS
                people = _OF_PEOPLE if any("mail" in str(key).lower() for key in content) else ()
                return {
                    self.text(str(key)): self._field(str(key), value, depth, is_hidden=inner or key in people)
                    for key, value in content.items()
                }
            case list():
                return [self.hidden(item, name=name, depth=depth + 1) for item in content[:ITEMS_KEPT]]
            case str():
                return self._named(name, content)
            case bool() | None | float():
                return content
            case int():
                return self._number(content) if _is_id(name) else content
            case _:
                return HIDDEN

    def text(self, text: str) -> str:
        """Return a text without secrets, addresses and keys, cut short."""
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN) if secret else text
        text = _LOOKS.sub(lambda found: found[0] if _CLOCK.fullmatch(found[0]) else HIDDEN, redacted(text))
        return text if len(text) <= TEXT_CHARS_MAX else text[:TEXT_CHARS_MAX] + "..."

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {name: self.text(value) for name, value in headers.items()}

    def _field(self, name: str, value: object, depth: int, *, is_hidden: bool) -> object:
        return (
            HIDDEN if is_hidden and isinstance(value, str) else self.hidden(value, name=name, depth=depth + 1)
        )

    def _named(self, name: str, text: str) -> str:
        if not text:
            return text
        if _is_id(name):
            return f"id-{self._number(text)}"
        if _PRIVATE.fullmatch(name):
            return HIDDEN
        return self.text(text)

    def _number(self, value: object) -> int:
        return self._ids.setdefault(f"{type(value).__name__} {value}", len(self._ids) + 1)


def _is_id(name: str) -> bool:
    return name not in _OPEN_IDS and _ID.fullmatch(name) is not None
