"""The enumerations of a run's spec and a default that others repeat, in a module of their own so that they
load without pydantic.
"""

from enum import StrEnum
from typing import Literal

By = Literal["loss", "reward"]
"""Metrics by which checkpoints are compared."""

RESUME_ARGUMENTS = "--resume-step {step}"
"""What a script with this option is told at a resume, unless its config or the kind of its trainer says
otherwise.
"""


class Spot(StrEnum):
    PREFER = "prefer"
    ONLY = "only"
    NEVER = "never"


class Migrate(StrEnum):
    """What is done while a run trains and a machine is for rent on which the rest of it is expected to cost
    less, the move included.
    """

    PROPOSE = "propose"
    AUTO = "auto"
    NEVER = "never"


class OnDivergence(StrEnum):
    """What is done when the loss is not a finite number for several steps."""

    ALERT = "alert"
    STOP = "stop"
    ROLLBACK = "rollback"


class Verify(StrEnum):
    """What is read back from the bucket while a run trains and before it succeeds, to find damage while this
    machine has the files.
    """

    AUTO = "auto"
    ALL = "all"
    LAST = "last"
    OFF = "off"


class Compress(StrEnum):
    """How checkpoints are compressed; bytes2 and bytes4 split 2- and 4-byte numbers into byte planes before
    zstd.
    """

    AUTO = "auto"
    OFF = "off"
    ZSTD = "zstd"
    BYTES2 = "bytes2"
    BYTES4 = "bytes4"
