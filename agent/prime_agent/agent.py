"""The agent's imperative shell: one loop that passes events to the core and executes the effects it returns.
It makes no decisions.

The loop itself does nothing slow. Heartbeats, commits, uploads, scans of the checkpoint folder and evidence
each have their own thread, so that none of them can delay another, least of all the heartbeats.
"""

import logging
import os
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from prime_agent import effects as e
from prime_agent import events as v
from prime_agent.after_training.commands import StepCommands, StepContext
from prime_agent.before_training.image_environment import on_path
from prime_agent.before_training.runner import AttemptFolders, PhaseContext, Phases
from prime_agent.checkpoints.local_disk_cleanup import free_disk_space
from prime_agent.checkpoints.open_files import written_by
from prime_agent.checkpoints.promise import Seen
from prime_agent.checkpoints.rechecks.verification import reads_back
from prime_agent.checkpoints.stats import Moved
from prime_agent.checkpoints.surroundings import Surroundings
from prime_agent.checkpoints.thread_priority import step_back
from prime_agent.checkpoints.units import Units
from prime_agent.checkpoints.uploader import Cancelled, LocalCheckpoint, Means, Uploader, Vanished
from prime_agent.clock import Clock
from prime_agent.control_plane import ControlPlane
from prime_agent.credentials_endpoint import KeyLoan, with_loan
from prime_agent.deletions import DeletionCounter
from prime_agent.event_queue import Inbox, Worker
from prime_agent.evidence import Evidence
from prime_agent.gpu.reading import GpuReader
from prime_agent.keyring import KeyRing, Renewal
from prime_agent.machine_environment import MachineEnvironment
from prime_agent.machine_readings import SensorThread
from prime_agent.outputs.metrics_csv import MetricsCsv
from prime_agent.outputs.text_stream import TextStream
from prime_agent.outputs.uploader import OutputUploader, ResultsUploader, Stopped
from prime_agent.processes import Processes
from prime_agent.state import AgentState, Job, good, has_gone_on, initial, reached, saved_before
from prime_agent.state_machine import next_tick_s, step
from prime_agent.trainer.component_heartbeats import Heartbeats, report
from prime_agent.trainer.environment import SecretsToRedact, Source, for_children, lineage_variables
from prime_agent.trainer.process import StartCommand, TrainerRun, header_of
from prime_agent.trainer.reached_steps import ReachedSteps
from prime_agent.trainer.service_probe import watch_services
from prime_agent.trainer.stale_outputs import move_aside, remove_unneeded
from prime_agent.trainer.step_metrics import StepMetrics, stored_metrics
from prime_train.buckets.keys import METRICS_STREAM, NO_IDENTITY, STREAMS
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.manifest import Manifest
from prime_train.errors import ExternalError, PermanentError
from prime_train.runs.wire import Bootstrap, Commit, Heartbeat, JobExit, Phase, Reply
from prime_train.spec.causes import Cause
from prime_train.spec.checkpoint_names import CheckpointNames
from prime_train.trainers.of_spec import trainer_for

TICK_S_MIN = 0.01
LOCAL_KEPT = 2
"""Number of newest local checkpoints that the janitor never deletes, because the trainer may have one
open.
"""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Context:
    """The agent's interfaces to everything outside it."""

    control: Callable[[], ControlPlane]
    """A function that returns a new connection to the control plane; each thread uses a connection of its
    own.
    """
    bucket: Bucket
    processes: Processes
    gpus: GpuReader
    clock: Clock
    keys: KeyRing | None = None
    """Keys to the bucket that expire; None for keys that do not."""
    machine: MachineEnvironment = field(default_factory=lambda: MachineEnvironment(dict(os.environ)))
    """The environment that commands start from."""


class Agent:
    """Carries out one attempt, from its preflight to its last heartbeat. `run` returns the exit code of the
    agent's process.
    """

    def __init__(self, job: Bootstrap, context: Context, disk: Path, inbox: Inbox) -> None:
        self._job, self._context, self._inbox = job, context, inbox
        self._place = AttemptFolders(disk)
        self._state = initial(Job.of(job))
        self._leaving = threading.Event()
        self._metrics = StepMetrics(disk / "metrics.jsonl", MetricsCsv(self._place.logs / METRICS_STREAM))
        # The threads, and what only their jobs use.
        names = ("heartbeats", "commits", "uploads", "outputs", "keeper", "evidence", "verifier")
        self._workers = {name: Worker(name, inbox) for name in names}
        self._heartbeat_calls, self._commit_calls = context.control(), context.control()
        # The trainer, and the environment of commands.
        self._trainer = trainer_for(job.spec)
        env = self._trainer.environment(job.spec, attempt=job.attempt, run_id=job.run, link=job.origin_url)
        env |= lineage_variables(job, env)
        self._loan = _loan(context, disk)
        children = on_path(
            job.spec,
            self._place.work,
            for_children(context.machine.variables, job.spec.environment, job.secrets, env),
        )
        self._env = with_loan(children, self._loan, job.bucket_keys)
        self._secrets = SecretsToRedact(
            lambda: job.secrets | job.bucket_keys, *_credentials_issued(context.keys, self._loan)
        )
        self._phases = Phases(
            PhaseContext(
                job, self._place, context.bucket, context.processes, context.gpus, self._env, self._secrets
            ),
            inbox,
        )
        self._evidence = Evidence(
            context.bucket,
            job.run,
            job.attempt,
            logs=self._place.logs,
            own_logs={
                f"{job.spec.trainer.kind}-{Path(path).name}": self._place.work / path
                for path in self._trainer.log_files(job.spec)
            },
            metrics=lambda: stored_metrics(self._place.work, job.spec),
            disk=disk,
            gpus=context.gpus,
            secrets=self._secrets,
            owner=owner_of(job, disk),
            stall=self._stall,
            environment=lambda: "\n".join([*context.machine.lines(), self._phases.python]),
        )
        self._training: TrainerRun | None = None
        self._heartbeats: Heartbeats | None = None
        # Its checkpoints.
        self._ahead_s = 0
        self._deletions = DeletionCounter(lambda total: inbox.put(v.Deleted(total)))
        every_steps = job.spec.checkpoints.every_steps
        self._reached = ReachedSteps(
            context.clock.wall_s, start=reached(self._state), every_steps=every_steps
        )
        self._uploader = self._checkpoint_uploader()
        self._verification = self._uploader.verification(self._leaving, context.clock.monotonic_s)
        self._last: Manifest | None = None
        self._surroundings = Surroundings(
            self._place.work,
            job.spec.checkpoints.folder,
            step_of=lambda name: self._trainer.step_of(job.spec, name),
            outputs=job.spec.output_patterns,
        )
        self._found: dict[int, LocalCheckpoint] = {}
        self._manifests: dict[int, Manifest] = {}
        # Its outputs, and the steps after training.
        self._outputs = self._output_uploader()
        self._results = ResultsUploader(
            context.bucket, run_id=job.run, attempt=job.attempt, identity=job.identity or NO_IDENTITY
        )
        self._steps = self._step_commands()
        self._are_outputs_open = False
        self._streams = [
            TextStream(
                context.bucket,
                self._place.logs / name,
                run_id=job.run,
                attempt=job.attempt,
                identity=job.identity or NO_IDENTITY,
                secrets=self._secrets,
            )
            for name in STREAMS
        ]

    def _checkpoint_uploader(self) -> Uploader:
        job = self._job
        return Uploader(
            bucket=self._context.bucket,
            spec=job.spec,
            run_id=job.run,
            attempt=job.attempt,
            identity=job.identity,
            work=self._place.work,
            stage=self._place.stage,
            known=job.resume,
            clock=self._wall_s,
            files_s=self._files_s,
            means=Means(
                writers=written_by(owner_of(job, self._place.disk)),
                reached=self._reached.at,
                gone_on=lambda step_: has_gone_on(self._state, step_),
                is_heard=lambda: not self._state.channel.failures,
                fresh_below=lambda: self._state.fresh_below,
                header=lambda: header_of(job.spec, self._place.work),
                now_s=self._context.clock.wall_s,
                deletions=self._deletions,
            ),
            monotonic_s=self._context.clock.monotonic_s,
        )

    def _output_uploader(self) -> OutputUploader:
        job = self._job
        return OutputUploader(
            self._context.bucket,
            job.spec,
            self._place.work,
            run_id=job.run,
            attempt=job.attempt,
            identity=job.identity or NO_IDENTITY,
            uplink=self._uploader.uplink,
            stopped=self._leaving,
            newest_step=lambda: reached(self._state),
            clock=self._context.clock.wall_s,
            monotonic_s=self._context.clock.monotonic_s,
            deletions=self._deletions,
        )

    def _step_commands(self) -> StepCommands:
        job, context, place = self._job, self._context, self._place
        means = StepContext(
            bucket=context.bucket,
            run_id=job.run,
            spec=job.spec,
            processes=context.processes,
            work=place.work,
            logs=place.logs,
            folder=place.disk / "after",
            environment=lambda: self._phases.environment,
            secrets=self._secrets,
            record=self._results.add,
        )
        return StepCommands(means, self._inbox)

    @property
    def state(self) -> AgentState:
        return self._state

    def run(self) -> int:
        """Run the attempt to its end and return the exit code."""
        if self._context.keys is not None:
            ask, tell = self._context.control().keys, lambda text: self._inbox.put(v.Noted(text))
            renewal = Renewal(self._context.keys, ask, tell, self._context.clock.monotonic_s)
            threading.Thread(target=renewal.run, args=(self._leaving,), name="keys", daemon=True).start()
        SensorThread(
            self._place.disk, self._context.gpus, self._inbox, heartbeat_s=self._job.spec.health.heartbeat_s
        )
        event: v.Event = v.Started()
        while True:
            self._state, effects = step(self._state, event, self._context.clock.monotonic_s())
            for effect in effects:
                if isinstance(effect, e.Exit):
                    return self._leave(effect.code)
                self._carry_out(effect)
            now_s = self._context.clock.monotonic_s()
            event = self._inbox.get(max(TICK_S_MIN, next_tick_s(self._state, now_s) - now_s)) or v.Tick()

    def give_up(self, why: str) -> int:
        """Kill the trainer after a bug in the agent, try once to report the end, and return the exit code."""
        self._leave(e.Leave.BUG)
        ended = JobExit(cause=Cause.AGENT_ERROR, detail=why[:500])
        job, seq = self._job, self._state.channel.seq * 2 + 1
        last = Heartbeat(
            run=job.run,
            attempt=job.attempt,
            identity=job.identity,
            seq=seq,
            phase=Phase.EXITED,
            news=True,
            exit=ended,
        )
        try:
            self._context.control().exit(last)
        except ExternalError as error:
            _log.error("the control plane could not be notified: %s", error)
        return e.Leave.BUG

    def _leave(self, code: e.Leave) -> int:
        _log.info("leaving: %s", code.name.lower())
        self._leaving.set()
        self._phases.call_off()
        self._steps.close()
        self._context.processes.kill_all()
        return int(code)

    def _carry_out(self, effect: e.Effect) -> None:
        match effect:
            case e.RunPhase(phase):
                _log.info("phase %s", phase.value)
                self._phases.run(phase)
            case e.CancelPhase():
                self._phases.call_off()
                self._steps.close()
            case e.StartTrainer():
                self._start_trainer()
            case e.SignalTrainer(force):
                self._signal_trainer(force)
            case e.SendHeartbeat(heartbeat):
                self._send(lambda: self._heartbeat_calls.heartbeat(heartbeat))
            case e.SendExit(heartbeat):
                self._send(lambda: self._heartbeat_calls.exit(heartbeat))
            case e.ScanCheckpoints(settled):
                self._ahead_s = self._job.spec.checkpoints.settled_s + 1 if settled else 0
                self._workers["keeper"].do(self._scan, lambda why: v.CheckpointsScanned((), saving=False))
            case e.Upload(step_):
                self._upload(step_)
            case e.SendCommit(commit):
                self._workers["commits"].do(
                    lambda: self._committed(commit), lambda why: v.CommitFailed(commit.step, why)
                )
            case e.Settle(step_):
                self._workers["keeper"].do(lambda: self._settle(step_), lambda why: v.Settled())
            case e.VerifyCheckpoint(step_):
                self._workers["verifier"].do(
                    lambda: self._verified(step_),
                    lambda why: v.CheckpointVerified(step_, f"not readable: {why}"),
                )
            case e.FreeDiskSpace():
                committed, made = self._state.committed_step, reached(self._state)
                self._workers["keeper"].do(lambda: self._free_disk_space(committed, made), lambda why: None)
            case e.GatherEvidence():
                self._workers["evidence"].do(self._gather, lambda why: v.EvidenceDone(kept=False, why=why))
            case e.KeepLog(phase):
                self._workers["evidence"].do(lambda: self._keep_log(phase), lambda why: v.LogKept())
            case e.UploadOutputs():
                self._workers["outputs"].do(
                    lambda: self._upload_outputs(effect), lambda why: v.OutputsUploaded(failed=why)
                )
            case e.RunStep(index, step_, tried):
                self._open_outputs()
                self._steps.run(index, step_, reached(self._state), tried)
            case e.Evaluate(index, step_):
                self._steps.evaluate(index, step_)
            case e.PassOver(index, step_, newer):
                name = self._job.spec.after[index].name
                self._steps.note(
                    f"{name} passes over the checkpoint of step {step_}, because that of step {newer} is "
                    "complete"
                )
            case e.CancelSteps():
                self._steps.cancel()
            case e.FallBack(point, damaged):
                self._reached.restart(point.step)
                self._uploader.fell_back(point, damaged)
            case e.Exit():
                raise ValueError("Exit ends the loop")

    # --------------------------------------------------------------------------------------------------------
    # the trainer

    def _start_trainer(self) -> None:
        try:
            self._tidy_up()
        except OSError as error:
            self._inbox.put(
                v.TrainerExited(
                    127, Cause.TRAINER_ERROR, f"files of an earlier launch cannot be moved aside: {error}"
                )
            )
            return
        orphan = self._uploader.disregard_present()
        self._surroundings.disregard_present()
        if orphan:
            _log.info(
                "checkpoints that existed before the trainer started are not uploaded: steps %s", orphan
            )
        self._open_outputs()
        plan = StartCommand(
            self._job.spec,
            self._place.work,
            self._place.logs / "trainer.log",
            {**self._phases.environment, **self._launch_environment()},
            SecretsToRedact(lambda: self._job.secrets, *_credentials_issued(self._context.keys, self._loan)),
            self._state.job.resume_step,
            self._phases.restored,
            self._phases.progress_header,
        )
        self._training = TrainerRun(plan, self._context.processes, self._inbox, self._metrics, self._reached)
        self._training.start()
        if self._reads_back:
            self._verification.start()
        self._inbox.put(
            v.ServicesFound(watch_services(self._job.spec, self._place.work, self._env, self._inbox))
        )

    def _open_outputs(self) -> None:
        """Leave out the files that exist before the first command that may write outputs, and begin to upload
        outputs.
        """
        if not self._are_outputs_open:
            self._outputs.disregard_present()
        self._are_outputs_open = True

    def _tidy_up(self) -> None:
        stale = self._trainer.stale_outputs(self._job.spec)
        if stale is None:
            return
        moved = move_aside(self._place.work, stale, self._state.job.resume_step, attempt=self._job.attempt)
        if moved:
            _log.info("moved files of an earlier launch aside: %s", ", ".join(moved))

    def _launch_environment(self) -> dict[str, str]:
        """Return the variables that only this launch of the trainer gets, and start the server for its
        heartbeats if it sends any.
        """
        variables = self._trainer.launch_environment(self._job.spec, last_cause=self._job.last_cause)
        heartbeats = self._trainer.heartbeats(self._job.spec)
        if heartbeats is None:
            return variables
        try:
            self._heartbeats = Heartbeats(heartbeats.components, self._context.clock.monotonic_s)
        except OSError as error:
            _log.warning("the heartbeats of the trainer's components cannot be received: %s", error)
            return variables
        return {heartbeats.port_variable: str(self._heartbeats.port), **variables}

    def _signal_trainer(self, force: e.Force) -> None:
        if self._training is None:
            return
        _log.info("stopping the trainer: %s", force.name.lower())
        match force:
            case e.Force.ASK:
                self._training.ask()
            case e.Force.KILL:
                self._training.kill()

    # -------------------------------------------------------------------------------------------------- the
    # control plane

    def _send(self, send: Callable[[], Reply]) -> None:
        self._workers["heartbeats"].do(lambda: v.HeartbeatAnswered(send()), v.HeartbeatFailed)

    def _committed(self, commit: Commit) -> v.Event:
        try:
            return v.CommitAnswered(commit.step, self._commit_calls.commit(commit))
        except (
            PermanentError
        ):  # most likely the control plane does not find the manifest, so that the next try will
            manifest = self._manifests.get(commit.step)
            if manifest is not None:
                self._uploader.confirm(manifest)
            raise

    # --------------------------------------------------------------------------------------------------------
    # checkpoints

    def _files_s(self) -> int:
        """Return the time in seconds with which the modification times of files are compared. Once no process
        can write any more, it is far ahead of the clock, so that every file counts as old enough to be
        complete.
        """
        return self._wall_s() + self._ahead_s

    def _wall_s(self) -> int:
        return int(self._context.clock.wall_s())

    def _scan(self) -> v.Event:
        begun_s = self._context.clock.monotonic_s()
        now_s = self._files_s()
        found = self._uploader.scan(now_s)
        saving, begun, removed = (
            self._uploader.saving(now_s),
            self._uploader.begun_step(),
            self._uploader.is_removed(),
        )
        self._found = {local.step: local for local in found}
        seen, again = self._look(now_s), tuple(local.step for local in found if local.is_again)
        took_s = self._context.clock.monotonic_s() - begun_s
        return v.CheckpointsScanned(
            tuple(self._found), saving, took_s, begun, removed, seen, again, self._uploader.waits_to_look
        )

    def _look(self, now_s: int) -> Seen:
        """Return what lies in and near the checkpoint folder besides the complete checkpoints that are
        known.
        """
        good_step = max([good(self._state), *self._found])
        is_first = good_step <= (self._state.job.resume_step or 0)
        refused = self._uploader.refusals(now_s, above=good_step)
        return self._surroundings.look(
            self._uploader.units(),
            refused,
            above=good_step,
            deep=is_first,
            at_once=self._state.flush is not None,
        )

    def _upload(self, step_: int) -> None:
        local = self._found.get(step_)
        if local is None:
            self._inbox.put(v.UploadFailed(step_, "the file no longer exists"))
            return
        self._workers["uploads"].do(
            lambda: self._uploaded(local), lambda why: v.UploadFailed(local.step, why)
        )

    def _uploaded(self, local: LocalCheckpoint) -> v.Event | None:
        def called_off() -> bool:
            return self._leaving.is_set() or self._uploader.overtaken(local.step, tuple(self._found))

        try:
            metrics = self._metrics.at(local.step, after=saved_before(self._state, local.step))
            manifest = self._uploader.upload(local, cancelled=called_off, metrics=metrics)
        except (Vanished, Cancelled) as error:
            return v.UploadFailed(local.step, str(error))
        self._manifests[manifest.step] = manifest
        sent = self._uploader.sent
        moved = Moved(sent.bytes_total, sent.bytes_sent, sent.ended_s - sent.began_s)
        return v.Uploaded(manifest.step, manifest.key, moved, owes_best=self._uploader.owes_best)

    def _settle(self, step_: int) -> v.Event:
        manifest = self._manifests.get(step_)
        if manifest is not None and (self._last is None or manifest.step >= self._last.step):
            self._last = manifest
        for older in [other for other in self._manifests if other <= step_]:
            del self._manifests[older]
        if manifest is not None and not self._leaving.is_set():
            self._uploader.committed(manifest, self._wall_s())
            if self._reads_back:
                self._verification.begin(manifest)
        return v.Settled()

    @property
    def _reads_back(self) -> bool:
        """Whether what checkpoints share is read back while the run trains."""
        return reads_back(self._job.spec.checkpoints.verify, self._job.bucket_url)

    def _verified(self, step_: int) -> v.Event:
        # What follows the commit may still be waiting for the disk or the bucket to be cleaned up.
        own = (*self._manifests.copy().values(), *([self._last] if self._last is not None else []))
        manifest = next((one for one in own if one.step == step_), None)
        if manifest is None:
            return v.CheckpointVerified(step_)  # of an earlier attempt: it was verified when it was restored
        damage = self._verification.whole(manifest)
        again = self._uploader.on_disk(step_) if damage else None
        if again is not None:
            _log.warning(
                "the checkpoint of step %d is uploaded again, because it is damaged in the bucket", step_
            )
            metrics = self._metrics.at(step_, after=saved_before(self._state, step_))
            try:
                manifest = self._uploader.upload(again, cancelled=self._leaving.is_set, metrics=metrics)
            except (Vanished, Cancelled) as error:
                return v.CheckpointVerified(step_, f"{damage}; {error}")
            damage = self._verification.whole(manifest)
        return v.CheckpointVerified(step_, damage)

    def _free_disk_space(self, committed_step: int, made_step: int) -> None:
        spec = self._job.spec
        disposable = self._trainer.disposable(spec)
        gone: tuple[str, ...] = ()
        if disposable is not None:
            gone = remove_unneeded(
                self._place.work,
                disposable,
                made_step,
                disk_path=self._place.disk,
                told=self._deletions.folder,
            )
        if gone:
            _log.info("removed files that the trainer no longer needs: %s", ", ".join(gone))
        removed = free_disk_space(
            units=Units(
                CheckpointNames.of(spec),
                self._place.work,
                accepts_files=self._trainer.gathering(spec) is None,
            ),
            committed_step=committed_step,
            keep_newest=LOCAL_KEPT,
            max_disk_gib=spec.checkpoints.max_disk_gib,
            disk_path=self._place.disk,
            owed=self._uploader.owed_steps,
            told=self._deletions.local,
        )
        if removed:
            _log.info("removed local checkpoints that are committed: steps %s", removed)

    # --------------------------------------------------------------------------------------------------------
    # outputs

    def _upload_outputs(self, wanted: e.UploadOutputs) -> v.Event:
        """Upload logs and metrics first, because they are small and most informative, then the outputs that
        have changed. What was logged meanwhile follows, between two outputs and at the end, because outputs
        may take long.
        """
        step_back()
        failed = self._upload_texts(wanted)
        try:
            self._results.upload()
        except ExternalError as error:
            failed = str(error)
        try:
            refused = self._outputs.upload(
                trainer_ended=wanted.trainer_ended, between=lambda: self._upload_texts(wanted)
            )
        except Stopped:
            return v.OutputsUploaded(failed="the agent is leaving")
        return v.OutputsUploaded(refused, self._upload_texts(wanted) or failed)

    def _upload_texts(self, wanted: e.UploadOutputs) -> str:
        """Upload what was added to logs and metrics, and return why that failed; "" if it did not."""
        failed = ""
        for stream in self._streams:
            try:
                stream.upload(is_last=wanted.trainer_ended)
            except (ExternalError, OSError) as error:
                failed = str(error)
        return failed

    # --------------------------------------------------------------------------------------------------------
    # evidence

    def _stall(self) -> str:
        """Return the known reasons why no step is made, from heartbeats of the trainer's components and from
        its logs.
        """
        server, now_s = self._heartbeats, self._context.clock.monotonic_s()
        # Evidence is requested after the step's deadline, so one heartbeat interval without a ping is long
        # enough to count as silence.
        lines = (
            report(server.received, now_s, quiet_s=self._job.spec.health.heartbeat_s)
            if server is not None
            else []
        )
        return "\n".join([*lines, self._suspicion() or "the trainer's output names no cause"])

    def _suspicion(self) -> str:
        found = self._training.suspicion() if self._training is not None else None
        return "" if found is None else f"{found[0].value}: {found[1]}"

    def _gather(self) -> v.Event:
        suspicion = self._suspicion()
        if suspicion:
            self._inbox.put(v.Noted(suspicion))
        self._evidence.gather()
        return v.EvidenceDone(kept=True)

    def _keep_log(self, phase: Phase) -> v.Event:
        self._evidence.keep_log(phase)
        return v.LogKept()


def _loan(context: Context, disk: Path) -> KeyLoan | None:
    """Return an endpoint that serves temporary bucket keys to the trainer's own tools.

    Return None if the keys do not expire. Return None also if the endpoint cannot be set up: the trainer's
    own tools then get no keys, but the agent itself is not affected.
    """
    if context.keys is None:
        return None
    try:
        return KeyLoan(context.keys.newest, disk, context.clock.wall_s)
    except OSError as error:
        _log.warning("the trainer's tools cannot get keys to the bucket: %s", error)
        return None


def _credentials_issued(keys: KeyRing | None, loan: KeyLoan | None) -> list[Source]:
    """Return functions that read the temporary keys, whose values must be redacted."""
    return [source.secrets for source in (keys, loan) if source is not None]


def owner_of(job: Bootstrap, disk: Path) -> str:
    """Return the mark of every process that this attempt starts on this disk.

    It includes the disk, because local pods on one machine share its list of processes.
    """
    return f"{job.run}-e{job.attempt}-{zlib.crc32(str(disk).encode()):08x}"
