"""Marks in pod names, which separate control planes that share an account."""

import hashlib
import hmac
from dataclasses import dataclass

MARK_CHARS = 8


@dataclass(frozen=True)
class PodMark:
    """A suffix on the name of every pod that one control plane rents, so that it neither lists nor terminates
    the pods of others. If `text` is empty, no suffix is used, and every pod with a name in prime-train's
    format counts as this control plane's.
    """

    text: str = ""

    @classmethod
    def of(cls, master: bytes) -> "PodMark":
        """Return the mark of a master key: always the same, and not revealing the key."""
        return cls(hmac.new(master, b"pt/plane/v1", hashlib.sha256).hexdigest()[:MARK_CHARS])

    def on(self, name: str) -> str:
        return f"{name}-{self.text}" if self.text else name

    def without(self, name: str) -> str | None:
        """Return the name that was given to `on`, or None if the pod belongs to another control plane."""
        if not self.text:
            return name
        return name.removesuffix(f"-{self.text}") if name.endswith(f"-{self.text}") else None
