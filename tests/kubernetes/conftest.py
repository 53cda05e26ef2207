"""One control plane for all tests of a process of pytest: it takes some seconds to start, and each test has a
namespace of its own.
"""

import itertools
from collections.abc import Iterator

import pytest

from tests.kubernetes.cluster import Cluster, missing, running_cluster

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    lacking = missing()
    if lacking:
        pytest.skip(f"there is no Kubernetes control plane here: {lacking}")
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """Return the test's own namespace. The machines that the test has added are gone at its end."""
    yield cluster.namespace(f"test-{next(_NUMBERS)}")
    cluster.remove_machines()
