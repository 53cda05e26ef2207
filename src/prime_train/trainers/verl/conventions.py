"""Conventions of verl: the names of its checkpoints, and how it is told to resume."""

from prime_train.spec.shell_scripts import script_named
from prime_train.trainers.conventions.command_settings import settings_in
from prime_train.trainers.kind import Configured, Layout

FOLDER, MODE, _PATH = "trainer.default_local_dir", "trainer.resume_mode", "trainer.resume_from_path"
_EVERY = "trainer.save_freq"
_SHARING = "engine.ulysses_sequence_parallel_size"
_CONFIG = ("config-name", "config-path", "config-dir")
"""Arguments of a config file, in which the interval may be."""


def layout(spec: Configured) -> Layout:
    """Return the checkpoint names and resume arguments of a run of verl."""
    # A path with anything behind the number is refused by verl.
    return Layout(None, "global_step_{step}", resume=f"{MODE}=resume_path {_PATH}={{checkpoint}}")


def conflicts(spec: Configured) -> tuple[str, ...]:
    """Return descriptions of what would make a run of this kind save nothing or start over."""
    chosen = settings_in(spec.trainer.command)
    found = [
        f"kind verl sets {key} itself, from the checkpoint that was restored; delete this setting"
        for key in (FOLDER, MODE, _PATH)
        if key in chosen
    ]
    every = chosen.get(_EVERY)
    is_elsewhere = every is None and (
        script_named(spec.trainer.command) is not None
        or any(name in spec.trainer.command for name in _CONFIG)
    )
    if not is_elsewhere and (every is None or (every.lstrip("-").isdigit() and int(every) < 1)):
        found.append(
            f"verl saves no checkpoint, not even the last, without {_EVERY}; write {_EVERY}=20, or another "
            "number of steps"
        )
    if spec.trainer.resume and not {"resume_path", "{checkpoint}"} <= set(
        settings_in(spec.trainer.resume).values()
    ):
        found.append(
            f"trainer.resume {spec.trainer.resume!r} does not pass the checkpoint, and verl starts over; "
            "delete this key"
        )
    return tuple(found)


def sharing_data(spec: Configured) -> int | None:
    """Return how many processes of supervised training share one part of the data, of which one saves its
    position; None if a config file may say so.
    """
    command = spec.trainer.command
    size = settings_in(command).get(_SHARING)
    if size is None:
        return None if any(name in command for name in _CONFIG) else 1
    return int(size) if size.isdecimal() and len(size) < 5 else None
