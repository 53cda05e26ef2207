"""Keeps other users of this machine out of a home: its key, database, logs, specs and checkpoints are for its
owner only.
"""

import logging
import os
import stat
from pathlib import Path

OTHERS = stat.S_IRWXG | stat.S_IRWXO
ENTRIES_MAX = 10_000

log = logging.getLogger("prime_train.serve")


def tighten(root: Path) -> None:
    """Take every right of other users from the home and from what lies directly in it, and say so if they
    could look into it. What lies deeper cannot be reached then. A home that belongs to somebody else is only
    reported, because no rights keep its owner out.
    """
    owner = _other_owner(root)
    if owner is not None:
        message = (
            "%s belongs to another user of this machine (uid %d), who can replace its key, its policy and "
            "its database; use a home of yours"
        )
        log.warning(message, root, owner)
    for path in [root, *list(root.iterdir())[:ENTRIES_MAX]]:
        try:
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode) or not mode & OTHERS:
                continue
            path.chmod(stat.S_IMODE(mode) & ~OTHERS)
        except FileNotFoundError:
            continue  # a draft that another process has just renamed
        except OSError as error:
            log.warning(
                "%s can be read by other users of this machine, and that cannot be changed: %s",
                path,
                error.strerror,
            )
            continue
        if path == root and owner is None:
            log.warning(
                "%s could be read by other users of this machine (mode %o); now only you can",
                root,
                stat.S_IMODE(mode),
            )


def _other_owner(root: Path) -> int | None:
    """Return the user to whom the home belongs; None if that is this one, or root, from whom nothing can be
    kept.
    """
    owner = root.stat().st_uid
    return owner if owner not in (0, os.geteuid()) else None


def warn_of_open_bucket(folder: Path) -> None:
    """Say so if other users can read a bucket that is a folder outside of the home. It is left as it is: a
    team may share it.
    """
    try:
        mode = folder.stat().st_mode
    except OSError:
        return  # whoever opens the bucket reports that it is missing
    if mode & stat.S_IRWXO:
        message = (
            "the bucket %s, with code and checkpoints, can be read by every user of this machine; to keep "
            "them out: chmod o= %s"
        )
        log.warning(message, folder, folder)
