"""Credentials: API keys and their permissions, teams, wallets, and the public keys for SSH."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.fakes.clock import iso_ms
from tests.fakes.prime.refusals import Refused

API_KEY = "pit_of_the_tests"
USER_ID = "user-1"
PERMISSIONS = ("availability", "instances", "disks", "ssh_keys", "billing", "user")
ALL = {permission: frozenset({"read", "write"}) for permission in PERMISSIONS}


@dataclass(frozen=True)
class ApiKey:
    """An API key. `scope`: by permission, some of `read` and `write`."""

    user_id: str = USER_ID
    scope: Mapping[str, frozenset[str]] = field(default_factory=lambda: ALL)

    def may(self, permission: str, deed: str) -> bool:
        return deed in self.scope.get(permission, frozenset())

    def whoami(self) -> dict[str, object]:
        scope = {name: {deed: self.may(name, deed) for deed in ("read", "write")} for name in PERMISSIONS}
        return {
            "data": {
                "id": self.user_id,
                "email": f"{self.user_id}@example.com",
                "name": "A User",
                "slug": self.user_id,
                "scope": scope,
            }
        }


@dataclass(frozen=True)
class Team:
    team_id: str
    name: str = "A Team"
    role: str = "MEMBER"

    def json(self, now_s: float) -> dict[str, object]:
        slug = self.name.lower().replace(" ", "-")
        return {
            "teamId": self.team_id,
            "name": self.name,
            "slug": slug,
            "role": self.role,
            "createdAt": iso_ms(now_s),
        }


@dataclass
class Wallet:
    wallet_id: str
    balance_usd: float = 100.0


@dataclass
class SshKey:
    key_id: str
    name: str
    public_key: str
    is_primary: bool
    made_s: float

    def json(self) -> dict[str, object]:
        made = iso_ms(self.made_s)
        known: dict[str, object] = {
            "id": self.key_id,
            "userId": USER_ID,
            "name": self.name,
            "publicKey": self.public_key,
        }
        return known | {"isPrimary": self.is_primary, "isUserKey": True, "createdAt": made, "updatedAt": made}


class SshKeys:
    """The SSH keys. The first key is the primary one until another is made it."""

    def __init__(self) -> None:
        self._keys: dict[str, SshKey] = {}

    def all(self) -> list[SshKey]:
        return list(self._keys.values())

    def add(self, name: str, public_key: str, now_s: float) -> SshKey:
        if len(public_key.split()) < 2:
            raise Refused(400, "Invalid SSH public key format")
        key = SshKey(secrets.token_hex(12), name, public_key.strip(), not self._keys, now_s)
        self._keys[key.key_id] = key
        return key

    def get(self, key_id: str) -> SshKey:
        if key_id not in self._keys:
            raise Refused(404, f"SSH key {key_id} not found")
        return self._keys[key_id]

    def make_primary(self, key_id: str) -> SshKey:
        chosen = self.get(key_id)
        for key in self._keys.values():
            key.is_primary = key is chosen
        return chosen

    def remove(self, key_id: str) -> None:
        self.get(key_id)
        del self._keys[key_id]

    def wanted(self, key_id: str | None) -> str:
        """Return the public key of that id, or else the primary one; empty if there is none."""
        if key_id is not None:
            return self.get(key_id).public_key
        return next((key.public_key for key in self._keys.values() if key.is_primary), "")
