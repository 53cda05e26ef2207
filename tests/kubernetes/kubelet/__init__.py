"""A small kubelet: a process that is one node of a real control plane, and runs the containers of its pods as
processes of this machine.

What it does as the real one does:

- It registers its node with the node's GPUs, labels and taints, renews the node's Lease and reports that it
  is ready.
- It watches the pods that the scheduler has bound to its node, runs their init containers and containers, and
  reports their states.
- A pod whose Secret is missing waits for it (`CreateContainerConfigError` if a variable needs it), and starts
  when it is there.
- A container has mounts, a view of processes and a first process of its own (bubblewrap), so that the command
  is process 1: only that one gets SIGTERM, it is ignored unless it is handled, and when the first process
  ends, the others are killed.
- When a pod is deleted, its first processes get SIGTERM, and SIGKILL after the grace period; then the kubelet
  deletes the object.
- When the machine is shut down (SIGTERM), its pods have a notice, and fail with the condition
  `DisruptionTarget`.
- Containers survive the death of the kubelet, and a new one finds them again. Those whose pods were deleted
  meanwhile are killed.
- Logs are served to the API server.

What it does not: images (a container sees the programs of this machine, read-only), networks (all pods share
this machine's), probes, hooks, restarts within a pod (`restartPolicy: Never` only), limits of memory.
"""
