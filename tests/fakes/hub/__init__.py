"""A fake of Hugging Face's hub on loopback: what it says of models, and their small files.

Its answers have the shapes that the hub's own client reads (test_client.py). As at the hub, a model that is gated is told of but its files
are not given; one that is not there is answered 401 to whoever shows no token, and 404 to others.
"""

from tests.fakes.hub.repos import QWEN3_8B, Repo
from tests.fakes.hub.server import TOKEN, FakeHub

__all__ = ["QWEN3_8B", "TOKEN", "FakeHub", "Repo"]
