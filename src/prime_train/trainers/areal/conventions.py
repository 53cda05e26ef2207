"""AReaL's conventions: where it keeps its state for recovery, and the settings that each launch needs."""

from prime_train.trainers.conventions.command_settings import settings_in
from prime_train.trainers.kind import Configured, Layout

ROOT = "areal"
"""The folder of AReaL's files, inside the folder of checkpoints."""
USER = "areal"
"""The name of a user in AReaL's paths, so that they do not depend on the machine."""
TRIAL = "run"
INFO = "recover_info"
STEP = f"{INFO}/step_info.json"
LAST = f"{INFO}/dataloader_info.pkl"
"""The file that AReaL writes last."""
_ASYNC = "actor.megatron.async_save"


def layout(spec: Configured) -> Layout:
    """Return the names of the copies of AReaL's state. A launch needs no argument to resume, because it looks
    for the state itself.
    """
    return Layout(None, "step_{step}", files=(STEP, LAST), resume="")


def state_folder(spec: Configured) -> str:
    """Return the folder of the recoverable state, relative to that of checkpoints."""
    return f"{ROOT}/checkpoints/{USER}/{spec.name}/{TRIAL}"


def settings(spec: Configured) -> dict[str, str]:
    """Return the settings of every launch; `{checkpoints}` stands for the folder of checkpoints."""
    root = f"{{checkpoints}}/{ROOT}"
    return {
        "experiment_name": spec.name,
        "trial_name": TRIAL,
        "cluster.fileroot": root,
        "cluster.name_resolve.nfs_record_root": f"{root}/names",
        "recover.mode": "on",
    }


def conflicts(spec: Configured) -> tuple[str, ...]:
    """Return descriptions of what would make a run of this kind save nothing or start over."""
    chosen = settings_in(spec.trainer.command)
    # Whoever writes the mode of recovery, too, may do so if it is on.
    allowed = {("recover.mode", "on"), ("recover.mode", "auto")}
    found = [
        f"kind areal sets {key} itself, so that the state that was restored is found; delete this setting"
        for key in settings(spec)
        if key in chosen and (key, chosen[key]) not in allowed
    ]
    if chosen.get(_ASYNC, "").lower() == "true":
        found.append(f"with {_ASYNC} AReaL reports a state as saved before it is; write {_ASYNC}=false")
    if spec.trainer.resume:
        found.append(
            f"trainer.resume {spec.trainer.resume!r} has no effect, because AReaL resumes from its own "
            "state; delete this key"
        )
    return tuple(found)
