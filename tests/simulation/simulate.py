"""Plays seeds and reports which of them broke a promise.

python -m tests.simulation --seed N [--verbose]
python -m tests.simulation --seeds A:B [--jobs 2]

With --market, the machines come from several providers that lie; with --moves, prices change, and runs move
to cheaper machines; with --contract, trainers break the contract: saves that never become complete,
checkpoints that cannot be loaded, crashes of every kind.
"""

import argparse
import gc
import logging
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from tests.simulation.contract.simulation import ContractSimulation
from tests.simulation.loop import START_S
from tests.simulation.market import MarketSimulation
from tests.simulation.moving import MovingSimulation
from tests.simulation.promises import Broken
from tests.simulation.world import Simulation

HISTORY_MAX = 60
CHUNK = 50


@dataclass(frozen=True)
class Outcome:
    """The result of a seed. `failure` is empty if every promise held."""

    seed: int
    virtual_s: float
    events: int
    fences: int
    attempts: int
    seen: frozenset[str]
    """How runs and attempts ended, and which other events are in their histories."""
    failure: str = ""


WORLDS: dict[str, type[Simulation]] = {
    "market": MarketSimulation,
    "moves": MovingSimulation,
    "contract": ContractSimulation,
}
"""The simulations with something more than the usual faults, by the option that plays them."""


def play(seed: int, *, world: str = "", verbose: bool = False) -> Outcome:
    """Play one seed from its beginning to its end, in one of `WORLDS`; empty: with the usual faults."""
    simulation = WORLDS.get(world, Simulation)(seed, print if verbose else None)
    failure = ""
    try:
        simulation.play()
    except Broken as broken:
        failure = report(simulation, broken)
    loop, keeper = simulation.loop, simulation.keeper
    attempts = sum(truth.run.attempt for truth in keeper.runs.values())
    return Outcome(
        seed, loop.now_s - START_S, loop.events, keeper.fences, attempts, _seen(simulation), failure
    )


def _seen(simulation: Simulation) -> frozenset[str]:
    runs = simulation.keeper.runs
    lines = [line for run_id in runs for line in simulation.store.history(run_id)]
    return frozenset(
        {truth.run.state.value for truth in runs.values()}
        | {line.data.get("cause") or line.kind for line in lines}
    )


def report(simulation: Simulation, broken: Broken) -> str:
    """Return the seed, the promise, the virtual time, the run's history and the command that plays it
    again.
    """
    at_s = simulation.loop.now_s - START_S
    history = simulation.store.history(broken.run_id)[-HISTORY_MAX:] if broken.run_id else []
    lines = [f"  {line.at_s - START_S:7d}  e{line.attempt:<2d} {line.kind}: {line.text}" for line in history]
    head = f"seed {simulation.seed}: {broken.run_id} at second {at_s:.0f}: {broken}"
    kind = "".join(f" --{name}" for name, world in WORLDS.items() if type(simulation) is world)
    options = f"--seed {simulation.seed} --verbose{kind}"
    return "\n".join([head, *lines, f"replay: .venv/bin/python -m tests.simulation {options}"])


def play_all(seeds: Iterable[int], jobs: int = 1, *, world: str = "") -> Iterator[Outcome]:
    """Play every seed, in no particular order if there are several jobs."""
    if jobs <= 1:
        yield from (play(seed, world=world) for seed in seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, _collect_rarely) as pool:
        yield from pool.imap_unordered(partial(play, world=world), seeds, chunksize=CHUNK)


def main(arguments: list[str] | None = None) -> int:
    """Return exit code 0 if every promise held."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", default="0:1000", help="A:B, B not included")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--failures-max", type=int, default=5)
    for name in WORLDS:
        parser.add_argument(f"--{name}", dest="world", action="store_const", const=name, default="")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args(arguments)
    logging.getLogger("prime_train").setLevel(logging.ERROR)
    _collect_rarely()
    if options.seed is not None:
        outcome = play(options.seed, world=options.world, verbose=options.verbose)
        print(
            outcome.failure
            or f"seed {outcome.seed}: all promises held over {outcome.virtual_s / 3600:.1f} h, "
            f"{outcome.events} events"
        )
        return 1 if outcome.failure else 0
    first, last = (int(part) for part in options.seeds.split(":"))
    return _play_range(range(first, last), options.jobs, options.failures_max, world=options.world)


def _collect_rarely() -> None:
    """Let the garbage collector pass over what is loaded once, and run less often: a quarter of the time is
    its own otherwise.
    """
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


def _play_range(seeds: range, jobs: int, failures_max: int, *, world: str) -> int:
    started_s = time.monotonic()
    failed, played, virtual_s, events, attempts = 0, 0, 0.0, 0, 0
    for outcome in play_all(seeds, jobs, world=world):
        played, virtual_s, events = played + 1, virtual_s + outcome.virtual_s, events + outcome.events
        attempts += outcome.attempts
        if outcome.failure:
            failed += 1
            print(outcome.failure, flush=True)
            if failed >= failures_max:
                break
    took_s = time.monotonic() - started_s
    print(
        f"{played} seeds, {failed} failed, {attempts} attempts, {virtual_s / 3600:.0f} virtual hours, "
        f"{events} events in {took_s:.1f} s"
    )
    print(f"{played / took_s:.1f} seeds/s, {events / took_s:.0f} events/s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
