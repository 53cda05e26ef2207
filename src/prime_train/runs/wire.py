"""The messages between agent and control plane. They are versioned by the models' defaults: fields are only
added.

A client ignores unknown fields in a response, because the server may be newer; a request with an unknown
field is refused.
"""

import math
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from prime_train.buckets.keys import IDENTITY_PATTERN, RUN_ID_PATTERN
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.signing import (
    BODY_BYTES_MAX,
    CLOCK_SKEW_S_MAX,
    PROOF_HEADER,
    SIGNATURE_HEADER,
    STORE_BODY_BYTES_MAX,
    STORE_PATH,
    TIMESTAMP_HEADER,
    attempt_key,
    attempt_path,
    body_bytes_max,
    operator_key,
    prove,
    server_time_s,
    sign,
)
from prime_train.spec.causes import Action, Cause
from prime_train.spec.limits import STEP_MAX
from prime_train.spec.spec import RunSpec
from prime_train.text.safe import defused

__all__ = [
    "BODY_BYTES_MAX",
    "CLOCK_SKEW_S_MAX",
    "GPU_NOTE_CHARS_MAX",
    "LOG_TAIL_CHARS_MAX",
    "PROOF_HEADER",
    "SIGNATURE_HEADER",
    "STORE_BODY_BYTES_MAX",
    "STORE_PATH",
    "TIMESTAMP_HEADER",
    "UNSAVED_CHARS_MAX",
    "UPLOAD_PROBLEM_CHARS_MAX",
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
    "Outcome",
    "Phase",
    "PodKeys",
    "Refusal",
    "Reply",
    "RunId",
    "Saves",
    "Ticket",
    "Traffic",
    "Wire",
    "attempt_key",
    "attempt_path",
    "body_bytes_max",
    "operator_key",
    "prove",
    "server_time_s",
    "sign",
]

LOG_TAIL_CHARS_MAX = 8000
GPU_NOTE_CHARS_MAX = 200
UPLOAD_PROBLEM_CHARS_MAX = 300
UNSAVED_CHARS_MAX = 400
_LATER_OF_STEPS = ("trained", "after_done", "after_failed")
LATER = (
    "keys",
    "origin_url",
    "identity",
    "code_sha256",
    "bucket_mark",
    "deadline_in_s",
    "started_from",
    *_LATER_OF_STEPS,
)

RunId = Annotated[str, Field(pattern=f"^{RUN_ID_PATTERN}$")]
INTEGER_MAX = 2**53
"""The largest integer that every place keeps exactly: SQLite has 63 bits, but the doubles of JSON, of which
pages are made, have 53.
"""
SECONDS_MAX = 10**9
"""The longest span in seconds, 31 years: a time minus a longer one is no time that can be shown."""
ATTEMPT_MAX = 10**9 - 1
"""The highest attempt: names of pods and keys in the bucket have nine digits for it."""

AttemptNumber = Annotated[int, Field(ge=1, le=ATTEMPT_MAX)]
Identity = Annotated[str, Field(pattern=f"^({IDENTITY_PATTERN})?$")]
"""The random identity of an attempt; empty for attempts from before identities existed."""
Count = Annotated[int, Field(ge=0, le=INTEGER_MAX)]
Step = Annotated[int, Field(ge=0, le=STEP_MAX)]
"""A step of training: the key of a checkpoint has twelve digits for it."""
Seconds = Annotated[int, Field(ge=0, le=SECONDS_MAX)]
Whole = Annotated[int, Field(ge=-INTEGER_MAX, le=INTEGER_MAX)]


def _finite(value: object) -> object:
    """Return None, which is "unknown", for what is no number that JSON has."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


Span = Annotated[float, Field(ge=0, le=SECONDS_MAX)]
Reading = Annotated[float | None, AfterValidator(_finite)]
"""A number that the trainer reports, or None if it is not known."""
READING_MAX = 1e15
"""More than any machine has of anything, and little enough to be computed with in any unit."""


def _believable(value: object) -> object:
    """Return None, which is "unknown", for a number that no machine can have."""
    return None if isinstance(value, int | float) and not abs(value) <= READING_MAX else value


MachineReading = Annotated[
    Annotated[float, Field(ge=-READING_MAX, le=READING_MAX)] | None, BeforeValidator(_believable)
]
"""A number that was measured on the machine, or None if it is not known."""
Line = Annotated[str, AfterValidator(defused)]
"""A line of text from a machine, neutralised so that it cannot move a cursor or start a new line wherever it
is shown.
"""
Lines = Annotated[str, AfterValidator(lambda text: defused(text, keep="\n\t"))]


class Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Answered(Wire):
    """A response of the control plane."""

    model_config = ConfigDict(extra="ignore")


class Phase(StrEnum):
    """The phase of the agent. EXITED is its last report."""

    PREFLIGHT = "preflight"
    SETUP = "setup"
    VERIFY = "verify"
    SMOKE = "smoke"
    RESTORE = "restore"
    TRAIN = "train"
    FLUSH = "flush"
    AFTER = "after"
    """The trainer has ended with success, all that it left is durable, and the steps under `after` are
    run.
    """
    EXITED = "exited"


class Order(StrEnum):
    """The order in the reply to a heartbeat."""

    NONE = "none"
    DRAIN = "drain"
    EVIDENCE = "evidence"


class Outcome(StrEnum):
    OK = "ok"
    REPEATED = "repeated"
    FENCED = "fenced"


class JobExit(Wire):
    """How an attempt ended, as the agent reports it."""

    cause: Cause
    detail: Line = Field(default="", max_length=2000)
    action: Action | None = None
    """What follows by the trainer's own words; None: what follows from the cause."""
    code: Whole | None = None
    """The trainer's exit code; negative is the signal that ended it."""
    saved_step: Step = 0
    """The newest step of which the trainer had begun a checkpoint. The run has succeeded only once that
    checkpoint is committed.
    """
    log_tail: Lines = Field(default="", max_length=LOG_TAIL_CHARS_MAX)


class Saves(Wire):
    """Statistics of checkpoints as the agent measures them; None: not known yet."""

    interval_s: Span | None = None
    """Seconds from one complete checkpoint to the next."""
    stall_s: Span | None = None
    """Seconds that steps pause for a save."""
    durable_age_s: Seconds | None = None
    """Seconds since the newest committed checkpoint was complete: the work that is lost if the machine fails
    now.
    """
    durable_after_s: Span | None = None
    """Seconds from the completion of a checkpoint to its commit."""
    upload_s: Span | None = None
    size_bytes: Count | None = None
    """Bytes of the files of the newest upload."""
    sent_bytes: Count | None = None
    """Bytes actually sent for the newest upload: without chunks that the bucket had already, and
    compressed.
    """
    skipped: Count = 0
    """Checkpoints that were replaced by a newer one before they could be uploaded."""


class Traffic(Wire):
    """What the machine has received and sent since the agent was started, on the interfaces that lead to the
    Internet.
    """

    down_bytes: Count = 0
    up_bytes: Count = 0
    seconds: Seconds = 0
    """The time in which it did."""


class Deletions(Wire):
    """What was deleted to make room, and was not needed any more."""

    checkpoints: Count = 0
    """Checkpoints that retention deleted from the bucket."""
    newest_step: Step = 0
    """The highest step of these; 0: there is none."""
    chunk_bytes: Count = 0
    """Bytes of chunks of checkpoints deleted from the bucket."""
    output_bytes: Count = 0
    """Bytes of older versions of outputs deleted from the bucket."""
    local: Count = 0
    """Committed checkpoints deleted from the machine's disk."""
    folders: Count = 0
    """Folders on the machine's disk that the trainer did not need any more."""
    local_bytes: Count = 0
    """Bytes of these checkpoints and folders."""


class Gpus(Wire):
    """State of all GPUs of the machine; None: their driver does not report it."""

    count: Count = 0
    idle: Count = 0
    """GPUs at 0 % that hold no memory."""
    util_low_pct: float | None = Field(default=None, ge=0, le=100)
    util_high_pct: float | None = Field(default=None, ge=0, le=100)
    hottest_c: Whole | None = None
    power_w: MachineReading = None
    """Watts of all GPUs together."""
    memory_peak_mib: float | None = Field(default=None, ge=0, le=1e9)
    """The most memory in MiB that was in use on one GPU at any reading of this attempt."""
    memory_mib: float | None = Field(default=None, ge=0, le=1e9)
    """All memory of that GPU in MiB."""
    age_s: Seconds = 0
    """Age of this reading in seconds: a driver that hangs gives no new ones."""
    note: Line = Field(default="", max_length=GPU_NOTE_CHARS_MAX)
    """For people: what slows the GPUs down, or why there is no reading."""


class Heartbeat(Wire):
    """A heartbeat: the state of one attempt as its agent reports it. `seq` rises by one each; ages are
    seconds of the agent's monotonic clock, so its wall clock affects no decision.
    """

    run: RunId
    attempt: AttemptNumber
    seq: int = Field(ge=1, le=INTEGER_MAX)
    phase: Phase
    step: Step = 0
    """The trainer's newest step, over all attempts; 0 before the first one of this attempt is seen."""
    step_age_s: Seconds = 0
    """Seconds since `step` last rose (or since training started)."""
    step_slow_s: float | None = Field(default=None, ge=0, le=1e7)
    """The slow end (95th percentile) of this run's own step times in seconds, the first five left out."""
    timed_steps: Count = 0
    """Number of steps that this attempt has made after its first one."""
    timed_s: float | None = Field(default=None, ge=0, le=1e9)
    """Seconds from the end of its first step to the end of its newest one, saves included; None: no step
    after the first one yet.
    """
    timed_spread_s: float | None = Field(default=None, ge=0, le=1e9)
    """Standard deviation of these steps in seconds; None: too few to tell."""
    saving: bool = False
    """A checkpoint or an evaluation is being made, for which the step deadline has an allowance."""
    preempting: bool = False
    """The machine has received notice that it will be preempted."""
    sick: Cause | None = None
    sick_detail: Line = Field(default="", max_length=500)
    evidence: bool = False
    """The evidence that an order requested is in the bucket."""
    uploaded_step: Step = 0
    """Newest step whose manifest is in the bucket, whether or not its commit has been confirmed."""
    upload_pending: bool = False
    """The trainer has exited successfully, and not all that it saved is durable yet."""
    upload_problem: Line = Field(  # type: ignore[pydantic-alias]  # the plugin sees only one of the names
        default="",
        max_length=UPLOAD_PROBLEM_CHARS_MAX,
        validation_alias=AliasChoices("upload_problem", "upload_trouble"),
    )
    """Why checkpoints or outputs do not become durable: uploads fail or fall behind. Empty again once the
    newest of them are durable.
    """
    unsaved: Line = Field(default="", max_length=UNSAVED_CHARS_MAX)
    """What lies on the machine instead of the checkpoints that the run promises, if they are late; empty:
    none is.
    """
    outputs_pending: bool = False
    """The trainer has exited, and not all outputs are in the bucket yet."""
    trained: bool = False
    """The trainer has ended with success, and all that it left is durable: only steps under `after` are
    left.
    """
    after_done: Count = 0
    """Number of steps under `after` that have ended, the first ones in their order, and whose outputs are in
    the bucket.
    """
    after_failed: Line = Field(default="", max_length=500)
    """The steps among these that failed, and why."""
    gpu_util_pct: MachineReading = None
    gpu_mem_mib: MachineReading = None
    gpus: Gpus | None = None
    disk_free_gib: MachineReading = None
    disk_full_s: Count | None = None
    """Seconds until the disk is full at the recent rate."""
    saves: Saves | None = None
    traffic: Traffic | None = None
    """None: not known."""
    deleted: Deletions | None = None
    """What the agent has deleted in this attempt, since it was started; None: nothing, or not known."""
    loss: Reading = None
    """The last loss that was reported; None: none was, or it was not a finite number."""
    reward: Reading = None
    learning_rate: Reading = None
    not_finite_since: Step | None = None
    """The step from which on no reported loss of this attempt was finite; None: the last one was, or none was
    reported.
    """
    finite_step: Step = 0
    """The newest step of this attempt with a finite loss; 0: none."""
    restored_step: Step | None = None
    """The step of the checkpoint that was really restored, after which training went on; None: none, or
    unknown.
    """
    note: Line = Field(default="", max_length=200)
    """What the agent is doing, for people."""
    news: bool = False
    """Whether the run should be checked at once: since the last accepted heartbeat the phase changed, the
    first step was made, evidence is ready, or the attempt ended.
    """
    exit: JobExit | None = None
    identity: Identity = ""


class Reply(Answered):
    outcome: Outcome
    order: Order = Order.NONE
    reason: str = ""
    heartbeat_s: int = 30
    committed_step: int = 0
    now_s: int = 0
    """The server's clock, for signing."""


class Commit(Wire):
    """A request to make a manifest that is already in the bucket this run's newest checkpoint."""

    run: RunId
    attempt: AttemptNumber
    step: Step
    key: str = Field(max_length=300)
    identity: Identity = ""


class Ticket(Wire):
    """A file on a pod, readable by its owner only: its attempt, the control plane's URL, and the key that
    authenticates the attempt.
    """

    run: RunId
    attempt: AttemptNumber
    url: str
    key: str = Field(repr=False)
    now_s: int = 0
    identity: Identity = ""


class PodKeys(Answered):
    """Temporary keys to one attempt's part of the bucket."""

    model_config = ConfigDict(hide_input_in_errors=True)

    access_key_id: str = Field(max_length=256, repr=False)
    secret_access_key: str = Field(max_length=256, repr=False)
    session_token: str = Field(max_length=8192, repr=False)
    valid_s: int = Field(ge=0, le=12 * 3600)
    """Seconds for which the keys are valid, counted from this response."""


class Bootstrap(Answered):
    """The response that the agent fetches once: the complete job, and the secrets that it names."""

    run: RunId
    attempt: AttemptNumber
    spec: RunSpec
    bucket_url: str
    bucket_mark: str = ""
    """The identity of the bucket, by which a wrong folder is detected. Empty if unknown."""
    bucket_keys: dict[str, str] = Field(default_factory=dict, repr=False)
    """Environment variables with access to the bucket; the trainer does not get them."""
    keys: PodKeys | None = None
    """Temporary keys, if the control plane issues them; `bucket_keys` then only locate the bucket, and the
    trainer's tools may use both.
    """
    code_key: str | None = None
    """Key of the packed working tree in the bucket; None: the spec names a repository."""
    code_sha256: str = ""
    """SHA-256 of the object at `code_key`, because earlier holders of keys to the bucket may have replaced
    it.
    """
    commit: str = ""
    """The commit from which the run was launched; a repository is checked out at it."""
    origin_url: str = ""
    """The page from which the run was requested, for a link in its tracker."""
    resume: ResumePoint | None = None
    secrets: dict[str, str] = Field(default_factory=dict, repr=False)
    train_s_max: int | None = None
    """Seconds of training left; counted from this attempt's first step."""
    deadline_in_s: int | None = None
    """Seconds after which the attempt must save and exit to be done by the run's deadline."""
    save_in_s: int | None = None
    """Seconds after which the attempt must save and exit, because the run's dollars are nearly spent; None:
    the machine costs nothing, or the control plane is from before this field.
    """
    spent_in_s: int | None = None
    """Seconds after which the machine must be given back so that the dollars are not exceeded: the attempt
    ends by then, done or not.
    """
    last_cause: Cause | None = None
    """Why the last attempt with a heartbeat ended, or None; this attempt may avoid what failed there."""
    best_step: int = 0
    """Highest step that any attempt reached; work up to it is recomputed."""
    step_slow_s: float | None = None
    now_s: int = 0
    identity: Identity = ""
    """The identity of the attempt, included in all its messages."""
    trained: bool = False
    """The trainer has ended with success in an earlier attempt, with the checkpoint `resume`: only steps
    under `after` are left.
    """
    after_done: int = 0
    """Number of steps under `after` that earlier attempts have done."""
    after_failed: str = ""
    """The steps among these that failed, and why."""
    started_from: str = ""
    """The checkpoints of other runs from which the run was started, newest first, such as a-456@100; empty:
    it was started from step 0.
    """

    def as_json(self) -> str:
        """Return the JSON without later fields that are empty, because older agents refuse unknown fields."""
        return self.model_dump_json(exclude={name for name in LATER if not getattr(self, name)})


class Nonce(Wire):
    """Body of a canary request, and of its response."""

    nonce: str


class LaunchKeyGiven(Answered):
    """The launch key that a job gets for its token."""

    model_config = ConfigDict(hide_input_in_errors=True)

    launch_key: str = Field(max_length=400, repr=False)


class Refusal(Answered):
    """Body of every response with a status other than 200."""

    error: str
    now_s: int = 0
