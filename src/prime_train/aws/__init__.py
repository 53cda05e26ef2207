"""The control plane on AWS: its stack, its code, its keys."""
