"""Loaded by schemathesis where `fuzz_api.py` has it run: signs what it sends, and aims it."""

import itertools
import os
from typing import Any

import schemathesis
from schemathesis import Case, HookContext

from tests.server.fuzzing import Signed, fit

MASTER, BEFORE = "FUZZ_MASTER", "FUZZ_BEFORE"
UNSIGNED = 7
"""One request in so many is sent without a signature."""

_numbers = itertools.count(1)
_signed = Signed(bytes.fromhex(os.environ[MASTER]), before=os.environ[BEFORE])


@schemathesis.hook
def before_call(context: HookContext, case: Case, kwargs: dict[str, Any]) -> None:
    number = next(_numbers)
    fit(case, number)
    if number % UNSIGNED:
        kwargs["auth"] = _signed
