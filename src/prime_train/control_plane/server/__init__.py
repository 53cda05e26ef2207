"""The control plane as one process: the webhook under uvicorn, and the watcher beside it."""
