"""The provider `kubernetes`: a machine is one Job with one pod in a cluster, and its agent is the first process of the pod's container.

Nothing is reached by SSH. The container waits for a Secret, which does not exist until `put_agent` creates it.
"""
