"""Configs as tasks of other tools."""

from enum import StrEnum


class Format(StrEnum):
    """The tools."""

    SKYPILOT = "skypilot"
    KUBERNETES = "kubernetes"
    DSTACK = "dstack"
