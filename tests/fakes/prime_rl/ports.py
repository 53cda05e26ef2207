"""A free port for the inference server's router whose engine, 100 above, has a free one, too."""

import socket

TRIES_MAX = 50


def port_of_a_server() -> int:
    for _ in range(TRIES_MAX):
        with socket.socket() as router, socket.socket() as engine:
            router.bind(("127.0.0.1", 0))
            port: int = router.getsockname()[1]
            if port + 100 > 65_535:
                continue
            try:
                engine.bind(("127.0.0.1", port + 100))
            except OSError:
                continue
            return port
    raise AssertionError(f"none of {TRIES_MAX} ports is free with the one 100 above")
