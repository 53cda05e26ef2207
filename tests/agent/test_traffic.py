"""What the agent counts of a machine's traffic, from files as the kernel writes them."""

from pathlib import Path

from prime_agent.traffic import TrafficMeter
from prime_train.core.wire import Traffic

ROUTE = """Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010011AC	0003	0	0	0	00000000	0	0	0
eth0	000011AC	00000000	0001	0	0	0	0000FFFF	0	0	0
docker0	000012AC	00000000	0001	0	0	0	0000FFFF	0	0	0
"""
ROUTE_6 = f"{'0' * 32} 00 {'0' * 32} 00 fd000000000000000000000000000001 00000400 00000003 00000000 00000003     eth1\n"
NO_ROUTE_6 = f"{'0' * 32} 00 {'0' * 32} 00 {'0' * 32} ffffffff 00000001 00000000 00200200       lo\n"


class Kernel:
    """The kernel's folder of network figures, and a clock."""

    def __init__(self, folder: Path, route: str = ROUTE, route_6: str = NO_ROUTE_6) -> None:
        self.folder, self.now_s = folder, 100.0
        (folder / "route").write_text(route)
        (folder / "ipv6_route").write_text(route_6)
        self.count(eth0=(7_000_000, 5_000))

    def count(self, **by_interface: tuple[int, int]) -> None:
        rows = [f"{name:>6}:{down:>8} 1 0 0 0 0 0 0 {up} 1 0 0 0 0 0 0" for name, (down, up) in by_interface.items()]
        head = "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs|bytes    packets"
        (self.folder / "dev").write_text("\n".join([head, *rows, ""]))

    def clock(self) -> float:
        return self.now_s


def test_only_what_passes_after_the_start_on_the_way_to_the_internet_counts(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    meter = TrafficMeter(kernel.clock, tmp_path)
    kernel.now_s += 60
    kernel.count(lo=(9_999, 9_999), eth0=(7_000_700, 5_030), docker0=(8_888, 8_888))
    assert meter.read() == Traffic(down_bytes=700, up_bytes=30, seconds=60)


def test_an_interface_that_is_made_anew_takes_nothing_away(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    meter = TrafficMeter(kernel.clock, tmp_path)
    kernel.count(eth0=(7_000_500, 5_000))
    meter.read()
    kernel.count(eth0=(40, 2))
    found = meter.read()
    assert found is not None
    assert (found.down_bytes, found.up_bytes) == (540, 2)


def test_an_interface_that_leads_to_the_internet_later_counts_from_then_on(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    meter = TrafficMeter(kernel.clock, tmp_path)
    (tmp_path / "ipv6_route").write_text(ROUTE_6)
    kernel.count(eth0=(7_000_000, 5_000), eth1=(10**12, 10**12))
    meter.read()
    kernel.count(eth0=(7_000_000, 5_000), eth1=(10**12 + 3, 10**12 + 4))
    found = meter.read()
    assert found is not None
    assert (found.down_bytes, found.up_bytes) == (3, 4)


def test_a_kernel_that_tells_nothing_is_not_taken_for_no_traffic(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    (tmp_path / "dev").write_text("eth0: what is this\n")
    meter = TrafficMeter(kernel.clock, tmp_path)
    assert meter.read() is None
    assert TrafficMeter(kernel.clock, tmp_path / "gone").read() is None


def test_a_machine_without_a_way_to_the_internet_reports_nothing(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path, route="Iface	Destination	Gateway\n")
    assert TrafficMeter(kernel.clock, tmp_path).read() is None
