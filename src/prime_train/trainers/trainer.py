"""The port of every trainer; none of its methods has side effects."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec
from prime_train.trainers.checkpoint_folders import FileInfo
from prime_train.trainers.component_heartbeats import ComponentHeartbeats
from prime_train.trainers.log_rules import LogRule, of_spec
from prime_train.trainers.progress import LineReader
from prime_train.trainers.scattered_checkpoints import Gathering
from prime_train.trainers.services import Service, ServiceSurroundings
from prime_train.trainers.stale_outputs import Disposable, StaleOutputs

if TYPE_CHECKING:
    from prime_train.trainers.prime_rl.profile.profile import Profile


class Trainer(Protocol):
    """Every trainer implements the methods up to the first heading; the others have defaults for trainers
    without the feature.
    """

    def command(
        self, spec: RunSpec, *, checkpoints: str, resume_step: int | None, resume_folder: str | None
    ) -> str:
        """Return the command line for /bin/sh, with every inserted value quoted for the shell.

        `checkpoints` is the absolute checkpoint folder. Resume arguments are appended if `resume_step` is
        set; `resume_folder` is the absolute path of that checkpoint: its folder, or its first file.
        """

    def environment(self, spec: RunSpec, *, attempt: int, run_id: str, link: str = "") -> dict[str, str]:
        """Return the variables that the trainer gets in addition to the machine's. They include those of
        `spec.environment`, which take precedence.

        `link` is the address where people requested the run, for its tracker.
        """

    def reader(self, spec: RunSpec) -> LineReader:
        """Return a new reader of progress lines. Use one for each stream of lines, because a reader may
        remember a header.
        """

    def step_of(self, spec: RunSpec, name: str) -> int | None:
        """Return the step of the checkpoint called `name`, or None for any other name, however similar, and
        for a name without a number.
        """

    def folder_of(self, spec: RunSpec, step: int) -> str:
        """Return the usual name of the checkpoint of `step`; the one on the disk may be padded with zeros."""

    def is_complete(self, spec: RunSpec, files: Sequence[FileInfo], now_s: int) -> bool:
        """Return whether a checkpoint folder with these files is complete, as far as names, sizes and times
        show. `now_s` is the time in seconds since 1970.
        """

    def is_begun(self, spec: RunSpec, files: Sequence[FileInfo]) -> bool:
        """Return whether these files of a checkpoint folder show that a save has begun. Training steps may
        wait for such a save and stand still.
        """

    def known_errors(self) -> tuple[LogRule, ...]:
        """Return the rules for lines of the trainer's output that the tool knows, its own first."""

    def log_rules(self, spec: RunSpec) -> tuple[LogRule, ...]:
        """Return the user's log rules, followed by the known ones."""
        return (*of_spec(spec.health.log_rules), *self.known_errors())

    # ----------------------------------------------------------------------------------------------------
    # before the launch

    def setup(self, spec: RunSpec) -> tuple[str, ...]:
        """Return idempotent commands that install the trainer, to be run in the working tree before the
        spec's own `setup`.
        """
        return ()

    def python(self, spec: RunSpec) -> str:
        """Return the trainer's own Python, as a path from the working tree; empty if it is one of the working
        tree or of the machine.
        """
        return ""

    def stale_outputs(self, spec: RunSpec) -> StaleOutputs | None:
        """Return the outputs of earlier launches that the next launch must not find."""
        return None

    def launch_environment(self, spec: RunSpec, *, last_cause: Cause | None) -> dict[str, str]:
        """Return further variables for one launch. `last_cause` is why the previous attempt ended, or None if
        none has run.
        """
        return {}

    # -----------------------------------------------------------------------------------------------------
    # while it trains

    def services(self, spec: RunSpec, machine: ServiceSurroundings) -> tuple[Service, ...]:
        """Return the services beside the trainer that its steps wait for. Raises the exceptions of
        `machine.read`.
        """
        return ()

    def heartbeats(self, spec: RunSpec) -> ComponentHeartbeats | None:
        """Return the components of the trainer that send heartbeats over loopback."""
        return None

    def gathering(self, spec: RunSpec) -> Gathering | None:
        """Return where the trainer writes checkpoints that are no folders of their own, or None if each is a
        folder.
        """
        return None

    def best_step(self, spec: RunSpec, files: Mapping[str, str]) -> int | None:
        """Return the step of the checkpoint that the trainer calls its best so far, by the text of the files
        of a checkpoint that `best_files` names; None if they say nothing of it.
        """
        return None

    def best_files(self, spec: RunSpec) -> tuple[str, ...]:
        """Return the names of small files in a checkpoint that tell which checkpoint is the best so far."""
        return ()

    def counts_anew(self, spec: RunSpec) -> bool:
        """Return whether a resumed training counts its steps from 0 again, so that they are added to the step
        of the checkpoint.
        """
        return False

    def resume_line(self, spec: RunSpec) -> str:
        """Return a pattern of the line that the trainer prints when it loads the checkpoint to resume from,
        before its first step; empty if there is none. Without that line, a trainer that counts its steps anew
        is taken to have started over.
        """
        return ""

    def disposable(self, spec: RunSpec) -> Disposable | None:
        """Return the outputs that may be deleted when the disk fills up."""
        return None

    # ------------------------------------------------------------------------------------------------- when
    # it has ended

    def exit_code(self, spec: RunSpec, *, code: int, step: int) -> int:
        """Return the exit code to report for the trainer's exit code `code`. `step` is the newest completed
        step.
        """
        return code

    def log_files(self, spec: RunSpec) -> tuple[str, ...]:
        """Return the log files that the trainer writes besides its output, as paths inside the working tree,
        the most informative first.
        """
        return ()

    def last_lines(
        self, spec: RunSpec, logs: Mapping[str, Iterable[str]], output: Iterable[str]
    ) -> list[str]:
        """Return the lines in which the cause of a failure is looked for, given the ends of `log_files`, by
        path, and of the output.
        """
        return [*(line for found in logs.values() for line in found), *output]

    def kept_row(self, spec: RunSpec, line: str) -> str:
        """Return what to keep as evidence of a line of the metrics file; empty to keep nothing of it."""
        return line

    # -------------------------------------------------------------------------------------------------------
    # for people

    def profile(self, lines: Iterable[str], *, steps: int) -> "Profile | None":
        """Return where the time of the last `steps` steps goes according to these lines of the metrics file,
        or None if the trainer does not report it.
        """
        return None

    def shown_command(self, spec: RunSpec) -> str:
        """Return the command as the user would have typed it, without the arguments that each launch adds."""
        return spec.trainer.command

    def config_file(self, spec: RunSpec) -> str | None:
        """Return the path of the trainer's own config file inside the working tree, or None if it has
        none.
        """
        return None

    def commit(self, spec: RunSpec) -> str:
        """Return the commit of the trainer's own code that the spec names; empty if it names none."""
        return ""

    def output_folders(self, spec: RunSpec) -> tuple[str, ...]:
        """Return the folders inside the working tree that runs write; they are not packed for a machine."""
        return (spec.checkpoints.folder,)
