"""Exceptions with which code refuses what it was given, in a sentence of its own that no row of the table
knows.

Python's conventions tell them apart from a slip of the code: a ValueError, an assertion with a text, a
NotImplementedError or a key that is a sentence was written by somebody who looked at a value and found it
wrong. What computing itself says of shapes and types is no refusal, and neither is what is said of one step:
by then the settings had been accepted.
"""

from prime_train.trainers.patterns import found_in

_REFUSING = (
    r"^(\S+\.)?(ValueError|AssertionError|NotImplementedError|LookupError|\w*NotFoundError|"
    r"NotADirectoryError|IsADirectoryError"
    r"|FileExistsError): \S+ \S+ \S+|^(\S+\.)?KeyError: ['\"]\S+ \S+ \S+"
)
_COMPUTED = (
    r"(?i)\b(shapes?|dimensions?|dtypes?|tensors?|arrays?|broadcast|unpack|operands?|axis|floats?|integers?|"
    r"literal|math domain|closed file"
    r"|not in list|substring|a sequence|to match|batch_size|caught \w+ in|checksum|corrupt\w*|truncated|torn|"
    r"damaged|nan|inf)\b"
    r"|\b(step|iteration|iter|epoch|batch|rank|process|worker) #?\d"
)


def is_refusal(exception: str) -> bool:
    """Return whether the exception refuses a setting, the model or the data, rather than being a slip of the
    code.
    """
    return found_in(_REFUSING, exception) and not found_in(_COMPUTED, exception)
