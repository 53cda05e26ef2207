"""Where people see a run on its tracker."""

from prime_train.core.run import Run

SITE = "https://wandb.ai"
_PLAIN = frozenset("-_.~")


def page_url(run: Run, *, entity: str = "", site: str = SITE) -> str:
    """The page of its run of W&B, which has its id; empty where it has none, or where nobody says whose it is. `entity`: for a spec that
    names none; `site`: for a W&B of one's own."""
    tracked = run.spec.wandb
    owner = (tracked.entity if tracked is not None else None) or entity
    if tracked is None or not owner:
        return ""
    return "/".join((site.rstrip("/"), _piece(owner), _piece(tracked.project), "runs", _piece(run.run_id)))


def _piece(text: str) -> str:
    """As one piece of a URL's path."""
    plain = (char if char.isascii() and (char.isalnum() or char in _PLAIN) else None for char in text)
    return "".join(kept or "".join(f"%{byte:02X}" for byte in char.encode()) for kept, char in zip(plain, text, strict=True))
