"""A fake of a Kubernetes cluster as an HTTP server on loopback: its API, and as much of its scheduler, Job
controller and kubelets as the provider needs.

Every request and response is checked against Kubernetes' own description (tests/data/kubernetes); what is
outside of it is recorded in `violations`. What a real control plane does with the same calls is tested in
tests/kubernetes. A container starts once the Secrets that its pod mounts are there; `started` are the tickets
that it found.

The clock stands still unless `running=True`, and is advanced with `advance`.
"""

from tests.fakes.kubernetes.nodes import EXAMPLES, node
from tests.fakes.kubernetes.server import TOKEN, FakeKubernetes, Machine, Started, failure

__all__ = ["EXAMPLES", "TOKEN", "FakeKubernetes", "Machine", "Started", "failure", "node"]
