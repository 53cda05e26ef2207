"""What an error of the operating system means for a person, and what to do."""

import errno
from collections.abc import Mapping

EXHAUSTED: Mapping[int, str] = {
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "this user's quota on the disk is used up; free some space",
    errno.EMFILE: "this process may open no more files; raise its limit (ulimit -n)",
    errno.ENFILE: "the machine may open no more files; end other processes, or raise its limit (fs.file-max)",
    errno.ENOMEM: "the machine is out of memory",
    errno.EIO: "a read or write on the disk failed; check the system log",
}
"""Errors of a machine that lacks something for now, with what to do; the same call may succeed later."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def in_words(error: OSError) -> str:
    """Return the error with its file, if it names one, and with what to do, if that is known."""
    where = f"{error.filename}: " if error.filename is not None else ""
    what = error.strerror or str(error) or type(error).__name__
    advice = EXHAUSTED.get(error.errno or 0, "")
    return f"{where}{what}" + (f": {advice}" if advice else "")
