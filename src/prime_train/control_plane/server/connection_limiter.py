"""Chooses which connection to close when too many are open: the longest idle one of a client that has signed nothing.

Anybody can open connections, and each costs a file descriptor. Machines and operators sign their requests, so a connection counts as known
once a request on it was admitted; unknown clients share the rest.
"""

import logging
from collections.abc import Collection
from itertools import count
from typing import Protocol

from prime_train.control_plane.server.open_files import ConnectionLimits

SHED_SHARE = 16
"""When connections have to be closed, one in this many is closed at a time, so that in a flood not every new connection causes a search
through all connections."""
LOG_S = 10.0

log = logging.getLogger(__name__)


class Guest(Protocol):
    """An open connection of a client. `is_known`: it has carried a signed request; `is_busy`: a request on it is not answered yet; `turn`:
    rises with each new connection and each complete request head, but not with single bytes that a client sends slowly."""

    is_known: bool
    turn: int

    @property
    def is_busy(self) -> bool: ...

    def leave(self) -> None: ...


class ConnectionLimiter:
    """Keeps the number of a server's connections within its limits. Use only in the event loop's thread."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._turns = count(1)
        self._shed, self._logged_s = 0, float("-inf")

    def next_turn(self) -> int:
        return next(self._turns)

    def joined(self, guests: Collection[Guest], now_s: float) -> None:
        """Close connections over the limits; called with all open connections whenever one is added."""
        if len(guests) <= self._limits.strangers:
            return
        strangers = [guest for guest in guests if not guest.is_known]
        if len(strangers) > self._limits.strangers:
            # A request in progress does not protect unknown clients: a signed one takes only a moment.
            self._send_away(strangers, len(strangers) - self._limits.strangers, len(guests), now_s)
        elif len(guests) > self._limits.connections:
            idle = [guest for guest in guests if not (guest.is_known and guest.is_busy)]
            self._send_away(idle, len(guests) - self._limits.connections, len(guests), now_s)

    def _send_away(self, candidates: "list[Guest]", least: int, open_now: int, now_s: float) -> None:
        ranked = sorted(candidates, key=lambda guest: (guest.is_known, guest.turn))
        leaving = ranked[: max(least, len(ranked) // SHED_SHARE)]
        for guest in leaving:
            guest.leave()
        self._shed += len(leaving)
        if now_s - self._logged_s >= LOG_S:
            log.warning(
                "%d connections were open, of which %d may belong to clients that have not signed a request; closed %d, the longest "
                "idle first",
                open_now,
                self._limits.strangers,
                self._shed,
            )
            self._shed, self._logged_s = 0, now_s
