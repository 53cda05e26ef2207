"""Xids, the numbers under which NVIDIA's driver reports errors, and which of them mean that a GPU is broken.

Based on NVIDIA's catalogue ("Xid Errors", Analyzing Xid Errors with the Xid Catalog, for Ampere and later),
reworded. For each number it says whether to restart the application, reset the GPU or contact the vendor. A
GPU on a rented machine cannot be reset, so errors that need a reset require another machine. Errors that the
catalogue attributes to the application are only noted, because the same program would cause them on any
machine. Each driver adds numbers, so unknown ones are also only noted and never a reason to stop.
"""

from prime_agent.gpu.reading import Xid

BROKEN: dict[int, str] = {
    46: "the GPU stopped processing",
    48: "a memory error that ECC could not correct",
    54: "the GPU's auxiliary power is not connected",
    62: "the GPU's internal micro-controller halted",
    64: "bad memory could not be marked for repair",
    74: "an NVLink error",
    79: "the GPU has fallen off the bus",
    94: "an uncorrected memory error, contained to one program",
    95: "an uncorrected memory error that was not contained",
    119: "the GPU system processor does not answer",
    120: "the GPU system processor failed",
    140: "a memory error that ECC could not correct",
    143: "the GPU could not be initialised",
}

NOTED: dict[int, str] = {
    13: "a program's computation error",
    31: "a program's access to invalid memory",
    32: "a program's corrupted command list",
    43: "a program was stopped after its own error",
    45: "a program's work was discarded after an earlier error",
    # Whether training is affected is shown by the pending repair, which is read with the other figures.
    63: "bad memory was marked for repair",
    68: "a video processor error",
    69: "a program's command with an unknown class",
    92: "many memory errors that ECC corrected",
    109: "a context switch timed out",
}


def is_broken(xid: Xid) -> bool:
    return xid.code in BROKEN


def words(xid: Xid) -> str:
    """Return a text such as: GPU 3 reports Xid 79: the GPU has fallen off the bus."""
    who = "a GPU" if xid.gpu is None else f"GPU {xid.gpu}"
    meaning = BROKEN.get(xid.code) or NOTED.get(xid.code) or "see NVIDIA's list of Xid errors"
    return f"{who} reports Xid {xid.code}: {meaning}"
