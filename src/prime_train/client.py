"""Python interface of prime-train: the same operations as the command line, with typed results and one family
of errors.


    client = Client()
    run = client.launch("configs/demo.yaml")
    for event in run.follow():
        print(event.at_s, event.kind, event.text)
    print(run.status().durable_step, run.status().spent_usd)

A client works with the control plane that its environment names: the one in the home folder of this machine
(`PRIME_TRAIN_HOME`, or `~/.prime-train`), or a remote one (`PRIME_TRAIN_STORE` and `PRIME_TRAIN_MASTER_KEY`).
The client itself decides nothing and rents nothing: it writes requests, and the control plane carries them
out.

Errors, all importable from this module, and all a `PrimeTrainError` (also `prime_train.PrimeTrainError`):

- `UsageError`: the request cannot be carried out; `fix` states what to do instead.
- `InvalidConfig`: a config has mistakes; `findings` lists each with its line.
- `ExternalError`: a store, bucket or provider failed. After a `TemporaryError` a retry may succeed, after a
  `PermanentError` it will not.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prime_train.app.follow import updates
from prime_train.app.home import Home
from prime_train.checkpoints.lookup import CheckpointRow as Checkpoint
from prime_train.checkpoints.lookup import look, rows_of
from prime_train.checks.validate import validate
from prime_train.environment import HOME
from prime_train.errors import ExternalError, PermanentError, PrimeTrainError, TemporaryError, UsageError
from prime_train.estimate.memory.training_setup import SEQ_LEN
from prime_train.interop.bundle.write import WrittenBundle, write_bundle
from prime_train.launch import dry_run
from prime_train.launch.allowed import Allowed
from prime_train.launch.launch_config import InvalidConfig, checked, launch_checked, settings_of
from prime_train.launch.probe import ProbeLimits
from prime_train.launch.resume import limits_of, resume
from prime_train.launch.stop import stop
from prime_train.market.ranking import Ranking
from prime_train.outputs.diff import OutputDiff, diff
from prime_train.outputs.event_files import EventFiles, write_event_files
from prime_train.outputs.files import WrittenFile
from prime_train.outputs.get import get as get_outputs
from prime_train.outputs.logs.logs import LogFilter, log_end
from prime_train.outputs.lookup import OutputRow as Output
from prime_train.outputs.lookup import outputs_of
from prime_train.outputs.lookup import rows_of as rows_of_outputs
from prime_train.outputs.results.compare import compare
from prime_train.outputs.results.comparison import Comparison
from prime_train.pages.markup import shown
from prime_train.pages.run_page import run_page_html
from prime_train.pages.run_sources import run_page
from prime_train.planning.cost import CostRequest, estimate_cost
from prime_train.planning.cost_report import CostReport
from prime_train.planning.find import FindRequest, FoundMachines, find_machines
from prime_train.planning.limits import PROBE_SECONDS, PROBE_STEPS, PROBE_USD
from prime_train.planning.memory import MemoryRequest, estimate_memory
from prime_train.planning.memory_report import MemoryReport
from prime_train.runs.archive import archive
from prime_train.runs.filter import RunFilter
from prime_train.runs.lookup import find
from prime_train.runs.run import HistoryEvent
from prime_train.spec.finding import Finding, Severity
from prime_train.status.diagnose import RunDiagnosis, diagnose
from prime_train.status.run_status import RunStatus
from prime_train.status.status import run_now, statuses

if TYPE_CHECKING:
    from prime_train.aws.doctor import DoctorCheck

__all__ = [
    "Checkpoint",
    "Client",
    "Comparison",
    "CostReport",
    "EventFiles",
    "ExternalError",
    "Finding",
    "FoundMachines",
    "InvalidConfig",
    "MemoryReport",
    "Output",
    "OutputDiff",
    "PermanentError",
    "PrimeTrainError",
    "Run",
    "RunDiagnosis",
    "RunStatus",
    "Severity",
    "TemporaryError",
    "UsageError",
    "WrittenFile",
]

FOLLOW_EVERY_S = 1.0
RUNS_MAX = 100


def _ignore(_: str) -> None:
    """Discard a warning. The default where a caller does not request warnings."""


def _words(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


class Client:
    """A client for the control plane that `home` or the environment names.

    `home`: the folder of a control plane on this machine; by default `PRIME_TRAIN_HOME`, or `~/.prime-train`.
    `environment`: variables to read in place of this process's own, such as `PRIME_TRAIN_STORE`. Creating a
    client sends no request and makes no folder.

    >>> import tempfile
    >>> Client(tempfile.mkdtemp()).runs()
    []
    """

    def __init__(
        self, home: str | Path | None = None, *, environment: Mapping[str, str] | None = None
    ) -> None:
        variables = dict(os.environ if environment is None else environment)
        if home is not None:
            variables[HOME] = str(Path(home).absolute())
        self._home = Home.of(variables)

    def __repr__(self) -> str:
        return f"Client({self._home.elsewhere or str(self._home.root)!r})"

    def runs(
        self,
        *,
        state: str | Sequence[str] = (),
        name: str = "",
        tag: str | Sequence[str] = (),
        since_s: int | None = None,
        archived: bool = False,
        runs_max: int = RUNS_MAX,
    ) -> list[RunStatus]:
        """Return the status of the newest `runs_max` runs that match all filters, newest first; without
        filters, of all runs.

        `state`: `training`, `failed` ..., or `active` or `ended`; with several, a run matches by any of them.
        `name`: a part of the run's id or of its config's name, or a pattern such as `qwen-*`. `tag`: one of
        the config's `tags`; with several, a run must have all of them. `since_s`: launched at most so many
        seconds ago. `archived`: archived runs too. Raises UsageError if a state is unknown, and ExternalError
        if the store does not answer.

        >>> import tempfile
        >>> Client(tempfile.mkdtemp()).runs(state="active", tag="ablation", since_s=86400)
        []
        """
        wanted = RunFilter(_words(state), name, _words(tag), since_s, archived=archived)
        return list(statuses(self._home.store(), wanted, runs_max=runs_max).runs)

    def run(self, name: str) -> "Run":
        """Return the run that `name` stands for: a run id, the start of one, or a config's name, which stands
        for its active run or, if none is active, its newest.

        Raises UsageError if no run matches, or more than one.

        >>> import tempfile
        >>> Client(tempfile.mkdtemp()).run("qwen-sft")
        Traceback (most recent call last):
            ...
        prime_train.errors.UsageError: there is no run qwen-sft
        """
        return Run(self._home, find(self._home.store(), name).run.run_id)

    def validate(self, *paths: str | Path) -> tuple[Finding, ...]:
        """Return every mistake in these configs, or in all configs in these folders, in order. Sends no
        request to another machine.

        >>> import pathlib, tempfile
        >>> config = pathlib.Path(tempfile.mkdtemp(), "sft.yaml")
        >>> _ = config.write_text("name: sft\\ntrainer: {command: python train.py, steps: -1}\\nbudget: {usd: 5}\\n")
        >>> [(finding.severity.value, finding.line) for finding in Client().validate(config) if "steps" in finding.message]
        [('error', 2)]
        """
        return validate([Path(path) for path in paths], self._home.environment).findings

    def offers(self, config: str | Path) -> Ranking:
        """Return the machines that a launch of this config would try, in that order, with what the run is
        expected to cost to its end on each (`quotes`), and why the other offers were left out. Prices are US
        dollars per hour for the entire machine. Raises InvalidConfig, and ExternalError if the provider does
        not answer.
        """
        shown = checked(self._home, Path(config), allowed=Allowed(without_rehearsal=True))
        return dry_run.ranking(self._home, shown)

    def memory(
        self,
        config: str | Path | None = None,
        *,
        model: str = "",
        kind: str | Sequence[str] = (),
        gpus: int | None = None,
        seq_len: int | None = None,
        micro_batch: int | None = None,
        lora: bool = False,
        bf16: bool = False,
        hub: bool = False,
    ) -> MemoryReport:
        """Estimate what a training takes of each GPU in each phase, in bytes, and whether it `fits` all its
        kinds of GPU.

        Arguments that are not given are taken from the config, which may be a run's or a trainer's; without a
        config, `model` alone is trained. `model`: an id such as `Qwen/Qwen3-8B`, or a size such as `8B`.
        `kind`: kinds of GPU with their memory, such as `H100_80GB`. `gpus`: the number of GPUs that train.
        `seq_len`: tokens per sequence. `micro_batch`: sequences that a GPU processes at once. `lora`: train
        adapters. `bf16`: weights, gradients and AdamW states in 16 bit. `hub`: request the model's shape from
        Hugging Face (`HF_ENDPOINT`, `HF_TOKEN`); otherwise no request is sent.

        Raises UsageError if the config or the model is not understood, and ExternalError if Hugging Face does
        not answer.

        >>> report = Client().memory(model="Qwen/Qwen3-8B", gpus=8, kind="H100_80GB")
        >>> report.fits, report.need.peak.phase.value, report.need.low < report.need.peak.total < report.need.high < 80 * 2**30
        (True, 'loss', True)
        """
        path = Path(config) if config is not None else None
        request = MemoryRequest(
            path, model, _words(kind), gpus, seq_len, micro_batch, lora=lora, bf16=bf16, hub=hub
        )
        return estimate_memory(request, self._home.environment)

    def cost(
        self,
        config: str | Path,
        *,
        usd_per_hour: float | None = None,
        step_s: float | None = None,
        steps: int | None = None,
        tokens: float | None = None,
        model: str = "",
        spot: bool | None = None,
    ) -> CostReport:
        """Estimate how long the run of this config takes and what it costs: for each type of machine the
        bills of the full run and of the smoke run, in seconds and US dollars, in the order in which a launch
        would try them.

        Arguments that are not given are taken from the config. `usd_per_hour`: the price of a machine, which
        can be preempted if `spot` is set, so that no request is sent; by default the machines for rent now
        or, without an account, those of the catalogue. `step_s`: seconds per step, by default as in an
        earlier run of the config, or else estimated from published speeds. `tokens`: tokens per step.
        `model`: as in `memory`.

        Raises UsageError if the config is not understood or no machine fits; and ExternalError if no provider
        answers.

        >>> import pathlib, tempfile
        >>> config = pathlib.Path(tempfile.mkdtemp(), "sft.yaml")
        >>> _ = config.write_text("name: sft\\ntrainer: {command: python train.py, steps: 1000}\\nbudget: {usd: 5}\\n")
        >>> best = Client().cost(config, usd_per_hour=2, step_s=3.6, spot=False).best
        >>> [line.name for line in best.full.lines], round(best.full.usd.low, 1) >= 2
        (['provisioning', 'set-up', 'training', 'upload', 'losses'], True)
        """
        return estimate_cost(
            self._home, CostRequest(Path(config), usd_per_hour, step_s, steps, tokens, model, spot)
        )

    def find(
        self,
        config: str | Path | None = None,
        *,
        model: str = "",
        params: str = "",
        gpus: int | None = None,
        usd_per_hour_max: float | None = None,
        spot: bool | None = None,
        lora: bool = False,
        rl: bool = False,
        bf16: bool = False,
        tokens: float | None = None,
        seq_len: int = SEQ_LEN,
        disk_gib: int | None = None,
        kind: str | Sequence[str] = (),
    ) -> FoundMachines:
        """Return the machines for rent now that fit a training, ordered by the cost of the entire training,
        and the reasons against the others. Nothing is rented.

        `config`: a run's config, whose model, hardware and variants are used where an argument is not given.
        `model`: an id such as `Qwen/Qwen3-8B`; `params`: its size if the id does not contain it, such as `7B`
        or `30B-A3B`. `tokens`: tokens to train on, by default as finished runs of the model, or 100M, in
        sequences of `seq_len` tokens. `lora`: train adapters; `rl`: reinforcement learning; `bf16`: all
        states in 16 bit. `gpus`: GPUs in the machine; `kind`: kinds of GPU, such as `H100`;
        `usd_per_hour_max`: the highest price of the machine in US dollars per hour; `spot`: only machines
        that can be preempted, or only others; `disk_gib`: GiB of disk, by default enough for the model and 2
        checkpoints.

        Raises UsageError if the config is not understood, the model is not known or a value is out of range,
        and ExternalError if the provider does not answer.

        >>> Client().find(model="Qwen/Qwen3-8B", usd_per_hour_max=20).choice.best.offer  # doctest: +SKIP
        Offer(provider='nebius', offer_id='nebius:H100_80GB:SXM5:8x:FIN-01:secure:spot', usd_per_hour=9.2, spot=True, ...)
        """
        request = FindRequest(
            model,
            params,
            gpus,
            usd_per_hour_max,
            spot,
            lora,
            rl,
            bf16,
            tokens,
            seq_len,
            disk_gib=disk_gib,
            kinds=_words(kind),
            config=Path(config) if config is not None else None,
        )
        return find_machines(self._home, request)

    def launch(
        self,
        config: str | Path,
        *,
        name: str | None = None,
        overrides: Mapping[str, object] | None = None,
        start_from: str | None = None,
        allow_folders: Sequence[str | Path] = (),
        allow_secret_files: Sequence[str] = (),
        without_rehearsal: bool = False,
    ) -> "Run":
        """Check the config, pack its working tree into the bucket and queue the run. `name`: a run name that
        replaces the config's; `overrides`: values that replace the config's, such as `{"trainer.steps": 5,
        "tags": ["try"]}`; `start_from`: a checkpoint of another run to start from, as `RUN@STEP`, or `RUN`
        for its newest complete one. Its content is not copied. `allow_folders`: folders outside of the
        repository that the code may be in; `allow_secret_files`: files of the code that are uploaded although
        they look like secrets; `without_rehearsal`: launch a script on a rented machine that was never
        rehearsed.

        Relative paths in the config start at the current folder, as on the command line. Raises InvalidConfig
        if the config has mistakes, UsageError if `name` is not a valid name or the run cannot start from that
        checkpoint, and ExternalError if store or bucket do not answer; in each case no run is queued.
        """
        settings = settings_of(overrides or {}, "overrides")
        allowed = Allowed(tuple(map(Path, allow_folders)), tuple(allow_secret_files), without_rehearsal)
        what = checked(
            self._home, Path(config), name=name, settings=settings, start_from=start_from, allowed=allowed
        )
        return Run(self._home, launch_checked(self._home, what).run_id)

    def probe(
        self,
        config: str | Path,
        *,
        steps: int = PROBE_STEPS,
        seconds: float = PROBE_SECONDS,
        usd: float = PROBE_USD,
        overrides: Mapping[str, object] | None = None,
    ) -> "Run":
        """Launch the config on the cheapest machine that fits, only to measure `steps` steps after the first
        one, for `seconds` or more. It ends by itself, without a last save, and costs `usd` at most;
        `status().probe` of the run has what was measured, and later estimates use it. `overrides`: as for
        `launch`. Raises what `launch` raises, and UsageError for a value out of range; no run is queued then.
        """
        limits, settings = ProbeLimits(steps, seconds, usd), settings_of(overrides or {}, "overrides")
        return Run(
            self._home,
            launch_checked(
                self._home, checked(self._home, Path(config), settings=settings, probe=limits)
            ).run_id,
        )

    def doctor(self, *, stack: str = "prime-train", region: str = "") -> "list[DoctorCheck]":
        """Check the control plane on AWS and return one `DoctorCheck` for each part: its name, its status
        (`well`, `wrong`, or `off` if an optional part is not set up), and a text with the problem and its
        remedy. Changes nothing.

        `stack`: the name of the stack. `region`: by default the one that AWS's own tools use. Raises
        UsageError if the name is not valid, and ExternalError if it cannot be determined whether the stack
        exists.

        >>> Client().doctor(stack="../staging")
        Traceback (most recent call last):
            ...
        prime_train.errors.UsageError: '../staging' is not a valid stack name
        """
        # Imported here because AWS's SDK takes longer to load than everything else that a client needs.
        from prime_train.aws.deployment import deployment
        from prime_train.aws.doctor import examine

        return list(examine(deployment(self._home, stack, region)))


@dataclass(frozen=True)
class Run:
    """A handle of one run on a control plane. Every method reads the run's current state from the control
    plane.
    """

    _home: Home
    id: str

    def __repr__(self) -> str:
        return f"Run({self.id!r})"

    def status(self) -> RunStatus:
        """Return the current status of the run: state, steps, money, attempts. Times are seconds of the
        control plane's clock.
        """
        return run_now(self._home.store(), self._home.files(), self.id)

    def stop(self, *, now: bool = False) -> RunStatus:
        """Request that the run saves, uploads and ends; with `now`, that it ends at once. Returns the status
        right after the request, without waiting for the end. Raises UsageError if the run is over.
        """
        stop(self._home.store(), self.id, now=now)
        return self.status()

    def resume(
        self,
        *,
        usd: float | None = None,
        hours: float | None = None,
        deadline: str | None = None,
        config: str | Path | None = None,
        name: str | None = None,
        step: int | None = None,
        without_rehearsal: bool = False,
    ) -> RunStatus:
        """Continue a run that has ended from its newest checkpoint that is trusted, or from that of `step`.

        `usd`, `hours`, `deadline` (such as `2026-12-01T18:00+01:00`): new limits, for all attempts together.
        `config`: a config to continue with, read now together with its code; `name`: the run's name, if it
        differs from that in `config`; `without_rehearsal`: let `config` run a script on a rented machine that was
        not rehearsed as it is there. Raises UsageError if the run is not over, a limit is invalid, its
        budget is spent or it has no complete checkpoint of `step`, and InvalidConfig if the config has
        mistakes.
        """
        limits = limits_of(usd=usd, hours=hours, deadline=deadline)
        resume(
            self._home,
            self.id,
            limits,
            config=Path(config) if config is not None else None,
            called=name,
            step=step,
            allowed=Allowed(without_rehearsal=without_rehearsal),
        )
        return self.status()

    def archive(self, *, undo: bool = False) -> RunStatus:
        """Archive the ended run, so that lists leave it out, or with `undo` take it out of the archive. Its
        checkpoints stay as they are. Raises UsageError if the run is not over, or a machine of it is still
        paid for.
        """
        archive(self._home.store(), self.id, undo=undo)
        return self.status()

    def history(self) -> list[HistoryEvent]:
        """Return all events of the run, oldest first; `at_s` is a Unix time in seconds."""
        return list(self._home.store().history(self.id))

    def follow(self, *, every_s: float = FOLLOW_EVERY_S) -> Iterator[HistoryEvent]:
        """Yield the events of the run, from its launch on, until it has ended and none of its machines is
        paid for any more. Reads the store every `every_s` seconds.

        A control plane must be running meanwhile; without one nothing happens and this iterator does not end.
        """
        for update in updates(self._home.store(), self.id, every_s=every_s):
            yield from update.events

    def logs(
        self,
        *,
        lines: int | None = None,
        attempt: int | None = None,
        since_s: int | None = None,
        text: str = "",
        is_pattern: bool = False,
        warn: Callable[[str], None] = _ignore,
    ) -> str:
        """Return the last lines of the run's newest log, read from its machine or from the bucket if the
        attempt has ended; empty if there is no log.

        `lines`: the most lines to return; by default 40, or with `since_s` all lines written in the last
        `since_s` seconds. `attempt`: the number of the attempt whose log to read. `text`: only lines that
        contain it; with `is_pattern` it is a regular expression (RE2). `warn` is called with the reason if a
        machine cannot be reached. Raises UsageError if the run has no such attempt or the regular expression
        is invalid.
        """
        store, log_filter = (
            self._home.store(),
            LogFilter(lines, attempt, since_s, text, is_pattern=is_pattern),
        )
        return log_end(store, self._home.files(), find(store, self.id), log_filter, warn).text

    def diagnose(self, *, warn: Callable[[str], None] = _ignore) -> RunDiagnosis:
        """Return what happened to the run and why. `warn` is called with each source that could not be
        read.
        """
        return diagnose(self._home.store(), self._home.files(), self._home.observer(), self.id, warn)

    def compare(self, base: str = "") -> Comparison:
        """Return the run's results compared with those of the run `base`, by default of the newest run on the
        base branch. Raises UsageError if one of them has no results.
        """
        return compare(self._home.store(), self._home.bucket, self.id, base)

    def checkpoints(self) -> list[Checkpoint]:
        """Return the run's checkpoints in the bucket, newest first. Sizes are bytes."""
        return rows_of(look(self._home.stored_runs(), self.id))

    def outputs(self, *, attempt: int | None = None, step: int | None = None) -> list[Output]:
        """Return the newest version of each output in the bucket, then the logs and metrics of each attempt.
        Sizes are bytes.

        `attempt`: only what this attempt left; `step`: outputs as they were at this step. Raises UsageError
        if the attempt left nothing.
        """
        return rows_of_outputs(outputs_of(self._home.stored_runs(), self.id), attempt=attempt, step=step)

    def get_outputs(
        self,
        folder: str | Path,
        *,
        only: str | Sequence[str] = (),
        attempt: int | None = None,
        step: int | None = None,
        replace: bool = False,
    ) -> list[WrittenFile]:
        """Download the outputs into `folder`, every byte verified, and the logs and metrics of each attempt
        into `_run/attempt-N` there.

        `only`: glob patterns such as `results/**`; `attempt` and `step` as in `outputs`; `replace`: overwrite
        files with other content. Files that programs would run by themselves, such as those of a `.git`, are
        left out. Raises UsageError if there is nothing to download, a file is in the way, or an output is
        damaged.
        """
        outputs = outputs_of(self._home.stored_runs(), self.id)
        return list(
            get_outputs(
                outputs, Path(folder), patterns=_words(only), attempt=attempt, step=step, replace=replace
            ).files
        )

    def diff_outputs(
        self, before: str = "", after: str = "", *, only: str | Sequence[str] = ()
    ) -> OutputDiff:
        """Return which outputs differ between two versions, each an attempt (`2`), a step (`@500`) or both
        (`2@500`). By default the newest are compared with those of the attempts before the last. Raises
        UsageError if there is no such version.
        """
        return diff(outputs_of(self._home.stored_runs(), self.id), before, after, patterns=_words(only))

    def write_event_files(self, folder: str | Path, *, attempt: int | None = None) -> EventFiles:
        """Write the metrics of each attempt, or of one, as TensorBoard event files into `folder`. Raises
        UsageError if there are none.
        """
        return write_event_files(outputs_of(self._home.stored_runs(), self.id), Path(folder), attempt=attempt)

    def write_bundle(
        self,
        file: str | Path,
        *,
        with_weights: bool = False,
        weights_in_bucket: bool = False,
        replace: bool = False,
    ) -> WrittenBundle:
        """Write one archive that reproduces and explains the run, and return what is in it. `with_weights`:
        with the files of the newest complete checkpoint. Raises UsageError if `file` exists, unless `replace`
        is set, or a file of the checkpoint is damaged.
        """
        return write_bundle(
            self._home,
            self.id,
            Path(file),
            with_weights=with_weights,
            weights_in_bucket=weights_in_bucket,
            replace=replace,
        )

    def page(self) -> str:
        """Return the run's page as one self-contained HTML document: chart, figures, attempts, costs, log,
        checkpoints and diagnosis. Text from machines is escaped.
        """
        return run_page_html(run_page(self._home.store(), self._home.files(), self._home.observer(), self.id))

    def _repr_html_(self) -> str:
        """Return the status as an HTML table for notebooks. Texts written by machines are escaped."""
        now = self.status()
        rows = {
            "state": f"{now.state}: {now.why}" if now.why else now.state,
            "step": now.figures.steps_text,
            "spent": now.money,
            "attempts": f"{now.attempts} (restarts: {now.causes})",
            "heartbeat": now.heartbeat,
        } | ({"alerts": "; ".join(now.alert_texts)} if now.alerts else {})
        cells = "".join(
            f"<tr><th style='text-align:left'>{shown(key)}</th><td>{shown(text)}</td></tr>"
            for key, text in rows.items()
        )
        return f"<table><caption>{shown(now.run)}</caption>{cells}</table>"
