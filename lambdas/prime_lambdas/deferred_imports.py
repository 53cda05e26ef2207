"""Faster imports of large modules that a function rarely needs and that a request is waiting for.

Use each context manager for one such import, not for every event.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Pause the garbage collector inside the block, and exempt from collection everything that was created there.

    Modules are made of very many objects, none of them garbage, and searching them again and again takes a tenth of the import's time.
    """
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
    """Make pydantic models that are defined inside the block build their validators on first use.

    FastAPI defines the models of the entire OpenAPI document on import. Building their validators takes a third of the import's time, and
    only one page uses them.
    """
    from pydantic import BaseModel

    BaseModel.model_config["defer_build"] = True
    try:
        yield
    finally:
        del BaseModel.model_config["defer_build"]
