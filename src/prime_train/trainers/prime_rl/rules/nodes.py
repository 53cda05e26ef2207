"""Rules about several machines in a prime-rl config: SLURM starts them and their GPUs have to add up. A run
of prime-train has one machine.
"""

from collections.abc import Iterator

from prime_train.spec.rule import Violation
from prime_train.trainers.prime_rl.rules.rule import PrimeRlRules, violation
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig

_TYPE, _SERVED_BY = "deployment.type", "inference.deployment.type"
_SERVERS, _ISLAND = "deployment.num_infer_nodes", "deployment.nodes_per_fsdp_group"
_EXPERTS, _TENSOR = "inference.vllm.enable_expert_parallel", "inference.vllm.tensor_parallel_size"


_REFUSES = "prime-rl rejects the config at start-up, on a machine that is already paid for."
RULES = PrimeRlRules()


def _several(settings: ReceivedConfig) -> str | None:
    """Return the setting that requests more than one machine, or None."""
    if settings.value(_TYPE) == "multi_node":
        return _TYPE
    return _SERVED_BY if settings.value(_SERVED_BY) in ("multi_node", "disaggregated") else None


@RULES.error("PR325", "several machines without SLURM", why=_REFUSES, fix="add [slurm]")
def without_slurm(settings: ReceivedConfig) -> Iterator[Violation]:
    several, slurm = _several(settings), settings.has("slurm") or settings.has("inference.slurm")
    if settings.spec is None and several is not None and settings.is_complete and not slurm:
        yield violation(
            settings.place(several),
            "several machines need SLURM, but there is no [slurm]",
            'add [slurm], or type = "single_node"',
        )


@RULES.error(
    "PR326",
    "more than one machine",
    why="prime-train runs an attempt on one rented machine, which has no SLURM.",
    fix="use one machine with more GPUs",
)
def more_than_one(settings: ReceivedConfig) -> Iterator[Violation]:
    several = _several(settings)
    if settings.spec is None:
        return
    if several is not None:
        yield violation(
            settings.place(several),
            "prime-train runs on a single machine, not several",
            'write type = "single_node"',
        )
    elif settings.has("slurm"):
        yield violation(
            ("slurm",), "prime-train runs on a single machine, without SLURM", "delete [slurm]", on_key=True
        )


@RULES.error("PR376", "numbers of machines that do not agree", why=_REFUSES, fix="make their numbers agree")
def sums(settings: ReceivedConfig) -> Iterator[Violation]:
    if settings.spec is not None or settings.value(_TYPE) != "multi_node" or not settings.is_complete:
        return
    servers, has_server = settings.integer(_SERVERS), settings.has("inference")
    if servers is not None and (servers > 0) != has_server:
        message = "but there is no [inference]" if servers else "but there is an [inference]"
        yield violation(settings.place(_SERVERS), f"{_SERVERS} is {servers}, {message}", "make them agree")
    nodes, island = settings.integer("deployment.num_train_nodes"), settings.integer(_ISLAND)
    if nodes is not None and island is not None and (island < 1 or nodes % island):
        yield violation(
            settings.place(_ISLAND), f"{nodes} training nodes cannot be divided into groups of {island}"
        )
    if servers and has_server and settings.is_on(_EXPERTS) and settings.value(_SERVED_BY) != "disaggregated":
        yield from _engines(settings, servers)


def _engines(settings: ReceivedConfig, servers: int) -> Iterator[Violation]:
    """Yield a violation if the engines do not fill the nodes; with expert parallelism one engine spans all
    nodes of a replica.
    """
    node, tensor = settings.integer("deployment.gpus_per_node"), settings.integer(_TENSOR)
    data = settings.integer("inference.vllm.data_parallel_size")
    if node is None or tensor is None or data is None or tensor < 1:
        return
    if node % tensor:
        yield violation(
            settings.place(_TENSOR), f"nodes of {node} GPUs cannot be divided into engines of {tensor}"
        )
    elif data * tensor != servers * node:
        message = (
            f"tensor_parallel_size x data_parallel_size is {tensor} x {data} GPUs, "
            "but "
            f"{servers * node} GPUs serve"
        )
        yield violation(
            settings.place(_EXPERTS), message, f"write data_parallel_size = {servers * node // tensor}"
        )
