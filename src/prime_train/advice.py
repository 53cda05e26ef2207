"""Advice to users as values: sentences that refer to operations and settings, which each user interface
renders in its own way.

`text.invocations` renders them as commands and flags; `str` renders them without any, for users of the
Python API.
"""

from dataclasses import dataclass
from enum import StrEnum


class Operation(StrEnum):
    """An operation that a user can request. The values are the phrases for it in a sentence."""

    ADD_PROVIDER = "add the provider"
    CANCEL = "stop at once"
    CHECKPOINTS = "list the checkpoints of"
    DASHBOARD = "open the dashboard"
    DEPLOY = "deploy"
    DESTROY = "destroy the deployment"
    DIAGNOSE = "diagnose"
    DOCTOR = "check the deployment"
    DOWN = "end the control plane"
    FIND = "find a machine"
    GIVE_BACK = "give back the machine"
    LAUNCH = "launch"
    LAUNCH_FROM_GITHUB = "launch from a job of GitHub"
    LOGS = "show the logs of"
    MEMORY = "estimate the memory"
    PAGE = "save the page of"
    PROBE = "probe"
    RESTORE = "restore a checkpoint of"
    RESUME = "resume"
    SAVE_CODE = "save the code of the functions in"
    SAVE_CONFIG = "save a version of"
    SERVE = "serve"
    SET_UP_GITHUB = "set the repository on GitHub up"
    SHOW_DEPLOYED_KEY = "show the key of the deployment"
    SHOW_KEY = "show the key"
    SHOW_MARKET_KEY = "show the key that may only read the market"
    CREATE_LAUNCH_KEY = "make a key that may only launch"
    LIST_KEYS = "list the launch keys"
    SSH = "log in to the machine of"
    STATUS = "list the runs"
    STOP = "stop"
    SWEEP = "sweep once"
    TRY = "rehearse"
    VALIDATE = "validate"
    VERIFY = "verify all checkpoints of"
    VERIFY_BUNDLE = "verify the bundle"
    WATCH = "watch"


class SettingAdvice(StrEnum):
    """A setting of an operation."""

    ALLOW_FOLDER = "allow_folder"
    ALLOW_SECRET_FILE = "allow_secret_file"
    BACKGROUND = "background"
    BUCKET = "bucket"
    CODE = "code"
    CONFIG = "config"
    DEADLINE = "deadline"
    DEEP = "deep"
    DISK_GIB = "disk_gib"
    FILE = "file"
    FORCE = "force"
    GITHUB_OIDC = "github_oidc"
    GPUS = "gpus"
    HOURS = "hours"
    HUB = "hub"
    KIND = "kind"
    KEEP = "keep"
    LIMIT = "limit"
    LOG = "log"
    LORA = "lora"
    MICRO_BATCH = "micro_batch"
    MODEL = "model"
    NAME = "name"
    ON_DEMAND = "on_demand"
    OUTPUT = "output"
    PARAMS = "params"
    PARAMETER = "parameter"
    PORT = "port"
    PRESET = "preset"
    REGION = "region"
    REPLACE = "replace"
    REPOSITORY = "repository"
    SECONDS = "seconds"
    SECRET = "secret"
    SEQ_LEN = "seq_len"
    SPOT = "spot"
    STACK = "stack"
    START = "start_from"
    STEPS = "steps"
    STEP_S = "step_s"
    TOKENS = "tokens"
    STEP = "step"
    UNCHECKED = "unchecked"
    USD = "usd"
    USD_PER_HOUR = "usd_per_hour"
    USD_MAX = "usd_max"
    USD_PER_HOUR_MAX = "usd_per_hour_max"
    WANDB = "wandb"
    WITHOUT_REHEARSAL = "without_rehearsal"
    WEIGHTS_IN_BUCKET = "weights_in_bucket"


@dataclass(frozen=True)
class Option:
    """A setting with its value, such as `gpus=4`; without a value, the setting's name alone."""

    setting: SettingAdvice
    value: str = ""

    def __str__(self) -> str:
        return f"{self.setting.value}={self.value}" if self.value else self.setting.value


@dataclass(frozen=True)
class Call:
    """An operation with its subject and options. `subject`: what it is applied to, such as the id of a run,
    or a placeholder such as RUN.
    """

    operation: Operation
    subject: str = ""
    options: tuple[Option, ...] = ()

    def __str__(self) -> str:
        return " ".join(
            [self.operation.value, *([self.subject] if self.subject else []), *map(str, self.options)]
        )


@dataclass(frozen=True, init=False)
class Advice:
    """What a user can do: pieces of text, and the operations and settings to be rendered between them. False
    in a boolean context if it has no parts.
    """

    parts: tuple[str | Call | Option, ...]

    def __init__(self, *parts: str | Call | Option) -> None:
        object.__setattr__(self, "parts", parts)

    def __str__(self) -> str:
        return "".join(map(str, self.parts))

    def __bool__(self) -> bool:
        return bool(self.parts)
