"""Links to a run: to its page in the tracker, and to the page from which it was requested."""

import re

from prime_train.runs.run import Run

LAG_S_MAX = 45 * 60
"""Seconds that W&B may lag: it was observed 20 to 30 minutes behind healthy runs."""
SITE, GITHUB = "https://wandb.ai", "https://github.com"
APIS = ("https://api.wandb.ai", "https://api.forge.coreweave.com")
"""The API of W&B's own service, by its older and its newer name; its web pages are at `SITE`."""
URL_CHARS_MAX = 500
_PLAIN = frozenset("-_.~")
_SITE = re.compile(r"https?://[A-Za-z0-9.:-]+")


def page_url(run: Run, *, entity: str = "", site: str = "") -> str:
    """Return the URL of the run's page in W&B, where the run has the same id; empty if it is not tracked or
    its entity is unknown. `entity`: for a run that names none; `site`: a W&B site other than the one to which
    the run writes.
    """
    tracked, owner = run.spec.wandb, entity_of(run) or entity
    return (
        address(owner, tracked.project, run.run_id, site=site or _site(run))
        if tracked is not None and owner
        else ""
    )


def entity_of(run: Run) -> str:
    """Return the W&B entity to which the trainer writes; empty: the account's default."""
    named = run.spec.wandb.entity if run.spec.wandb is not None else None
    return run.spec.environment.get("WANDB_ENTITY") or named or ""


def _site(run: Run) -> str:
    """Return the site of the pages: a self-hosted W&B serves pages at its API address, W&B's own serves them
    at another.
    """
    requested = run.spec.environment.get("WANDB_BASE_URL", "").rstrip("/")
    return requested if _SITE.fullmatch(requested) and not requested.startswith(APIS) else SITE


def address(entity: str, project: str, run_id: str, *, site: str = SITE) -> str:
    return "/".join((site.rstrip("/"), _piece(entity), _piece(project), "runs", _piece(run_id)))


def origin_url(run: Run) -> str:
    """Return the URL of the pull request that requested the run, or else of its config; empty if it was not
    requested on GitHub.
    """
    origin = run.origin
    if origin is None:
        return ""
    site = origin.job_url.partition(f"/{origin.repository}/")[0]
    what = f"pull/{origin.pull}" if origin.pull is not None else f"blob/{origin.commit}/{origin.config}"
    return "/".join(
        (site if _SITE.fullmatch(site) else GITHUB, *map(_piece, f"{origin.repository}/{what}".split("/")))
    )


def links(run: Run) -> tuple[tuple[str, str], ...]:
    """Return the links of a run, each with its name. Every URL is free of special characters and at most
    `URL_CHARS_MAX` long, so that it fits any message.
    """
    origin_name = "pull request" if run.origin is not None and run.origin.pull is not None else "config"
    return tuple(
        (name, url)
        for name, url in (("W&B", page_url(run)), (origin_name, origin_url(run)))
        if 0 < len(url) <= URL_CHARS_MAX
    )


def _piece(text: str) -> str:
    """Return the text encoded as one segment of a URL's path."""
    plain = (char if char.isascii() and (char.isalnum() or char in _PLAIN) else None for char in text)
    return "".join(
        kept or "".join(f"%{byte:02X}" for byte in char.encode())
        for kept, char in zip(plain, text, strict=True)
    )
