"""What the agent and the control plane say to each other. All of it is versioned by the models' own defaults: fields are only added.
Who asks ignores what it does not know in an answer, for the other end may be newer; a request with an unknown field is refused."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from prime_train.core.causes import Cause
from prime_train.core.keys import IDENTITY_PATTERN, RUN_ID_PATTERN
from prime_train.core.manifest import ResumePoint
from prime_train.core.signing import (
    BODY_BYTES_MAX,
    CLOCK_SKEW_S_MAX,
    SIGNATURE_HEADER,
    STORE_BODY_BYTES_MAX,
    STORE_PATH,
    TIMESTAMP_HEADER,
    attempt_key,
    attempt_path,
    body_bytes_max,
    operator_key,
    sign,
    told_time_s,
)
from prime_train.core.spec import RunSpec
from prime_train.core.text.safe import defused

__all__ = [
    "BODY_BYTES_MAX",
    "CLOCK_SKEW_S_MAX",
    "GPU_NOTE_CHARS_MAX",
    "LOG_TAIL_CHARS_MAX",
    "SIGNATURE_HEADER",
    "STORE_BODY_BYTES_MAX",
    "STORE_PATH",
    "TIMESTAMP_HEADER",
    "UPLOAD_TROUBLE_CHARS_MAX",
    "AttemptNumber",
    "Bootstrap",
    "Commit",
    "Count",
    "Gpus",
    "Heartbeat",
    "Identity",
    "JobExit",
    "Nonce",
    "Order",
    "Phase",
    "PodKeys",
    "Refusal",
    "Reply",
    "RunId",
    "Saves",
    "Ticket",
    "Verdict",
    "Wire",
    "attempt_key",
    "attempt_path",
    "body_bytes_max",
    "operator_key",
    "sign",
    "told_time_s",
]

LOG_TAIL_CHARS_MAX = 8000
GPU_NOTE_CHARS_MAX = 200
UPLOAD_TROUBLE_CHARS_MAX = 300
LATER = ("keys", "origin_url", "identity", "code_sha256", "bucket_mark", "deadline_in_s")

RunId = Annotated[str, Field(pattern=f"^{RUN_ID_PATTERN}$")]
AttemptNumber = Annotated[int, Field(ge=1, le=10**9)]
Identity = Annotated[str, Field(pattern=f"^({IDENTITY_PATTERN})?$")]
"""Random, of one attempt; empty for attempts from before there was such."""
Count = Annotated[int, Field(ge=0, le=2**53)]
Line = Annotated[str, AfterValidator(defused)]
"""What a machine says in a line: nothing in it moves a cursor, or begins a line of its own, wherever it is shown."""
Lines = Annotated[str, AfterValidator(lambda text: defused(text, keep="\n\t"))]


class Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Answered(Wire):
    """What the control plane answers."""

    model_config = ConfigDict(extra="ignore")


class Phase(StrEnum):
    """Where the agent is. EXITED is its last word."""

    PREFLIGHT = "preflight"
    SETUP = "setup"
    VERIFY = "verify"
    SMOKE = "smoke"
    RESTORE = "restore"
    TRAIN = "train"
    FLUSH = "flush"
    EXITED = "exited"


class Order(StrEnum):
    """What the reply to a heartbeat asks for."""

    NONE = "none"
    DRAIN = "drain"
    EVIDENCE = "evidence"


class Verdict(StrEnum):
    OK = "ok"
    REPEATED = "repeated"
    FENCED = "fenced"


class JobExit(Wire):
    """How an attempt ended, in the agent's words."""

    cause: Cause
    detail: Line = Field(default="", max_length=2000)
    code: int | None = None
    """The trainer's exit code; negative is the signal that ended it."""
    saved_step: Count = 0
    """The newest step of which the trainer had begun a checkpoint: the run has not succeeded before that one is committed."""
    log_tail: Lines = Field(default="", max_length=LOG_TAIL_CHARS_MAX)


class Saves(Wire):
    """How checkpoints go, as the agent sees it; None: not known yet."""

    interval_s: float | None = Field(default=None, ge=0)
    """From one complete checkpoint to the next."""
    stall_s: float | None = Field(default=None, ge=0)
    """How long steps stand still for a save."""
    durable_age_s: Count | None = None
    """Since the newest committed checkpoint was complete: what is lost if the machine goes now."""
    durable_after_s: float | None = Field(default=None, ge=0)
    """From complete to committed."""
    upload_s: float | None = Field(default=None, ge=0)
    size_bytes: Count | None = None
    """Of the files of the newest upload."""
    sent_bytes: Count | None = None
    """What had to be sent for it: less what was there already, and compressed."""
    skipped: Count = 0
    """Checkpoints that a newer one overtook before they could be uploaded."""


class Gpus(Wire):
    """What the GPUs of the machine do, over all of them; None: their driver does not tell."""

    count: Count = 0
    idle: Count = 0
    """Of these, those at 0 % that hold nothing."""
    util_low_pct: float | None = Field(default=None, ge=0, le=100)
    util_high_pct: float | None = Field(default=None, ge=0, le=100)
    hottest_c: int | None = None
    power_w: float | None = None
    """Of all together."""
    age_s: Count = 0
    """How old this is: a driver that hangs tells nothing new."""
    note: Line = Field(default="", max_length=GPU_NOTE_CHARS_MAX)
    """For people: what slows them down, or why nothing is known."""


class Heartbeat(Wire):
    """One heartbeat. `seq` rises by one each; ages are seconds by the agent's monotonic clock, so its wall clock never enters a
    decision."""

    run: RunId
    attempt: AttemptNumber
    seq: int = Field(ge=1, le=2**53)
    phase: Phase
    step: Count = 0
    """The trainer's newest step, over all attempts; 0 before the first one of this attempt is seen."""
    step_age_s: Count = 0
    """Seconds since `step` last rose (or since training started)."""
    step_slow_s: float | None = Field(default=None, ge=0, le=1e7)
    """The slow end (95th percentile) of this run's own step times, the first five left out."""
    saving: bool = False
    """A checkpoint or an evaluation is being made: the step deadline gets its allowance."""
    preempting: bool = False
    """The machine has been told that it will be taken away."""
    sick: Cause | None = None
    sick_detail: Line = Field(default="", max_length=500)
    evidence: bool = False
    """The evidence an order asked for is in the bucket."""
    uploaded_step: Count = 0
    """Newest step whose manifest is in the bucket, whether or not the commit was answered."""
    upload_pending: bool = False
    """The trainer has ended well, and what it saved is not all durable yet."""
    upload_trouble: Line = Field(default="", max_length=UPLOAD_TROUBLE_CHARS_MAX)
    """Why checkpoints do not become durable, where they do not: they fail to upload, or fall behind. Empty again once the newest one is."""
    gpu_util_pct: float | None = None
    gpu_mem_mib: float | None = None
    gpus: Gpus | None = None
    disk_free_gib: float | None = None
    disk_full_s: Count | None = None
    """Until the disk is full, if it goes on as in the last while."""
    saves: Saves | None = None
    loss: float | None = None
    reward: float | None = None
    note: Line = Field(default="", max_length=200)
    """What it is doing, for people."""
    news: bool = False
    """The phase changed, the first step was made, evidence is ready, or the end has come since the last accepted heartbeat: look at
    once."""
    exit: JobExit | None = None
    identity: Identity = ""


class Reply(Answered):
    verdict: Verdict
    order: Order = Order.NONE
    reason: str = ""
    heartbeat_s: int = 30
    committed_step: int = 0
    now_s: int = 0
    """The server's clock, for signing."""


class Commit(Wire):
    """Asks that a manifest which is already in the bucket becomes this run's newest checkpoint."""

    run: RunId
    attempt: AttemptNumber
    step: Count
    key: str = Field(max_length=300)
    identity: Identity = ""


class Ticket(Wire):
    """What is put on a pod, readable by its owner only: who it is, whom to call, and the key that proves it."""

    run: RunId
    attempt: AttemptNumber
    url: str
    key: str = Field(repr=False)
    now_s: int = 0
    identity: Identity = ""


class PodKeys(Answered):
    """Keys to the bucket that end by themselves, for one attempt's part of it."""

    model_config = ConfigDict(hide_input_in_errors=True)

    access_key_id: str = Field(max_length=256, repr=False)
    secret_access_key: str = Field(max_length=256, repr=False)
    session_token: str = Field(max_length=8192, repr=False)
    valid_s: int = Field(ge=0, le=12 * 3600)
    """For so long they open it, counted from when this was said."""


class Bootstrap(Answered):
    """What the agent fetches once: the whole job, and the secrets that were named in it."""

    run: RunId
    attempt: AttemptNumber
    spec: RunSpec
    bucket_url: str
    bucket_mark: str = ""
    """The identity of the bucket: a folder without it is another one. Empty where it is not known."""
    bucket_keys: dict[str, str] = Field(default_factory=dict, repr=False)
    """Environment variables that open the bucket; the trainer does not get them."""
    keys: PodKeys | None = None
    """Where there are such: then `bucket_keys` only say where the bucket is, and the trainer's tools may use both."""
    code_key: str | None = None
    """Key of the packed working tree in the bucket; None: the spec names a repository."""
    code_sha256: str = ""
    """Of that object: who had keys to the bucket before may have written another."""
    commit: str = ""
    """The commit the run was launched from: what a repository is checked out at."""
    origin_url: str = ""
    """Where people asked for the run, for its tracker to lead there."""
    resume: ResumePoint | None = None
    secrets: dict[str, str] = Field(default_factory=dict, repr=False)
    train_s_max: int | None = None
    """Seconds of training left; counted from this attempt's first step."""
    deadline_in_s: int | None = None
    """After so many seconds it has to save and leave, to be done by the run's deadline."""
    last_cause: Cause | None = None
    """Why the last attempt whose agent was heard ended, where there was one: what failed there may be done otherwise here."""
    best_step: int = 0
    """Highest step any attempt reached: up to it, work is done again."""
    step_slow_s: float | None = None
    now_s: int = 0
    identity: Identity = ""
    """The attempt's own: all that it says bears it."""

    def as_json(self) -> str:
        """Without the later fields that say nothing: agents from before them refuse what they do not know."""
        return self.model_dump_json(exclude={name for name in LATER if not getattr(self, name)})


class Nonce(Wire):
    """Body of a canary call, and of its answer."""

    nonce: str


class Refusal(Answered):
    """Body of every answer that is not 200."""

    error: str
    now_s: int = 0
