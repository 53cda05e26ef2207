"""The control plane as one process: the webhook under uvicorn, and the watcher beside it."""

from prime_train.server.app import create_app
from prime_train.server.hot import HotPath
from prime_train.server.loop import Watcher
from prime_train.server.serve import Server, run_server

__all__ = ["HotPath", "Server", "Watcher", "create_app", "run_server"]
