"""The control plane as one process: the application under an HTTP server, and the watcher beside it."""
