"""Where people see a run: on its tracker, and, for the tracker to lead there, where it was asked for."""

import re

from prime_train.core.run import Run

LAG_S_MAX = 45 * 60
"""W&B has been seen 20 to 30 minutes behind runs that were well."""
API, SITE, GITHUB = "https://api.wandb.ai", "https://wandb.ai", "https://github.com"
URL_CHARS_MAX = 500
_PLAIN = frozenset("-_.~")
_SITE = re.compile(r"https?://[A-Za-z0-9.:-]+")


def page_url(run: Run, *, entity: str = "", site: str = "") -> str:
    """The page of its run of W&B, which has its id; empty where it has none, or where nobody says whose it is. `entity`: for a run that
    names none; `site`: another W&B than the one it is told to write to."""
    tracked, owner = run.spec.wandb, entity_of(run) or entity
    return address(owner, tracked.project, run.run_id, site=site or _site(run)) if tracked is not None and owner else ""


def entity_of(run: Run) -> str:
    """Whose W&B its trainer is told to write to; empty: the account's own."""
    named = run.spec.wandb.entity if run.spec.wandb is not None else None
    return run.spec.environment.get("WANDB_ENTITY") or named or ""


def _site(run: Run) -> str:
    """A W&B of one's own is where it is asked, too; W&B's own has its pages elsewhere."""
    asked = run.spec.environment.get("WANDB_BASE_URL", "").rstrip("/")
    return asked if _SITE.fullmatch(asked) and not asked.startswith(API) else SITE


def address(entity: str, project: str, run_id: str, *, site: str = SITE) -> str:
    return "/".join((site.rstrip("/"), _piece(entity), _piece(project), "runs", _piece(run_id)))


def origin_url(run: Run) -> str:
    """The pull request that asked for it, or else its config as it was then; empty where it was not asked for on GitHub."""
    origin = run.origin
    if origin is None:
        return ""
    site = origin.job_url.partition(f"/{origin.repository}/")[0]
    what = f"pull/{origin.pull}" if origin.pull is not None else f"blob/{origin.commit}/{origin.config}"
    return "/".join((site if _SITE.fullmatch(site) else GITHUB, *map(_piece, f"{origin.repository}/{what}".split("/"))))


def links(run: Run) -> tuple[tuple[str, str], ...]:
    """What people may want to open, each with its name: no URL holds a character that means something anywhere, or is longer than any
    message takes."""
    asked_for = "pull request" if run.origin is not None and run.origin.pull is not None else "config"
    return tuple((name, url) for name, url in (("W&B", page_url(run)), (asked_for, origin_url(run))) if 0 < len(url) <= URL_CHARS_MAX)


def _piece(text: str) -> str:
    """As one piece of a URL's path."""
    plain = (char if char.isascii() and (char.isalnum() or char in _PLAIN) else None for char in text)
    return "".join(kept or "".join(f"%{byte:02X}" for byte in char.encode()) for kept, char in zip(plain, text, strict=True))
