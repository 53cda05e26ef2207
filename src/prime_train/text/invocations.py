"""Renders advice as text with commands and flags: for the terminal, and for messages and pages from which
people copy commands.

Outside the command line itself, this is the only module that contains the names of commands and flags.
"""

import shlex

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
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
    Operation.DOWN: "down",
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
    Operation.TRY: "try",
    Operation.VALIDATE: "validate",
    Operation.VERIFY: "checkpoints verify --all",
    Operation.VERIFY_BUNDLE: "bundle --verify",
    Operation.WATCH: "watch",
}
_FLAGS = {
    SettingAdvice.ALLOW_FOLDER: "--allow-folder ",
    SettingAdvice.ALLOW_SECRET_FILE: "--allow-secret-file ",
    SettingAdvice.BACKGROUND: "--background",
    SettingAdvice.BUCKET: "--bucket ",
    SettingAdvice.CODE: "--code ",
    SettingAdvice.CONFIG: "--config ",
    SettingAdvice.DEADLINE: "--deadline ",
    # A value after a space would be taken for the name of a config.
    SettingAdvice.DEEP: "--deep=",
    SettingAdvice.DISK_GIB: "--disk ",
    SettingAdvice.FILE: "--file ",
    SettingAdvice.FORCE: "--force",
    SettingAdvice.GITHUB_OIDC: "--github-oidc",
    SettingAdvice.GPUS: "--gpus ",
    SettingAdvice.HOURS: "--hours ",
    SettingAdvice.HUB: "--hub",
    SettingAdvice.KIND: "--kind ",
    SettingAdvice.KEEP: "--keep ",
    SettingAdvice.LIMIT: "--limit ",
    SettingAdvice.LOG: "--log ",
    SettingAdvice.LORA: "--lora",
    SettingAdvice.MICRO_BATCH: "--micro-batch ",
    SettingAdvice.MODEL: "--model ",
    SettingAdvice.NAME: "--name ",
    SettingAdvice.ON_DEMAND: "--on-demand",
    SettingAdvice.OUTPUT: "--output ",
    SettingAdvice.PARAMS: "--params ",
    SettingAdvice.PARAMETER: "--set ",
    SettingAdvice.PORT: "--port ",
    SettingAdvice.PRESET: "--preset ",
    SettingAdvice.REGION: "--region ",
    SettingAdvice.REPLACE: "--replace",
    SettingAdvice.REPOSITORY: "--repository ",
    SettingAdvice.SECONDS: "--seconds ",
    SettingAdvice.SECRET: "--secret ",
    SettingAdvice.SEQ_LEN: "--seq-len ",
    SettingAdvice.SPOT: "--spot",
    SettingAdvice.STACK: "--stack ",
    SettingAdvice.START: "--from ",
    SettingAdvice.STEPS: "--steps ",
    SettingAdvice.STEP_S: "--step-s ",
    SettingAdvice.TOKENS: "--tokens ",
    SettingAdvice.STEP: "--step ",
    SettingAdvice.UNCHECKED: "--unchecked",
    SettingAdvice.USD: "--usd ",
    SettingAdvice.USD_PER_HOUR: "--usd-per-hour ",
    SettingAdvice.USD_MAX: "--usd-max ",
    SettingAdvice.USD_PER_HOUR_MAX: "--budget ",
    SettingAdvice.WANDB: "--wandb ",
    SettingAdvice.WITHOUT_REHEARSAL: "--without-rehearsal",
    SettingAdvice.WEIGHTS_IN_BUCKET: "--weights-in-bucket",
}

DETACHED = "--detached"
"""The option that marks a control plane which a command has started in the background."""
SERVE_DETACHED = (_COMMANDS[Operation.SERVE], DETACHED)
"""The words of the command that is such a control plane."""


def command(call: Call) -> str:
    """Return the command line for the operation."""
    return " ".join(
        part
        for part in ("prime-train", _COMMANDS[call.operation], call.subject, *map(flag, call.options))
        if part
    )


def flag(option: Option) -> str:
    """Return the flag for a setting, with its value if it has one, quoted for a shell."""
    value = shlex.quote(option.value) if option.value else ""
    return f"{_FLAGS[option.setting]}{value}".rstrip(" =")


def worded(advice: str | Advice) -> str:
    """Return the advice as text, with its operations and settings rendered as commands and flags; a string is
    returned unchanged.
    """
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
