"""Log messages of `prime-train serve`."""

import socket

from tests.cli.shell import Shell


def test_a_provider_that_is_away_is_reported_and_not_each_try_to_reach_it(shell: Shell) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        away = {"PRIME_API_KEY": "k", "PRIME_API_BASE_URL": f"http://127.0.0.1:{nobody.getsockname()[1]}"}
        with shell.started("serve", "--port", "0", "--interval", "0.2", until="prime_train.watch", **away):
            assert "got no answer" in shell.output
            assert "urllib3" not in shell.output
