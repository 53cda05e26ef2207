"""What a drill shows of the answers of a provider's API: beside each, where it is known from, and whether it was as it is known to be."""

from collections.abc import Iterator, Sequence

from prime_train.providers.answers.known import BELIEF, Judged, Verdict

WHYS_SHOWN = 3
_SOURCE = {True: "belief", False: "source"}


def judged_rows(judged: Sequence[Judged]) -> Iterator[tuple[str, str, str, str]]:
    """Yield a row for each answer: the call and its status, what it means, whether that has a source, and the verdict."""
    for one in judged:
        times = f" {one.times}x" if one.times else ""
        yield one.what, one.says, _SOURCE[one.source == BELIEF] if one.source != "none" else "none", f"{one.verdict.value}{times}"


def difference_lines(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield a line for each difference, at most `WHYS_SHOWN` of one answer."""
    for one in judged:
        if one.verdict is Verdict.DIFFERS:
            for why in one.why[:WHYS_SHOWN]:
                yield f"{one.what}: {why}"
            if len(one.why) > WHYS_SHOWN:
                yield f"{one.what}: and {len(one.why) - WHYS_SHOWN} more"


def counts(judged: Sequence[Judged]) -> str:
    """Return in words how many answers were as they are known to be."""
    seen = sum(one.verdict is Verdict.SEEN for one in judged)
    differ = sum(one.verdict is Verdict.DIFFERS for one in judged)
    beliefs = sum(one.source == BELIEF and one.verdict is Verdict.SEEN for one in judged)
    return f"{seen} of {len(judged)} known answers seen as they are known, {beliefs} of them beliefs until now; {differ} differ"
