"""Pods on RunPod: containers with GPUs in its data centres (secure cloud) or on machines of its partners (community cloud)."""
