"""Whose pods they are, on an account that several control planes share."""

import hashlib
import hmac
from dataclasses import dataclass

MARK_CHARS = 8


@dataclass(frozen=True)
class Mark:
    """Ends the name of every pod that one control plane rents: it sees no others, and so cannot end them. `text` empty: none, all that
    are named as ours are seen."""

    text: str = ""

    @classmethod
    def of(cls, master: bytes) -> "Mark":
        """Always the same for one master key, which it does not tell."""
        return cls(hmac.new(master, b"pt/plane/v1", hashlib.sha256).hexdigest()[:MARK_CHARS])

    def on(self, name: str) -> str:
        return f"{name}-{self.text}" if self.text else name

    def without(self, name: str) -> str | None:
        """The name as it was given to `on`; None: it is somebody else's."""
        if not self.text:
            return name
        return name.removesuffix(f"-{self.text}") if name.endswith(f"-{self.text}") else None
