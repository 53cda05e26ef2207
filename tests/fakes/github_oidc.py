"""A fake of GitHub's issuer of tokens for jobs: its published keys, and the address at which a job requests a
token.

Its responses have the form of the real ones (docs.github.com, "OpenID Connect reference", read in November
2026): RS256, a `kid`, five minutes of validity, the audience that the job asked for, and 401 for a job's
request with another bearer.
"""

import time
from dataclasses import dataclass, field
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.fakes.http import HttpFake, Json, Refusal, Request, Route, json_response

BEARER = "of-this-job"
VALID_S = 300


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class SigningKey:
    """A key with which tokens are signed, and its id."""

    kid: str = "key-1"
    private: rsa.RSAPrivateKey = field(default_factory=new_key)

    def published(self) -> Json:
        return dict(jwt.algorithms.RSAAlgorithm.to_jwk(self.private.public_key(), as_dict=True)) | {
            "kid": self.kid,
            "use": "sig",
            "alg": "RS256",
        }


class FakeGithubOidc(HttpFake):
    """The issuer at `url`. `key` signs; `published`: the keys that it publishes."""

    def __init__(self) -> None:
        super().__init__()
        self.key = SigningKey()
        self.published = [self.key]
        self.job: Json = {}

    def token(
        self, audience: str, *, signed_by: SigningKey | None = None, algorithm: str = "RS256", **claims: Any
    ) -> str:
        """Return a token for a job; `claims` replace its own, and one that is None is left out."""
        now_s = int(time.time())
        made = {
            "iss": self.url,
            "aud": audience,
            "sub": "repo:acme/rl:environment:gpu",
            "repository": "acme/rl",
            "repository_owner": "acme",
            "ref": "refs/heads/main",
            "environment": "gpu",
            "actor": "ann",
            "event_name": "workflow_dispatch",
            "jti": f"{now_s}",
            "iat": now_s,
            "nbf": now_s - 5,
            "exp": now_s + VALID_S,
        }
        made = {name: value for name, value in (made | self.job | claims).items() if value is not None}
        key = signed_by or self.key
        return jwt.encode(
            made, key.private if algorithm == "RS256" else "", algorithm=algorithm, headers={"kid": key.kid}
        )

    def of_job(self) -> dict[str, str]:
        """Return the variables that a job with the permission `id-token: write` has."""
        return {
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{self.url}/job/token?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": BEARER,
        }

    def get_keys(self, request: Request) -> Json:
        return {"keys": [key.published() for key in self.published]}

    def get_token(self, request: Request) -> Json:
        if request.token != BEARER:
            raise Refusal(json_response({"message": "Bad credentials"}, 401))
        return {"count": 1, "value": self.token(request.query.get("audience", "https://github.com/acme"))}

    routes = (Route("GET", "/.well-known/jwks", get_keys), Route("GET", "/job/token", get_token))
