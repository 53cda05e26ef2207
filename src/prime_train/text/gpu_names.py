"""What the name of a kind of GPU says."""

import re

TWO_BOARDS = ("A100", "H100", "H200")
"""Families of GPU that are for rent on two boards: those on PCIe cards train slower, and are not linked."""
PCIE = "PCIe"
_GB = re.compile(r"_([0-9]{1,4})GB")


def on_board(gpu: str, socket: str) -> str:
    """Return the kind of GPU with its board where that makes another kind of it, such as H100_80GB PCIe."""
    is_card = socket.upper() == PCIE.upper() and gpu.partition("_")[0].upper() in TWO_BOARDS
    return f"{gpu} {PCIE}" if is_card else gpu


def memory_gb_in(gpu: str) -> int:
    """Return the memory in GB that the name of a kind of GPU tells, such as 80 for H100_80GB; 0: it tells
    none.
    """
    named = _GB.search(gpu)
    return int(named[1]) if named else 0
