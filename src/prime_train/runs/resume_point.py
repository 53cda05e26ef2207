"""The checkpoint from which an attempt starts."""

from pydantic import BaseModel, ConfigDict, Field

from prime_train.spec.limits import STEP_MAX

BLOB_GRACE_S = 3600
"""Seconds after its last write for which a blob that no manifest lists is kept, because it may belong to an
upload in progress.
"""


class ResumePoint(BaseModel):
    """The checkpoint that an attempt restores: chosen once, after the fence, and saved in the run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    step: int = Field(ge=0, le=STEP_MAX)
    attempt: int = Field(ge=0)
    """The attempt that wrote it; 0 if it is another run's, from which this run was started."""
    key: str
    digest: str = ""
    """`Manifest.digest` at the time of the choice, because a replaced attempt may still write to the bucket.
    Empty: unknown.
    """
