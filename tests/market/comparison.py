"""Compares the product with other policies and with the clairvoyant choice on many traces.

python -m tests.market --traces 200 [--jobs 2]
"""

import argparse
import multiprocessing
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.market.clairvoyant import least_usd
from tests.market.policies import CheapestSpot, Informed, OnDemand
from tests.market.product import Product
from tests.market.simulator import Cost, Policy, cost
from tests.market.traces import Trace, trace

PRODUCT, PRODUCT_STAYS = "the product, migrate: auto", "the product, migrate: never"
SPOT, ON_DEMAND = "cheapest spot first", "always on-demand"
INFORMED, INFORMED_STAYS = "knows the chances, moves", "knows the chances, stays"
TABLE = Path("build/market.md")


@dataclass(frozen=True)
class Compared:
    """What the job of a trace costs under each policy, and at least. `least_usd`: whatever is chosen;
    `least_staying_usd`: if each machine is kept until it is lost.
    """

    seed: int
    hours: float
    costs: Mapping[str, Cost]
    least_usd: float
    least_staying_usd: float

    def ratio(self, policy: str, to: str = "") -> float:
        """Return what the policy costs, relative to another one or to the least that is possible."""
        return self.costs[policy].usd / (self.costs[to].usd if to else self.least_usd)


def compare(seed: int) -> Compared:
    one = trace(seed)
    costs = {name: cost(one, policy) for name, policy in _policies(one).items()}
    return Compared(seed, one.job.work_min / 60, costs, least_usd(one), least_usd(one, moves=False))


def _policies(one: Trace) -> dict[str, Policy]:
    return {
        PRODUCT: Product(one, moves=True),
        PRODUCT_STAYS: Product(one, moves=False),
        SPOT: CheapestSpot(one),
        ON_DEMAND: OnDemand(one),
        INFORMED: Informed(one, moves=True),
        INFORMED_STAYS: Informed(one, moves=False),
    }


def compare_all(seeds: Iterable[int], jobs: int = 1) -> list[Compared]:
    """Return the comparison of each seed, in the order of the seeds."""
    if jobs <= 1:
        return [compare(seed) for seed in seeds]
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        return pool.map(compare, seeds, chunksize=1)


def table(compared: Sequence[Compared]) -> str:
    """Return the table of all policies: their cost relative to the clairvoyant's and to on-demand's, in
    Markdown.
    """
    lines = [
        f"Cost of a job on {len(compared)} traces, relative to the least that is possible with moves and "
        "without, and to always on-demand:",
        "",
        "| policy | median | p90 | most | median of those that stay | most of on-demand | losses | moves |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in compared[0].costs:
        least = sorted(one.ratio(name) for one in compared)
        staying = statistics.median(one.costs[name].usd / one.least_staying_usd for one in compared)
        on_demand = max(one.ratio(name, ON_DEMAND) for one in compared)
        losses = statistics.mean(one.costs[name].losses for one in compared)
        moves = statistics.mean(one.costs[name].moves for one in compared)
        figures = (statistics.median(least), least[int(0.9 * len(least))], least[-1], staying, on_demand)
        lines.append(
            f"| {name} | {' | '.join(f'{one:.3f}' for one in figures)} | {losses:.1f} | {moves:.1f} |"
        )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.market", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--traces", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    print(table(compare_all(range(options.traces), options.jobs)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
