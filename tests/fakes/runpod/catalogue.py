"""The kinds of GPU that the fake rents out, and where."""

from dataclasses import dataclass, field

SECURE, COMMUNITY = "SECURE", "COMMUNITY"


@dataclass(frozen=True)
class Kind:
    """A kind of GPU. `usd`: the price of one GPU per hour by cloud; `places`: the data centres by cloud,
    empty if RunPod does not tell.
    """

    id: str
    name: str
    memory: int
    usd: dict[str, float]
    places: dict[str, tuple[str, ...]] = field(default_factory=dict)
    max_count: int = 8
    manufacturer: str = "NVIDIA"


H100 = Kind(
    "NVIDIA H100 80GB HBM3",
    "H100 SXM",
    80,
    {SECURE: 2.99, COMMUNITY: 2.69},
    {SECURE: ("US-KS-2", "EUR-IS-1"), COMMUNITY: ()},
)
A100 = Kind(
    "NVIDIA A100 80GB PCIe",
    "A100 PCIe",
    80,
    {SECURE: 1.64, COMMUNITY: 1.19},
    {SECURE: ("US-KS-2",), COMMUNITY: ("CA-MTL-1",)},
)
RTX4090 = Kind(
    "NVIDIA GeForce RTX 4090",
    "RTX 4090",
    24,
    {SECURE: 0.69, COMMUNITY: 0.34},
    {SECURE: ("EU-RO-1",), COMMUNITY: ()},
)
MI300 = Kind(
    "AMD Instinct MI300X OAM", "MI300X", 192, {SECURE: 2.49}, {SECURE: ("EU-RO-1",)}, manufacturer="AMD"
)
GRACE = Kind("NVIDIA GH200 480GB", "GH200", 96, {SECURE: 1.99}, {SECURE: ("US-TX-3",)}, max_count=1)
EXAMPLES = (H100, A100, RTX4090, MI300, GRACE)
