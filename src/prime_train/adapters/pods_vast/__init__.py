"""Pods on Vast.ai: containers on machines of many hosts, at a fixed price or by a bid."""
