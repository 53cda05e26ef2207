"""Pods on Lambda Cloud: on-demand virtual machines with GPUs, which are billed afterwards."""
