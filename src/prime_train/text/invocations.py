"""Renders advice as text with commands and flags: for the terminal, and for messages and pages from which people copy commands.

Outside the command line itself, this is the only module that contains the names of commands and flags.
"""

import shlex

from prime_train.advice import Advice, Call, Operation, Option, Setting
from prime_train.errors import ExternalError, UsageError

_COMMANDS = {
    Operation.ADD_PROVIDER: "provider add",
    Operation.CANCEL: "stop --now",
    Operation.CHECKPOINTS: "checkpoints",
    Operation.DASHBOARD: "dashboard",
    Operation.DEPLOY: "deploy",
    Operation.DESTROY: "destroy",
    Operation.DIAGNOSE: "diagnose",
    Operation.DOCTOR: "doctor",
    Operation.FIND: "find",
    Operation.GIVE_BACK: "stop --machine",
    Operation.LAUNCH: "run",
    Operation.LAUNCH_FROM_GITHUB: "gha launch",
    Operation.LOGS: "logs",
    Operation.MEMORY: "memory",
    Operation.PAGE: "page",
    Operation.PROBE: "probe",
    Operation.RESTORE: "checkpoints restore",
    Operation.RESUME: "resume",
    Operation.SAVE_CODE: "deploy --save",
    Operation.SAVE_CONFIG: "config save",
    Operation.SERVE: "serve",
    Operation.SET_UP_GITHUB: "github init",
    Operation.SHOW_DEPLOYED_KEY: "doctor --show-key",
    Operation.SHOW_KEY: "key --show",
    Operation.SHOW_MARKET_KEY: "key --market --show",
    Operation.CREATE_LAUNCH_KEY: "key create --launch",
    Operation.LIST_KEYS: "key list",
    Operation.SSH: "ssh",
    Operation.STATUS: "status",
    Operation.STOP: "stop",
    Operation.SWEEP: "watch --once",
    Operation.VALIDATE: "validate",
    Operation.VERIFY: "checkpoints verify --all",
    Operation.VERIFY_BUNDLE: "bundle --verify",
    Operation.WATCH: "watch",
}
_FLAGS = {
    Setting.ALLOW_FOLDER: "--allow-folder ",
    Setting.ALLOW_SECRET_FILE: "--allow-secret-file ",
    Setting.BUCKET: "--bucket ",
    Setting.CODE: "--code ",
    Setting.CONFIG: "--config ",
    Setting.DEADLINE: "--deadline ",
    # A value after a space would be taken for the name of a config.
    Setting.DEEP: "--deep=",
    Setting.DISK_GIB: "--disk ",
    Setting.FILE: "--file ",
    Setting.FORCE: "--force",
    Setting.GITHUB_OIDC: "--github-oidc",
    Setting.GPUS: "--gpus ",
    Setting.HOURS: "--hours ",
    Setting.HUB: "--hub",
    Setting.KIND: "--kind ",
    Setting.KEEP: "--keep ",
    Setting.LIMIT: "--limit ",
    Setting.LOG: "--log ",
    Setting.LORA: "--lora",
    Setting.MICRO_BATCH: "--micro-batch ",
    Setting.MODEL: "--model ",
    Setting.NAME: "--name ",
    Setting.ON_DEMAND: "--on-demand",
    Setting.OUTPUT: "--output ",
    Setting.PARAMS: "--params ",
    Setting.PARAMETER: "--set ",
    Setting.PORT: "--port ",
    Setting.PRESET: "--preset ",
    Setting.REGION: "--region ",
    Setting.REPLACE: "--replace",
    Setting.REPOSITORY: "--repository ",
    Setting.SECONDS: "--seconds ",
    Setting.SECRET: "--secret ",
    Setting.SEQ_LEN: "--seq-len ",
    Setting.SPOT: "--spot",
    Setting.STACK: "--stack ",
    Setting.START: "--from ",
    Setting.STEPS: "--steps ",
    Setting.STEP_S: "--step-s ",
    Setting.TOKENS: "--tokens ",
    Setting.STEP: "--step ",
    Setting.UNCHECKED: "--unchecked",
    Setting.USD: "--usd ",
    Setting.USD_PER_HOUR: "--usd-per-hour ",
    Setting.USD_MAX: "--usd-max ",
    Setting.USD_PER_HOUR_MAX: "--budget ",
    Setting.WANDB: "--wandb ",
    Setting.WEIGHTS_IN_BUCKET: "--weights-in-bucket",
}


def command(call: Call) -> str:
    """Return the command line for the operation."""
    return " ".join(part for part in ("prime-train", _COMMANDS[call.operation], call.subject, *map(flag, call.options)) if part)


def flag(option: Option) -> str:
    """Return the flag for a setting, with its value if it has one, quoted for a shell."""
    value = shlex.quote(option.value) if option.value else ""
    return f"{_FLAGS[option.setting]}{value}".rstrip(" =")


def worded(advice: str | Advice) -> str:
    """Return the advice as text, with its operations and settings rendered as commands and flags; a string is returned unchanged."""
    if isinstance(advice, str):
        return advice
    return "".join(_worded(part) for part in advice.parts)


def in_one_line(error: UsageError | ExternalError) -> str:
    """Return the error's message followed by its advice, for lists with one line for each error."""
    return f"{error}; {worded(error.fix)}" if error.fix else str(error)


def _worded(part: str | Call | Option) -> str:
    match part:
        case Call():
            return command(part)
        case Option():
            return flag(part)
        case _:
            return part
