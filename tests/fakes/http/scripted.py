"""A server with scripted answers, for tests without state."""

from tests.fakes.http.fake import HttpFake
from tests.fakes.http.faults import Fault
from tests.fakes.http.messages import Request


class ScriptedServer(HttpFake):
    """Each request gets the next entry of the script, usually a `Response`; the last one is repeated."""

    def __init__(self, *script: Fault) -> None:
        super().__init__()
        self._script = list(script)

    def fault_for(self, request: Request) -> Fault:
        return self._script.pop(0) if len(self._script) > 1 else self._script[0]
