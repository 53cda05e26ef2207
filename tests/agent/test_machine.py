"""What the agent reads of its machine, and what its children get of it."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from prime_agent.before_training.phase import PhaseError
from prime_agent.before_training.preflight import preflight, shm_warning, wanted_files
from prime_agent.before_training.runner import slow_restore
from prime_agent.gpu.cuda_contexts import Contexts
from prime_agent.gpu.reading import GpuLoad, GpuReader, GpuSnapshot, NoGpus
from prime_agent.machine_readings import TrafficMeter
from prime_agent.trainer.environment import for_children, without_secrets
from prime_train.runs.wire import Traffic
from prime_train.spec.causes import Cause
from prime_train.spec.spec import HardwareSpec
from tests.agent.gpu.gpu_snapshots import BUSY, EMPTY, LOST, snapshot
from tests.builders import spec
from tests.waiting import HANG_S


class Machine:
    """A machine with these GPUs."""

    def __init__(self, *loads: GpuLoad, **more: str) -> None:
        self._sight = snapshot(*loads, **more)

    def look(self, wait_s: float) -> GpuSnapshot:
        return self._sight


def fit(gpus: GpuReader, disk: Path, fault: str = "") -> None:
    preflight(
        HardwareSpec(gpus=("H100",), count=2, disk_gib=1, open_files_min=256),
        disk,
        gpus,
        lambda: Contexts(fault),
    )


@pytest.mark.parametrize(
    ("hardware", "wanted"),
    [
        (HardwareSpec(), 65_536),
        (HardwareSpec(provider="prime"), 65_536),
        (HardwareSpec(provider="local"), 0),
        (HardwareSpec(provider="local", open_files_min=4096), 4096),
    ],
)
def test_a_persons_own_machine_needs_no_other_open_file_limit_than_it_has(
    hardware: HardwareSpec, wanted: int
) -> None:
    assert wanted_files(hardware) == wanted


def test_a_machine_that_fits_passes(tmp_path: Path) -> None:
    fit(Machine(BUSY, EMPTY), tmp_path)


@pytest.mark.parametrize(
    ("gpus", "message"),
    [
        (Machine(BUSY), "1 GPUs are visible (H100), but hardware.count = 2"),
        (Machine(), "0 GPUs are visible (none), but hardware.count = 2"),
        (
            Machine(BUSY, LOST),
            "1 GPUs are visible (H100), but hardware.count = 2; GPU 1 cannot be used: GPU is lost",
        ),
        (Machine(BUSY, BUSY, LOST), "GPU 2 cannot be used: GPU is lost"),
        (
            Machine(BUSY, replace(BUSY, repair_pending=True)),
            "GPU 1 (H100) has bad memory that a reset must take out of use; reset the GPU",
        ),
        (
            Machine(BUSY, replace(BUSY, repair_failed=True)),
            "GPU 1 (H100) has bad memory that could not be taken out of use",
        ),
        (Machine(problem="NVML: Driver Not Loaded"), "no GPU is visible: NVML: Driver Not Loaded"),
        (NoGpus(), "0 GPUs are visible (none), but hardware.count = 2"),
    ],
)
def test_gpus_that_cannot_be_trained_on_are_refused_before_anything_is_done(
    gpus: GpuReader, message: str, tmp_path: Path
) -> None:
    with pytest.raises(PhaseError) as caught:
        fit(gpus, tmp_path)
    assert message in caught.value.detail


def test_errors_of_an_earlier_tenant_that_were_dealt_with_are_no_reason_to_refuse(tmp_path: Path) -> None:
    fit(Machine(BUSY, replace(BUSY, uncorrected=3)), tmp_path)


def test_where_no_gpu_is_requested_none_is_looked_at(tmp_path: Path) -> None:
    preflight(HardwareSpec(disk_gib=1, open_files_min=256), tmp_path, Machine(LOST), lambda: Contexts("none"))


def test_a_machine_on_which_no_cuda_context_can_be_made_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PhaseError) as caught:
        fit(Machine(BUSY, EMPTY), tmp_path, "no CUDA context can be made on GPU 1: CUDA_ERROR_OUT_OF_MEMORY")
    assert (caught.value.cause, caught.value.detail) == (
        Cause.PREFLIGHT_FAILED,
        "no CUDA context can be made on GPU 1: CUDA_ERROR_OUT_OF_MEMORY",
    )


@pytest.mark.parametrize(
    ("count", "workers", "mib", "warns"),
    [
        (2, 1, 64, True),
        (1, 4, 64, True),
        (1, 1, 64, False),
        (2, 1, 1024, False),
        (2, 1, None, False),
        (0, 4, 64, False),
    ],
)
def test_a_small_dev_shm_is_warned_about_where_processes_share_it(
    count: int, workers: int, mib: int | None, warns: bool
) -> None:
    hardware = {"gpus": ["H100"], "count": count} if count else {}
    wanted = spec(hardware=hardware, trainer={"kind": "torchrun", "command": "train.py", "workers": workers})
    text = shm_warning(wanted, None if mib is None else mib * 2**20)
    assert bool(text) == warns
    assert not warns or ("/dev/shm has 64 MiB" in text and "--shm-size=1g" in text)


@pytest.mark.parametrize(
    ("gib", "took_s", "warns"), [(1, 100.0, True), (1, 10.0, False), (0.1, 100.0, False), (1, 0.0, False)]
)
def test_a_restore_that_is_slow_is_warned_about_with_its_speed(
    gib: float, took_s: float, warns: bool
) -> None:
    text = slow_restore(int(gib * 2**30), took_s)
    assert bool(text) == warns
    assert not warns or "was downloaded and written at 11 MB/s: the machine's network or disk is slow" in text


def test_later_layers_win_and_our_own_secrets_are_left_out() -> None:
    machine = {
        "PATH": "/bin",
        "PRIME_TRAIN_MASTER_KEY": "k",
        "PRIME_TRAIN_POD": "local-1",
        "A": "machine",
        "PT_TOKEN": "t",
    }
    machine |= {"PRIME_API_KEY": "who rents machines is not the trainer"}
    assert for_children(machine, {"A": "spec", "B": "spec"}, {"B": "secret"}) == {
        "PATH": "/bin",
        "PRIME_TRAIN_POD": "local-1",
        "A": "spec",
        "B": "secret",
    }


def test_secrets_are_blacked_out_the_longer_first_and_short_ones_left() -> None:
    secrets = {"A": "abcdef", "B": "abcdefghij", "C": "1"}
    assert without_secrets("abcdef abcdefghij 1", secrets) == "<A> <B> 1"


def test_a_token_that_nobody_named_is_blacked_out_by_its_look() -> None:
    assert without_secrets(f"401 for hf_{'a' * 34}", {}) == "401 for (hidden)"


OTHERS = {
    "annotated_types",
    "blake3",
    "certifi",
    "charset_normalizer",
    "idna",
    "psutil",
    "pydantic",
    "pydantic_core",
}
OTHERS |= {"requests", "typing_extensions", "typing_inspection", "urllib3", "zstandard"}
"""Packages of others that an import of the agent loads. It is installed on each machine while its price is
paid."""
OURS_MAX = 105
"""Number of modules of prime_train that it loads. Lower this when there are fewer."""

LOADED = """
import json, sys
before = set(sys.modules)  # what the interpreter loads for its own environment
import prime_agent.main
found = {n: getattr(m, "__file__", None) or "" for n, m in sys.modules.items() if n not in before}
others = {n.partition(".")[0] for n, file in found.items() if "site-packages" in file}
ours = [n for n, file in found.items() if n.startswith("prime_train.") and not file.endswith("__init__.py")]
print(json.dumps([sorted(ours), sorted(others)]))
"""


def test_what_a_start_of_the_agent_loads_does_not_grow() -> None:
    """Checks the modules that it loads in a fresh interpreter."""
    command = [sys.executable, "-c", LOADED]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=HANG_S, env=dict(os.environ)
    )
    ours, others = json.loads(done.stdout)
    # The project's own packages are found there too where they are installed.
    assert set(others) - {"prime_train", "prime_agent"} <= OTHERS
    assert len(ours) <= OURS_MAX, f"{len(ours)}: {' '.join(ours)}"


# ------------------------------------------------------------------------------------------------------------
# traffic

ROUTE = """Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010011AC	0003	0	0	0	00000000	0	0	0
eth0	000011AC	00000000	0001	0	0	0	0000FFFF	0	0	0
docker0	000012AC	00000000	0001	0	0	0	0000FFFF	0	0	0
"""
ROUTE_6 = (
    f"{'0' * 32} 00 {'0' * 32} 00 fd000000000000000000000000000001 00000400 00000003 "
    "00000000 "
    "00000003     eth1\n"
)
NO_ROUTE_6 = f"{'0' * 32} 00 {'0' * 32} 00 {'0' * 32} ffffffff 00000001 00000000 00200200       lo\n"


class Kernel:
    """The kernel's folder of network figures, and a clock."""

    def __init__(self, folder: Path, route: str = ROUTE, route_6: str = NO_ROUTE_6) -> None:
        self.folder, self.now_s = folder, 100.0
        (folder / "route").write_text(route)
        (folder / "ipv6_route").write_text(route_6)
        self.count(eth0=(7_000_000, 5_000))

    def count(self, **by_interface: tuple[int, int]) -> None:
        rows = [
            f"{name:>6}:{down:>8} 1 0 0 0 0 0 0 {up} 1 0 0 0 0 0 0"
            for name, (down, up) in by_interface.items()
        ]
        head = (
            "Inter-|   Receive                                                |  Transmit\n face |bytes "
            "   packets errs|bytes    packets"
        )
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
