"""A bucket that a function of the stack uses: whatever the template does not allow it fails the test at
once.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from prime_train.buckets.port import Bucket, Content, Data, Stat
from tests.fakes.iam.policies import Right, Wanted, granted
from tests.lambdas.roles import Stack, statements

NAME = "bucket-of-the-stack"


class JudgedBucket:
    """Passes calls on to a bucket. `used`: the rights that they needed."""

    def __init__(self, behind: Bucket, function: str) -> None:
        self._behind, self._function, self.name = behind, function, NAME
        self.used: set[Right] = set()

    def put(self, key: str, data: Data) -> None:
        self._needs("s3:PutObject", key)
        self._behind.put(key, data)

    def put_if(self, key: str, data: bytes, *, tag: str | None) -> bool:
        self._needs("s3:PutObject", key)
        return self._behind.put_if(key, data, tag=tag)

    def put_file(self, key: str, path: Path) -> None:
        self._needs("s3:PutObject", key)
        self._behind.put_file(key, path)

    def get(self, key: str) -> Content | None:
        self._needs("s3:GetObject", key)
        return self._behind.get(key)

    def read(self, key: str) -> Data | None:
        self._needs("s3:GetObject", key)
        return self._behind.read(key)

    def get_file(self, key: str, path: Path) -> bool:
        self._needs("s3:GetObject", key)
        return self._behind.get_file(key, path)

    def stat(self, key: str) -> Stat | None:
        self._needs("s3:GetObject", key)
        return self._behind.stat(key)

    def list(self, prefix: str) -> Iterator[Stat]:
        self._allowed(Wanted("s3:ListBucket", f"arn:aws:s3:::{NAME}", {"s3:prefix": prefix}))
        return self._behind.list(prefix)

    def delete(self, key: str) -> None:
        self._needs("s3:DeleteObject", key)
        self._behind.delete(key)

    def _needs(self, action: str, key: str) -> None:
        self._allowed(Wanted(action, f"arn:aws:s3:::{NAME}/{key}"))
        # A missing object is told of only to those who may list it.
        self._allowed(Wanted("s3:ListBucket", f"arn:aws:s3:::{NAME}", {"s3:prefix": key}))

    def _allowed(self, wanted: Wanted) -> None:
        right = granted(_statements(self._function), wanted)
        assert right is not None, (
            f"the template does not allow the {self._function} {wanted.action} on {wanted.resource}"
        )
        self.used.add(right)


@cache
def _statements(function: str) -> list[Any]:
    return statements(
        Stack("stack", "table", NAME, "arn:aws:secretsmanager:us-east-1:000000000000:secret:one"), function
    )
