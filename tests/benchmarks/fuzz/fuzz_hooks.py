"""Hooks that schemathesis loads when `fuzz_api.py` runs it: they sign the requests and give them valid
paths.
"""

import itertools
import os
from typing import Any

import schemathesis
from schemathesis import Case, HookContext

from tests.server.fuzzing import Signed, fit

MASTER, BEFORE = "FUZZ_MASTER", "FUZZ_BEFORE"
UNSIGNED = 7
"""One request in this many is sent without a signature."""

_numbers = itertools.count(1)
_signed = Signed(bytes.fromhex(os.environ[MASTER]), before=os.environ[BEFORE])


@schemathesis.hook
def before_call(context: HookContext, case: Case, kwargs: dict[str, Any]) -> None:
    number = next(_numbers)
    fit(case, number)
    if number % UNSIGNED:
        kwargs["auth"] = _signed
