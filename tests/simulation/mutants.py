"""Mistakes planted in the core, the store and reconcile, to show that the tests detect them.

    python -m tests.simulation.mutants [--seeds 300] [--only WORD]

copies the source, plants one mistake after the other, and prints which unit test and which seed detected it
first.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "prime_train"
UNIT_TESTS = (
    "tests/core",
    "tests/reconcile",
    "tests/contracts/test_store.py",
    "tests/simulation/test_found.py",
)
RUN_S_MAX = 900
OBSERVE, EXECUTE, STEPS, OUTBOX, SWEEPS = (
    f"watch/{name}.py" for name in ("observe", "execute", "steps", "outbox", "sweeps")
)
BY_PROVIDER = "providers/by_name.py"
ACTIVE_STATES, MONEY, NEXT_CHECK, ORPHANS, DRAINING, QUEUED = (
    f"runs/decide/{name}.py" for name in ("active", "money", "next_check", "orphans", "draining", "queued")
)
DECISIONS, FENCES, PROGRESS = (f"runs/change/{name}.py" for name in ("decisions", "fences", "progress"))
CHOICE, TRUST = (f"runs/resuming/{name}.py" for name in ("choice", "trust"))
RETENTION, NEXT_ACTION, OUTCOMES, UPLOADING = (
    "checkpoints/retention.py",
    "runs/next_action.py",
    "runs/decide/outcomes.py",
    "runs/decide/uploading.py",
)
VERDICT, CLOCK = "runs/verdict.py", "clock.py"
STORE, LEDGER = "stores/memory.py", "runs/ledger.py"


@dataclass(frozen=True)
class Edit:
    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Mutant:
    """`world`: only this one of `simulate.WORLDS` can detect it; empty: the usual one can."""

    name: str
    edits: tuple[Edit, ...]
    world: str = ""

    def stale(self) -> list[str]:
        """Return the texts to replace that are not in the source exactly once."""
        return [edit.old for edit in self.edits if (PACKAGE / edit.file).read_text().count(edit.old) != 1]


def _mutant(name: str, *edits: tuple[str, str, str], world: str = "") -> Mutant:
    return Mutant(name, tuple(Edit(*edit) for edit in edits), world)


MUTANTS = (
    _mutant(
        "the fence leaves the lease open",
        (FENCES, "replace(lease, open=False, order=", "replace(lease, order="),
    ),
    _mutant(
        "commits are taken from any attempt",
        (STORE, "or not _holds(lease, commit):", "or not lease.open:"),
    ),
    _mutant(
        "heartbeats are taken from any attempt",
        (STORE, "or not _holds(lease, heartbeat):", "or not lease.open:"),
    ),
    _mutant(
        "heartbeats are taken in any order",
        (STORE, "if heartbeat.seq <= lease.seq:", "if heartbeat.seq == lease.seq:"),
    ),
    _mutant(
        "pods of other attempts are left alone", (ORPHANS, "    if due:\n        return Terminate(due)\n", "")
    ),
    _mutant(
        "the pod is created before the intent is saved",
        (
            EXECUTE,
            "    if not context.store.save(intent):\n        return False\n    assert",
            "    assert",
        ),
        (
            EXECUTE,
            "    _create(context, launched, ranking.best[0], now_s)\n    return True\n",
            "    _create(context, launched, ranking.best[0], now_s)\n    return context.store.save(intent)\n",
        ),
    ),
    _mutant(
        "what is resumed is chosen among all attempts",
        (
            CHOICE,
            "    return (m for m in whole if m.step <= limits.get((m.attempt, m.identity), -1))\n",
            "    return iter(whole)\n",
        ),
        (
            "checkpoints/manifest.py",
            "(m for m in manifests if (m.attempt, m.identity) == (attempt, identity))",
            "iter(manifests)",
        ),
    ),
    _mutant(
        "what is resumed is not chosen anew after a fence", (FENCES, "        resume_chosen=False,\n", "")
    ),
    _mutant(
        "half a checkpoint counts",
        (
            "checkpoints/manifest.py",
            "(m for m in manifests if not missing_blobs(m, sizes))",
            "iter(manifests)",
        ),
    ),
    _mutant(
        "there is no breaker",
        (OBSERVE, "        blind=blind,\n        seen_since_s=seen_since_s,\n", ""),
    ),
    _mutant(
        "the canary is never asked",
        (OBSERVE, "context.canary.is_answering(now_s) if context.canary is not None else True", "True"),
    ),
    _mutant(
        "a single step concludes from silence without listening",
        (OBSERVE, "return replace(snapshot, hearing=hearing, listened_s=now_s)", "return snapshot"),
    ),
    _mutant(
        "a pod that is not listed is gone",
        (
            OBSERVE,
            "    mine = _mine(record.run)\n",
            "    mine = _mine(record.run)\n    gone |= {mine} if mine and mine not in known else set()\n",
        ),
    ),
    _mutant(
        "a provider that does not answer has no pods",
        (
            OBSERVE,
            "        return PodsUnknown(snapshot.listed)\n",
            "        return PodsObserved((), frozenset({_mine(record.run) or ''}))\n",
        ),
    ),
    _mutant(
        "a pod is asked back only once",
        (
            ORPHANS,
            "if requested.get(p.pod_id, -ORPHAN_RETRY_S) + ORPHAN_RETRY_S <= now_s",
            "if p.pod_id not in asked",
        ),
    ),
    _mutant(
        "attempts without progress are not counted",
        (FENCES, "strikes = (*strikes, decision.cause)", "strikes = strikes"),
    ),
    _mutant(
        "the budget is not looked at",
        (MONEY, ".usd >= budget.end_usd(run):", ".usd >= 1000 * budget.end_usd(run):"),
        (MONEY, ".usd >= budget.save_usd(run):", ".usd >= 1000 * run.spec.budget.usd:"),
    ),
    _mutant(
        "only the newest attempt is paid for",
        (
            LEDGER,
            "    for attempt in run.attempts:\n        each_s",
            "    for attempt in run.attempts[-1:]:\n        each_s",
        ),
    ),
    _mutant(
        "a wake does not raise the version",
        (
            STORE,
            "replace(run, version=run.version + 1, next_check_s=at_s)",
            "replace(run, next_check_s=at_s)",
        ),
    ),
    _mutant(
        "saves ignore the version",
        (STORE, "if stored is None or stored.version != run.version - 1:", "if stored is None:"),
    ),
    _mutant(
        "a silent machine is replaced without a word",
        (ACTIVE_STATES, "noted_s = run.noted_s(AlertKind.SILENT)", "noted_s = 0"),
    ),
    _mutant(
        "a machine is silent as soon as it is overdue",
        (VERDICT, "past_limit=silent_s > run.spec.health.silence_s", "past_limit=True"),
        (
            ACTIVE_STATES,
            "max(now_s + health.silence_s - verdict.silent_s + 1, noted_s + health.overdue_s)",
            "noted_s",
        ),
    ),
    _mutant(
        "a stalled machine is replaced without evidence",
        (
            ACTIVE_STATES,
            "        return RequestEvidence(verdict.cause, detail)",
            "        return Recover(verdict.cause, detail)",
        ),
    ),
    _mutant(
        "evidence given once counts for every stall",
        (PROGRESS, "replace(run.current_attempt, evidence_requested_s=None)", "run.current_attempt"),
    ),
    _mutant(
        "an alert is marked before it is sent",
        (
            OUTBOX,
            "            if (alert.key, name)",
            "            store.mark_sent(alert.key)\n            if (alert.key, name)",
        ),
    ),
    _mutant(
        "a dead pod that a lagging list shows is asked back for ever",
        (
            OBSERVE,
            "    pod_ids += [pod.pod_id for pod in d.orphan_pods(run, "
            "PodsObserved(tuple(known.values())))]\n",
            "",
        ),
    ),
    _mutant(
        "all steps of a sweep bear its first second",
        (STEPS, "return given_s if clock is None else clock()", "return given_s"),
    ),
    _mutant(
        "nobody looks at a pod while the run backs off",
        (NEXT_CHECK, "if unsettled(run) else not_before_s", "if False else not_before_s"),
    ),
    _mutant(
        "money is not looked at while a machine is silent",
        (
            DECISIONS,
            "return decision.until_s if money_s is None else min(decision.until_s, money_s)",
            "return decision.until_s",
        ),
        (
            ACTIVE_STATES,
            'Wait(min(now_s + check_s(run), max(now_s + 1, act_s)), "silent")',
            'Wait(max(now_s + 1, act_s), "silent")',
        ),
    ),
    _mutant(
        "an attempt that ended before it was seen cannot succeed",
        (ACTIVE_STATES, "            if run.state is RunState.BOOTING:  #", "            if False:  #"),
    ),
    _mutant(
        "a run that has stopped gracefully does not end",
        (
            DRAINING,
            "        case Sick(exited=True) | Gone():\n            return _stopped_gracefully(run, "
            "verdict)\n",
            "        case Sick(exited=True) | Gone():\n            ended = False\n",
        ),
    ),
    _mutant(
        "a tracker that cannot be asked takes back what it said",
        (
            VERDICT,
            "    run = with_tracker_report(run, evidence)\n",
            "    run = with_tracker_report(run, evidence)\n    if evidence.tracker is None and "
            "run.current_attempt is not None:\n"
            "        run = with_attempt(run, replace(run.current_attempt, last_sign_s=None))\n",
        ),
    ),
    _mutant(
        "a tracker speaks for a run whose step stands still",
        (
            VERDICT,
            "    return now_s - rose_s <= step_limit_s(run.spec.health, slow_s, saving=True) + LAG_S_MAX\n",
            "    return True\n",
        ),
    ),
    _mutant(
        "the step that a tracker tells of is forgotten",
        (
            VERDICT,
            "replace(attempt, last_sign_s=seen.received_s, tracked=_tracked(attempt, evidence))",
            "replace(attempt, last_sign_s=seen.received_s)",
        ),
    ),
    _mutant(
        "what was told is taken back at once",
        (ACTIVE_STATES, "and notice.at_s <= before_s", "and notice.at_s <= now_s"),
    ),
    _mutant(
        "the breaker lets the longest silent run through, always",
        ("runs/breaker.py", "longest_first[watch.let_through % len(longest_first)]", "longest_first[0]"),
    ),
    _mutant(
        "a crowd that is cut off is replaced",
        (
            "runs/breaker.py",
            "return after, frozenset(fell_s) if most else cohort",
            "return after, frozenset(fell_s if most else ())",
        ),
    ),
    _mutant(
        "those that an outage hid are no crowd",
        (
            "runs/breaker.py",
            "{run_id: max(active[run_id], receiving_since_s) for run_id in",
            "{run_id: active[run_id] for run_id in",
        ),
    ),
    _mutant(
        "a failed canary outweighs heartbeats", ("runs/breaker.py", "works=canary or arrives", "works=canary")
    ),
    _mutant(
        "a crowd that shrinks below its least goes at once",
        ("runs/breaker.py", "((watch.members & fell_s.keys()) | _together(fallen))", "_together(fell_s)"),
    ),
    _mutant(
        "machines are late while answers are lost",
        ("runs/breaker.py", "boots=blind or _unanswered(watch),", "boots=blind,"),
    ),
    _mutant(
        "one heartbeat outweighs a failed canary",
        ("runs/breaker.py", "min(ARRIVING_RUNS, len(heartbeats_s))", "min(1, len(heartbeats_s))"),
    ),
    _mutant(
        "heartbeats of long ago outweigh a failed canary",
        ("runs/breaker.py", ", now_s - ARRIVING_S - 1)", ", 0)"),
    ),
    _mutant(
        "a step is late for what was not heard",
        (VERDICT, "waited_s = received_s - since_s", "waited_s = now_s - since_s"),
    ),
    _mutant(
        "a machine to which no watcher came is late",
        (ACTIVE_STATES, "_lacks_agent(attempt, pods, now_s - 2 * health.settle_s)", "False"),
    ),
    _mutant(
        "an agent that was put late is given no time",
        (ACTIVE_STATES, "if now_s < put_s + health.settle_s:", "if False:"),
    ),
    _mutant(
        "a watcher decides by its own clock",
        (
            CLOCK,
            "return int(known.store_s + self._monotonic() - known.monotonic_s)",
            "return int(self._wall())",
        ),
    ),
    _mutant(
        "a watcher trusts what it knew of the store's time before its machine stood still",
        (
            CLOCK,
            "            known = self._known = self._measured()\n        return",
            "            known = self._known or self._measured()\n            self._known = known\n        "
            "return",
        ),
    ),
    _mutant(
        "the store's time is the wall clock of whatever process has opened it last",
        (
            CLOCK,
            "    if stored is not None and boot and stored.boot == boot and",
            "    if stored is not None and not boot and",
        ),
    ),
    _mutant(
        "a check that is a day away is waited for",
        (STORE, "if not now_s < at_s <= now_s + CHECK_S_MAX]", "if at_s <= now_s]"),
    ),
    _mutant(
        "time in which the webhook stood still counts as silence",
        (OBSERVE, "inbound = replace(watch.inbound, works_since_s=now_s)", "inbound = watch.inbound"),
    ),
    _mutant(
        "what was seen before a standstill is decided by",
        (OBSERVE, "or abs(now_s - snapshot.listened_s) <= SNAPSHOT_S_MAX:", "or True:"),
    ),
    _mutant(
        "an old pod that cannot be asked about blinds the watcher",
        (OBSERVE, "            if pod_id == mine:\n", "            if pod_id:\n"),
    ),
    _mutant(
        "the failing provider of an old machine holds up its run",
        (
            OBSERVE,
            "if name in snapshot.unlisted and attempt.number == d.current_attempt(run):",
            "if name in snapshot.unlisted:",
        ),
        world="market",
    ),
    _mutant(
        "an old machine stays until the provider of the current one answers",
        (
            ORPHANS,
            "return housekeeping(run, pods.others, now_s) if pods.others is not None else None",
            "return None",
        ),
        world="market",
    ),
    _mutant(
        "a provider whose list fails is asked about each old machine",
        (OBSERVE, """        if pod_id.partition("/")[0] in unlisted:""", "        if False:"),
    ),
    _mutant(
        "a provider whose list fails has no machine",
        (OBSERVE, "if name in snapshot.unlisted and attempt.number == d.current_attempt(run):", "if False:"),
        world="market",
    ),
    _mutant(
        "the lists of some providers pass for those of all",
        (
            BY_PROVIDER,
            "        if failed:\n            raise PartlyListed",
            "        if False:\n            raise PartlyListed",
        ),
        world="market",
    ),
    _mutant(
        "a launch counts as settled while its provider cannot be listed",
        (ORPHANS, "    if attempt.offer.provider in pods.unlisted:\n        return False\n", ""),
        world="market",
    ),
    _mutant(
        "a machine may cost more than it was offered for",
        (
            ACTIVE_STATES,
            "    if pod_id is None or most_usd is None or usd_per_hour <= most_usd:\n",
            "    if True:\n",
        ),
        world="market",
    ),
    _mutant(
        "nobody looks at machines of ended runs that wake up",
        (SWEEPS, "            suspects.append(record.run.run_id)\n", "            pass\n"),
        world="market",
    ),
    _mutant(
        "a machine in an unknown state counts as gone",
        (
            VERDICT,
            "if p.status is not PodStatus.GONE and p.pod_id",
            "if p.status not in (PodStatus.GONE, PodStatus.UNKNOWN) and p.pod_id",
        ),
        world="market",
    ),
    _mutant(
        "a failed look at one provider ends the look at all",
        (BY_PROVIDER, "                failed[name] = error\n", "                raise\n"),
        world="market",
    ),
    _mutant(
        "a run whose last checkpoint was never committed succeeds",
        (VERDICT, "    if durable < heartbeat.exit.saved_step:\n", "    if False:\n"),
        world="contract",
    ),
    _mutant(
        "a trainer that finished is finished, whatever lies unsaved on its machine",
        (VERDICT, "or heartbeat.outputs_pending or heartbeat.unsaved:", "or heartbeat.outputs_pending:"),
        (
            VERDICT,
            "return 0 < max(heartbeat.step, run.spec.trainer.steps or 0) <= lease.committed_step",
            "return True",
        ),
        world="contract",
    ),
    _mutant(
        "finished work is done over because its process crashed",
        (VERDICT, "if done and ended.code is not None and", "if False and"),
        world="contract",
    ),
    _mutant(
        "a machine is rented for a run whose last step is durable",
        (QUEUED, "    if (done := _done_before(run)) is not None:", "    if (done := None) is not None:"),
    ),
    _mutant(
        "a crash after the last step counts as success, durable or not",
        (VERDICT, "reached=step, durable_step=durable)", "reached=step, durable_step=step)"),
        world="contract",
    ),
    _mutant(
        "a checkpoint that cannot be loaded is restored again and again",
        (
            CHOICE,
            '        if one is not None:\n            return f"attempt',
            '        if False:\n            return f"attempt',
        ),
        world="contract",
    ),
    _mutant(
        "no checkpoint is ever blamed",
        (
            VERDICT,
            "        is_checkpoint = failed_to_resume(run, lease, ended.cause)\n",
            "        is_checkpoint = False\n",
        ),
        (
            FENCES,
            "    is_checkpoint = failed_to_resume(run, lease, decision.cause)\n",
            "    is_checkpoint = False\n",
        ),
        world="contract",
    ),
    _mutant(
        "a lost machine speaks against the checkpoint that it was to restore",
        (
            TRUST,
            "        or cause in OUTSIDE\n",
            "",
        ),
        world="contract",
    ),
    _mutant(
        "checkpoints are tried without end",
        (CHOICE, "if run.resume_failures >= CHECKPOINTS_TRIED_MAX:", "if False:"),
        world="contract",
    ),
    _mutant(
        "a checkpoint whose figures are not finite is resumed from",
        (CHOICE, "if manifest is not None and manifest.finite is False:", "if False:"),
        (CHOICE, "if self._run.finite_limit is not None and", "if False and"),
        world="contract",
    ),
    _mutant(
        "a rollback goes to a checkpoint that nobody has resumed from",
        (CHOICE, "        good = [p for p in good if (p.step, p.attempt) in known] or good\n", ""),
        world="contract",
    ),
    _mutant(
        "a run goes back without end",
        (OUTCOMES, "if run.rollbacks < health.rollback_times:", "if True:"),
        world="contract",
    ),
    _mutant(
        "the same error at the same step is tried again",
        (NEXT_ACTION, "    same = _same_before(ending, earlier)\n", "    same = None\n"),
        world="contract",
    ),
    _mutant(
        "memory that never sufficed is tried again",
        (
            NEXT_ACTION,
            "if ending.cause in _OUT_OF_MEMORY and ending.has_gained:",
            "if ending.cause in _OUT_OF_MEMORY:",
        ),
        (
            FENCES,
            "    if not gained and is_counted and not is_checkpoint:\n",
            "    if not gained and is_counted and action is None:\n",
        ),
        world="contract",
    ),
    _mutant(
        "a service that never answers is asked for ever",
        (NEXT_ACTION, "_outages(ending, earlier) >= OUTAGES_MAX:", "_outages(ending, earlier) >= 10**6:"),
        world="contract",
    ),
    _mutant(
        "doubtful checkpoints push out good ones",
        (
            RETENTION,
            "    return [c for c in newest_first if not c.is_doubtful]\n",
            "    return newest_first\n",
        ),
        world="contract",
    ),
    _mutant(
        "the newest proven checkpoint is deleted",
        (RETENTION, "[c for c in good if c.proven][:1]", "[]"),
        world="contract",
    ),
    _mutant(
        "the best checkpoint is deleted",
        (RETENTION, "[c for c in newest_first if c.step == best_step][:1]", "[]"),
        world="contract",
    ),
)


BITTEN = {
    "the fence leaves the lease open": 0,
    "commits are taken from any attempt": 20,
    "heartbeats are taken in any order": 0,
    "pods of other attempts are left alone": 0,
    "the pod is created before the intent is saved": 0,
    "what is resumed is chosen among all attempts": 80,
    "what is resumed is not chosen anew after a fence": 0,
    "half a checkpoint counts": 80,
    "the canary is never asked": 0,
    "a pod that is not listed is gone": 0,
    "a provider that does not answer has no pods": 0,
    "a pod is asked back only once": 0,
    "attempts without progress are not counted": 0,
    "the budget is not looked at": 0,
    "a silent machine is replaced without a word": 0,
    "a dead pod that a lagging list shows is asked back for ever": 0,
    "a watcher decides by its own clock": 0,
    "a watcher trusts what it knew of the store's time before its machine stood still": 0,
    "the store's time is the wall clock of whatever process has opened it last": 80,
    "a machine may cost more than it was offered for": 0,
    "a failed look at one provider ends the look at all": 0,
    "a machine in an unknown state counts as gone": 0,
    "a provider whose list fails has no machine": 20,
    "the failing provider of an old machine holds up its run": 75,
    "a run whose last checkpoint was never committed succeeds": 0,
    "a trainer that finished is finished, whatever lies unsaved on its machine": 0,
    "finished work is done over because its process crashed": 2,
    "a crash after the last step counts as success, durable or not": 4,
    "a checkpoint that cannot be loaded is restored again and again": 0,
    "no checkpoint is ever blamed": 0,
    "a checkpoint whose figures are not finite is resumed from": 14,
    "the same error at the same step is tried again": 23,
    "a run goes back without end": 0,
    "the newest proven checkpoint is deleted": 35,
    "the best checkpoint is deleted": 0,
    "a lost machine speaks against the checkpoint that it was to restore": 1,
    "checkpoints are tried without end": 205,
    "a rollback goes to a checkpoint that nobody has resumed from": 24,
    "memory that never sufficed is tried again": 3,
    "a service that never answers is asked for ever": 41,
    "doubtful checkpoints push out good ones": 69,
}
"""Mistakes that the simulation must detect in every test run, with the first seed to use, close to where each
was first detected.
"""


class Stale(Exception):
    """The text that a mutant replaces is not in the source any more."""


@contextmanager
def planted(mutant: Mutant) -> Iterator[dict[str, str]]:
    """Return an environment in which `import prime_train` finds the source with that mistake."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        source = Path(folder) / "src"
        if stale := mutant.stale():
            raise Stale(f"{mutant.name}: {stale[0]!r} must be in the source exactly once")
        shutil.copytree(PACKAGE, source / "prime_train", ignore=shutil.ignore_patterns("__pycache__"))
        for edit in mutant.edits:
            path = source / "prime_train" / edit.file
            path.write_text(path.read_text().replace(edit.old, edit.new))
        yield {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(source), str(ROOT))),
            "PYTHONDONTWRITEBYTECODE": "1",
        }


def simulate(environment: dict[str, str], seeds: tuple[int, int], *, world: str = "") -> str:
    """Return the simulation's report on the first seed that breaks a promise, or nothing. `world`: see
    `simulate.WORLDS`.
    """
    command = [
        sys.executable,
        "-m",
        "tests.simulation",
        "--seeds",
        f"{seeds[0]}:{seeds[1]}",
        "--failures-max",
        "1",
    ]
    command += [f"--{world}"] if world else []
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=RUN_S_MAX, check=False
    )
    found = re.search(r"^seed \d+: .*$", done.stdout, re.MULTILINE)
    if done.returncode == 0:
        return ""
    return found.group(0) if found else f"the simulation itself failed: {done.stderr.strip()[-300:]}"


def failing(environment: dict[str, str], *, first: bool, without: list[str]) -> list[str]:
    """Return the unit tests that fail."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--no-header",
        "-rfE",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        *UNIT_TESTS,
    ]
    command += ["-x"] if first else []
    command += [part for test in without for part in ("--deselect", test)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=RUN_S_MAX, check=False
    )
    return re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)


def main() -> int:
    """Return exit code 1 if a mutant is not detected."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.mutants",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--only", default="")
    parser.add_argument("--no-units", action="store_true")
    options = parser.parse_args()
    known = [] if options.no_units else failing(dict(os.environ), first=False, without=[])
    alive = 0
    for mutant in MUTANTS:
        if options.only not in mutant.name:
            continue
        with planted(mutant) as environment:
            unit = "" if options.no_units else next(iter(failing(environment, first=True, without=known)), "")
            seed = simulate(environment, (0, options.seeds), world=mutant.world)
        alive += not (unit or seed)
        print(
            f"{mutant.name}\n    unit test:  {unit or 'none'}\n    simulation: {seed[:200] or 'none'}",
            flush=True,
        )
    print(f"{alive} mutants live")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
