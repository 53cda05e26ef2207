"""The program of W&B's process: it calls the public API of the package `wandb`.

Standard input brings a call a line, standard output gets a line with its answer, both as JSON. It ends with
its standard input. It imports nothing of prime_train, and is run by its path.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import wandb
from wandb.apis.public.runs import RunNotFoundError

APIS_MAX = 8
"""Number of accounts and servers whose API objects are kept; making one costs a request."""

Call = Mapping[str, Any]


def main() -> None:
    # What the package or its own process prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    apis: dict[tuple[object, ...], Any] = {}
    for line in sys.stdin:
        call = json.loads(line)
        begun_s = time.monotonic()
        try:
            answer: object = {"answer": CALLS[call["call"]](_api(apis, call), call)}
        except Exception as error:  # whatever the package raises is the caller's to judge
            answer = {"problem": problem(error, is_late=time.monotonic() - begun_s >= call["call_s"])}
        print(json.dumps(answer), file=answers, flush=True)


def _api(apis: dict[tuple[object, ...], Any], call: Call) -> Any:
    """Return the API object for the account of the call: the package verifies the key when it is made."""
    account = call["url"], call["key"], call["call_s"]
    if account not in apis:
        overrides = {"base_url": call["url"]} if call["url"] else {}
        apis[account] = wandb.Api(overrides=overrides, api_key=call["key"], timeout=call["call_s"])
        while len(apis) > APIS_MAX:
            apis.pop(next(iter(apis)))
    return apis[account]


def problem(error: BaseException, *, is_late: bool) -> dict[str, object]:
    """Return what is wrong, from the error and those that it wraps. `status`: the status of W&B's response, 0
    if it is unknown; `kind`: `late` if a request took all of its time, `malformed` if the package could not
    make sense of the response, else `said`, and `text` is the message.
    """
    chain = [error]
    while (inner := _wrapped(chain[-1])) is not None and inner not in chain:
        chain.append(inner)
    responses = [found for one in chain if (found := getattr(one, "response", None)) is not None]
    status = next((int(found.http_status) for found in responses if getattr(found, "http_status", 0)), 0)
    if responses:
        return {"kind": "said", "text": str(chain[-1]), "status": status}
    if is_late:
        return {"kind": "late", "text": "", "status": 0}
    if type(chain[-1]).__module__.startswith("wandb."):
        return {"kind": "said", "text": str(chain[-1]), "status": 0}
    # The text of any other error may hold all that was received.
    return {"kind": "malformed", "text": type(chain[-1]).__name__, "status": 0}


def _wrapped(error: BaseException) -> BaseException | None:
    inner: BaseException | None = getattr(error, "exc", None) or error.__cause__
    return inner or (None if error.__suppress_context__ else error.__context__)


def entity(api: Any, _: Call) -> object:
    return api.default_entity


def run(api: Any, call: Call) -> object:
    """Return the run as it is now, with its step and summary, or None if W&B has none with that id."""
    api.flush()  # the package keeps runs as they were
    try:
        found = _run(api, call)
    except wandb.Error as error:
        if isinstance(getattr(error, "exc", None), RunNotFoundError):
            return None
        raise
    return fields(found) | {
        "historyKeys": found.historyKeys,
        "summary": found.summary_metrics if call["with_summary"] else None,
    }


def runs(api: Any, call: Call) -> object:
    """Return the runs of the project in this state, without step, or None if W&B has no such project."""
    api.flush()
    found = api.runs(
        f"{call['entity']}/{call['project']}",
        {"state": call["state"]},
        order=call["order"],
        per_page=call["per_page"],
    )
    try:
        return [fields(one) for one in islice(found, call["count_max"])]
    except ValueError:
        if (found.last_response or {"project": True}).get("project") is None:
            return None
        raise


def mark_failed(api: Any, call: Call) -> object:
    """Mark the run that `run` has returned last."""
    return _run(api, call).update_state("failed")


def summarize(api: Any, call: Call) -> object:
    """Add the values to the summary of the run that `run` has returned last: all of it is replaced."""
    _run(api, call).summary.update(call["values"])
    return True


def _run(api: Any, call: Call) -> Any:
    return api.run(f"{call['entity']}/{call['project']}/{call['run_id']}")


def fields(found: Any) -> dict[str, object]:
    names = {
        "name": "id",
        "displayName": "name",
        "state": "state",
        "heartbeatAt": "heartbeatAt",
        "notes": "notes",
    }
    return {name: getattr(found, attribute) for name, attribute in names.items()}


CALLS: Mapping[str, Callable[[Any, Call], object]] = {
    one.__name__: one for one in (entity, run, runs, mark_failed, summarize)
}

if __name__ == "__main__":
    main()
