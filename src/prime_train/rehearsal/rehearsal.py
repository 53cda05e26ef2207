"""What a rehearsal is asked for, and what it has found."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prime_train.rehearsal.chosen_progress import ProgressSeen
from prime_train.rehearsal.dress import Dressed
from prime_train.rehearsal.options import Number, with_number
from prime_train.rehearsal.recording import Recording
from prime_train.rehearsal.saves import Save, SavesSeen
from prime_train.rehearsal.trial import (
    Outcome,
    Tried,
)
from prime_train.spec.spec import RunSpec
from prime_train.trainers.registry import TRAINERS


@dataclass(frozen=True)
class Request:
    """What is to be rehearsed. `spec`: the run; of a command alone it says nothing but that. `folder`: the
    working tree. `seconds`: the limit of the first run; each further start has the same.
    """

    spec: RunSpec
    folder: Path
    seconds: float = 60.0

    @property
    def command(self) -> str:
        return self.spec.trainer.command

    @property
    def names_resume(self) -> bool:
        """Whether the config says how the script resumes."""
        return (
            "resume" in self.spec.trainer.model_fields_set
            or TRAINERS[self.spec.trainer.kind].layout is not None
        )


@dataclass(frozen=True)
class Started:
    """One start of the script, for a picture. `began_s`: seconds after the rehearsal began; `seen_s`: how
    long it ran. `reports`, `saves`: steps with their times after the start. `ended`: how it was ended.
    """

    label: str
    began_s: float
    seen_s: float
    reports: tuple[tuple[float, int], ...] = ()
    saves: tuple[tuple[float, int], ...] = ()
    ended: str = ""


@dataclass
class Rehearsal:
    """What a rehearsal has found. `first`: the recording of the first run; `lowered`: the option with which
    the script was made to save sooner. `tries`: starts with a restored checkpoint, the last one for each of
    the arguments that were tried. `was_hit`: the resumed script was killed while it saved; `again`: the start
    after that. `kept`: copies of complete saves of the first run.
    """

    request: Request
    first: Recording = field(default_factory=Recording)
    saves: SavesSeen = field(default_factory=SavesSeen)
    progress: ProgressSeen | None = None
    lowered: Number | None = None
    numbers: Sequence[Number] = ()
    scripts: Sequence[tuple[str, str]] = ()
    """Path and text of the scripts that the command starts, and of other Python files."""
    variables: Sequence[str] = ()
    """Variables of the environment by which the script seems to be told to resume."""
    tries: list[Tried] = field(default_factory=list)
    was_hit: bool = False
    again: Tried | None = None
    kept: list[tuple[Save, Path]] = field(default_factory=list)
    steps_of_saves: list[int] = field(default_factory=list)
    """The completed steps at each save of the first run."""
    same: tuple[int, int] = (0, 0)
    saved_on_stop: bool = False
    other_folder: str = ""
    why_open: str = ""
    dressed: Dressed | None = None
    starts: list[Started] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def resumed(self) -> Tried | None:
        """The start that resumed; None if none did."""
        return next((one for one in self.tries if one.outcome is Outcome.RESUMED), None)

    @property
    def is_proven(self) -> bool:
        if self.is_rented:
            return self.dressed is not None and self.dressed.is_good
        return (
            self.resumed is not None
            and self.again is not None
            and self.again.outcome is Outcome.RESUMED
            and (self.dressed is None or self.dressed.is_good)
        )

    @property
    def took_s(self) -> float:
        """Seconds of all of it, the run of the config by prime-train included."""
        return self.seconds + (self.dressed.seconds if self.dressed is not None else 0.0)

    @property
    def is_rented(self) -> bool:
        """Whether this is a rehearsal on rented machines, which were not watched from within."""
        return self.dressed is not None and self.dressed.usd is not None

    @property
    def until_second_save_s(self) -> float:
        """Seconds that the script needs to its second save, with much room."""
        saves = self.saves.saves
        return 3 * (saves[1].closed_s if len(saves) > 1 else self.request.seconds)

    @property
    def stop_s(self) -> float | None:
        """Seconds from SIGTERM to the end of the script; None if it had ended before, or did not end."""
        asked, ended = self.first.asked_s, self.first.ended_s
        return None if asked is None or ended is None else ended - asked


def lowered_spec(found: Rehearsal) -> RunSpec:
    """Return the run with the shorter interval between saves, if it needed one."""
    spec = found.request.spec
    if found.lowered is None:
        return spec
    lowered = found.lowered
    value = _paced(found, lowered)
    command = with_number(spec.trainer.command, lowered.option, value, is_setting=lowered.is_setting)
    return spec.model_copy(update={"trainer": spec.trainer.model_copy(update={"command": command})})


PACE_S = 1.0
"""Seconds that are to lie between two saves of later starts."""


def _paced(found: Rehearsal, lowered: Number) -> int:
    """Return the interval for later starts: it was chosen before it was known how long a step takes, and may
    have been far too short.
    """
    step_s = found.progress.series.step_s if found.progress is not None else 0.0
    if step_s <= 0 or found.saves.every != lowered.value:
        return lowered.value
    usual = next((one.value for one in found.numbers if one.option == lowered.option), lowered.value)
    return max(lowered.value, min(usual, round(PACE_S / step_s)))
