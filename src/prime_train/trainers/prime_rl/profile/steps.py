"""Step times of any trainer: how long steps take, and the share of the time that is spent on saves."""

from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.text import Text

from prime_train.status.profile import StepSummary
from prime_train.trainers.prime_rl.profile.bottlenecks import percent, seconds

NO_MORE = "no more is known: this trainer reports its steps, but not the parts of a step"


def page(found: StepSummary) -> RenderableType:
    lines = [Text.assemble((found.run, "bold"), f", trainer {found.kind}")]
    if found.median_s is not None and found.p90_s is not None:
        words = (
            f"a step takes {seconds(found.median_s)} (median), {seconds(found.p90_s)} at the slow "
            "end "
            f"(p90), over {found.steps} steps"
        )
        lines.append(Text(words))
    elif found.mean_s is not None:
        slow = f", {seconds(found.slow_s)} at the slow end (p95)" if found.slow_s is not None else ""
        lines.append(Text(f"a step takes {seconds(found.mean_s)} (mean of the newest attempt){slow}"))
    else:
        lines.append(
            Text("the time of a step is unknown: too few steps were completed, or they have no timestamps")
        )
    if found.probe:
        lines.append(Text(f"measured: {found.probe}"))
    if found.save_share is not None and found.save_s is not None and found.save_every_s is not None:
        once = f"{seconds(found.save_s)} every {seconds(found.save_every_s)}"
        lines.append(Text(f"saves take {percent(found.save_share)} of the time: {once}"))
    return Group(*lines, Text(NO_MORE, style="dim"))


def record(found: StepSummary) -> dict[str, object]:
    return {**asdict(found), "note": NO_MORE}
