"""Loading much at once, quickly: for what a function needs seldom, while somebody waits for it. Each is for once, not for every event."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Nothing of what modules are made of is garbage, but there is so much of it that the collector would look for some again and again,
    which takes a tenth of the time. It is never looked at later either."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


@contextmanager
def parsers_deferred() -> Iterator[None]:
    """Models that are made meanwhile build their parsers when those are first used. FastAPI makes the models of OpenAPI's whole document
    when it is loaded, which takes a third of the time, and one page of all uses them."""
    from pydantic import BaseModel

    BaseModel.model_config["defer_build"] = True
    try:
        yield
    finally:
        del BaseModel.model_config["defer_build"]
