"""The provider `kubernetes`: a machine is one Job with one pod in a cluster, and its agent is the first process of the pod's container.

Nothing is reached by SSH. The container waits for a Secret, which does not exist until `put_agent` creates it.
"""

from prime_train.adapters.pods_kubernetes.client import KubernetesClient
from prime_train.adapters.pods_kubernetes.kubeconfig import Cluster
from prime_train.adapters.pods_kubernetes.pods import KubernetesPods
from prime_train.adapters.pods_kubernetes.settings import Settings, read_settings

__all__ = ["Cluster", "KubernetesClient", "KubernetesPods", "Settings", "read_settings"]
