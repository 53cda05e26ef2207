"""A certificate authority of its own for each test, so that TLS on loopback is verified as it is outside."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import trustme

LOOPBACK = ("127.0.0.1", "localhost")


@dataclass(frozen=True)
class Certificate:
    """PEM files of a server: its certificate with the chain, its key, and the authority that a client has to
    trust.
    """

    chain: Path
    key: Path
    authority: Path

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.chain, self.key)
        return context

    def client_context(self) -> ssl.SSLContext:
        """Return a TLS context that trusts this authority and no other."""
        return ssl.create_default_context(cafile=str(self.authority))


def make_certificate(folder: Path, *names: str) -> Certificate:
    """Write the three files to `folder`. `names` are host names and addresses; by default those of
    loopback.
    """
    folder.mkdir(parents=True, exist_ok=True)
    authority = trustme.CA()
    issued = authority.issue_cert(*(names or LOOPBACK))
    made = Certificate(chain=folder / "chain.pem", key=folder / "key.pem", authority=folder / "authority.pem")
    made.chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    made.key.write_bytes(issued.private_key_pem.bytes())
    made.authority.write_bytes(authority.cert_pem.bytes())
    return made
