"""The numbers that evaluations and steps after training have left so far."""

from prime_train.control_plane.results import measured_numbers
from prime_train.control_plane.wiring.home import Home
from prime_train.core.results.numbers import Number, final_numbers
from prime_train.core.run import Run


def step_results(home: Home, run: Run) -> tuple[Number, ...]:
    """Return the number that counts for each name, in the order of the names. Raises UsageError if the bucket cannot be opened, and its
    errors."""
    if not run.spec.after or not run.attempts:
        return ()
    final = final_numbers(measured_numbers(home.bucket(), run))
    return tuple(final[name] for name in sorted(final))
