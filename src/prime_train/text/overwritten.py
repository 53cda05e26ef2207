"""Lines as a terminal shows them in the end: what a program overwrote by a carriage return, as progress bars
do, is left out.
"""


def lines_in_the_end(text: str) -> list[str]:
    """Return the lines of the text, each with its last state alone. Lines end at line feeds; a carriage
    return begins a line again.
    """
    if "\r" not in text:
        return text.splitlines()
    lines = [_last_state(line) for line in text.split("\n")]
    return [part for line in (lines if lines[-1] else lines[:-1]) for part in (line.splitlines() or [""])]


def _last_state(line: str) -> str:
    return next((state for state in reversed(line.split("\r")) if state), "")


class Overwritten:
    """Reads a text that arrives in pieces, and leaves out the states that are overwritten within the same
    piece. What is not complete yet is held back, but only where lines are overwritten at all.
    """

    def __init__(self) -> None:
        self._held = ""
        self._is_open = False
        """Whether what was returned last is the beginning of a line."""

    def of(self, piece: str) -> str:
        """Return what is new and complete."""
        text = self._held + piece
        if "\r" not in text:
            self._held = ""
            return self._noted(text)
        *lines, begun = text.split("\n")
        over, self._held = _parted(begun)
        return self._noted(
            "".join(f"{self._continued(line)}\n" for line in lines)
            + (f"{self._continued(over)}\n" if _last_state(over) else "")
        )

    def end(self) -> str:
        """Return what is held back."""
        held, self._held = self._held, ""
        return self._noted(self._continued(held))

    def _continued(self, line: str) -> str:
        """Return the last state of the line, on a line of its own if an earlier state was returned
        already.
        """
        first, state = line.partition("\r")[0], _last_state(line)
        is_overwritten = self._is_open and state != "" and not (state == first and line.rstrip("\r") == first)
        self._is_open = False
        return f"\n{state}" if is_overwritten else state

    def _noted(self, text: str) -> str:
        self._is_open = not text.endswith("\n") if text else self._is_open
        return text


def _parted(begun: str) -> tuple[str, str]:
    """Return the states of a line that are over, and the one that may still be written. A carriage return at
    the end may be the first half of a line's end, so it decides nothing yet.
    """
    over, sign, last = begun.rstrip("\r").rpartition("\r")
    return over, (sign if not _last_state(over) else "") + last + begun[len(begun.rstrip("\r")) :]
